//! The operations of chains on a shard: the slots of strict keys as other nodes see them, and the
//! effects in a shard's journal by slot.

use crate::durable::entry::Entry;
use crate::effect::{Effect, NotAnEffect};
use crate::planted::{self, Planted};
use crate::shard::{Shard, slot_of_effect};
use rufous_base::Now;
use rufous_base::limits::BOOKS;
use rufous_base::slot::slot_of;
use rufous_chain::Store;
use std::collections::{BTreeMap, BTreeSet};

/// The copying of slots pauses after this many bytes.
const STEP_BYTES: usize = 64 << 10;

/// A shard to which a chain replica is applied, with a limit on the cost: it examines this many
/// records for keys of slots, and continues in a later step.
#[derive(Debug)]
pub struct Slots<'a> {
    pub shard: &'a mut Shard,
    pub now: Now,
    pub looks: usize,
    /// Bytes of copies that have been taken.
    pub copied: usize,
    /// A received effect cannot be applied to a slot: the sender has a different slot.
    pub refused: bool,
    /// Slots that are empty now.
    pub cleared: Vec<u16>,
}

impl<'a> Slots<'a> {
    pub fn new(shard: &'a mut Shard, now: Now, looks: usize) -> Self {
        Self {
            shard,
            now,
            looks,
            copied: 0,
            refused: false,
            cleared: Vec::new(),
        }
    }
}

impl Store for Slots<'_> {
    fn apply(&mut self, slot: u16, effects: &[u8]) {
        self.refused |= self.shard.do_in_slot(slot, effects, self.now).is_err();
    }

    fn clear(&mut self, slot: u16) -> bool {
        let kept = planted::is(Planted::SlotKept);
        let is_clear = kept || self.shard.clear_slot(slot, &mut self.looks);
        if is_clear {
            self.cleared.push(slot);
        }
        is_clear
    }

    fn begin_copy(&mut self, slot: u16) {
        self.shard.begin_slot_copy(slot);
    }

    fn end_copy(&mut self, slot: u16) {
        self.shard.end_slot_copy(slot);
    }

    fn note(&mut self, slot: u16, effects: &[u8]) {
        self.shard.note_in_slot(slot, effects);
    }

    fn copy(&mut self, slot: u16) -> Option<Vec<u8>> {
        // Copies that were read are sent: the rest is for a later step.
        if self.copied >= STEP_BYTES {
            return Some(Vec::new());
        }
        let part = self.shard.copy_slot(slot, &mut self.looks)?;
        self.copied += part.len();
        Some(part)
    }

    fn load(&mut self, slot: u16, part: &[u8]) {
        self.refused |= self.shard.do_in_slot(slot, part, self.now).is_err();
    }
}

/// A journal's effects by slot, each slot's in order, as the shard encoded them; each is decoded
/// once, for its keys. Effects without a slot are left out: those on lattice keys, and the worker's
/// own.
///
/// A journal holds whole commands and whole transactions, so what a slot has of it is a group: one
/// write of the slot's chain, of any length, which a member has whole or not at all.
#[derive(Debug, Default)]
pub struct BySlot {
    pub slots: BTreeMap<u16, Vec<u8>>,
    /// Effects on whole databases: no chain can carry them.
    pub spread: u64,
    /// Slots that an effect changes together with others: their chains cannot carry it, if they have copies.
    pub together: BTreeSet<u16>,
}

impl BySlot {
    /// Adds the entries of a journal behind these bytes. `is_lattice` tells which keys are lattice keys.
    pub fn take(
        &mut self,
        (journal, from): (&[u8], usize),
        is_lattice: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), NotAnEffect> {
        let mut rest = journal.get(from..).unwrap_or_default();
        while !rest.is_empty() {
            let before = rest;
            match Entry::decode_in(journal, &mut rest)? {
                Entry::Repeated(effect) => {
                    let mut whole = Vec::new();
                    effect.encode(&mut whole);
                    self.take_one(&effect, &whole, is_lattice);
                }
                Entry::Effect(effect) => {
                    let bytes = &before[..before.len() - rest.len()];
                    self.take_one(&effect, bytes, is_lattice);
                }
                Entry::Piece { effects, .. } => self.take((effects.bytes(), 0), is_lattice)?,
                Entry::Done { .. } | Entry::CleanEnd | Entry::SnapshotEnd { .. } => {}
            }
        }
        Ok(())
    }

    fn take_one(&mut self, effect: &Effect<'_>, bytes: &[u8], is_lattice: &dyn Fn(&[u8]) -> bool) {
        let Some((db, key)) = effect.keys().next() else {
            let is_of_data = matches!(effect, Effect::FlushDb { .. } | Effect::SwapDb { .. });
            self.spread += u64::from(is_of_data);
            return;
        };
        // Entries of books are strict, whatever keyspace a name like theirs is in.
        if usize::from(db) != BOOKS && is_lattice(key) {
            return;
        }
        match slot_of_effect(effect) {
            Some(slot) => self.slots.entry(slot).or_default().extend_from_slice(bytes),
            None => {
                let slots = effect.keys().map(|(_, key)| slot_of(key));
                self.together.extend(slots);
            }
        }
    }
}

