//! Counts the keys of each slot on a node of a cluster: keys of which it only has copies are not counted as its own.
//!
//! A database updates the counts whenever a key is added or removed (see `census`). Strict keys are counted apart from
//! those of lattice keyspaces, which every node has: the node that answers for a slot's strict keys counts and lists
//! the lattice keys as well, so that each is listed once.

use super::census::Counts;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;

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
        some.fold(Counts::default(), |sum, (_, counts)| Counts {
            keys: sum.keys + counts.keys,
            expiring: sum.expiring + counts.expiring,
        })
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct BySlot {
    strict: Slots,
    /// Lattice keys that this worker counts.
    lattice: Slots,
}

impl BySlot {
    /// The counts of the key's slot.
    pub(super) fn of(&mut self, key: &[u8], is_lattice: bool) -> Option<&mut Counts> {
        let slots = if is_lattice {
            &mut self.lattice
        } else {
            &mut self.strict
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

    /// The same of lattice keys that this worker would count if its node answered for their slots.
    pub(super) fn lattice(&self, has: impl Fn(u16) -> bool) -> Counts {
        self.lattice.sum(has)
    }

    pub(super) fn is_as(&self, other: &Self) -> bool {
        self.strict.is_as(&other.strict) && self.lattice.is_as(&other.lattice)
    }
}
