//! How much of each slot's chain is here: said in the journal, so that a start
//! knows what its files are worth to the chains that they are of; and which node's
//! replicated keys are.

use super::Shard;
use crate::effect::Effect;
use crate::effect::SlotMark;
use crate::planted::{self, Planted};
use std::collections::BTreeMap;

/// In place of a number: replicated keys are those of no node yet.
pub const NO_NODE: u16 = u16::MAX;

impl Shard {
    /// Says so in the journal, where it is news. Whoever changes keys of the
    /// slot says it in the same frame: then both are found, or neither.
    pub fn mark_slot(&mut self, slot: u16, mark: Option<SlotMark>) {
        if self.marks.get(&slot).copied() != mark {
            self.set_mark(slot, mark);
            if planted::is(Planted::MarksNotWritten) {
                return;
            }
            let effect = Effect::Slot { slot, mark };
            self.env.write(&effect);
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

    /// Those of other shards' files.
    pub fn add_marks(&mut self, marks: impl IntoIterator<Item = (u16, SlotMark)>) {
        self.marks.extend(marks);
    }

    /// Replicated keys are those of the node with this number from here on.
    pub fn set_node(&mut self, number: u16) {
        if self.node != Some(number) {
            self.node = Some(number);
            self.env.write(&Effect::Node { number });
        }
    }

    /// The last that was said of it, here or in files.
    pub fn node(&self) -> Option<u16> {
        self.node
    }

    /// For the start of a snapshot.
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
