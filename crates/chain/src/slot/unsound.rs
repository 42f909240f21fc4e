//! Slots whose data here is not what it ought to be.
//!
//! *A part of it was on disk.* It goes before anything else comes. Whoever has the
//! slot from its birth on owns it then; what others have said meanwhile is kept,
//! as they say it once.
//!
//! *An effect could not be done.* A learner that has not all yet drops what it has
//! and learns anew. One that has all cannot: the tail may have reported it, so
//! that it is a member in the next epoch, and a member is one of those who have
//! what was acknowledged. It does not have it any more, and must not act as if it
//! had: it neither answers nor acknowledges, says nothing of the slot, and its
//! chain waits, until an epoch comes that has it as a learner or not at all. Its
//! leases go on: what others have is right, and may be read. No epoch comes for
//! that reason alone, as nobody sees what is wrong but the node itself. So its
//! embedder has to end the node, or to start it again, and then
//! say that there is a part of the slot, or nothing: chains go on without a node
//! that has started again as long as they have others.

use super::{Out, SlotChain};
use crate::message::Message;
use crate::replica::Store;
use rufous_mapping::NodeNo;

impl SlotChain {
    /// A part of it was on disk when the node started.
    pub(crate) fn find_incomplete(&mut self) {
        (self.complete, self.clear, self.fresh) = (false, false, false);
    }

    /// It is a member from the slot's birth on, but what is here has to go.
    pub(crate) fn waits_to_own(&self) -> bool {
        self.born_here && self.is_member() && !self.complete && !self.broken
    }

    /// Keeps what somebody of the chain says for when it owns the slot. What one
    /// says last holds.
    pub(crate) fn hold_back(&mut self, from: NodeNo, message: Message) {
        let is_kept = matches!(message, Message::State { .. } | Message::Learn { .. });
        if is_kept && self.chain.names(from) {
            self.held_back.insert(from, message);
        }
    }

    pub(super) fn own(&mut self, store: &mut impl Store, out: &mut Out) {
        self.complete = true;
        self.open(out);
        self.acknowledge(out);
        self.tell(None, out);
        for (from, message) in std::mem::take(&mut self.held_back) {
            match message {
                Message::State { seq, items, .. } => self.on_state(from, seq, items, store, out),
                Message::Learn { .. } => self.on_learn(from, store),
                _ => (),
            }
        }
    }

    /// An effect could not be done. False where it cannot learn anew.
    pub(crate) fn learn_anew_or_break(&mut self) -> bool {
        self.broken |= self.complete || self.is_member();
        self.complete = false;
        self.unacked.clear();
        if self.broken {
            return false;
        }
        (self.seq, self.acked, self.loading) = (0, 0, None);
        self.clear = false;
        true
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }
}
