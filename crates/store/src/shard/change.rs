//! Changes of a shard's data: by commands, by effects of files and of other nodes, and to move slots. `at` has those of one key, with their reports to the observers.

use super::Shard;
use super::collection::{self, Editor};
use super::held::Held;
use super::merging::{self, hidden_entry};
use super::replay::Store;
use super::strings::write_string;
use super::types::{Entry, ExpirySetting, Key, NewValue, OwnedValue, WrongType};
use super::watch::WatchId;
use super::writes;
use crate::books::{BookId, name_of_entry};
use crate::effect::{Effect, NotAnEffect};
use crate::keyspace::Keyspaces;
use rufous_base::Now;
use rufous_base::limits::BOOKS;
use rufous_datatype::object::{Registered, Tag};
use rufous_lattice::Stamp;
use std::ops::Range;
use std::sync::Arc;

const FLUSHED_TOGETHER: usize = 1024;

impl Shard {
    /// The effects of all changes since this was last emptied, encoded.
    #[inline]
    pub fn journal(&mut self) -> &mut Vec<u8> {
        self.data.env.observers.journal.bytes()
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
        self.data.env.counters.changes += 1;
        if self.data.env.observers.any() {
            if self.data.env.lattice.is_undecided() {
                return false;
            }
            if let Some(keyed) = self.data.env.lattice.replicated(key) {
                return write_string(&mut self.at(db, key, now), keyed, &value, expiry);
            }
            self.tell_set(db, key, value.bytes(), expiry, now);
        }
        self.data.dbs[db].set(key, value, expiry, now, &mut self.data.env)
    }

    #[inline(never)]
    fn tell_set(&mut self, db: usize, key: Key<'_>, value: &[u8], expiry: ExpirySetting, now: Now) {
        self.at(db, key, now).tell_set(value, expiry);
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
        self.at(db, key, now).edit(min_len, changed, change)
    }

    /// Appends to the value, creating a missing key; returns the new length.
    pub fn append(&mut self, db: usize, key: Key<'_>, tail: &[u8], now: Now) -> usize {
        self.at(db, key, now).append(tail)
    }

    /// Returns whether the key existed.
    pub fn remove(&mut self, db: usize, key: Key<'_>, now: Now) -> bool {
        let mut at = self.at(db, key, now);
        if at.env.observers.any() {
            if at.env.lattice.is_undecided() {
                return false;
            }
            if let Some(keyed) = at.replicated() {
                return writes::remove(&mut at, keyed);
            }
        }
        at.remove()
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
        if self.data.env.observers.any()
            && let Some(keyed) = self.data.env.lattice.replicated(key)
        {
            return writes::update(&mut self.at(db, key, now), keyed, change);
        }
        collection::update(&mut self.at(db, key, now), change)
    }

    /// Gives the key this value, expiry and access stamp, whatever it had before. A replicated value is merged with
    /// the key's replicated state.
    pub fn insert_entry(&mut self, db: usize, key: Key<'_>, entry: Entry, now: Now) {
        self.at(db, key, now).insert(entry);
    }

