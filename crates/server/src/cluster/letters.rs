//! Messages of the kernel to other nodes, and of other nodes to the kernel: of chains, and of transactions
//! over slots.

use super::links::Links;
use crate::front::Message;
use rufous_base::{Effects, Now};
use rufous_cluster::alike;
use rufous_command::DataCommands;
use rufous_kernel::Worker;
use rufous_kernel::worker::{Letter, Place, Posted};
use rufous_mapping::NodeNo;
use rufous_wire::message as wire;
use rufous_wire::{Body, Class, Envelope};

/// A message of chains. Returns the number of messages that no handler takes.
pub(super) fn hear(
    now: Now,
    node: NodeNo,
    envelope: Envelope,
    kernel: &mut Worker<DataCommands>,
) -> u64 {
    match envelope {
        Envelope {
            body: Some(Body::Alike(alike)),
            ..
        } => {
            let each = alike.each().map(|items| {
                let body = Some(Body::Items(items));
                hear_one(now, node, Envelope { body, ..envelope }, kernel)
            });
            each.sum()
        }
        envelope => hear_one(now, node, envelope, kernel),
    }
}

fn hear_one(now: Now, node: NodeNo, envelope: Envelope, kernel: &mut Worker<DataCommands>) -> u64 {
    match envelope.into_chain(node) {
        Some((from, said)) => {
            kernel.on_peer(now, from, said);
            0
        }
        None => 1,
    }
}

/// A message of a transaction over slots.
pub(super) fn read(letter: &wire::Letter) -> Option<Letter> {
    let from = place(letter.from_slot, letter.from_since);
    let to = place(letter.to_slot, letter.to_since);
    Letter::read(from, to, &letter.message)
}

fn written(letter: &Letter) -> wire::Letter {
    let (from, to) = (numbers(letter.from), numbers(letter.to));
    wire::Letter {
        from_slot: from.0,
        from_since: from.1,
        to_slot: to.0,
        to_since: to.1,
        message: letter.write().into(),
    }
}

/// The slot of a letter with the epoch of its chain, as numbers: 0 stands for the origin.
fn numbers(place: Place) -> (u32, u64) {
    match place {
        Place::Slot { slot, since } => (u32::from(slot) + 1, since),
        Place::Origin => (0, 0),
    }
}

fn place(slot: u32, since: u64) -> Place {
    match slot.checked_sub(1) {
        Some(slot) => Place::Slot {
            slot: slot as u16,
            since,
        },
        None => Place::Origin,
    }
}

/// Sends the kernel's messages to other nodes.
pub(super) fn send(
    now: Now,
    links: &mut Links,
    kernel: &mut Worker<DataCommands>,
    fx: &mut Effects<Message>,
) {
    for Posted { to, letter } in kernel.take_letters() {
        let envelope = Envelope {
            from: kernel.id().0.into(),
            to: to.worker.into(),
            ..links.envelope(Body::Letter(written(&letter)))
        };
        links.send(now, to.node, Class::Chain, envelope, fx);
    }
    let from = kernel.id().0;
    let said: Vec<_> = kernel
        .take_peer_messages()
        .into_iter()
        .map(|said| {
            let class = match (said.envelope.message.chain(), said.learning) {
                (None, _) => Class::Control,
                (Some(_), true) => Class::Learning,
                (Some(_), false) => Class::Chain,
            };
            let envelope = Envelope::of_chain(from, said.to, said.envelope);
            (said.to.node, class, envelope)
        })
        .collect();
    let count = said.len();
    let joined = alike::join(said);
    kernel.on_joined(count - joined.len());
    for (node, class, envelope) in joined {
        links.send(now, node, class, envelope, fx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_were_written() {
        for slot in [0, 7, 16_383] {
            let (written, since) = numbers(Place::Slot { slot, since: 9 });
            assert!(written > 0);
            let read = place(written, since);
            assert!(matches!(read, Place::Slot { slot: s, since: 9 } if s == slot));
        }
        let (written, since) = numbers(Place::Origin);
        assert!(matches!(place(written, since), Place::Origin));
    }
}
