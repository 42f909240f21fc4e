//! Counts the keys of each slot on a node of a cluster: keys of which it only has copies are not counted as its own.
//!
//! A database updates the counts whenever a key is added or removed (see `census`). Strict keys are counted apart from
//! those of lattice keyspaces, which every node has; and these by their number of replicas at the node, as this and the
//! slot say which workers have them.

use super::census::Counts;
use crate::placement::Owners;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;
use std::collections::BTreeMap;

/// The counts of all slots. Empty while there are no keys.
#[derive(Debug, Default)]
struct Slots(Box<[Counts]>);

impl Slots {
    fn of(&mut self, slot: u16) -> Option<&mut Counts> {
        if self.0.is_empty() {
            self.0 = vec![Counts::default(); SLOTS].into();
        }
        self.0.get_mut(usize::from(slot))
    }

    fn is_as(&self, other: &Self) -> bool {
        let of = |slots: &Self, slot| slots.0.get(slot).copied().unwrap_or_default();
        (0..SLOTS).all(|slot| of(self, slot) == of(other, slot))
    }

    /// The sum of the counts of the slots that satisfy `has`.
    fn sum(&self, has: impl Fn(u16) -> bool) -> Counts {
        let all = self.0.iter().enumerate();
        let some = all.filter(|(slot, counts)| counts.keys > 0 && has(*slot as u16));
        some.fold(Counts::default(), |sum, (_, counts)| sum.plus(*counts))
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct BySlot {
    strict: Slots,
    /// Lattice keys, by their number of replicas.
    lattice: BTreeMap<usize, Slots>,
}

impl BySlot {
    /// The counts of the key's slot; `owners`: of a lattice key.
    pub(super) fn of(&mut self, key: &[u8], owners: Option<Owners>) -> Option<&mut Counts> {
        let slots = match owners {
            Some(owners) => self.lattice.entry(owners.spread()).or_default(),
            None => &mut self.strict,
        };
        slots.of(slot_of(key))
    }

    /// Number of strict keys of a slot.
    pub(super) fn strict_in(&self, slot: u16) -> usize {
        let counts = self.strict.0.get(usize::from(slot));
        counts.map_or(0, |counts| counts.keys as usize)
    }

    /// Slots with strict keys.
    pub(super) fn with_strict(&self) -> impl Iterator<Item = u16> {
        let all = self.strict.0.iter().enumerate();
        let some = all.filter(|(_, counts)| counts.keys > 0);
        some.map(|(slot, _)| slot as u16)
    }

    /// Strict keys of the slots that satisfy `has`.
    pub(super) fn strict(&self, has: impl Fn(u16) -> bool) -> Counts {
        self.strict.sum(has)
    }

    /// The same of lattice keys, on a node with this many workers.
    pub(super) fn lattice(&self, workers: usize, has: impl Fn(u16, Owners) -> bool) -> Counts {
        let all = self.lattice.iter().map(|(spread, slots)| {
            slots.sum(|slot| has(slot, Owners::of_slot(slot, *spread, workers)))
        });
        all.fold(Counts::default(), Counts::plus)
    }

    pub(super) fn is_as(&self, other: &Self) -> bool {
        let mut spreads = self.lattice.keys().chain(other.lattice.keys());
        let nothing = Slots::default();
        self.strict.is_as(&other.strict)
            && spreads.all(|spread| {
                let mine = self.lattice.get(spread).unwrap_or(&nothing);
                mine.is_as(other.lattice.get(spread).unwrap_or(&nothing))
            })
    }
}
