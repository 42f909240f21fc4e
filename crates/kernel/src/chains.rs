//! What chains do to a shard: the slots of strict keys, as other nodes see them;
//! and what a shard's journal has for each of them.

use crate::durable::entry::Entry;
use crate::effect::{Effect, NotAnEffect};
use crate::planted::{self, Planted};
use crate::shard::{Shard, slot_of_effect};
use rufous_base::Now;
use rufous_chain::Store;
use std::collections::BTreeMap;

/// A write of a chain has no more bytes of effects than this, but for one effect.
const ITEM_BYTES: usize = 1 << 20;

/// Copies are given out until so many bytes are.
const STEP_BYTES: usize = 64 << 10;

/// A shard while a replica of chains is given it, and what that may cost: it
/// looks for keys of slots at so many records, and goes on another time.
#[derive(Debug)]
pub struct Slots<'a> {
    pub shard: &'a mut Shard,
    pub now: Now,
    pub looks: usize,
    /// Bytes of copies that have been taken.
    pub copied: usize,
    /// Something came that cannot be done to a slot: who sent it has another one.
    pub refused: bool,
    /// Nothing is left of these.
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
        // What is read goes out: the rest is for another time.
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

/// Effects of a journal by their slots, each slot's in their order. What is of
/// no slot is left out: that of lattice keys, and what is the worker's own.
#[derive(Debug, Default)]
pub struct BySlot {
    pub slots: BTreeMap<u16, Vec<u8>>,
    /// Effects that change keys of several slots: no chain can have them.
    pub spread: u64,
}

impl BySlot {
    /// Takes entries. `is_lattice`: of which keys.
    pub fn take(
        &mut self,
        journal: &[u8],
        is_lattice: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), NotAnEffect> {
        let mut rest = journal;
        while !rest.is_empty() {
            let before = rest;
            match Entry::decode(&mut rest)? {
                Entry::Effect(effect) => {
                    let bytes = &before[..before.len() - rest.len()];
                    self.take_one(&effect, bytes, is_lattice);
                }
                Entry::Piece { effects, .. } => self.take(effects.bytes(), is_lattice)?,
                Entry::Done { .. } | Entry::CleanEnd | Entry::SnapshotEnd { .. } => {}
            }
        }
        Ok(())
    }

    fn take_one(&mut self, effect: &Effect<'_>, bytes: &[u8], is_lattice: &dyn Fn(&[u8]) -> bool) {
        let Some((_, key)) = effect.keys().next() else {
            let is_of_data = matches!(effect, Effect::FlushDb { .. } | Effect::SwapDb { .. });
            self.spread += u64::from(is_of_data);
            return;
        };
        if is_lattice(key) {
            return;
        }
        match slot_of_effect(effect) {
            Some(slot) => self.slots.entry(slot).or_default().extend_from_slice(bytes),
            None => self.spread += 1,
        }
    }
}

/// Effects cut into writes that are not long.
pub fn items_of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let from = rest;
        let mut left = rest;
        while !left.is_empty() && from.len() - left.len() < ITEM_BYTES {
            // invariant: these are effects, one behind the other
            if Effect::decode(&mut left).is_err() {
                left = &[];
            }
        }
        rest = left;
        let item = &from[..from.len() - left.len()];
        (!item.is_empty()).then_some(item)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::{ExpirySetting, NewValue};
    use rufous_base::slot::slot_of;

    /// Who reads its copies step by step gets all of them, each step a little.
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

    /// No part is longer here.
    const LONGEST: usize = 128 << 10;
}
