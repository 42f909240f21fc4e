//! Messages between heads, records of a slot, and what a handler puts out.

use crate::fact::At;
use crate::txn::{Stamp, Transaction, TxnId};
use std::sync::Arc;

/// A transaction that comes before another one and may not be settled, with the slot that settles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Predecessor {
    pub txn: TxnId,
    pub first: u16,
}

/// A transaction of slots that are asked for, which are `of`, and of the slots `at` of the worker that answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Found {
    pub txn: TxnId,
    pub of: Vec<u16>,
    pub at: Vec<u16>,
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Committed,
    /// A key had another version than the expected one, or a slot has refused it.
    Aborted,
}

/// Between the heads of slots, and between the first slot of a transaction and the node that it came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message<O> {
    /// From the slot before; `max`: the largest time proposed so far.
    Forward { txn: Arc<Transaction<O>>, max: u64 },
    /// From the slot after: it is applied there and at all later slots.
    Backward {
        txn: TxnId,
        stamp: Stamp,
        after: Vec<Predecessor>,
        /// What these slots tell the client.
        told: Arc<[u8]>,
    },
    /// From the slot after: it is aborted.
    Undo { txn: TxnId, told: Arc<[u8]> },
    /// To the first slot of a predecessor: say when it is settled; `before`: the stamp of the transaction that waits.
    Ask { txn: TxnId, before: Stamp },
    /// The answer where it is no predecessor: a loss has changed its stamp.
    Later { stamp: Stamp },
    /// From the first slot: it is settled.
    Settled { txn: TxnId },
    /// To the first slot: the log has it.
    Safe { txn: TxnId },
    /// From the slot before: it has forgotten it.
    Forget { txn: TxnId, slots: Arc<[u16]> },
    /// To the slot after, which has sent something about it: it was forgotten here.
    Unknown { txn: TxnId },
    /// From the last slot to the first: all others have forgotten it.
    Gone { txn: TxnId },
    /// From the first slot to the node of the client.
    Outcome {
        txn: TxnId,
        outcome: Outcome,
        /// What its slots have told, in their order; of an aborted one, why.
        told: Arc<[u8]>,
    },
    /// From that node: the client has its answer.
    Heard { txn: TxnId },
    /// To the slot before, of what was prepared ahead of its message: is it prepared there?
    IsPrepared { txn: TxnId },
    /// The answer: it is, or it is applied; `max` as in [`Message::Forward`]. What the slot does not have is not prepared for that.
    Proposed { txn: TxnId, max: u64 },
    /// The answer: it is not.
    Unprepared { txn: TxnId },
    /// To the slot after, of what was applied here alone: is it applied there?
    IsApplied { txn: TxnId },
    /// Between workers that head slots ([`crate::Survey`]). From one with these slots, which may have lost the ends of their logs:
    /// which slots of the receiver have transactions of them? Receivers answer whose mapping is not older than that of `epoch`, and
    /// has the same last epoch in which a chain has continued with loss, which is `lost`. `round`: the number of this question, which its answers repeat.
    Survey {
        round: u64,
        epoch: u64,
        lost: u64,
        slots: Vec<u16>,
    },
    /// The answer, for all slots that the receiver heads, which are `covers`.
    Surveyed {
        round: u64,
        covers: Vec<u16>,
        found: Vec<Found>,
    },
    /// Likewise: what do the slots `at` have of these transactions?
    Recall {
        round: u64,
        epoch: u64,
        lost: u64,
        found: Vec<Found>,
    },
    /// The answer about one of them, which is `txn` if there is something to tell.
    Recalled {
        round: u64,
        id: TxnId,
        txn: Option<Arc<Transaction<O>>>,
        at: Vec<At>,
    },
    /// From the node of a client: read these keys of the receiver's worker, by its commands in this body, and record nothing.
    /// `known`: what [`Message::Values`] has said of them before.
    Read {
        txn: TxnId,
        keys: Vec<Arc<[u8]>>,
        known: Vec<u64>,
        body: Arc<[u8]>,
    },
    /// The answer. `seen`: numbers that are the same as long as these keys are; empty: they cannot be read now. Where they are
    /// those that are known, nothing is told again.
    Values {
        txn: TxnId,
        seen: Vec<u64>,
        told: Arc<[u8]>,
    },
}

impl<O> Message<O> {
    /// The transaction that it brings to a slot, whole.
    pub fn brought(&mut self) -> Option<&mut Arc<Transaction<O>>> {
        match self {
            Self::Forward { txn, .. } => Some(txn),
            Self::Recalled { txn, .. } => txn.as_mut(),
            _ => None,
        }
    }

    /// The output that sends it, perhaps only when the logs have synced what was recorded before.
    pub(crate) fn gated(self, to: To, synced: bool) -> Output<O> {
        if synced {
            Output::SendSynced(to, self)
        } else {
            Output::Send(to, self)
        }
    }
}

/// What the copies and logs of a slot keep, in one order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record<O> {
    Prepared {
        txn: Arc<Transaction<O>>,
        proposal: u64,
        max: Option<u64>,
    },
    /// Its parts at the slot are applied with this record.
    Applied {
        txn: Arc<Transaction<O>>,
        stamp: Stamp,
        after: Vec<Predecessor>,
        told: Arc<[u8]>,
        /// `after` and `told` are of this slot only: the slot after was not known to keep what it had applied.
        alone: bool,
    },
    Aborted {
        txn: Arc<Transaction<O>>,
        told: Arc<[u8]>,
    },
    /// At its first slot its identity stays until all others have forgotten it.
    Forgotten {
        txn: TxnId,
    },
    Dropped {
        txn: TxnId,
    },
    /// The log may have lost its end. Until [`Record::Recovered`] each head asks the other slots for what it may lack.
    Lost,
    Recovered,
}

impl<O> Record<O> {
    /// The transaction whose entry it changes, if it does not concern the whole slot.
    pub fn txn(&self) -> Option<TxnId> {
        match self {
            Self::Prepared { txn, .. } | Self::Applied { txn, .. } | Self::Aborted { txn, .. } => {
                Some(txn.id)
            }
            Self::Forgotten { txn } | Self::Dropped { txn } => Some(*txn),
            Self::Lost | Self::Recovered => None,
        }
    }
}

/// A receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum To {
    /// The head of a slot.
    Slot(u16),
    /// The node that a transaction came from, if it has not started again since.
    Origin { node: u16, start: u64 },
}

/// What a head does that the heads of other slots need not wait for, where one worker has them both: what is recorded for
/// all of them is kept at the same time. Nothing relies on it before a message says the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ahead<O> {
    /// From the slot before: it is prepared.
    Prepared { txn: Arc<Transaction<O>> },
    /// From the slot after: it is applied, and so many bytes are told by that slot and later ones.
    Applied {
        txn: TxnId,
        stamp: Stamp,
        bytes: usize,
    },
    /// From the slot before, which is not the first: it is forgotten.
    Forgotten { txn: TxnId, slots: Arc<[u16]> },
}

/// What a handler puts out, to be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<O> {
    Record(Record<O>),
    /// To be sent when the copies have all records before it.
    Send(To, Message<O>),
    /// To be sent when the logs have synced all records before it.
    SendSynced(To, Message<O>),
    /// For the head of a slot, if it is beside this one: at once ([`crate::Head::on_ahead`]). Otherwise it is dropped.
    Beside(u16, Ahead<O>),
}
