//! Messages of the kernel to other nodes, and of other nodes to the kernel: of chains, and of transactions
//! over slots.

use super::links::Links;
use crate::front::Message;
use rufous_base::{Effects, Now};
use rufous_chain::{self as chain, Peer};
use rufous_cluster::joined::Turn;
use rufous_command::DataCommands;
use rufous_kernel::Worker;
use rufous_kernel::worker::{Letter, Place, Posted};
use rufous_mapping::NodeNo;
use rufous_wire::message::{self as wire, Part};
use rufous_wire::{Body, Class, Envelope};

/// A message about chains or transactions. Returns the number of messages that no handler takes.
pub(super) fn hear(
    now: Now,
    node: NodeNo,
    envelope: Envelope,
    kernel: &mut Worker<DataCommands>,
) -> u64 {
    let (epoch, from) = (envelope.epoch, envelope.from);
    match envelope.body {
        Some(Body::Joined(joined)) => {
            let Ok(worker) = u16::try_from(from) else {
                return 1;
            };
            let from = Peer { node, worker };
            let mut unused = 0;
            for part in joined.each() {
                match part {
                    Part::Chain(message) => {
                        kernel.on_peer(now, from, chain::Envelope { epoch, message })
                    }
                    Part::Letter(letter) => unused += hear_letter(node, &letter, kernel),
                }
            }
            unused
        }
        Some(Body::Letter(letter)) => hear_letter(node, &letter, kernel),
        Some(Body::Alike(alike)) => {
            let each = alike.each().map(|items| {
                let body = Some(Body::Items(items));
                hear_one(now, node, Envelope { body, ..envelope }, kernel)
            });
            each.sum()
        }
        _ => hear_one(now, node, envelope, kernel),
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

fn hear_letter(node: NodeNo, letter: &wire::Letter, kernel: &mut Worker<DataCommands>) -> u64 {
    match read(letter) {
        Some(letter) => {
            kernel.on_letter(node, letter);
            0
        }
        None => 1,
    }
}

/// A message of a transaction over slots.
fn read(letter: &wire::Letter) -> Option<Letter> {
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
    let mut turn = Turn::default();
    let from = kernel.id().0.into();
    let bare = |epoch, to: Peer| Envelope {
        epoch,
        from,
        to: to.worker.into(),
        body: None,
    };
    let epoch = links.epoch();
    for Posted { to, letter } in kernel.take_letters() {
        let part = Part::Letter(written(&letter));
        turn.add(to.node, Class::Chain, bare(epoch, to), part);
    }
    for said in kernel.take_peer_messages() {
        let class = match (said.envelope.message.chain(), said.learning) {
            (None, _) => Class::Control,
            (Some(_), true) => Class::Learning,
            (Some(_), false) => Class::Chain,
        };
        let envelope = bare(said.envelope.epoch, said.to);
        turn.add(
            said.to.node,
            class,
            envelope,
            Part::Chain(said.envelope.message),
        );
    }
    let (sent, likes) = turn.finish();
    kernel.on_joined(likes);
    for (node, class, envelope) in sent {
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
