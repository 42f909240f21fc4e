//! Reading values, walking over keys, and the time from which they expire.

use super::Shard;
use super::causal::{self, note_read};
use super::db::{Db, Range};
use super::merging::{self, Replica, hidden_entry};
use super::types::{Any, Entry, Item, Key, Value, WrongType};
use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_datatype::object::{Registered, Tag};

impl Shard {
    /// A stamp with this time, in microseconds, was issued or observed.
    #[inline]
    pub fn reach(&mut self, stamp_us: u64) {
        self.env.lattice.reach(stamp_us);
    }

    /// The wall clock has jumped ahead by so many milliseconds, and is not followed yet: replicated keys do not expire
    /// by it. Zero: it is right, as far as is known.
    #[inline]
    pub fn set_clock_ahead(&mut self, ms: u64) {
        self.env.lattice.ahead_ms = ms;
    }

    /// The time in Unix milliseconds from which a deadline of this key counts.
    #[inline]
    pub fn time_ms(&self, key: Key<'_>, now: Now) -> u64 {
        let time = self.env.lattice.time_ms(now);
        if time != now.unix_ms() && self.env.lattice.keyed(key).is_some() {
            time
        } else {
            now.unix_ms()
        }
    }

    /// The value, as an access to the key; counted as a hit or a miss.
    #[inline]
    pub fn read(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Any<'_>> {
        let touch = self.env.touch;
        let value = self.dbs[db].get(key, touch, now, &mut self.env);
        match value {
            Some(_) => self.env.counters.hits += 1,
            None => self.env.counters.misses += 1,
        }
        value
    }

    /// The value, without changing the access stamp.
    #[inline]
    pub fn look(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Any<'_>> {
        self.dbs[db].get(key, false, now, &mut self.env)
    }

    /// The string at the key; counts as an access.
    #[inline]
    pub fn get(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
    ) -> Result<Option<Value<'_>>, WrongType> {
        if self.env.lattice.has_session() {
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
        if self.env.lattice.has_session() {
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
        let found = self.dbs[db].live(key, now, &mut self.env);
        found.is_some()
    }

    /// The key's entry; a big value is shared, not copied.
    pub fn clone_entry(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Entry> {
        let found = self.dbs[db].live(key, now, &mut self.env)?;
        Some(self.dbs[db].records.entry(found.handle))
    }

    /// When the key expires (Unix milliseconds), if it exists and has an expiry: of several concurrent values, that
    /// of the value that is shown.
    pub fn expire_at(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Option<u64>> {
        causal::expire_at(&mut self.at(db, key, now))
    }

    /// The key's access stamp, to be read through [`Shard::policy`].
    pub fn access(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<u32> {
        let found = self.dbs[db].live(key, now, &mut self.env)?;
        Some(self.dbs[db].records.stamp(found.handle))
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
        self.dbs[db].scan(range, Db::is_guest, &mut self.env, f)
    }

    /// Like [`Shard::scan`], of the keys that this worker lists.
    pub fn scan_listed(
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
        self.dbs[db].scan(range, Db::is_unlisted, &mut self.env, f)
    }

    /// A random key with its entry; all keys have the same probability.
    pub fn random(&mut self, db: usize, now: Now, rng: &mut Rng) -> Option<Item<'_>> {
        self.dbs[db].random(now.unix_ms(), rng, &mut self.env)
    }

    pub fn random_key(&mut self, db: usize, now: Now, rng: &mut Rng) -> Option<Vec<u8>> {
        self.random(db, now, rng).map(|item| item.key.to_vec())
    }

    /// Number of keys, including expired ones that are not yet removed.
    pub fn len(&self, db: usize) -> usize {
        self.dbs[db].len()
    }

    pub fn is_empty(&self, db: usize) -> bool {
        self.len(db) == 0
    }

    /// Mean time to live of the keys that have an expiry, in milliseconds.
    pub fn avg_ttl(&self, db: usize, now: Now) -> u64 {
        self.dbs[db].deadlines.avg_ttl(now.unix_ms())
    }

    /// Like [`Shard::len`], but of the keys that this worker lists, and not those that another worker or node lists.
    pub fn listed_len(&self, db: usize) -> usize {
        self.dbs[db].listed(&self.env.guests).0
    }

    /// Number of keys that this worker lists and that expire.
    pub fn listed_expiring_len(&self, db: usize) -> usize {
        self.dbs[db].listed(&self.env.guests).1
    }

    /// Like [`Shard::listed_len`], but including lattice keys that others list.
    pub fn own_len(&self, db: usize) -> usize {
        let db = &self.dbs[db];
        db.len() - db.census.guests(&self.env.guests).keys as usize
    }

    /// Number of strict keys of a slot, or 0 if another node answers for it.
    pub fn own_slot_len(&self, db: usize, slot: u16) -> usize {
        if self.env.guests.has(slot) {
            return 0;
        }
        let slots = self.dbs[db].census.slots();
        slots.map_or(0, |slots| slots.strict_in(slot))
    }

    /// Whether a key exists and is listed by this worker.
    pub fn lists(&mut self, db: usize, key: Key<'_>, now: Now) -> bool {
        self.contains(db, key, now) && !self.dbs[db].lists_not(key.bytes, &self.env)
    }
}
