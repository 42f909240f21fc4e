//! Reading values, walking over keys, and the time from which they expire.

use super::Shard;
use super::books::Books;
use super::causal::{self, note_read};
use super::db::{Db, Range};
use super::env::Env;
use super::listing::{ListStep, Listing};
use super::merging::{self, Replica, hidden_entry};
use super::types::{Any, Entry, Item, Key, Value, Warm, WrongType};
use crate::books::{BookId, name_of_entry};
use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_base::slot::slot_of;
use rufous_datatype::object::{Registered, Tag};
use std::collections::BTreeSet;

impl Shard {
    /// A stamp with this time, in microseconds, was issued or observed.
    #[inline]
    pub fn reach(&mut self, stamp_us: u64) {
        self.data.env.lattice.reach(stamp_us);
    }

    /// The wall clock has jumped ahead by so many milliseconds, and is not followed yet: replicated keys do not expire
    /// by it. Zero: it is right, as far as is known.
    #[inline]
    pub fn set_clock_ahead(&mut self, ms: u64) {
        self.data.env.lattice.set_ahead(ms);
    }

    /// The time in Unix milliseconds from which deadlines of replicated keys count here.
    pub fn lattice_time_ms(&self, now: Now) -> u64 {
        self.data.env.lattice.time_ms(now)
    }

    /// Of copies of an item cut: deadlines of replicated keys count from this time, in Unix milliseconds, until
    /// [`Shard::let_time_go`]. Commands are executed at `now`.
    pub fn stop_time(&mut self, now: Now, time_ms: u64) {
        self.data.env.lattice.stand(now, time_ms);
    }

    /// See [`Shard::stop_time`].
    pub fn let_time_go(&mut self) {
        self.data.env.lattice.go();
    }

    /// The time in Unix milliseconds from which a deadline of this key counts.
    #[inline]
    pub fn time_ms(&self, key: Key<'_>, now: Now) -> u64 {
        let time = self.data.env.lattice.time_ms(now);
        if time != now.unix_ms() && self.data.env.lattice.keyed(key).is_some() {
            time
        } else {
            now.unix_ms()
        }
    }

    /// The value, as an access to the key; counted as a hit or a miss.
    #[inline]
    pub fn read(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Any<'_>> {
        let touch = self.data.env.touch;
        let value = self.data.dbs[db].get(key, touch, now, &mut self.data.env);
        match value {
            Some(_) => self.data.env.counters.hits += 1,
            None => self.data.env.counters.misses += 1,
        }
        value
    }

    /// The value, without changing the access stamp.
    #[inline]
    pub fn look(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Any<'_>> {
        self.data.dbs[db].get(key, false, now, &mut self.data.env)
    }

