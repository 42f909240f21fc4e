//! What slots tell of a transaction to one that may have lost the end of its log.

use crate::message::Predecessor;
use crate::txn::{Stamp, Transaction};
use std::sync::Arc;

/// The end of a transaction, as the slots know it that have told it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ending {
    pub stamp: Stamp,
    pub after: Vec<Predecessor>,
    pub told: Arc<[u8]>,
    /// See [`crate::Record::Applied`].
    pub alone: bool,
}

/// How far a transaction has come at a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It has come here, past the slots before.
    Passed,
    /// Its stamp is known here: so it was applied at all later slots.
    Ended(Ending),
    Aborted,
    /// This is its first slot, which remembers it as forgotten.
    Forgotten,
}

impl Stage {
    /// About how many bytes it has.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Ended(ending) => ending.told.len(),
            Self::Passed | Self::Aborted | Self::Forgotten => 0,
        }
    }
}

/// What one slot has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct At {
    pub slot: u16,
    /// `None`: nothing that it could tell.
    pub stage: Option<Stage>,
}

/// What slots have of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fact<O> {
    pub txn: Arc<Transaction<O>>,
    pub at: Vec<At>,
}

impl<O> Fact<O> {
    /// What other slots than this one have told.
    pub(crate) fn others(&self, slot: u16) -> impl Iterator<Item = (u16, &Stage)> {
        let others = self.at.iter().filter(move |at| at.slot != slot);
        others.filter_map(|at| Some((at.slot, at.stage.as_ref()?)))
    }
}