    /// Like [`Shard::insert_entry`], but a collection at a replicated key replaces what this replica shows, element
    /// by element.
    pub fn restore_entry(&mut self, db: usize, key: Key<'_>, entry: Entry, now: Now) {
        let mut at = self.at(db, key, now);
        match (at.replicated(), &entry.value) {
            (Some(keyed), OwnedValue::Object(object)) => {
                writes::restore(&mut at, keyed, object, entry.expire_at);
            }
            _ => at.insert(entry),
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
        self.data
            .put_register(db, key, (stamp, is_shared), value, now);
    }

    /// Writes strings at one replica, the keys in this order, each with the value of its number. Their stamps are
    /// `first`, which is above all that its worker has given, and those of the times after it. If they are `shared`,
    /// the changes are recorded for other replicas.
    #[inline]
    pub fn put_turn<'v, K: AsRef<[u8]> + PartialEq>(
        &mut self,
        db: usize,
        keys: &[K],
        value: impl Fn(usize) -> &'v [u8],
        (first, shared): (Stamp, bool),
        now: Now,
    ) {
        self.data.put_turn(db, keys, value, (first, shared), now);
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
        let mut at = self.at(db, key, now);
        at.take().or_else(|| {
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
        if self.at(db, key, now).prepare().is_none() {
            return false;
        }
        if (db, key.bytes) == (to_db, to.bytes) {
            return true;
        }
        self.at(to_db, to, now).prepare();
        let env = &mut self.data.env;
        env.counters.changes += 1;
        if env.observers.any() {
            let effect = Effect::Move {
                db: db as u8,
                key: key.bytes,
                to_db: to_db as u8,
                to: to.bytes,
            };
            env.observers.tell(key, db as u8, &effect);
            env.observers.touch(to, to_db as u8);
        }
        self.data.transfer((db, key), (to_db, to), now);
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
        entry.access = self.data.env.policy.first_stamp(now);
        if (db, key.bytes) == (to_db, to.bytes) {
            return true;
        }
        let mut at = self.at(to_db, to, now);
        at.prepare();
        at.env.counters.changes += 1;
        if at.env.observers.any() {
            at.tell(&Effect::Copy {
                db: db as u8,
                key: key.bytes,
                to_db: to_db as u8,
                to: to.bytes,
            });
        }
        at.db.put(to, entry, now, at.env);
        true
    }

    /// Returns whether the key exists. A time that has passed is accepted: the key is absent for the next access.
    pub fn set_expire_at(
        &mut self,
        db: usize,
        key: Key<'_>,
        unix_ms: Option<u64>,
        now: Now,
    ) -> bool {
        self.at(db, key, now).set_expire_at(unix_ms)
    }

    /// Empties a database. Logs may have more of its replicated keys than the database itself.
    pub fn flush(&mut self, db: usize) {
        self.data.flush(db);
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
        self.data.swap(a, b);
    }

    /// From now on, any change of the key makes the watcher dirty. An expired key is removed first: that is no
    /// change.
    pub fn watch(&mut self, db: usize, key: Key<'_>, id: WatchId, now: Now) {
        let _ = self.contains(db, key, now);
        self.data.env.observers.watch(db as u8, key, id);
    }

    /// Sets the entry of a transaction in the book of a slot, to what many slots have of it and what is this slot's.
    pub fn set_book(&mut self, slot: u16, id: &BookId, (common, own): (&[u8], &[u8]), now: Now) {
        let name = name_of_entry(slot, id);
        let key = self.key(&name);
        self.at(BOOKS, key, now).set_book(common, own);
    }

    /// Adds to an entry.
    pub fn append_book(&mut self, slot: u16, id: &BookId, tail: &[u8], now: Now) {
        let name = name_of_entry(slot, id);
        let key = self.key(&name);
        self.at(BOOKS, key, now).append_strict(tail);
    }

    /// Removes an entry; returns whether there was one.
    pub fn remove_book(&mut self, slot: u16, id: &BookId, now: Now) -> bool {
        let name = name_of_entry(slot, id);
        let key = self.key(&name);
        self.at(BOOKS, key, now).remove()
    }
}

/// Effects of files, of other workers and of other nodes.
impl Shard {
    /// A shard for the data of files that are another worker's.
    pub fn of_files(seed: u64, workers: usize) -> Box<Self> {
        let mut shard = Box::new(Self::new(seed));
        shard.hold_counts(workers);
        shard
    }

    /// The effects applied from now on are from files of a node with this many workers.
    pub fn hold_counts(&mut self, workers: usize) {
        self.replay.hold_counts(workers);
    }

    /// Stops holding back, and returns what was held.
    pub fn take_held(&mut self) -> Option<Box<Held>> {
        self.replay.take_held()
    }

    /// Sets the time of the access stamps of replayed keys. (Until it is set, they have the start of the monotonic
    /// clock.)
    pub fn set_replay_time(&mut self, now: Now) {
        self.replay.set_time(now);
    }

    /// The table of keyspaces that was replayed last.
    pub fn replayed_keyspaces(&self) -> &Arc<Keyspaces> {
        self.replay.keyspaces()
    }

    /// Applies one effect. Refuses what no command can have done: a value beyond the size limit.
    #[inline]
    pub fn apply(&mut self, effect: &Effect<'_>) -> Result<(), NotAnEffect> {
        let mut store = Store {
            data: &mut self.data,
            marks: &mut self.marks,
        };
        self.replay.apply(effect, &mut store)
    }

    /// Applies effects that another worker computed on a copy of a key's value, and reports them to all observers.
    /// Nothing expires, as nothing did there.
    pub fn carry_out(&mut self, effects: &[u8], now: Now) {
        let done = self.carry(effects, None, now);
        debug_assert!(done.is_ok(), "it was possible on a copy");
    }

    /// Applies another node's effects to a slot and reports them to all observers. An effect on anything else is
    /// refused before it is applied; those before it have been applied.
    pub fn do_in_slot(&mut self, slot: u16, effects: &[u8], now: Now) -> Result<(), NotAnEffect> {
        self.carry(effects, Some(slot), now)
    }

    fn carry(&mut self, effects: &[u8], slot: Option<u16>, now: Now) -> Result<(), NotAnEffect> {
        let mut store = Store {
            data: &mut self.data,
            marks: &mut self.marks,
        };
        self.replay.carry(effects, slot, now, &mut store)
    }

    /// Starts a copy of a slot, for [`Shard::copy_slot`]; restarts it if the slot is being copied already.
    pub fn begin_slot_copy(&mut self, slot: u16) {
        self.slots.begin_copy(slot, &mut self.data.env.garbage);
    }

    /// Whether any slot is being copied or dropped.
    pub fn walks_slots(&self) -> bool {
        self.slots.are_walked()
    }

    /// Ends a copy; what is left of it is discarded.
    pub fn end_slot_copy(&mut self, slot: u16) {
        self.slots.end_copy(slot, &mut self.data.env.garbage);
    }

    /// The next part of a copy: effects, at most a few times 64 KiB of them. It is empty if `looks`, which is reduced
    /// by the number of examined records, is used up. `None` at the end of the copy.
    pub fn copy_slot(&mut self, slot: u16, looks: &mut usize) -> Option<Vec<u8>> {
        self.slots.copy(slot, looks, &mut self.data)
    }

    /// Drops keys of a slot, as many as are found among `looks` records, which is reduced. Returns true when none is
    /// left. Keys added meanwhile may be dropped as well.
    pub fn clear_slot(&mut self, slot: u16, looks: &mut usize) -> bool {
        self.slots.clear(slot, looks, &mut self.data)
    }

    /// Reports an effect on a slot that is being copied, after it was applied.
    pub fn note_in_slot(&mut self, slot: u16, bytes: &[u8]) {
        self.slots.note(slot, bytes, &mut self.data);
    }
}
