//! Writes for one worker of another node that have bytes in common, as one message: what the slots of a transaction keep of
//! it is sent once.

use rufous_kernel::effect::entry_set;
use rufous_mapping::NodeNo;
use rufous_wire::message::{Alike, Items};
use rufous_wire::{Body, Class, Envelope};
use std::collections::BTreeMap;
use std::ops::Range;

/// Shorter values are sent with each write.
const LEAST: usize = 256;

/// A message for a node.
pub type Sent = (NodeNo, Class, Envelope);

/// Joins messages that follow one another to the same worker of a node.
pub fn join(all: Vec<Sent>) -> Vec<Sent> {
    if !all.iter().any(|sent| part_of(sent).is_some()) {
        return all;
    }
    let mut joined: Vec<Sent> = Vec::with_capacity(all.len());
    // The last message of each worker, where another one may join it.
    let mut open = BTreeMap::<(NodeNo, u32), usize>::new();
    for sent in all {
        let to = (sent.0, sent.2.to);
        if let Some((items, common)) = part_of(&sent) {
            let last = open.get(&to).and_then(|at| joined.get_mut(*at));
            if last.is_some_and(|(_, _, last)| adds(last, sent.2.epoch, items, common)) {
                continue;
            }
            open.insert(to, joined.len());
        } else {
            open.remove(&to);
        }
        joined.push(sent);
    }
    joined
}

/// The write that others may join, and where what they have in common is.
fn part_of((_, class, envelope): &Sent) -> Option<(&Items, Range<usize>)> {
    let Some(Body::Items(items)) = envelope.body.as_ref().filter(|_| *class == Class::Chain) else {
        return None;
    };
    let [item] = &items.items[..] else {
        return None;
    };
    let common = entry_set(&item.effect).filter(|range| range.len() >= LEAST)?;
    Some((items, common))
}

fn adds(last: &mut Envelope, epoch: u64, items: &Items, common: Range<usize>) -> bool {
    if last.epoch != epoch {
        return false;
    }
    match &mut last.body {
        Some(Body::Alike(alike)) => alike.add(items, common),
        Some(Body::Items(first)) => {
            let range = first.items.first().and_then(|item| entry_set(&item.effect));
            let Some(mut alike) = range.and_then(|range| Alike::of(first, range)) else {
                return false;
            };
            let is_added = alike.add(items, common);
            if is_added {
                last.body = Some(Body::Alike(alike));
            }
            is_added
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_kernel::effect::Effect;
    use rufous_kernel::shard::Shard;
    use rufous_wire::message::{Ack, Item};

    fn items(slot: u32, value: u8, len: usize) -> Body {
        let mut shard = Shard::new(1);
        shard.observers_mut().set_journaling(true);
        let entry = (&vec![value; len][..], &b"own"[..]);
        shard.set_book(slot as u16, &[7; 18], entry, rufous_base::Now::default());
        Body::Items(Items {
            slot,
            since: 5,
            all: u64::from(slot),
            items: vec![Item {
                seq: 9,
                effect: std::mem::take(shard.journal()).into(),
            }],
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

    /// What each worker gets, one write after the other.
    fn apart(all: &[Sent]) -> BTreeMap<(NodeNo, u32), Vec<Body>> {
        let mut got = BTreeMap::<_, Vec<Body>>::new();
        for (node, _, envelope) in all {
            assert_eq!(envelope.check(), Ok(()));
            let of = got.entry((*node, envelope.to)).or_default();
            match envelope.body.clone().expect("a body") {
                Body::Alike(alike) => of.extend(alike.each().map(Body::Items)),
                body => of.push(body),
            }
        }
        got
    }

    #[test]
    fn writes_with_a_long_part_in_common_are_one_message() {
        let ack = Body::Ack(Ack {
            slot: 1,
            since: 5,
            seq: 1,
        });
        let mut all = Vec::new();
        for slot in 0..60 {
            let (node, to) = (slot as u16 % 3, slot / 3 % 2);
            all.push(sent(node, to, items(slot, slot as u8 / 30, 1000)));
        }
        all.push(sent(0, 0, ack.clone()));
        all.push(sent(0, 0, items(99, 1, 1000)));
        all.push(sent(0, 0, items(98, 1, 10)));
        let joined = join(all.clone());
        assert_eq!(apart(&joined), apart(&all));
        let of = |node| joined.iter().filter(|sent| sent.0 == NodeNo(node)).count();
        assert_eq!((of(0), of(1), of(2)), (2 * 2 + 3, 2 * 2, 2 * 2));
    }

    #[test]
    fn one_message_is_bounded() {
        let mut all: Vec<Sent> = (0..1500).map(|n| sent(0, 0, items(n, 1, 300))).collect();
        assert_eq!(join(all.clone()).len(), 2);
        all.truncate(8);
        all.extend((0..8).map(|n| sent(0, 0, items(n, 1, 5 << 20))));
        let joined = join(all.clone());
        assert_eq!(joined.len(), 1 + 3, "three of five MiB in each");
        assert_eq!(apart(&joined), apart(&all));
    }

    #[test]
    fn others_are_left_alone() {
        let mut effect = Vec::new();
        Effect::Set {
            db: 0,
            key: b"k",
            value: &[1; 5000],
            expire_at: None,
        }
        .encode(&mut effect);
        let body = Body::Items(Items {
            items: vec![Item {
                seq: 1,
                effect: effect.into(),
            }],
            ..Items::default()
        });
        let all = vec![sent(0, 0, body.clone()), sent(0, 0, body)];
        assert_eq!(join(all.clone()), all);
    }
}
