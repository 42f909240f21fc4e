//! Slots whose data here is incomplete or wrong.
//!
//! *A part of it was on disk.* It is dropped before anything else is taken. A node that has the
//! slot from its first chain on owns it then; messages of others are kept until then, as they are
//! sent once.
//!
//! *An effect could not be applied.* A learner that is not complete yet drops its data and learns
//! again. A complete one cannot: the tail may have reported it, so that it is a member in the next
//! epoch, and members have all acknowledged writes. This node does not have them any more, and must
//! not act as if it had: it neither serves nor acknowledges, sends nothing about the slot, and its
//! chain waits until an epoch has it as a learner or not at all. Its leases go on: the others' data
//! is right, and may be read. No epoch is planned for that alone, as only the node itself knows
//! of the fault. So its embedder has to stop or restart the node, and then report a part of the
//! slot, or nothing: chains continue without a restarted node as long as they have other members.

use super::{Out, SlotChain};
use crate::message::Message;
use crate::replica::Store;
use rufous_mapping::NodeNo;

impl SlotChain {
    /// A part of it was on disk when the node started.
    pub(crate) fn find_incomplete(&mut self) {
        (self.complete, self.clear, self.fresh) = (false, false, false);
    }

    /// It is a member from the slot's first chain on, but has data that has to be dropped.
    pub(crate) fn waits_to_own(&self) -> bool {
        self.born_here && self.is_member() && !self.complete && !self.broken
    }

    /// Whether a chain that has just been set continued with loss since this node last had all of the
    /// slot, and goes on with what it has. A node that learned the slot later has heard of a chain after
    /// that.
    pub(crate) fn goes_on_with_loss(&self, held_since: u64) -> bool {
        let has_all = self.is_member() && self.complete;
        self.chain.lost > held_since && (has_all || self.waits_to_own())
    }

    /// Keeps a chain member's message until this node owns the slot. Only the last one of each is
    /// kept.
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

    /// An effect could not be applied. False if it cannot learn the slot again.
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
