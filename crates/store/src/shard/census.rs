//! Which records of a database this worker and node count and list.
//!
//! A replicated key is counted once: at the worker that lists it, its primary. Next to the number of all its records,
//! a database keeps the number of those that another worker counts, and on a node of a cluster the number of those of
//! each slot ([`BySlot`]), updated whenever a record is added or removed, so that counting needs no walk.

use super::by_slot::BySlot;
use super::guests::Guests;
use super::lattice::Keying;
use std::sync::Arc;

/// A number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) keys: u32,
    /// Number of them that expire.
    pub(super) expiring: u32,
}

impl Counts {
    pub(super) fn change_expiring(&mut self, expires: bool) {
        if expires {
            self.expiring += 1;
        } else {
            self.expiring -= 1;
        }
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Determines which keys other workers count; `None`: none.
    keying: Option<Arc<dyn Keying>>,
    elsewhere: Counts,
    /// `None` if no counts of slots are needed.
    slots: Option<BySlot>,
}

impl Census {
    /// The counts of an empty database that replaces this one.
    pub(super) fn of_nothing(&self) -> Self {
        Self {
            keying: self.keying.clone(),
            elsewhere: Counts::default(),
            slots: self.slots.as_ref().map(|_| BySlot::default()),
        }
    }

    /// Whether anything is counted besides the number of all records.
    #[inline]
    pub(super) fn is_needed(&self) -> bool {
        self.keying.is_some() || self.slots.is_some()
    }

    /// Whether another worker counts the key.
    #[inline]
    pub(super) fn is_elsewhere(&self, key: &[u8]) -> bool {
        let keying = self.keying.as_ref();
        keying.is_some_and(|keying| keying.is_elsewhere(key))
    }

    /// The counts of the key's slot that have the key, if any.
    fn slot_of(&mut self, key: &[u8], is_elsewhere: bool) -> Option<&mut Counts> {
        let slots = self.slots.as_mut()?;
        let keying = self.keying.as_ref();
        let is_lattice = keying.is_some_and(|keying| keying.of(key).is_some());
        if is_lattice && is_elsewhere {
            return None;
        }
        slots.of(key, is_lattice)
    }

    fn each(&mut self, key: &[u8], change: impl Fn(&mut Counts)) {
        let is_elsewhere = self.is_elsewhere(key);
        if is_elsewhere {
            change(&mut self.elsewhere);
        }
        if let Some(counts) = self.slot_of(key, is_elsewhere) {
            change(counts);
        }
    }

    /// A record was added.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) {
        if self.is_needed() {
            self.each(key, |counts| counts.keys += 1);
        }
    }

    /// A record is about to be removed; its expiry was already cleared.
    pub(super) fn remove(&mut self, key: &[u8]) {
        self.each(key, |counts| counts.keys -= 1);
    }

    /// A record has got or lost its expiry.
    pub(super) fn change_expiring(&mut self, key: &[u8], expires: bool) {
        self.each(key, |counts| counts.change_expiring(expires));
    }

    /// Sets which keys other workers count. All records, of which it is given whether they expire, are to be counted
    /// again.
    pub(super) fn set_keying<'a>(
        &mut self,
        keying: Option<&Arc<dyn Keying>>,
        records: impl Iterator<Item = (&'a [u8], bool)>,
    ) {
        self.keying = keying.cloned();
        self.recount(records);
    }