/// The writes of a chain that a group becomes: one.
pub fn writes_of(group: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = group;
    std::iter::from_fn(move || {
        let before = rest;
        if planted::is(Planted::GroupCut) && !rest.is_empty() {
            // invariant: the shard has encoded these effects
            let _ = Effect::decode(&mut rest).expect("an effect");
        } else {
            rest = &[];
        }
        let write = &before[..before.len() - rest.len()];
        (!write.is_empty()).then_some(write)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::{ExpirySetting, NewValue};
    use rufous_base::slot::slot_of;

    /// Reading copies step by step returns all of them, a few in each step.
    #[test]
    fn a_step_gives_out_few_bytes_of_copies() {
        const VALUE: usize = 40 << 10;
        let now = Now::default();
        let mut shard = Shard::new(1);
        let names: Vec<_> = (0..40).map(|n| format!("k{n}").into_bytes()).collect();
        for name in &names {
            let key = shard.key(name);
            let value = NewValue::Own(vec![7; VALUE]);
            shard.set(0, key, value, ExpirySetting::Clear, now);
        }
        let slots: Vec<u16> = names.iter().map(|name| slot_of(name)).collect();
        let mut left = slots.clone();
        slots.iter().for_each(|slot| shard.begin_slot_copy(*slot));
        let (mut all, mut steps) = (0, 0);
        while !left.is_empty() {
            let mut store = Slots::new(&mut shard, now, usize::MAX);
            left.retain(|slot| store.copy(*slot).is_some());
            assert!(store.copied < STEP_BYTES + LONGEST, "{}", store.copied);
            all += store.copied;
            steps += 1;
        }
        assert!(all >= names.len() * VALUE && all < names.len() * (VALUE + 100));
        assert!(steps >= all / (STEP_BYTES + LONGEST), "{steps} steps");
    }

    /// However long: a write that is cut could be seen, acknowledged or recovered in part.
    #[test]
    fn effects_are_sorted_by_slot_and_not_cut() {
        let (mut journal, mut expected) = (Vec::new(), BTreeMap::<u16, Vec<u8>>::new());
        let value = vec![7; 700_000];
        for n in 0..40 {
            let name = format!("k{{{}}}{n}", n % 3).into_bytes();
            let (db, key) = (0, &name[..]);
            let start = journal.len();
            match n % 4 {
                0 => Effect::Delete { db, key }.encode(&mut journal),
                _ => Effect::Append {
                    db,
                    key,
                    tail: &value,
                }
                .encode(&mut journal),
            }
            let of_slot = expected.entry(slot_of(&name)).or_default();
            of_slot.extend_from_slice(&journal[start..]);
        }
        let mut parts = BySlot::default();
        parts.take((&journal, 0), &|_| false).unwrap();
        assert_eq!(parts.slots, expected);
    }

    /// Whatever names the keyspaces match: entries of books go along the chain of their slot.
    #[test]
    fn entries_of_books_are_of_no_keyspace() {
        let mut shard = Shard::new(1);
        shard.observers_mut().set_journaling(true);
        let (now, key) = (Now::default(), shard.key(b"k"));
        shard.set(0, key, NewValue::Copy(b"v"), ExpirySetting::Clear, now);
        shard.journal().clear();
        shard.set_book(5, &[1; 18], (b"entry", b""), now);
        let mut journal = std::mem::take(shard.journal());
        shard.set(0, key, NewValue::Copy(b"v"), ExpirySetting::Clear, now);
        let of_book = BTreeMap::from([(5, journal.clone())]);
        journal.extend_from_slice(shard.journal());
        let mut parts = BySlot::default();
        parts.take((&journal, 0), &|_| true).unwrap();
        assert_eq!((parts.slots, parts.spread), (of_book, 0));
    }

    /// Another node has nothing of the frame: what stands there for another slot goes to it whole, also where the chain
    /// of that slot has it already.
    #[test]
    fn what_a_frame_has_once_goes_along_each_chain() {
        let mut shard = Shard::new(1);
        shard.observers_mut().set_journaling(true);
        let (now, common) = (Now::default(), [7; 500]);
        let (mut journal, mut from, mut seen) = (Vec::new(), 0, BTreeMap::new());
        for slot in 5..9_u16 {
            shard.set_book(slot, &[1; 18], (&common, &[slot as u8]), now);
            journal = shard.journal().clone();
            let mut parts = BySlot::default();
            parts.take((&journal, from), &|_| false).unwrap();
            from = journal.len();
            assert_eq!(parts.slots.len(), 1);
            seen.extend(parts.slots);
        }
        assert!(journal.len() < 2 * common.len());
        for slot in 5..9_u16 {
            let mut other = Shard::new(2);
            other.invite_all();
            other.do_in_slot(slot, &seen[&slot], now).unwrap();
            let entry = [&common[..], &[slot as u8]].concat();
            assert_eq!(other.book(slot, &[1; 18]), Some(entry));
        }
    }

    /// No part is longer here.
    const LONGEST: usize = 128 << 10;
}
