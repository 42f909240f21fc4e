//! How much of each slot's chain is here, recorded in the journal, so that a startup knows what its files contain of
//! each chain; and the node whose replicated keys these are.

use super::journal::Journal;
use crate::effect::Effect;
use crate::effect::SlotMark;
use crate::planted::{self, Planted};
use std::collections::BTreeMap;

/// In place of a node's number: the replicated keys do not belong to a node yet.
pub const NO_NODE: u16 = u16::MAX;

#[derive(Debug, Default)]
pub struct Marks {
    slots: BTreeMap<u16, SlotMark>,
    /// The node whose replicated keys these are, if that was ever recorded.
    node: Option<u16>,
}

impl Marks {
    /// Sets a slot's mark, and records it in the journal if it has changed.
    pub(super) fn mark(&mut self, slot: u16, mark: Option<SlotMark>, journal: &mut Journal) {
        if self.change(slot, mark) && !planted::is(Planted::MarksNotWritten) {
            journal.write(&Effect::Slot { slot, mark });
        }
    }

    /// True if it was another one. Each write of a chain changes a mark, so it is looked up once.
    fn change(&mut self, slot: u16, mark: Option<SlotMark>) -> bool {
        match (self.slots.get_mut(&slot), mark) {
            (Some(known), Some(mark)) => std::mem::replace(known, mark) != mark,
            (None, None) => false,
            (_, mark) => {
                self.set(slot, mark);
                true
            }
        }
    }

    pub(super) fn set(&mut self, slot: u16, mark: Option<SlotMark>) {
        match mark {
            Some(mark) => self.slots.insert(slot, mark),
            None => self.slots.remove(&slot),
        };
    }

    pub fn slots(&self) -> &BTreeMap<u16, SlotMark> {
        &self.slots
    }

    /// Adds the marks of other shards' files.
    pub fn add(&mut self, marks: impl IntoIterator<Item = (u16, SlotMark)>) {
        self.slots.extend(marks);
    }

    pub(super) fn record_node(&mut self, number: u16, journal: &mut Journal) {
        if self.node != Some(number) {
            self.set_node(number);
            journal.write(&Effect::Node { number });
        }
    }

    pub(super) fn set_node(&mut self, number: u16) {
        self.node = Some(number);
    }

    /// The last recorded number, set here or replayed from files.
    pub fn node(&self) -> Option<u16> {
        self.node
    }

    /// Appends the marks and the number, for the start of a snapshot.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(number) = self.node {
            Effect::Node { number }.encode(out);
        }
        for (slot, mark) in &self.slots {
            let (slot, mark) = (*slot, Some(*mark));
            Effect::Slot { slot, mark }.encode(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_written_when_it_changes_and_a_replay_of_them_gives_the_same() {
        let (mut marks, mut journal) = (Marks::default(), Journal::default());
        journal.turn(true);
        let (some, all) = (
            Some(SlotMark::Part),
            Some(SlotMark::Whole { seq: 7, since: 3 }),
        );
        for (slot, mark) in [(1, some), (1, some), (2, all), (1, None)] {
            marks.mark(slot, mark, &mut journal);
        }
        marks.record_node(3, &mut journal);
        marks.record_node(3, &mut journal);
        let mut replayed = Marks::default();
        let (mut rest, mut effects) = (&journal.bytes()[..], 0);
        while !rest.is_empty() {
            match Effect::decode(&mut rest).expect("an effect") {
                Effect::Slot { slot, mark } => replayed.set(slot, mark),
                Effect::Node { number } => replayed.set_node(number),
                other => panic!("{other:?}"),
            }
            effects += 1;
        }
        assert_eq!(effects, 4);
        assert_eq!(
            (replayed.slots(), replayed.node()),
            (marks.slots(), Some(3))
        );
    }
}
