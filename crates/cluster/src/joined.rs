//! What a worker says in one turn to a worker of another node about chains and transactions, as one message.

use rufous_kernel::effect::entry_set;
use rufous_mapping::NodeNo;
use rufous_wire::message::{Joining, Part};
use rufous_wire::{Body, Class, Envelope};
use std::collections::BTreeMap;

/// A longer value is sent once where several writes have it: what slots keep of a transaction.
const LEAST: usize = 256;

/// A message for a worker of a node, as it is sent.
pub type Sent = (NodeNo, Class, Envelope);

/// The messages of one turn.
#[derive(Debug, Default)]
pub struct Turn {
    sent: Vec<(NodeNo, Class, Envelope, Joining)>,
    /// The last message of each worker, where others may join it.
    open: BTreeMap<(NodeNo, u32), usize>,
}

impl Turn {
    /// Adds a message. `envelope` has no body.
    pub fn add(&mut self, node: NodeNo, class: Class, envelope: Envelope, part: Part) {
        let to = (node, envelope.to);
        if class != Class::Chain {
            return self.add_alone(node, class, envelope, part);
        }
        let common = part.only_effect().and_then(entry_set);
        let common = common.filter(|range| range.len() >= LEAST);
        if let Some((_, _, last, joining)) =
            self.open.get(&to).and_then(|at| self.sent.get_mut(*at))
            && last.epoch == envelope.epoch
            && joining.add(&part, common.clone())
        {
            return;
        }
        let mut joining = Joining::default();
        if joining.add(&part, common) {
            self.open.insert(to, self.sent.len());
            self.sent.push((node, class, envelope, joining));
        } else {
            // What follows it may not overtake it.
            self.open.remove(&to);
            self.add_alone(node, class, envelope, part);
        }
    }

    fn add_alone(&mut self, node: NodeNo, class: Class, envelope: Envelope, part: Part) {
        let body = Some(part.into());
        let envelope = Envelope { body, ..envelope };
        self.sent.push((node, class, envelope, Joining::default()));
    }

