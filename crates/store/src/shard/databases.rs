//! The databases of a shard with what they share: the store that its machines work on.

use super::at::At;
use super::db::{Db, Range, keys};
use super::env::Env;
use super::graves::GraveKeys;
use super::recent::Recent;
use super::replica::forget;
use super::types::{Item, Key};
use crate::effect::Effect;
use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use rufous_base::Now;
use rufous_base::limits::ALL_DATABASES;
use std::hash::Hasher;

/// Keys that a walk over all visits at a time.
const TOGETHER: usize = 1024;

/// See the module's description.
#[derive(Debug)]
pub(super) struct Databases {
    seed: SharedSeed,
    pub(super) dbs: Vec<Db>,
    pub(super) env: Env,
    pub(super) recent: Recent,
}

fn hash_of(seed: &SharedSeed, bytes: &[u8]) -> u32 {
    let mut hasher = FoldHasher::with_seed(0x52_75_66_6F_75_73, seed);
    hasher.write(bytes);
    (hasher.finish() >> 32) as u32
}

impl Databases {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed: SharedSeed::from_u64(seed),
            dbs: (0..ALL_DATABASES).map(|db| Db::new(db as u8)).collect(),
            env: Env::new(seed),
            recent: Recent::default(),
        }
    }

    #[inline]
    pub(super) fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key {
            bytes,
            hash: hash_of(&self.seed, bytes),
        }
    }

    /// A key, for an operation on it.
    #[inline]
    pub(super) fn at<'a>(&'a mut self, db: usize, key: Key<'a>, now: Now) -> At<'a> {
        At {
            db: &mut self.dbs[db],
            env: &mut self.env,
            recent: &mut self.recent,
            key,
            now,
        }
    }

    /// See [`Shard::scan`](super::Shard::scan).
    pub(super) fn scan(
        &mut self,
        db: usize,
        range: Range,
        f: &mut dyn FnMut(Item<'_>),
    ) -> Option<u32> {
        self.dbs[db].scan(range, Db::is_guest, &mut self.env, &mut |_, item| f(item))
    }

    /// Some keys that have graves, from `from` on (initially empty), and the next position.
    pub(super) fn graves(&self, db: usize, from: &[u8], count: usize) -> GraveKeys {
        self.dbs[db].graves.keys_from(from, count)
    }

    /// Moves an entry without reporting it.
    pub(super) fn transfer(
        &mut self,
        (db, key): (usize, Key<'_>),
        (to_db, to): (usize, Key<'_>),
        now: Now,
    ) {
        let from = &mut self.dbs[db];
        let Some(found) = from.records.find(key) else {
            return;
        };
        let entry = from.records.entry(found.handle);
        drop(from.unlink(found, key.hash));
        self.dbs[to_db].put(to, entry, now, &mut self.env);
    }

    /// Empties a database. Logs may have more of its replicated keys than the database itself.
    pub(super) fn flush(&mut self, db: usize) {
        let len = self.dbs[db].len();
        self.env.counters.changes += len as u64;
        if self.env.lattice.keying().is_some() || !self.dbs[db].is_void() {
            self.env
                .observers
                .journal
                .write(&Effect::FlushDb { db: db as u8 });
            self.touch_watched(db, db, db);
            self.env.lattice.changes().forget_db(db as u8);
        }
        self.put_empty(db);
    }

    pub(super) fn swap(&mut self, a: usize, b: usize) {
        self.env.counters.changes += 1;
        if a != b && !(self.dbs[a].is_void() && self.dbs[b].is_void()) {
            self.env.observers.journal.write(&Effect::SwapDb {
                a: a as u8,
                b: b as u8,
            });
            self.touch_watched(a, a, b);
            self.touch_watched(b, a, b);
        }
        self.exchange(a, b);
        self.env.observers.touch_awaited_in(a);
        self.env.observers.touch_awaited_in(b);
    }

    /// Touches the watched keys of database `db` that are in `one` or `other`.
    fn touch_watched(&mut self, db: usize, one: usize, other: usize) {
        self.env.observers.touch_all_versions();
        let is_in = |db: usize, key: Key<'_>| self.dbs[db].records.find(key).is_some();
        let watches = &mut self.env.observers.watches;
        watches.touch_in(db, |key| is_in(one, key) || is_in(other, key));
    }

    /// Before an effect of another worker or node is applied: reports it to all observers but the journal.
    pub(super) fn tell_carried(&mut self, effect: &Effect<'_>) {
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            for (number, bytes) in effect.keys() {
                let key = self.key(bytes);
                let db = &mut self.dbs[usize::from(number)];
                if let Some(found) = db.records.find(key) {
                    self.env.snapshot.capture(db, found.handle);
                }
                self.env.observers.touch(key, number);
            }
        }
    }

    /// The keys of a database, and those with graves, that satisfy `is_it`.
    pub(super) fn names_where(
        &mut self,
        db: usize,
        is_it: impl Fn(&[u8]) -> bool,
    ) -> Vec<Box<[u8]>> {
        let mut names = Vec::<Box<[u8]>>::new();
        let mut take = |key: &[u8]| {
            if is_it(key) {
                names.push(key.into());
            }
        };
        let mut next = Some(0);
        while let Some(cursor) = next {
            let range = Range {
                cursor,
                count: TOGETHER,
                now_ms: 0,
            };
            next = self.scan(db, range, &mut |item| take(item.key));
        }
        let mut from = Some(Box::<[u8]>::default());
        while let Some(at) = from {
            let (graves, next) = self.graves(db, &at, TOGETHER);
            graves.iter().for_each(|name| take(name));
            from = next;
        }
        names
    }

    /// Exchanges two databases without reporting it.
    pub(super) fn exchange(&mut self, a: usize, b: usize) {
        self.dbs.swap(a, b);
        self.dbs[a].number = a as u8;
        self.dbs[b].number = b as u8;
    }

    /// Replaces a database by an empty one without reporting it.
    pub(super) fn put_empty(&mut self, db: usize) {
        let new = self.dbs[db].of_nothing(db as u8);
        let old = std::mem::replace(&mut self.dbs[db], new);
        let env = &mut self.env;
        env.snapshot.take_flushed(old, &mut env.garbage);
    }

    /// Starts counting the keys of slots.
    pub(super) fn count_slots(&mut self) {
        for db in &mut self.dbs {
            db.census.count_slots(keys(&db.records));
        }
    }

    /// Whether some database has state to forget; if not, none is looked at before one gets some.
    #[cold]
    pub(super) fn look_to_forget(&mut self) -> bool {
        self.env.may_forget = self.has_graves_queued();
        self.env.may_forget
    }

    fn has_graves_queued(&self) -> bool {
        self.dbs.iter().any(|db| !db.graves.is_settled())
    }

    /// Forgets deletions up to `horizon`; see [`Shard::forget_step`](super::Shard::forget_step).
    pub(super) fn forget(&mut self, horizon: u64, budget: usize) -> bool {
        if self.dbs.iter().any(|db| db.graves.is_due(horizon)) {
            self.env.horizons.forget(horizon);
        }
        let mut left = budget;
        let mut more = false;
        for db in &mut self.dbs {
            more |= forget(db, horizon, &mut left, &mut self.env);
        }
        more
    }

    /// Removes expired keys of a database, reducing the budget. Returns whether there may be more.
    pub(super) fn expire(&mut self, db: usize, now: Now, budget: &mut usize) -> bool {
        self.dbs[db].expire(now.unix_ms(), budget, &mut self.env)
    }

    /// Empties pages of a database's arena, reducing the budget. Returns whether there may be more to do.
    pub(super) fn compact(&mut self, db: usize, budget: &mut usize) -> bool {
        let (seed, moved) = (&self.seed, &mut self.env.counters.compacted);
        let hash_of = |key: &[u8]| hash_of(seed, key);
        self.dbs[db].records.compact(hash_of, budget, moved)
    }

    /// Asserts every invariant, by examining all data.
    pub(super) fn check(&self) {
        for db in &self.dbs {
            db.check(|key| hash_of(&self.seed, key));
        }
        let is_missed = self.has_graves_queued() && !self.env.may_forget;
        assert!(!is_missed, "what is to be forgotten is looked for");
    }
}
