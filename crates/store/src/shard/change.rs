//! Every change of a shard's data, reported to its observers.
//!
//! An effect follows the effects of the expiries that the command met, since the replay of a journal has no clock.
//! Changes of access stamps alone are not reported.

use super::Env;
use super::Shard;
use super::db::{Db, Found};
use super::snapshot::note_length;
use super::types::{Entry, ExpirySetting, Key, NewValue, Value};
use super::watch::WatchId;
use crate::effect::Effect;
use crate::planted::{self, Planted};
use rufous_base::Now;
use std::ops::Range;

/// Bytes of a collection in one effect.
pub(super) const PUT_CHUNK: usize = 64 << 10;

impl Db {
    /// Reports the removal of a record, before it.
    pub(super) fn tell_removal(&mut self, handle: u32, hash: u32, env: &mut Env) {
        self.capture(handle, &mut env.snapshot);
        let (db, bytes) = (self.number, self.item(handle).key);
        let effect = Effect::Delete { db, key: bytes };
        env.observers.tell(Key { bytes, hash }, db, &effect);
    }
}

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
            if self.is_undecided() {
                return false;
            }
            if let Some(keyed) = self.replicated(key) {
                return self.write_string(db, key, keyed, &value, expiry, now);
            }
            self.tell_set(db, key, value.bytes(), expiry, now);
        }
        self.dbs[db].set(key, value, expiry, now, &mut self.env)
    }

    #[inline(never)]
    fn tell_set(&mut self, db: usize, key: Key<'_>, value: &[u8], expiry: ExpirySetting, now: Now) {
        // An expiry that has passed must not be kept. (If none is kept, the removal of an expired record needs no
        // effect of its own.)
        if expiry == ExpirySetting::Keep || self.env.snapshot.is_running() {
            self.prepare(db, key, now);
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

    /// Before a change of the key: removes it if it has expired; otherwise writes its state to a snapshot under way.
    fn prepare(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Found> {
        let found = self.dbs[db].live(key, now, &mut self.env)?;
        self.dbs[db].capture(found.handle, &mut self.env.snapshot);
        Some(found)
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
        if self.replicated(key).is_some() {
            return self.refuse_edit((db, key), min_len, now, change);
        }
        let old_len = self
            .prepare(db, key, now)
            .map(|found| self.dbs[db].string_len(found.handle));
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
            if self.replicated(key).is_some() {
                return self.refuse_append(key);
            }
            self.prepare(db, key, now);
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
            if self.is_undecided() {
                return false;
            }
            if let Some(keyed) = self.replicated(key) {
                return self.remove_replica(db, key, keyed, now);
            }
        }
        self.remove_strictly(db, key, now)
    }

    pub(super) fn remove_strictly(&mut self, db: usize, key: Key<'_>, now: Now) -> bool {
        let Some(found) = self.find_to_remove(db, key, now) else {
            return false;
        };
        self.dbs[db].remove(found, key.hash, &mut self.env);
        true
    }

    /// Removes the key and returns its entry.
    pub fn take(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Entry> {
        let found = self.find_to_remove(db, key, now)?;
        let db = &mut self.dbs[db];
        let entry = db.entry(found.handle);
        db.unlink(found, key.hash);
        Some(entry)
    }

    fn find_to_remove(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Found> {
        let found = self.dbs[db].live(key, now, &mut self.env)?;
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            self.dbs[db].tell_removal(found.handle, key.hash, &mut self.env);
        }
        Some(found)
    }

    /// Gives the key this value, expiry and access stamp, whatever it had before. A replicated value is merged with
    /// the key's replicated state.
    pub fn insert_entry(&mut self, db: usize, key: Key<'_>, entry: Entry, now: Now) {
        if entry.value.is_replicated() {
            return self.merge_entry(db, key, &entry, now);
        }
        if self.env.observers.any()
            && let Some(keyed) = self.replicated(key)
        {
            return self.insert_replica(db, key, keyed, entry, now);
        }
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            self.prepare(db, key, now);
            self.tell_entry(db as u8, key, &entry);
        }
        self.dbs[db].put(key, entry, now, &mut self.env);
    }

    pub(super) fn tell_entry(&mut self, db: u8, key: Key<'_>, entry: &Entry) {
        let bytes = key.bytes;
        let expire_at = entry.expire_at;
        let any = entry.value.any();
        let Some(tag) = any.tag() else {
            let effect = Effect::Set {
                db,
                key: bytes,
                value: any.string().map_or(b"", Value::bytes),
                expire_at,
            };
            return self.env.observers.tell(key, db, &effect);
        };
        let mut chunk = Vec::new();
        let mut next = None;
        if !self.env.observers.journal.is_brief() {
            next = any.chunk(0, PUT_CHUNK, &mut chunk);
            note_length(&chunk);
        }
        let effect = Effect::Put {
            db,
            key: bytes,
            tag,
            chunk: &chunk,
            expire_at,
        };
        self.env.observers.tell(key, db, &effect);
        while let Some(at) = next
            && !planted::is(Planted::LogLosesChunk)
        {
            chunk.clear();
            next = any.chunk(at, PUT_CHUNK, &mut chunk);
            let effect = Effect::More {
                db,
                key: bytes,
                tag,
                chunk: &chunk,
            };
            self.env.observers.journal.write(&effect);
        }
    }

    /// Moves the value and expiry of a key to another key, replacing what that had. Returns whether the first key
    /// existed.
    pub fn rename(
        &mut self,
        (db, key): (usize, Key<'_>),
        (to_db, to): (usize, Key<'_>),
        now: Now,
    ) -> bool {
        if self.prepare(db, key, now).is_none() {
            return false;
        }
        if (db, key.bytes) == (to_db, to.bytes) {
            return true;
        }
        self.prepare(to_db, to, now);
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
        self.prepare(to_db, to, now);
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
        let Some(found) = from.find(key) else {
            return;
        };
        let entry = from.entry(found.handle);
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
            && let Some(keyed) = self.replicated(key)
        {
            return self.set_deadline(db, key, keyed, unix_ms, now);
        }
        let Some(found) = self.prepare(db, key, now) else {
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
        self.dbs[db].set_expiry(found, key, unix_ms, &mut self.env);
        true
    }

    /// Empties a database. Logs may have more of its replicated keys than the database itself.
    pub fn flush(&mut self, db: usize) {
        let len = self.dbs[db].len();
        self.env.counters.changes += len as u64;
        if self.env.keying.is_some() || !self.dbs[db].is_void() {
            self.env
                .observers
                .journal
                .write(&Effect::FlushDb { db: db as u8 });
            self.touch_watched(db, db, db);
            self.env.changes.forget_db(db as u8);
        }
        self.empty(db);
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
        let is_in = |db: usize, key: Key<'_>| self.dbs[db].find(key).is_some();
        let watches = &mut self.env.observers.watches;
        watches.touch_in(db, |key| is_in(one, key) || is_in(other, key));
    }

    pub(super) fn exchange(&mut self, a: usize, b: usize) {
        self.dbs.swap(a, b);
        self.dbs[a].number = a as u8;
        self.dbs[b].number = b as u8;
    }
}
