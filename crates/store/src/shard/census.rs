//! Which records of a database this worker and node count and list.
//!
//! Next to the number of all its records, a database keeps numbers of its lattice keys, updated whenever a record is
//! added or removed, so that counting needs no walk:
//! - of those whose primary is another worker: statistics count a key once, at its primary;
//! - for each worker of the node, of those whose replica here serves its connections: they are listed to these ([`Listing`]);
//! - on a node of a cluster, of the keys of each slot ([`BySlot`]).

use super::by_slot::BySlot;
use super::guests::Guests;
use super::lattice::Keying;
use super::listing::{Listing, Slots};
use crate::placement::Owners;
use rufous_base::WorkerId;
use rufous_base::slot::slot_of;
use std::sync::Arc;

/// A number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) keys: u32,
    /// Number of them that expire.
    pub(super) expiring: u32,
}

impl Counts {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            expiring: self.expiring + other.expiring,
        }
    }

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
    /// Determines which keys are replicated, and where; `None`: none is.
    keying: Option<Arc<dyn Keying>>,
    /// Lattice keys.
    lattice: u32,
    /// Of these, those whose primary is another worker.
    elsewhere: Counts,
    /// Of these, those whose replica here serves the connections of each worker; empty without a keying.
    served: Box<[u32]>,
    /// `None` if no counts of slots are needed.
    slots: Option<BySlot>,
}

impl Census {
    /// The counts of an empty database that replaces this one.
    pub(super) fn of_nothing(&self) -> Self {
        let workers = self.keying.as_ref().map_or(0, |keying| keying.place().1);
        Self {
            keying: self.keying.clone(),
            lattice: 0,
            elsewhere: Counts::default(),
            served: vec![0; workers].into(),
            slots: self.slots.as_ref().map(|_| BySlot::default()),
        }
    }

    /// Whether anything is counted besides the number of all records.
    #[inline]
    pub(super) fn is_needed(&self) -> bool {
        self.keying.is_some() || self.slots.is_some()
    }

    #[inline]
    fn owners(&self, key: &[u8]) -> Option<Owners> {
        self.keying.as_ref()?.owners(key)
    }

    fn own(&self) -> WorkerId {
        let keying = self.keying.as_ref();
        keying.map_or(WorkerId(0), |keying| keying.place().0)
    }

    /// Whether a key is listed, whatever it has.
    #[inline]
    pub(super) fn lists(&self, key: &[u8], listing: Listing, guests: &Guests) -> bool {
        let Some(owners) = self.owners(key) else {
            return listing.has_strict && !guests.have(key);
        };
        listing.lattice.is_some_and(|(of, slots)| {
            let is_listed = slots == Slots::All || guests.are_of_node(slot_of(key));
            is_listed && owners.serving(of) == self.own()
        })
    }

    /// False only if none of `all` records is listed; costs nothing.
    pub(super) fn may_list(&self, all: usize, listing: Listing) -> bool {
        let has_strict = listing.has_strict && all > self.lattice as usize;
        let lattice = listing.lattice.map_or(0, |(of, _)| self.served_of(of));
        has_strict || lattice > 0
    }

    /// Number of listed keys of `all` records.
    pub(super) fn listed(&self, all: usize, listing: Listing, guests: &Guests) -> usize {
        let lattice = listing.lattice.map_or(0, |(of, slots)| match slots {
            Slots::Own if guests.any() => self.served_in_own_slots(of, guests),
            Slots::All | Slots::Own => self.served_of(of),
        });
        if !listing.has_strict {
            return lattice;
        }
        lattice + all - (self.lattice + self.guests(guests).keys) as usize
    }

    fn served_of(&self, worker: WorkerId) -> usize {
        self.served.get(worker.index()).copied().unwrap_or(0) as usize
    }

    fn served_in_own_slots(&self, of: WorkerId, guests: &Guests) -> usize {
        let is_listed =
            |slot, owners: Owners| guests.are_of_node(slot) && owners.serving(of) == self.own();
        self.lattice_in_slots(is_listed).keys as usize
    }

    fn lattice_in_slots(&self, has: impl Fn(u16, Owners) -> bool) -> Counts {
        let workers = self.served.len();
        let slots = self.slots.as_ref().filter(|_| workers > 0);
        slots.map_or_else(Counts::default, |slots| slots.lattice(workers, has))
    }

    fn each(&mut self, key: &[u8], owners: Option<Owners>, change: impl Fn(&mut Counts)) {
        if owners.is_some_and(|owners| owners.primary() != self.own()) {
            change(&mut self.elsewhere);
        }
        if let Some(counts) = self.slots.as_mut().and_then(|slots| slots.of(key, owners)) {
            change(counts);
        }
    }

    fn serve(&mut self, owners: Option<Owners>, change: impl Fn(&mut u32)) {
        let Some(owners) = owners else {
            return;
        };
        change(&mut self.lattice);
        for of in owners.served_at(self.own()) {
            if let Some(count) = self.served.get_mut(of.index()) {
                change(count);
            }
        }
    }

