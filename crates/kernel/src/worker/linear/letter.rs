//! Messages between the heads of slots, and between them and the workers that transactions came from.

use super::typing::KeyOp;
use rufous_base::limits::SLOTS;
use rufous_chain::Peer;
use rufous_linear::codec::Coded;
use rufous_linear::{At, Found, Message, Predecessor, Stage, Transaction, TxnId};
use std::sync::Arc;

/// The bits of a transaction's number that name the worker it came from.
pub(super) const WORKER_BITS: u32 = 10;

/// The worker that a transaction came from, at its node.
pub(super) fn worker_of(txn: TxnId) -> u16 {
    (txn.number & ((1 << WORKER_BITS) - 1)) as u16
}

/// A sender or receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The head of a slot, in the chain that is unchanged since this epoch.
    Slot { slot: u16, since: u64 },
    /// The worker that the transaction came from.
    Origin,
}

/// A message with its sender and receiver. One that was sent by or to the head of an earlier chain has no effect.
#[derive(Clone, Debug)]
pub struct Letter {
    pub from: Place,
    pub to: Place,
    pub message: Message<KeyOp>,
}

impl Letter {
    /// The message as bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.message.encode(&mut bytes);
        bytes
    }

    /// A letter of another node; `None` where the bytes are no message.
    pub fn read(from: Place, to: Place, bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let message = Message::decode(&mut rest)?;
        let is_sound = rest.is_empty() && has_slots(&message);
        is_sound.then_some(Self { from, to, message })
    }
}

/// A letter for a worker of another node.
#[derive(Clone, Debug)]
pub struct Posted {
    pub to: Peer,
    pub letter: Letter,
}

/// Whether all slots in a message exist, and a transaction is the one that it is about.
fn has_slots(message: &Message<KeyOp>) -> bool {
    let are = |slots: &[u16]| slots.iter().all(|slot| usize::from(*slot) < SLOTS);
    let firsts = |after: &[Predecessor]| after.iter().all(|one| usize::from(one.first) < SLOTS);
    let are_found = |found: &[Found]| found.iter().all(|one| are(&one.of) && are(&one.at));
    match message {
        Message::Forward { txn, .. } => are(txn.slots()),
        Message::Backward { after, .. } => firsts(after),
        Message::Forget { slots, .. } => are(slots),
        Message::Survey { slots, .. } => are(slots),
        Message::Surveyed { covers, found, .. } => are(covers) && are_found(found),
        Message::Recall { found, .. } => are_found(found),
        Message::Recalled { id, txn, at, .. } => {
            let stage = |at: &At| match &at.stage {
                Some(Stage::Ended(ending)) => firsts(&ending.after),
                _ => true,
            };
            let is_it = |txn: &Arc<Transaction<KeyOp>>| txn.id == *id && are(txn.slots());
            txn.as_ref().is_none_or(is_it) && at.iter().all(|at| are(&[at.slot]) && stage(at))
        }
        _ => true,
    }
}

/// The transaction that a message between a slot and an origin is about.
pub(super) fn txn_of(message: &Message<KeyOp>) -> Option<TxnId> {
    match message {
        Message::Forward { txn, .. } => Some(txn.id),
        Message::Outcome { txn, .. }
        | Message::Heard { txn }
        | Message::Read { txn, .. }
        | Message::Values { txn, .. } => Some(*txn),
        _ => None,
    }
}
