//! A key of a database, with what an operation on it needs of the shard: the operations on one key. Each reports the
//! change to all observers.
//!
//! An effect follows the effects of the expiries that the operation met, since the replay of a journal has no clock.
//! Changes of access stamps alone are not reported.

use super::db::Db;
use super::env::Env;
use super::lattice::Keyed;
use super::merging::merge_entry;
use super::recent::Recent;
use super::records::Found;
use super::replica::{LocalReplica, Other};
use super::strings::set_deadline;
use super::types::{Any, Entry, ExpirySetting, Key, NewValue};
use super::writes;
use crate::effect::Effect;
use rufous_base::Now;
use rufous_datatype::object::{Object, Tag};
use rufous_datatype::replicated::Refused;
use std::ops::Range;

pub struct At<'a> {
    pub(super) db: &'a mut Db,
    pub(super) env: &'a mut Env,
    pub(super) recent: &'a mut Recent,
    pub(super) key: Key<'a>,
    pub(super) now: Now,
}

impl At<'_> {
    pub(super) fn live(&mut self) -> Option<Found> {
        self.db.live(self.key, self.now, self.env)
    }

    /// How the key is replicated, if the running command may write to it as a replica.
    #[inline]
    pub(super) fn replicated(&self) -> Option<Keyed> {
        self.env.lattice.replicated(self.key)
    }

    /// The type of the value that the key shows.
    pub(super) fn tag(&mut self) -> Option<Tag> {
        let found = self.live()?;
        let tag = self.db.records.shape(found.handle).0;
        // A plain string from before the key had replicas is rewritten as a replicated one.
        Some(tag.unwrap_or(Tag::Register))
    }

    /// Whether the key shows a replicated value.
    pub fn is_replica(&mut self) -> bool {
        let found = self.live();
        found.is_some_and(|found| self.db.records.is_replicated(found.handle))
    }

    /// Whether the key has a plain value, from before it had replicas.
    pub(super) fn is_plain(&mut self) -> bool {
        let found = self.live();
        found.is_some_and(|found| !self.db.records.is_replicated(found.handle))
    }

    /// The string that the key shows; `None` if it has a value of another type, or none.
    pub(super) fn shown_text(&mut self) -> Option<Vec<u8>> {
        let value = self.db.get(self.key, false, self.now, self.env)?;
        Some(value.string().ok()?.bytes().to_vec())
    }

    /// Calls `f` with the key's state, even if that shows nothing, and whether it shows something.
    pub(super) fn with_state<R>(
        &mut self,
        f: impl FnOnce(Any<'_>, bool, &mut Env) -> R,
    ) -> Option<R> {
        // An expired value is a grave from now on.
        match self.live() {
            Some(found) => Some(f(self.db.records.value(found.handle), true, self.env)),
            None => {
                let grave = self.db.graves.get(self.key.bytes)?;
                Some(f(Any::of_object(&grave), false, self.env))
            }
        }
    }

    /// This worker's replica of the key.
    pub(super) fn replica(&mut self) -> LocalReplica<'_> {
        LocalReplica::new(self.db, self.env, self.key)
    }

    /// See [`LocalReplica::alter`].
    pub(super) fn alter<R>(
        &mut self,
        tag: Tag,
        change: impl FnOnce(&mut Object, &mut Env) -> R,
    ) -> Result<R, Other> {
        let now = self.now;
        self.replica().alter(tag, now, change)
    }

    /// See [`LocalReplica::rewrite`].
    pub(super) fn rewrite<R>(
        &mut self,
        tag: Tag,
        change: impl FnOnce(&mut Object, &mut Env) -> R,
    ) -> Result<R, Other> {
        let now = self.now;
        self.replica().rewrite(tag, now, change)
    }

    /// The key's record, whose removal is reported.
    pub(super) fn find_to_remove(&mut self) -> Option<Found> {
        let found = self.live()?;
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            self.env.tell_removal(self.db, found.handle, self.key.hash);
        }
        Some(found)
    }

    /// Removes the key's record. Returns whether it had one.
    pub(super) fn remove(&mut self) -> bool {
        let Some(found) = self.find_to_remove() else {
            return false;
        };
        self.db.remove(found, self.key.hash, &mut self.env.garbage);
        true
    }

    /// Before a change: see [`Db::prepare`].
    pub(super) fn prepare(&mut self) -> Option<Found> {
        self.db.prepare(self.key, self.now, self.env)
    }

    /// Reports a change to all observers.
    pub(super) fn tell(&mut self, effect: &Effect<'_>) {
        self.env.observers.tell(self.key, self.db.number, effect);
    }

    /// Removes the key's record and returns its entry.
    pub(super) fn take(&mut self) -> Option<Entry> {
        let found = self.find_to_remove()?;
        let entry = self.db.records.entry(found.handle);
        self.db.unlink(found, self.key.hash);
        Some(entry)
    }

    /// The key's entry; a big value is shared, not copied.
    pub(super) fn entry(&mut self) -> Option<Entry> {
        let found = self.live()?;
        Some(self.db.records.entry(found.handle))
    }

    /// Reports that the key gets this string.
    pub(super) fn tell_set(&mut self, value: &[u8], expiry: ExpirySetting) {
        // An expiry that has passed must not be kept. (If none is kept, the removal of an expired record needs no
        // effect of its own.)
        if expiry == ExpirySetting::Keep || self.env.snapshot.is_running() {
            self.prepare();
        }
        let (db, key) = (self.db.number, self.key.bytes);
        let set = |expire_at| Effect::Set {
            db,
            key,
            value,
            expire_at,
        };
        let effect = match expiry {
            ExpirySetting::Keep => Effect::SetKeep { db, key, value },
            ExpirySetting::Clear => set(None),
            ExpirySetting::At(at) => set(Some(at)),
        };
        self.tell(&effect);
    }

    /// See [`Shard::edit`](super::Shard::edit).
    pub(super) fn edit<R>(
        &mut self,
        min_len: usize,
        changed: impl IntoIterator<Item = Range<usize>>,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        self.env.counters.changes += 1;
        if !self.env.observers.any() {
            return change(self.db.grow(self.key, min_len, self.now, self.env));
        }
        if self.env.lattice.writes(self.key) {
            return writes::refuse_edit(self, min_len, change);
        }
        let found = self.prepare();
        let old_len = found.map(|found| self.db.records.string_len(found.handle));
        let (key, number) = (self.key, self.db.number);
        let bytes = self.db.grow(key, min_len, self.now, self.env);
        let result = change(bytes);
        let mut tell = |range: Range<usize>| {
            let effect = Effect::Write {
                db: number,
                key: key.bytes,
                at: range.start as u64,
                bytes: &bytes[range],
            };
            self.env.observers.tell(key, number, &effect);
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

    /// Appends to a string, creating a missing key; returns the new length.
    pub(super) fn append(&mut self, tail: &[u8]) -> usize {
        if self.env.observers.any() && self.env.lattice.writes(self.key) {
            self.env.counters.changes += 1;
            return writes::refuse_append(self);
        }
        self.append_strict(tail)
    }

    /// The same to a key that is strict whatever the keyspaces are.
    pub(super) fn append_strict(&mut self, tail: &[u8]) -> usize {
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            self.prepare();
            let (db, key) = (self.db.number, self.key.bytes);
            self.tell(&Effect::Append { db, key, tail });
        }
        self.db.append(self.key, tail, self.now, self.env)
    }

    /// Gives the key this value, expiry and access stamp, whatever it had before. A replicated value is merged with
    /// the key's replicated state.
    pub(super) fn insert(&mut self, entry: Entry) {
        if entry.value.is_replicated() {
            return merge_entry(self, &entry);
        }
        if self.env.observers.any()
            && let Some(keyed) = self.replicated()
        {
            return writes::insert(self, keyed, entry);
        }
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            self.prepare();
            let db = self.db.number;
            self.env.observers.tell_entry(self.key, db, &entry);
        }
        self.db.put(self.key, entry, self.now, self.env);
    }

    /// Returns whether the key exists. A time that has passed is accepted: the key is absent for the next access.
    pub(super) fn set_expire_at(&mut self, unix_ms: Option<u64>) -> bool {
        if self.env.observers.any()
            && let Some(keyed) = self.replicated()
        {
            return set_deadline(self, keyed, unix_ms);
        }
        let Some(found) = self.prepare() else {
            return false;
        };
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            let (db, key) = (self.db.number, self.key.bytes);
            let at = unix_ms;
            self.tell(&Effect::Expire { db, key, at });
        }
        self.db.set_expiry(found, self.key, unix_ms);
        true
    }

    /// Sets an entry of a book of transactions, to what many slots have of it and what is this slot's.
    pub(super) fn set_book(&mut self, common: &[u8], own: &[u8]) {
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            if self.env.snapshot.is_running() {
                self.prepare();
            }
            let (db, key) = (self.db.number, self.key.bytes);
            let journal = &mut self.env.observers.journal;
            journal.write_entry(key, common);
            if !own.is_empty() {
                journal.write(&Effect::Append { db, key, tail: own });
            }
            self.env.observers.touch(self.key, db);
        }
        let value = NewValue::Own([common, own].concat());
        let setting = ExpirySetting::Clear;
        (self.db).set(self.key, value, setting, self.now, self.env);
    }

    #[cold]
    pub(super) fn refuse(&mut self, refused: Refused) {
        self.env.lattice.refuse(self.key, refused);
    }

    /// Reports a local change of a replica.
    pub(super) fn tell_update(&mut self, keyed: Keyed, tag: Tag, ops: &[u8]) {
        self.env
            .tell_update((self.db.number, self.key), keyed, tag, ops);
    }
}
