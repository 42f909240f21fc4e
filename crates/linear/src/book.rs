//! The replicated state of a slot: the transactions that it has not forgotten. Every copy of the slot has it, and a
//! start makes it of the log.

use crate::message::{Predecessor, Record};
use crate::txn::{Operation, Stamp, Transaction, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A transaction at a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry<O> {
    /// It was admitted, and its final time is not below `proposal`; `max`: the largest time proposed up to here, if it is
    /// known.
    Prepared {
        txn: Arc<Transaction<O>>,
        proposal: u64,
        max: Option<u64>,
    },
    Applied {
        txn: Arc<Transaction<O>>,
        stamp: Stamp,
        /// Its predecessors here and at later slots that were not settled.
        after: Vec<Predecessor>,
        /// What this slot and all later ones tell the client, in the frames of [`crate::told`].
        told: Arc<[u8]>,
        /// `after` and `told` are of this slot only: see [`Record::Applied`].
        alone: bool,
    },
    Aborted {
        txn: Arc<Transaction<O>>,
        /// Why, for the client: of the slot that has refused it.
        told: Arc<[u8]>,
    },
    /// At its first slot: other slots may still have it.
    Forgotten { txn: Arc<Transaction<O>> },
}

impl<O> Entry<O> {
    pub fn txn(&self) -> &Arc<Transaction<O>> {
        match self {
            Self::Prepared { txn, .. }
            | Self::Applied { txn, .. }
            | Self::Aborted { txn, .. }
            | Self::Forgotten { txn } => txn,
        }
    }

    /// The same, of a transaction of which more is known.
    #[must_use]
    pub fn with_txn(mut self, known: Arc<Transaction<O>>) -> Self {
        match &mut self {
            Self::Prepared { txn, .. }
            | Self::Applied { txn, .. }
            | Self::Aborted { txn, .. }
            | Self::Forgotten { txn } => *txn = known,
        }
        self
    }

    /// Where it was applied.
    pub fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Applied { stamp, .. } => Some(*stamp),
            _ => None,
        }
    }

    /// What an applied one comes after, and was not settled.
    pub fn after(&self) -> &[Predecessor] {
        match self {
            Self::Applied { after, .. } => after,
            _ => &[],
        }
    }

    /// About how many bytes messages about it have.
    pub fn bytes(&self) -> usize {
        let told = match self {
            Self::Applied { told, .. } | Self::Aborted { told, .. } => told.len(),
            Self::Prepared { .. } | Self::Forgotten { .. } => 0,
        };
        told + self.txn().body().len() + self.txn().gathered().len()
    }

    /// The largest time in it.
    fn time(&self) -> u64 {
        match self {
            Self::Prepared { proposal, max, .. } => (*proposal).max(max.unwrap_or_default()),
            Self::Applied { stamp, .. } => stamp.time,
            Self::Aborted { .. } | Self::Forgotten { .. } => 0,
        }
    }
}

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Book<O> {
    slot: u16,
    /// No proposal and no final time here was above it.
    clock: u64,
    entries: BTreeMap<TxnId, Entry<O>>,
    /// It may lack what the log has lost.
    lost: bool,
}

impl<O: Operation> Book<O> {
    pub fn new(slot: u16) -> Self {
        Self {
            slot,
            clock: 0,
            entries: BTreeMap::new(),
            lost: false,
        }
    }

    /// A book whose entries were stored outside, one by one. Its clock is the largest time in them: what the slot has
    /// forgotten since was settled, and settled transactions come before all that begin after.
    pub fn restore(slot: u16, entries: impl IntoIterator<Item = (TxnId, Entry<O>)>) -> Self {
        let entries: BTreeMap<TxnId, Entry<O>> = entries.into_iter().collect();
        Self {
            slot,
            clock: entries.values().map(Entry::time).max().unwrap_or_default(),
            entries,
            lost: false,
        }
    }

    pub fn slot(&self) -> u16 {
        self.slot
    }

    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Whether it may lack what the log has lost.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    pub fn get(&self, id: TxnId) -> Option<&Entry<O>> {
        self.entries.get(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&TxnId, &Entry<O>)> {
        self.entries.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes a record, the only way in which it changes.
    pub fn on_record(&mut self, record: Record<O>) {
        match record {
            Record::Prepared { txn, proposal, max } => {
                self.clock = self.clock.max(proposal).max(max.unwrap_or_default());
                let entry = Entry::Prepared {
                    txn: Arc::clone(&txn),
                    proposal,
                    max,
                };
                self.entries.insert(txn.id, entry);
            }
            Record::Applied {
                txn,
                stamp,
                after,
                told,
                alone,
            } => {
                self.clock = self.clock.max(stamp.time);
                let id = txn.id;
                let entry = Entry::Applied {
                    txn,
                    stamp,
                    after,
                    told,
                    alone,
                };
                self.entries.insert(id, entry);
            }
            Record::Aborted { txn, told } => {
                self.entries.insert(txn.id, Entry::Aborted { txn, told });
            }
            Record::Forgotten { txn } => {
                let entry = self.entries.remove(&txn);
                let entry = entry.filter(|entry| entry.txn().first() == self.slot);
                if let Some(entry) = entry {
                    let kept = Arc::clone(entry.txn());
                    self.entries.insert(txn, Entry::Forgotten { txn: kept });
                }
            }
            Record::Dropped { txn } => {
                self.entries.remove(&txn);
            }
            Record::Lost => self.lost = true,
            Record::Recovered => self.lost = false,
        }
    }
}
