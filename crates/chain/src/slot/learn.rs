//! Both sides of learning a slot: the tail copies the slot while writes go on, and sends later
//! writes as to a member.

use super::{Out, SlotChain};
use crate::message::Message;
use crate::planted::{self, Planted};
use crate::replica::Store;
use rufous_mapping::{Chain, NodeNo};

/// The progress of a node that learns from this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learning {
    /// Its copy is being made; this many parts of it were sent. Later writes have this many bytes
    /// more than the parts that were sent since; if that was too much, writes wait until it is
    /// nothing.
    Copying {
        parts: u64,
        owed: usize,
        waits: bool,
    },
    /// It has the copy, and is sent the later writes.
    Following,
    /// No write is acknowledged any more before it has it; its copy is complete once it has the
    /// writes that were acknowledged before.
    Syncing {
        until: u64,
    },
    Synced,
    /// It was told to copy the slot again: what it sent before it asks for that is of data that it
    /// drops.
    Behind,
}

impl Learning {
    fn new() -> Self {
        Self::Copying {
            parts: 0,
            owed: 0,
            waits: false,
        }
    }

    /// A write of this size has to be in the copy, too.
    pub(super) fn on_write(&mut self, bytes: usize) {
        if let Self::Copying { owed, waits, .. } = self {
            *owed += bytes;
            *waits |= *owed > MOST_OWED;
        }
    }

    pub(super) fn is_copying(self) -> bool {
        matches!(self, Self::Copying { .. })
    }

    /// Whether later writes are sent to it as to a member.
    pub(super) fn follows(self) -> bool {
        !matches!(self, Self::Copying { .. } | Self::Behind)
    }
}

/// Acknowledgements wait for a learner that lacks at most this many writes,
const NEAR: u64 = 64;
/// and for one whose copy lacks more than so many bytes of later writes: clients that write faster
/// than the copy is made would keep it from ever being complete.
const MOST_OWED: usize = 1 << 20;

impl SlotChain {
    /// Whether acknowledgements wait for the learner.
    pub(super) fn waits_for_learner(&self) -> bool {
        self.learning.is_some_and(|(_, learning)| match learning {
            Learning::Copying { waits, .. } => waits,
            Learning::Syncing { .. } | Learning::Synced => true,
            Learning::Following | Learning::Behind => false,
        })
    }

    /// The learner, if its copy is complete.
    pub(crate) fn synced(&self) -> Option<NodeNo> {
        let (learner, learning) = self.learning?;
        let early = planted::is(Planted::LearnedEarly) && learning.follows();
        let has_all = learning == Learning::Synced || early;
        (has_all && self.active && !self.broken).then_some(learner)
    }

    /// An acknowledgement of the learner may advance its state.
    pub(super) fn sync(&mut self, out: &mut Out) {
        let learning = self.learning.as_mut().filter(|_| self.active);
        // A learner of a slot that was never written must have acknowledged that, too.
        let (Some((_, learning)), Some(seq)) = (learning, self.learner_acked) else {
            return;
        };
        if *learning == Learning::Following && self.seq - seq.min(self.seq) <= NEAR {
            *learning = Learning::Syncing { until: self.acked };
        }
        if let Learning::Syncing { until } = *learning
            && seq >= until
        {
            *learning = Learning::Synced;
        }
        if *learning == Learning::Synced {
            self.settle(seq, out);
        }
    }

    /// The tail cannot send this learner the missing writes individually.
    pub(crate) fn on_behind(&mut self, from: NodeNo, store: &mut impl Store, out: &mut Out) {
        if self.previous() == Some(from) && !self.is_member() {
            self.forget(store);
            self.tell(Some(from), out);
        }
    }

    /// The data here is of no use any more.
    pub(crate) fn forget(&mut self, store: &mut impl Store) {
        (self.seq, self.acked) = (0, 0);
        self.unacked.clear();
        (self.complete, self.loading) = (false, None);
        (self.born_here, self.broken) = (false, false);
        self.clear = store.clear(self.number);
    }

    /// The data to be dropped is gone.
    pub(crate) fn on_clear(&mut self, store: &mut impl Store, out: &mut Out) {
        if self.complete || self.clear || self.broken {
            return;
        }
        self.clear = true;
        if self.waits_to_own() {
            return self.own(store, out);
        }
        self.tell(None, out);
    }

