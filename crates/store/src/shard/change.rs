//! Every change of a shard's data, reported to its observers.
//!
//! An effect follows the effects of the expiries that the command met, since the replay of a journal has no clock.
//! Changes of access stamps alone are not reported.

use super::Shard;
use super::collection::{self, Editor};
use super::lattice::Keyed;
use super::merging::{self, hidden_entry, merge_entry};
use super::overwrite::put_again;
use super::strings::{set_deadline, write_string};
use super::types::{Entry, ExpirySetting, Key, NewValue, OwnedValue, WrongType};
use super::watch::WatchId;
use super::writes::{self, write_replica};
use crate::effect::{Effect, NotAnEffect};
use rufous_base::Now;
use rufous_datatype::object::{Registered, Tag};
use rufous_datatype::replicated::{Writer, register};
use rufous_lattice::Stamp;
use std::ops::Range;

const FLUSHED_TOGETHER: usize = 1024;

impl Shard {
    /// The effects of all changes since this was last emptied, encoded.
    #[inline]
    pub fn journal(&mut self) -> &mut Vec<u8> {
        self.env.observers.journal.bytes()
    }

    /// Sets the value; returns whether the key existed before.
    #[inline]
    pub fn set(
        &mut self,
        db: usize,
        key: Key<'_>,
        value: NewValue<'_>,
        expiry: ExpirySetting,
        now: Now,
    ) -> bool {
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            if self.env.lattice.is_undecided() {
                return false;
            }
            if let Some(keyed) = self.env.lattice.replicated(key) {
                return write_string(&mut self.at(db, key, now), keyed, &value, expiry);
            }
            self.tell_set(db, key, value.bytes(), expiry, now);
        }
        self.dbs[db].set(key, value, expiry, now, &mut self.env)
    }

    #[inline(never)]
    pub(super) fn tell_set(
        &mut self,
        db: usize,
        key: Key<'_>,
        value: &[u8],
        expiry: ExpirySetting,
        now: Now,
    ) {
        // An expiry that has passed must not be kept. (If none is kept, the removal of an expired record needs no
        // effect of its own.)
        if expiry == ExpirySetting::Keep || self.env.snapshot.is_running() {
            self.dbs[db].prepare(key, now, &mut self.env);
        }
        let db = db as u8;
        let effect = match expiry {
            ExpirySetting::Keep => Effect::SetKeep {
                db,
                key: key.bytes,
                value,
            },
            ExpirySetting::Clear | ExpirySetting::At(_) => Effect::Set {
                db,
                key: key.bytes,
                value,
                expire_at: match expiry {
                    ExpirySetting::At(at) => Some(at),
                    ExpirySetting::Clear | ExpirySetting::Keep => None,
                },
            },
        };
        self.env.observers.tell(key, db, &effect);
    }

    /// Lets `change` alter the value's bytes after extending it with zeros to at least `min_len`; a missing key is
    /// created. `changed` are the ranges that may differ afterwards.
    pub fn edit<R>(
        &mut self,
        (db, key): (usize, Key<'_>),
        min_len: usize,
        changed: impl IntoIterator<Item = Range<usize>>,
        now: Now,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        self.env.counters.changes += 1;
        if !self.env.observers.any() {
            return change(self.dbs[db].grow(key, min_len, now, &mut self.env));
        }
        if self.env.lattice.writes(key) {
            return writes::refuse_edit(&mut self.at(db, key, now), min_len, change);
        }
        let old_len = self.dbs[db]
            .prepare(key, now, &mut self.env)
            .map(|found| self.dbs[db].records.string_len(found.handle));
        let bytes = self.dbs[db].grow(key, min_len, now, &mut self.env);
        let result = change(bytes);
        let db = db as u8;
        let mut tell = |range: Range<usize>| {
            let effect = Effect::Write {
                db,
                key: key.bytes,
                at: range.start as u64,
                bytes: &bytes[range],
            };
            self.env.observers.tell(key, db, &effect);
        };
        let mut told = old_len;
        for range in changed {
            let end = range.end.min(bytes.len());
            told = told.max(Some(end));
            tell(range.start.min(end)..end);
        }
        if told < Some(bytes.len()) {
            tell(bytes.len()..bytes.len());
        }
        result
    }

    /// Appends to the value, creating a missing key; returns the new length.
    pub fn append(&mut self, db: usize, key: Key<'_>, tail: &[u8], now: Now) -> usize {
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            if self.env.lattice.writes(key) {
                return writes::refuse_append(&mut self.at(db, key, now));
            }
            self.dbs[db].prepare(key, now, &mut self.env);
            let (number, bytes) = (db as u8, key.bytes);
            let effect = Effect::Append {
                db: number,
                key: bytes,
                tail,
            };
            self.env.observers.tell(key, number, &effect);
        }
        self.dbs[db].append(key, tail, now, &mut self.env)
    }

    /// Returns whether the key existed.
    pub fn remove(&mut self, db: usize, key: Key<'_>, now: Now) -> bool {
        if self.env.observers.any() {
            if self.env.lattice.is_undecided() {
                return false;
            }
            if let Some(keyed) = self.env.lattice.replicated(key) {
                return writes::remove(&mut self.at(db, key, now), keyed);
            }
        }
        self.at(db, key, now).remove()
    }

    /// Removes the key and returns its entry.
    pub fn take(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Entry> {
        let mut at = self.at(db, key, now);
        let found = at.find_to_remove()?;
        let entry = at.db.records.entry(found.handle);
        at.db.unlink(found, key.hash);
        Some(entry)
    }

    /// Lets `change` apply operations to the value of a key, or to an empty value if the key is missing. A value
    /// without elements afterwards is not kept.
    #[inline]
    pub fn update<T: Registered, R>(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
        change: impl FnOnce(&mut Editor<'_, T>) -> R,
    ) -> Result<R, WrongType> {
        if self.env.observers.any()
            && let Some(keyed) = self.env.lattice.replicated(key)
        {
            return writes::update(&mut self.at(db, key, now), keyed, change);
        }
        collection::update(&mut self.at(db, key, now), change)
    }

    /// Gives the key this value, expiry and access stamp, whatever it had before. A replicated value is merged with
    /// the key's replicated state.
    pub fn insert_entry(&mut self, db: usize, key: Key<'_>, entry: Entry, now: Now) {
        if entry.value.is_replicated() {
            return merge_entry(&mut self.at(db, key, now), &entry);
        }
        if self.env.observers.any()
            && let Some(keyed) = self.env.lattice.replicated(key)
        {
            return writes::insert(&mut self.at(db, key, now), keyed, entry);
        }
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            self.dbs[db].prepare(key, now, &mut self.env);
            self.env.observers.tell_entry(key, db as u8, &entry);
        }
        self.dbs[db].put(key, entry, now, &mut self.env);
    }

    /// Like [`Shard::insert_entry`], but a collection at a replicated key replaces what this replica shows, element
    /// by element.
    pub fn restore_entry(&mut self, db: usize, key: Key<'_>, entry: Entry, now: Now) {
        match (self.env.lattice.replicated(key), &entry.value) {
            (Some(keyed), OwnedValue::Object(object)) => {
                writes::restore(&mut self.at(db, key, now), keyed, object, entry.expire_at);
            }
            _ => self.insert_entry(db, key, entry, now),
        }
    }

    /// Writes a string at one replica, with a stamp above all that its worker has given: the effect of SET, with a
    /// fast path.
    #[inline]
    pub fn put_register(
        &mut self,
        db: usize,
        key: Key<'_>,
        (stamp, is_shared): (Stamp, bool),
        value: &[u8],
        now: Now,
    ) {
        let keyed = Keyed {
            strings: Tag::Register,
            is_shared,
        };
        if !put_again(&mut self.at(db, key, now), keyed, stamp, value) {
            self.put_register_anew((db, key), keyed, stamp, value, now);
        }
    }

    #[inline(never)]
    pub(super) fn put_register_anew(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        stamp: Stamp,
        value: &[u8],
        now: Now,
    ) {
        self.begin_lattice(Writer { stamp });
        let at = &mut self.at(db, key, now);
        write_replica(at, (keyed, Tag::Register), |_, writer, ops| {
            register::set(writer, value, 0, ops);
        });
        self.end_lattice();
    }

    /// Merges a part of another replica's state with this one's, and reports that to watchers and waiters, but not to
    /// the journal: the writer's own log has it. Returns whether that may have changed anything.
    pub fn merge(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        chunk: &[u8],
        now: Now,
    ) -> Result<bool, NotAnEffect> {
        merging::merge(&mut self.at(db, key, now), tag, chunk)
    }

    /// Removes all state of a key without reporting it: for a shard on which commands are tried.
    pub fn take_entry(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Entry> {
        let taken = self.take(db, key, now);
        taken.or_else(|| {
            let mut at = self.at(db, key, now);
            let entry = hidden_entry(&at);
            at.replica().drop_all();
            entry
        })
    }

    /// Moves the value and expiry of a key to another key, replacing what that had. Returns whether the first key
    /// existed.
    pub fn rename(
        &mut self,
        (db, key): (usize, Key<'_>),
        (to_db, to): (usize, Key<'_>),
        now: Now,
    ) -> bool {
        if self.dbs[db].prepare(key, now, &mut self.env).is_none() {
            return false;
        }
        if (db, key.bytes) == (to_db, to.bytes) {
            return true;
        }
        self.dbs[to_db].prepare(to, now, &mut self.env);
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            let effect = Effect::Move {
                db: db as u8,
                key: key.bytes,
                to_db: to_db as u8,
                to: to.bytes,
            };
            self.env.observers.tell(key, db as u8, &effect);
            self.env.observers.touch(to, to_db as u8);
        }
        self.transfer((db, key), (to_db, to), now);
        true
    }

    /// Copies the value and expiry of a key to another key.
    pub fn copy(
        &mut self,
        (db, key): (usize, Key<'_>),
        (to_db, to): (usize, Key<'_>),
        now: Now,
    ) -> bool {
        let Some(mut entry) = self.clone_entry(db, key, now) else {
            return false;
        };
        // The source was accessed, the copy is new.
        entry.access = self.env.policy.first_stamp(now);
        if (db, key.bytes) == (to_db, to.bytes) {
            return true;
        }
        self.dbs[to_db].prepare(to, now, &mut self.env);
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            let effect = Effect::Copy {
                db: db as u8,
                key: key.bytes,
                to_db: to_db as u8,
                to: to.bytes,
            };
            self.env.observers.tell(to, to_db as u8, &effect);
        }
        self.dbs[to_db].put(to, entry, now, &mut self.env);
        true
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

    /// Returns whether the key exists. A time that has passed is accepted: the key is absent for the next access.
    pub fn set_expire_at(
        &mut self,
        db: usize,
        key: Key<'_>,
        unix_ms: Option<u64>,
        now: Now,
    ) -> bool {
        if self.env.observers.any()
            && let Some(keyed) = self.env.lattice.replicated(key)
        {
            return set_deadline(&mut self.at(db, key, now), keyed, unix_ms);
        }
        let Some(found) = self.dbs[db].prepare(key, now, &mut self.env) else {
            return false;
        };
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            let (number, bytes) = (db as u8, key.bytes);
            let effect = Effect::Expire {
                db: number,
                key: bytes,
                at: unix_ms,
            };
            self.env.observers.tell(key, number, &effect);
        }
        self.dbs[db].set_expiry(found, key, unix_ms);
        true
    }

    /// Empties a database. Logs may have more of its replicated keys than the database itself.
    pub fn flush(&mut self, db: usize) {
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
        self.empty(db);
    }

    /// Removes the keys of a database that this node answers for, one by one, since effects on a slot go along its
    /// chain. Lattice keys stay.
    pub fn flush_own(&mut self, db: usize, now: Now) {
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let mut names: Vec<Box<[u8]>> = Vec::new();
            cursor = self.scan(db, at, FLUSHED_TOGETHER, now, &mut |item| {
                if !item.value.tag().is_some_and(|tag| tag.is_replicated()) {
                    names.push(item.key.into());
                }
            });
            for name in &names {
                let key = self.key(name);
                self.remove(db, key, now);
            }
        }
    }

    pub fn swap(&mut self, a: usize, b: usize) {
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

    /// From now on, any change of the key makes the watcher dirty. An expired key is removed first: that is no
    /// change.
    pub fn watch(&mut self, db: usize, key: Key<'_>, id: WatchId, now: Now) {
        let _ = self.contains(db, key, now);
        self.env.observers.watch(db as u8, key, id);
    }

    /// Touches the watched keys of database `db` that are in `one` or `other`.
    fn touch_watched(&mut self, db: usize, one: usize, other: usize) {
        let is_in = |db: usize, key: Key<'_>| self.dbs[db].records.find(key).is_some();
        let watches = &mut self.env.observers.watches;
        watches.touch_in(db, |key| is_in(one, key) || is_in(other, key));
    }

    pub(super) fn exchange(&mut self, a: usize, b: usize) {
        self.dbs.swap(a, b);
        self.dbs[a].number = a as u8;
        self.dbs[b].number = b as u8;
    }
}