    /// The string at the key; counts as an access.
    #[inline]
    pub fn get(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
    ) -> Result<Option<Value<'_>>, WrongType> {
        if self.data.env.lattice.has_session() {
            note_read(&mut self.at(db, key, now));
        }
        self.read(db, key, now).map(Any::string).transpose()
    }

    /// The string at the key, without changing the access stamp.
    #[inline]
    pub fn peek(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
    ) -> Result<Option<Value<'_>>, WrongType> {
        if self.data.env.lattice.has_session() {
            note_read(&mut self.at(db, key, now));
        }
        self.look(db, key, now).map(Any::string).transpose()
    }

    /// The collection at the key; counts as an access.
    #[inline]
    pub fn collection<T: Registered>(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
    ) -> Result<Option<T::View<'_>>, WrongType> {
        self.read(db, key, now).map(Any::of::<T>).transpose()
    }

    /// Whether the key exists, without changing its access stamp or the counters.
    #[inline]
    pub fn contains(&mut self, db: usize, key: Key<'_>, now: Now) -> bool {
        let found = self.data.dbs[db].live(key, now, &mut self.data.env);
        found.is_some()
    }

    /// The key's entry; a big value is shared, not copied.
    pub fn clone_entry(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Entry> {
        self.at(db, key, now).entry()
    }

    /// When the key expires (Unix milliseconds), if it exists and has an expiry: of several concurrent values, that
    /// of the value that is shown.
    pub fn expire_at(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Option<u64>> {
        causal::expire_at(&mut self.at(db, key, now))
    }

    /// The key's access stamp, to be read through [`Shard::policy`].
    pub fn access(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<u32> {
        let found = self.data.dbs[db].live(key, now, &mut self.data.env)?;
        Some(self.data.dbs[db].records.stamp(found.handle))
    }

    /// A key's entry, for a command that runs on another shard; also the state of a value that shows nothing, which
    /// the command needs.
    pub fn gather_entry(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Entry> {
        let entry = self.clone_entry(db, key, now);
        entry.or_else(|| hidden_entry(&self.at(db, key, now)))
    }

    /// Produces the whole state of a key, in parts of about 64 KiB that can be merged in any order.
    pub fn show_replica(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
        f: &mut dyn FnMut(Tag, &[u8]),
    ) -> Option<Replica> {
        merging::show(&mut self.at(db, key, now), f)
    }

    /// Visits `count` keys in the order of their hashes from `cursor` on: fewer at the end or where the table is
    /// sparse, more where hashes are equal. Returns the next cursor, `None` at the end, and never 0, which starts a
    /// walk. A key that exists from the first call to the last is visited exactly once.
    pub fn scan(
        &mut self,
        db: usize,
        cursor: u32,
        count: usize,
        now: Now,
        f: &mut dyn FnMut(Item<'_>),
    ) -> Option<u32> {
        let range = Range {
            cursor,
            count,
            now_ms: now.unix_ms(),
        };
        self.data.scan(db, range, f)
    }

    /// Like [`Shard::scan`], of listed keys: `f` also gets their hashes. Every listed key with a hash from the cursor
    /// up to the returned one was visited.
    pub fn scan_listed(
        &mut self,
        step: ListStep,
        now: Now,
        f: &mut dyn FnMut(u32, Item<'_>),
    ) -> Option<u32> {
        let range = Range {
            cursor: step.cursor,
            count: step.count,
            now_ms: now.unix_ms(),
        };
        let leaves_out =
            |db: &Db, handle: u32, env: &Env| db.is_unlisted(handle, step.listing, env);
        self.data.dbs[step.db].scan(range, leaves_out, &mut self.data.env, f)
    }

    /// A random listed key; all have the same probability. `None` if there is none, or hardly any among others.
    pub fn random_key(
        &mut self,
        (db, listing): (usize, Listing),
        now: Now,
        rng: &mut Rng,
    ) -> Option<Vec<u8>> {
        let item = self.data.dbs[db].random(listing, now.unix_ms(), rng, &mut self.data.env)?;
        Some(item.key.to_vec())
    }

    /// Number of keys, including expired ones that are not yet removed.
    pub fn len(&self, db: usize) -> usize {
        self.data.dbs[db].len()
    }

    pub fn is_empty(&self, db: usize) -> bool {
        self.len(db) == 0
    }

    /// Mean time to live of the keys that have an expiry, in milliseconds.
    pub fn avg_ttl(&self, db: usize, now: Now) -> u64 {
        self.data.dbs[db].deadlines.avg_ttl(now.unix_ms())
    }

    /// Like [`Shard::len`], but of the keys that this worker counts for statistics, and not those that another worker
    /// or node counts.
    pub fn counted_len(&self, db: usize) -> usize {
        self.data.dbs[db].counted(&self.data.env.guests).0
    }

    /// Number of keys that this worker counts and that expire.
    pub fn counted_expiring_len(&self, db: usize) -> usize {
        self.data.dbs[db].counted(&self.data.env.guests).1
    }

    /// False only if no key is listed; costs nothing.
    pub fn may_list(&self, db: usize, listing: Listing) -> bool {
        self.data.dbs[db].census.may_list(self.len(db), listing)
    }

    /// Number of listed keys, including expired ones that are not yet removed.
    pub fn listed_len(&self, db: usize, listing: Listing) -> usize {
        self.data.dbs[db].listed(listing, &self.data.env.guests)
    }

    /// Number of strict keys of a slot, or 0 if another node answers for it.
    pub fn own_slot_len(&self, db: usize, slot: u16) -> usize {
        if self.data.env.guests.has(slot) {
            return 0;
        }
        let slots = self.data.dbs[db].census.slots();
        slots.map_or(0, |slots| slots.strict_in(slot))
    }

    /// Whether a key exists and is listed.
    pub fn lists(&mut self, (db, listing): (usize, Listing), key: Key<'_>, now: Now) -> bool {
        self.contains(db, key, now) && {
            let guests = &self.data.env.guests;
            self.data.dbs[db].census.lists(key.bytes, listing, guests)
        }
    }

    /// Like [`Shard::scan`], for one slot's keys: it examines `count` keys.
    pub fn scan_slot(
        &mut self,
        (db, slot): (usize, u16),
        cursor: u32,
        count: usize,
        now: Now,
        f: &mut dyn FnMut(Item<'_>),
    ) -> Option<u32> {
        self.scan(db, cursor, count, now, &mut |item| {
            if slot_of(item.key) == slot {
                f(item);
            }
        })
    }

    /// The entry of a transaction in the book of a slot.
    pub fn book(&self, slot: u16, id: &BookId) -> Option<Vec<u8>> {
        let name = name_of_entry(slot, id);
        let entry = Books::new(&self.data).get(self.key(&name))?;
        Some(entry.to_vec())
    }

    /// All entries here, also those of slots that another node answers for, in no particular order. They must not
    /// change meanwhile.
    pub fn books(&self) -> impl Iterator<Item = (u16, BookId, &[u8])> {
        Books::new(&self.data).iter()
    }

    /// Slots with entries, whichever nodes answer for them: as [`Self::books_in`].
    pub fn slots_with_books(&self) -> BTreeSet<u16> {
        Books::new(&self.data).slots()
    }

    /// Number of entries of a slot, whichever node answers for it. It is kept on a node of a cluster; elsewhere it is
    /// counted by a walk over all entries.
    pub fn books_in(&self, slot: u16) -> usize {
        Books::new(&self.data).len_in(slot)
    }

    /// Prefetches the key's line of the index. For a batch of keys, call this for all of them first, then
    /// [`Shard::warm_record`] for each result: within each pass the processor waits for all the misses together.
    /// Recently written keys need neither.
    #[inline]
    pub fn warm_index(&self, db: usize, hash: u32) -> Warm {
        self.data.warm_index(db, hash)
    }

    /// Prefetches what most probably is the record's slot. The result has no meaning.
    #[inline]
    pub fn warm_record(&self, db: usize, warm: Warm) -> u64 {
        self.data.warm_record(db, warm)
    }

    /// Does both for some keys with their databases, whose records are read or written whole.
    pub fn warm(&self, keys: impl Iterator<Item = (usize, u32)>) {
        self.data.warm(keys);
    }
}