    /// Starts counting the records of slots.
    pub(super) fn count_slots<'a>(&mut self, records: impl Iterator<Item = (&'a [u8], bool)>) {
        self.slots = Some(BySlot::default());
        self.recount(records);
    }

    fn recount<'a>(&mut self, records: impl Iterator<Item = (&'a [u8], bool)>) {
        *self = self.of_nothing();
        if self.is_needed() {
            for (key, expires) in records {
                self.add(key);
                if expires {
                    self.change_expiring(key, true);
                }
            }
        }
    }

    /// Records that another worker counts.
    pub(super) fn elsewhere(&self) -> Counts {
        self.elsewhere
    }

    /// The records of slots, if these are counted.
    pub(super) fn slots(&self) -> Option<&BySlot> {
        self.slots.as_ref()
    }

    /// Strict keys of slots that other nodes answer for.
    pub(super) fn guests(&self, guests: &Guests) -> Counts {
        let sum = |slots: &BySlot| slots.strict(|slot| guests.has(slot));
        self.slots.as_ref().map_or_else(Counts::default, sum)
    }

    /// The same of lattice keys, which this worker would count if other nodes did not answer for their slots.
    pub(super) fn listed_by_others(&self, guests: &Guests) -> Counts {
        let sum = |slots: &BySlot| slots.lattice(|slot| guests.has(slot));
        self.slots.as_ref().map_or_else(Counts::default, sum)
    }

    /// Asserts that the counts are those of these records.
    pub(super) fn check<'a>(&self, records: impl Iterator<Item = (&'a [u8], bool)>) {
        let mut all = self.of_nothing();
        all.recount(records);
        assert_eq!(all.elsewhere, self.elsewhere);
        let (mine, counted) = (self.slots.as_ref(), all.slots.as_ref());
        let is_as = mine
            .zip(counted)
            .is_none_or(|(mine, counted)| mine.is_as(counted));
        assert!(is_as, "slots are counted wrongly");
    }
}

#[cfg(test)]
mod tests {
    use super::super::lattice::Keyed;
    use super::*;
    use rufous_base::slot::slot_of;
    use rufous_datatype::object::Tag;
    use std::collections::BTreeMap;

    /// Keys with `l` are lattice keys, those with `le` another worker's.
    #[derive(Debug)]
    struct ByLetter;

    impl Keying for ByLetter {
        fn of(&self, key: &[u8]) -> Option<Keyed> {
            let keyed = Keyed {
                strings: Tag::Register,
                is_shared: true,
            };
            key.starts_with(b"l").then_some(keyed)
        }

        fn is_elsewhere(&self, key: &[u8]) -> bool {
            key.starts_with(b"le")
        }
    }

    fn records<'a>(
        all: &'a BTreeMap<&'static [u8], bool>,
    ) -> impl Iterator<Item = (&'a [u8], bool)> {
        all.iter().map(|(key, expires)| (*key, *expires))
    }

    #[test]
    fn counts_follow_the_records() {
        let keying: Arc<dyn Keying> = Arc::new(ByLetter);
        let mut census = Census::default();
        let mut all = BTreeMap::new();
        assert!(!census.is_needed());
        for key in [&b"strict"[..], b"l1", b"le1"] {
            all.insert(key, key == b"le1");
        }
        census.set_keying(Some(&keying), records(&all));
        census.count_slots(records(&all));
        for key in [&b"le2"[..], b"l2", b"other"] {
            census.add(key);
            census.change_expiring(key, true);
            all.insert(key, true);
        }
        census.check(records(&all));
        assert_eq!(
            (census.elsewhere().keys, census.elsewhere().expiring),
            (2, 2)
        );
        let slots = census.slots().expect("counted");
        assert_eq!(slots.strict_in(slot_of(b"strict")), 1);
        assert_eq!(slots.strict_in(slot_of(b"l1")), 0);
        assert_eq!(
            slots.strict(|_| true),
            Counts {
                keys: 2,
                expiring: 1
            }
        );
        assert_eq!(
            slots.lattice(|_| true),
            Counts {
                keys: 2,
                expiring: 1
            }
        );
        assert_eq!(slots.lattice(|slot| slot == slot_of(b"l1")).keys, 1);
        for key in [&b"le1"[..], b"other", b"l2"] {
            census.change_expiring(key, false);
            census.remove(key);
            all.remove(key);
        }
        census.check(records(&all));
        let empty = census.of_nothing();
        empty.check(records(&BTreeMap::new()));
        assert!(empty.is_needed());
    }

    #[test]
    fn other_keyings_count_other_keys() {
        let keying: Arc<dyn Keying> = Arc::new(ByLetter);
        let all = BTreeMap::from([(&b"le"[..], true), (b"x", false)]);
        let mut census = Census::default();
        census.count_slots(records(&all));
        let strict = |census: &Census| census.slots().expect("counted").strict(|_| true).keys;
        assert_eq!((census.elsewhere().keys, strict(&census)), (0, 2));
        census.set_keying(Some(&keying), records(&all));
        assert_eq!((census.elsewhere().keys, strict(&census)), (1, 1));
        census.set_keying(None, records(&all));
        assert_eq!((census.elsewhere().keys, strict(&census)), (0, 2));
    }
}
