//! How much of each slot's chain is here, recorded in the journal, so that a startup knows what its files contain of
//! each chain; and the node whose replicated keys these are.

use super::Shard;
use crate::effect::Effect;
use crate::effect::SlotMark;
use crate::planted::{self, Planted};
use std::collections::BTreeMap;

/// In place of a node's number: the replicated keys do not belong to a node yet.
pub const NO_NODE: u16 = u16::MAX;

impl Shard {
    /// Records the mark in the journal if it has changed. A caller that changes keys of the slot does so in the same
    /// frame: then both are in the log, or neither.
    pub fn mark_slot(&mut self, slot: u16, mark: Option<SlotMark>) {
        if self.marks.get(&slot).copied() != mark {
            self.set_mark(slot, mark);
            if planted::is(Planted::MarksNotWritten) {
                return;
            }
            let effect = Effect::Slot { slot, mark };
            self.env.observers.journal.write(&effect);
        }
    }

    pub(super) fn set_mark(&mut self, slot: u16, mark: Option<SlotMark>) {
        match mark {
            Some(mark) => self.marks.insert(slot, mark),
            None => self.marks.remove(&slot),
        };
    }

    pub fn slot_marks(&self) -> &BTreeMap<u16, SlotMark> {
        &self.marks
    }

    /// Adds the marks of other shards' files.
    pub fn add_marks(&mut self, marks: impl IntoIterator<Item = (u16, SlotMark)>) {
        self.marks.extend(marks);
    }

    /// Records that from here on the replicated keys are those of the node with this number.
    pub fn set_node(&mut self, number: u16) {
        if self.node != Some(number) {
            self.node = Some(number);
            self.env.observers.journal.write(&Effect::Node { number });
        }
    }

    /// The last recorded number, set here or replayed from files.
    pub fn node(&self) -> Option<u16> {
        self.node
    }

    /// Appends the marks and the number, for the start of a snapshot.
    pub fn mark_effects(&self, out: &mut Vec<u8>) {
        if let Some(number) = self.node {
            Effect::Node { number }.encode(out);
        }
        for (slot, mark) in &self.marks {
            let (slot, mark) = (*slot, Some(*mark));
            Effect::Slot { slot, mark }.encode(out);
        }
    }
}