    /// The learner starts again.
    pub(crate) fn on_learn(&mut self, from: NodeNo, store: &mut impl Store) {
        let learns = self.chain.learner == Some(from) && self.chain.tail() == Some(self.me);
        if learns && self.complete {
            self.learning = Some((from, Learning::new()));
            self.learner_acked = None;
            store.begin_copy(self.number);
        }
    }

    /// A copy in progress, if there is one, is no longer needed.
    pub(crate) fn end_copy(&mut self, store: &mut impl Store) {
        if self.learns().is_some() {
            store.end_copy(self.number);
        }
    }

    /// This node only keeps what it has of the slot.
    pub(crate) fn keep(&mut self, chain: Chain, store: &mut impl Store) {
        self.end_copy(store);
        (self.learning, self.learner_acked) = (None, None);
        self.chain = chain;
        self.active = false;
    }

    /// The learner for which a copy is being made.
    pub(crate) fn learns(&self) -> Option<NodeNo> {
        let learning = self.learning.filter(|(_, learning)| learning.is_copying());
        learning.map(|(learner, _)| learner)
    }

    /// Sends a part of the copy in progress. False if none is left.
    pub(crate) fn copy(&mut self, store: &mut impl Store, out: &mut Out) -> bool {
        if self.broken {
            self.end_copy(store);
            self.learning = None;
            return false;
        }
        let (slot, since, seq) = (self.number, self.since(), self.seq);
        let all = self.confirmed;
        let Some((learner, learning)) = &mut self.learning else {
            return false;
        };
        let Learning::Copying { parts, owed, waits } = learning else {
            return false;
        };
        let (message, more) = match store.copy(slot) {
            Some(chunk) if chunk.is_empty() => return true,
            Some(chunk) => {
                let part = *parts;
                *parts += 1;
                *owed = owed.saturating_sub(chunk.len());
                *waits &= *owed > 0;
                let message = Message::Copy {
                    slot,
                    since,
                    part,
                    chunk,
                };
                (message, true)
            }
            None => {
                let parts = *parts;
                *learning = Learning::Following;
                let message = Message::Copied {
                    slot,
                    since,
                    parts,
                    all,
                    seq,
                };
                (message, false)
            }
        };
        out.push((*learner, message));
        self.acknowledge(out);
        more
    }

    /// Takes a part of the copy. If one is missing, it asks for the whole copy again.
    pub(crate) fn on_copy(
        &mut self,
        from: NodeNo,
        (part, chunk): (u64, &[u8]),
        store: &mut impl Store,
        out: &mut Out,
    ) {
        if self.previous() != Some(from) || self.complete {
            return;
        }
        if part == 0 {
            self.begin_load(store);
        }
        let counts = !planted::is(Planted::PartsNotCounted);
        match self.loading {
            Some(next) if part == next || !counts => {
                store.load(self.number, chunk);
                self.loading = Some(part + 1);
            }
            Some(next) if part > next => self.learn_anew(store, out),
            // A duplicate; or the first parts were lost, and it has asked again.
            _ => (),
        }
    }

    /// Data of an earlier copy may have been deleted at the tail since. If it cannot be dropped at
    /// once, this copy is of no use: the learner asks again when the data is gone.
    fn begin_load(&mut self, store: &mut impl Store) {
        if self.loading.is_some() && !planted::is(Planted::CopiedOver) {
            self.forget(store);
        }
        if self.clear {
            self.loading = Some(0);
        }
    }

    /// The copy received so far cannot be used.
    fn learn_anew(&mut self, store: &mut impl Store, out: &mut Out) {
        self.forget(store);
        self.tell(self.previous(), out);
    }

    pub(crate) fn on_copied(
        &mut self,
        from: NodeNo,
        (parts, all, seq): (u64, u64, u64),
        store: &mut impl Store,
        out: &mut Out,
    ) {
        if self.previous() != Some(from) {
            return;
        }
        if self.complete {
            // A second copy, asked for before the first had arrived. While it was made, later
            // writes were not sent to this node.
            return self.tell(Some(from), out);
        }
        if parts == 0 {
            self.begin_load(store);
        }
        if self.loading != Some(parts) && !planted::is(Planted::PartsNotCounted) {
            // Parts are missing, and it has asked for all of them.
            return;
        }
        self.loading = None;
        self.seq = seq;
        self.complete = true;
        self.confirm(all, out);
        self.acknowledge(out);
        self.repeat(out);
    }
}
