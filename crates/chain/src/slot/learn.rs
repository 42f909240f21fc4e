//! Giving a slot to a learner, and being one: the tail copies what is there
//! while writes go on, and what follows is sent like to a member.

use super::{Out, Slot};
use crate::message::Message;
use crate::planted::{self, Planted};
use crate::replica::Store;
use rufous_mapping::NodeNo;

/// How far somebody is who learns from this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learning {
    /// Its copy is being made.
    Copying,
    /// It has the copy, and what follows is sent to it.
    Following,
    /// Nothing is acknowledged any more that it has not; it has all once it has
    /// what was acknowledged before.
    Syncing {
        until: u64,
    },
    Synced,
}

/// A learner that lacks no more writes than this is waited for.
const NEAR: u64 = 64;

impl Slot {
    /// The learner that has all.
    pub(crate) fn synced(&self) -> Option<NodeNo> {
        let (learner, learning) = self.learning?;
        let early = planted::is(Planted::LearnedEarly) && learning != Learning::Copying;
        ((learning == Learning::Synced || early) && self.active).then_some(learner)
    }

    /// What the learner has acknowledged may bring it nearer to having all.
    pub(super) fn sync(&mut self, out: &mut Out) {
        let seq = self.learner_acked;
        let Some((_, learning)) = self.learning.as_mut().filter(|_| self.active) else {
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

    /// The tail cannot send this learner what it lacks write by write.
    pub(crate) fn on_behind(&mut self, from: NodeNo, store: &mut impl Store, out: &mut Out) {
        if self.previous() == Some(from) && !self.is_member() {
            self.forget(store);
            self.tell(Some(from), out);
        }
    }

    /// What is here is of no use any more.
    pub(crate) fn forget(&mut self, store: &mut impl Store) {
        (self.seq, self.acked) = (0, 0);
        self.unacked.clear();
        self.complete = false;
        store.clear(self.number);
    }

    /// The learner begins anew.
    pub(crate) fn on_learn(&mut self, from: NodeNo, store: &mut impl Store) {
        let learns = self.chain.learner == Some(from) && self.chain.tail() == Some(self.me);
        if learns && self.complete {
            self.learning = Some((from, Learning::Copying));
            self.learner_acked = 0;
            store.begin_copy(self.number);
        }
    }

    /// Sends a part of the copy that is being made. False where there is none.
    pub(crate) fn copy(&mut self, store: &mut impl Store, out: &mut Out) -> bool {
        let (slot, since, seq) = (self.number, self.since(), self.seq);
        let all = self.confirmed;
        let Some((learner, learning)) = &mut self.learning else {
            return false;
        };
        if *learning != Learning::Copying {
            return false;
        }
        let message = match store.copy(slot) {
            Some(chunk) => Message::Copy { slot, since, chunk },
            None => {
                *learning = Learning::Following;
                Message::Copied {
                    slot,
                    since,
                    all,
                    seq,
                }
            }
        };
        out.push((*learner, message));
        true
    }

    pub(crate) fn on_copy(&mut self, from: NodeNo, chunk: &[u8], store: &mut impl Store) {
        if self.previous() == Some(from) && !self.complete {
            store.load(self.number, chunk);
        }
    }

    pub(crate) fn on_copied(&mut self, from: NodeNo, all: u64, seq: u64, out: &mut Out) {
        if self.previous() != Some(from) {
            return;
        }
        if self.complete {
            // A second copy, asked for before the first had come. While it was
            // made nobody was told of what happened meanwhile.
            return self.tell(Some(from), out);
        }
        self.seq = seq;
        self.complete = true;
        self.confirm(all, out);
        self.acknowledge(out);
    }
}