    /// A record was added.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) {
        if self.is_needed() {
            let owners = self.owners(key);
            self.each(key, owners, |counts| counts.keys += 1);
            self.serve(owners, |count| *count += 1);
        }
    }

    /// A record is about to be removed; its expiry was already cleared.
    pub(super) fn remove(&mut self, key: &[u8]) {
        let owners = self.owners(key);
        self.each(key, owners, |counts| counts.keys -= 1);
        self.serve(owners, |count| *count -= 1);
    }

    /// A record has got or lost its expiry.
    pub(super) fn change_expiring(&mut self, key: &[u8], expires: bool) {
        let owners = self.owners(key);
        self.each(key, owners, |counts| counts.change_expiring(expires));
    }

    /// Sets which keys are replicated, and where. All records, of which it is given whether they expire, are to be
    /// counted again.
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

    /// Lattice keys whose primary is another worker.
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

    /// Lattice keys whose primary is this worker, of slots that other nodes answer for.
    pub(super) fn counted_by_others(&self, guests: &Guests) -> Counts {
        let is_theirs = |slot, owners: Owners| guests.has(slot) && owners.primary() == self.own();
        self.lattice_in_slots(is_theirs)
    }

    /// Asserts that the counts are those of these records.
    pub(super) fn check<'a>(&self, records: impl Iterator<Item = (&'a [u8], bool)>) {
        let mut all = self.of_nothing();
        all.recount(records);
        assert_eq!(
            (all.lattice, all.elsewhere, &all.served),
            (self.lattice, self.elsewhere, &self.served)
        );
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
    use rufous_base::slot::worker_of_slot;
    use rufous_datatype::object::Tag;
    use std::collections::BTreeMap;

    const WORKERS: usize = 3;

    /// Keys with `l` are lattice keys with two replicas, those with `la` with one at each worker. The shard is the first
    /// worker's.
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

        fn owners(&self, key: &[u8]) -> Option<Owners> {
            let spread = if key.starts_with(b"la") { 3 } else { 2 };
            let is_lattice = key.starts_with(b"l");
            is_lattice.then(|| Owners::of_slot(slot_of(key), spread, WORKERS))
        }

        fn place(&self) -> (WorkerId, usize) {
            (WorkerId(0), WORKERS)
        }
    }

    fn records<'a>(
        all: &'a BTreeMap<&'static [u8], bool>,
    ) -> impl Iterator<Item = (&'a [u8], bool)> {
        all.iter().map(|(key, expires)| (*key, *expires))
    }

    /// The name of the key with this beginning and number of which the first replica is at this worker.
    fn lattice_key(begin: &str, primary: u16) -> &'static [u8] {
        let mut names = (0..).map(|n| format!("{begin}{n}").into_bytes());
        let is_it = |name: &Vec<u8>| worker_of_slot(slot_of(name), WORKERS) == WorkerId(primary);
        names.find(is_it).expect("one of many").leak()
    }

    fn of(worker: u16, slots: Slots) -> Listing {
        Listing {
            has_strict: slots == Slots::Own,
            lattice: Some((WorkerId(worker), slots)),
        }
    }

    /// Number of listed keys, by walking and as counted.
    fn listed(
        census: &Census,
        all: &BTreeMap<&'static [u8], bool>,
        (listing, guests): (Listing, &Guests),
    ) -> usize {
        let count = census.listed(all.len(), listing, guests);
        let walked = all.keys().filter(|key| census.lists(key, listing, guests));
        assert_eq!(count, walked.count(), "{listing:?}");
        assert!(count == 0 || census.may_list(all.len(), listing));
        count
    }

    #[test]
    fn counts_follow_the_records() {
        let keying: Arc<dyn Keying> = Arc::new(ByLetter);
        let mut census = Census::default();
        let mut all = BTreeMap::new();
        assert!(!census.is_needed());
        let [first, third] = [0, 2].map(|primary| lattice_key("l", primary));
        let everywhere = lattice_key("la", 1);
        for key in [&b"strict"[..], first, third] {
            all.insert(key, key == third);
        }
        census.set_keying(Some(&keying), records(&all));
        census.count_slots(records(&all));
        for key in [everywhere, b"other"] {
            census.add(key);
            census.change_expiring(key, true);
            all.insert(key, true);
        }
        census.check(records(&all));
        let elsewhere = census.elsewhere();
        assert_eq!((elsewhere.keys, elsewhere.expiring), (2, 2));
        let slots = census.slots().expect("counted");
        assert_eq!(slots.strict_in(slot_of(b"strict")), 1);
        assert_eq!(slots.strict_in(slot_of(first)), 0);
        let sum = |keys, expiring| Counts { keys, expiring };
        assert_eq!(slots.strict(|_| true), sum(2, 1));
        assert_eq!(slots.lattice(WORKERS, |_, _| true), sum(3, 2));
        // The connections of the second worker read its replica of `first`, and here that of `third`; those of the
        // third their own of `third`, and here that of `first`.
        let mut guests = Guests::default();
        let lists = |listing, guests: &Guests| listed(&census, &all, (listing, guests));
        assert_eq!(lists(Listing::STRICT, &guests), 2);
        for (worker, count) in [(0, 3), (1, 1), (2, 1)] {
            assert_eq!(lists(of(worker, Slots::All), &guests), count);
            assert_eq!(lists(of(worker, Slots::Own), &guests), 2 + count);
        }
        guests.invite_all();
        assert_eq!(lists(of(0, Slots::All), &guests), 3);
        guests.set(slot_of(first), false);
        guests.set_of_node([slot_of(first)].into_iter());
        for (worker, count) in [(0, 1), (1, 0), (2, 1)] {
            assert_eq!(lists(of(worker, Slots::Own), &guests), count);
        }
        assert_eq!(census.counted_by_others(&guests), Counts::default());
        for key in [third, b"other", everywhere] {
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
        let key = lattice_key("l", 2);
        let all = BTreeMap::from([(key, true), (b"x", false)]);
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