    /// The messages to send, in order, and how many writes in them share the bytes of others.
    pub fn finish(self) -> (impl Iterator<Item = Sent>, usize) {
        let likes = self.sent.iter().map(|(_, _, _, joining)| joining.likes());
        let likes = likes.sum();
        let sent = self.sent.into_iter();
        let sent = sent.map(|(node, class, mut envelope, joining)| {
            if !joining.is_empty() {
                envelope.body = Some(Body::Joined(joining.finish()));
            }
            (node, class, envelope)
        });
        (sent, likes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_kernel::effect::Effect;
    use rufous_kernel::shard::Shard;
    use rufous_wire::message::{Ack, Behind, Item, Items, Letter};

    fn write(slot: u16, effect: Vec<u8>) -> Body {
        Body::Items(Items {
            slot: slot.into(),
            since: 5,
            all: slot.into(),
            items: vec![Item {
                seq: 9,
                effect: effect.into(),
            }],
        })
    }

    /// What a slot keeps of a transaction.
    fn entry(slot: u16, value: u8, len: usize) -> Body {
        let mut shard = Shard::new(1);
        shard.observers_mut().set_journaling(true);
        let entry = (&vec![value; len][..], &b"own"[..]);
        shard.set_book(slot, &[7; 18], entry, rufous_base::Now::default());
        write(slot, std::mem::take(shard.journal()))
    }

    fn plain(slot: u16, len: usize) -> Body {
        let mut effect = Vec::new();
        Effect::Set {
            db: 0,
            key: b"k",
            value: &vec![1; len],
            expire_at: None,
        }
        .encode(&mut effect);
        write(slot, effect)
    }

    fn ack(slot: u32) -> Body {
        let (since, seq) = (5, 1);
        Body::Ack(Ack { slot, since, seq })
    }

    fn letter() -> Body {
        Body::Letter(Letter {
            to_slot: 7,
            to_since: 5,
            message: vec![1].into(),
            ..Letter::default()
        })
    }

    fn sent(node: u16, to: u32, body: Body) -> Sent {
        let envelope = Envelope {
            epoch: 3,
            from: 1,
            to,
            body: Some(body),
        };
        (NodeNo(node), Class::Chain, envelope)
    }

    fn join(all: &[Sent]) -> (Vec<Sent>, usize) {
        let mut turn = Turn::default();
        for (node, class, envelope) in all.iter().cloned() {
            let part = match envelope.body.clone().expect("a body") {
                Body::Letter(letter) => Part::Letter(letter),
                body => Part::Chain(body.try_into().expect("of chains")),
            };
            let body = None;
            turn.add(node, class, Envelope { body, ..envelope }, part);
        }
        let (sent, likes) = turn.finish();
        (sent.collect(), likes)
    }

    /// What each worker gets in a class, one after the other, with the epoch.
    fn apart(all: &[Sent]) -> BTreeMap<(NodeNo, Class, u32), Vec<(u64, Body)>> {
        let mut got = BTreeMap::<_, Vec<_>>::new();
        for (node, class, envelope) in all {
            assert_eq!(envelope.check(), Ok(()));
            let of = got.entry((*node, *class, envelope.to)).or_default();
            let body = envelope.body.clone().expect("a body");
            let parts = body.parts().unwrap_or_else(|| vec![body]);
            of.extend(parts.into_iter().map(|part| (envelope.epoch, part)));
        }
        got
    }

    #[test]
    fn messages_of_a_turn_to_one_worker_are_one() {
        let mut all = Vec::new();
        for slot in 0..60 {
            let (node, to) = (slot % 3, u32::from(slot) / 3 % 2);
            all.push(sent(node, to, letter()));
            all.push(sent(node, to, entry(slot, slot as u8 / 30, 1000)));
            all.push(sent(node, to, ack(slot.into())));
            all.push(sent(node, to, plain(slot, 64)));
        }
        let (joined, likes) = join(&all);
        assert_eq!(apart(&joined), apart(&all));
        assert_eq!(joined.len(), 3 * 2);
        assert_eq!(likes, 60 - 3 * 2 * 2, "the others have a value first");
        let bytes: usize = joined.iter().map(|(_, _, envelope)| envelope.size()).sum();
        assert!(bytes < 12 * 1100 + 60 * 300, "{bytes}");
    }

    #[test]
    fn what_cannot_be_joined_is_not_overtaken() {
        let behind = Body::Behind(Behind { slot: 3, since: 5 });
        for alone in [behind, plain(3, 100_000)] {
            let mut all = vec![sent(0, 0, ack(1)), sent(0, 0, alone), sent(0, 0, ack(2))];
            all.push(sent(0, 0, ack(3)));
            let (joined, _) = join(&all);
            assert_eq!(apart(&joined), apart(&all));
            assert_eq!(joined.len(), 3);
        }
    }

    #[test]
    fn messages_of_other_epochs_and_classes_are_others() {
        let mut all: Vec<Sent> = (0..4).map(|slot| sent(0, 0, ack(slot))).collect();
        all[1].1 = Class::Learning;
        all[2].2.epoch = 4;
        let (joined, _) = join(&all);
        assert_eq!(apart(&joined), apart(&all));
        assert_eq!(joined.len(), 4);
    }

    #[test]
    fn one_message_is_bounded() {
        let mut all: Vec<Sent> = (0..5000).map(|n| sent(0, 0, ack(n))).collect();
        assert_eq!(join(&all).0.len(), 2);
        all.truncate(8);
        all.extend((0..8).map(|n| sent(0, 0, entry(n, 1, 5 << 20))));
        let (joined, _) = join(&all);
        assert_eq!(joined.len(), 1 + 3, "three of five MiB in each");
        assert_eq!(apart(&joined), apart(&all));
    }
}
