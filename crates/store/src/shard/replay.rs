//! Replays a journal into an empty shard: without a clock, without expiry, and without reporting changes.

use super::Shard;
use super::collection::{commit_encoded, extend};
use super::convert::drop_reshaped;
use super::merging::{merge_chunk, merge_ops};
use super::noted::Note;
use super::types::{ExpirySetting, Key, NewValue};
use crate::effect::{Effect, NotAnEffect};
use crate::keyspace::Keyspaces;
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::{operations_of, says_all};
use std::borrow::Cow;
use std::sync::Arc;

/// After this no effect has an expiry of 0, so none is due at 0, the time of the replay. Both times are long past.
fn not_zero(at: u64) -> u64 {
    at.max(1)
}

impl Shard {
    /// Sets the time of the access stamps of replayed keys. (Until it is set, they have the start of the monotonic
    /// clock.)
    pub fn set_replay_time(&mut self, now: Now) {
        self.replay_now.mono_us = now.mono_us;
    }

    /// Applies one effect. Refuses what no command can have done: a value beyond the size limit.
    #[inline]
    pub fn apply(&mut self, effect: &Effect<'_>) -> Result<(), NotAnEffect> {
        debug_assert!(!self.env.snapshot.is_running(), "nobody is told");
        self.perform(effect)?;
        // No client waits while data is loaded, and overwritten values of a long log must not accumulate.
        self.env.garbage.clear();
        Ok(())
    }

    /// Applies effects that another worker computed on a copy of a key's value, and reports them to all observers.
    /// Nothing expires, as nothing did there.
    pub fn carry_out(&mut self, effects: &[u8], now: Now) {
        let done = self.carry(effects, now);
        debug_assert!(done.is_ok(), "it was possible on a copy");
    }

    /// The same for effects from another node: stops at an invalid one, with an error.
    pub fn carry(&mut self, effects: &[u8], now: Now) -> Result<(), NotAnEffect> {
        let mut rest = effects;
        self.set_replay_time(now);
        while !rest.is_empty() {
            let before = rest;
            let effect = Effect::decode(&mut rest)?;
            self.env.counters.changes += 1;
            if self.env.observers.any() {
                for (db, bytes) in effect.keys() {
                    let key = self.key(bytes);
                    let at = &mut self.dbs[usize::from(db)];
                    if let Some(found) = at.records.find(key) {
                        self.env.snapshot.capture(at, found.handle);
                    }
                    self.env.observers.touch(key, db);
                }
            }
            let journaled = self.env.observers.journal.bytes().len();
            if self.env.observers.journal.is_on() {
                let bytes = &before[..before.len() - rest.len()];
                self.env.observers.journal.carry(&effect, bytes);
            }
            if let Effect::Update { key, .. } = effect {
                let (key, env) = (self.key(key), &mut self.env);
                env.lattice.note_carried(&effect, key, &env.tuning);
            }
            if let Err(error) = self.perform(&effect) {
                self.env.observers.journal.bytes().truncate(journaled);
                return Err(error);
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn perform(&mut self, effect: &Effect<'_>) -> Result<(), NotAnEffect> {
        let now = self.replay_now;
        let (db, key, value, setting) = match *effect {
            Effect::Set {
                db,
                key,
                value,
                expire_at,
            } => {
                let setting = match expire_at {
                    Some(at) => ExpirySetting::At(not_zero(at)),
                    None => ExpirySetting::Clear,
                };
                (db, key, value, setting)
            }
            Effect::SetKeep { db, key, value } => (db, key, value, ExpirySetting::Keep),
            _ => return self.perform_other(effect),
        };
        self.forget_held(db, key);
        let key = self.key(key);
        let db = &mut self.dbs[usize::from(db)];
        db.set(key, NewValue::Copy(value), setting, now, &mut self.env);
        Ok(())
    }

    fn perform_other(&mut self, effect: &Effect<'_>) -> Result<(), NotAnEffect> {
        let now = self.replay_now;
        match *effect {
            Effect::Set { .. } | Effect::SetKeep { .. } => {}
            Effect::Delete { db, key } => {
                self.forget_held(db, key);
                // Drops all its state: no such effect is written if a grave stays.
                let key = self.key(key);
                self.at(usize::from(db), key, now).replica().drop_all();
            }
            Effect::Append { db, key, tail } => {
                let key = self.key(key);
                self.string_or_nothing(db, key)?;
                self.dbs[usize::from(db)].append(key, tail, now, &mut self.env);
            }
            Effect::Write { db, key, at, bytes } => {
                let end = at.saturating_add(bytes.len() as u64);
                if end > MAX_BULK {
                    return Err(NotAnEffect);
                }
                let (at, end) = (at as usize, end as usize);
                let key = self.key(key);
                self.string_or_nothing(db, key)?;
                let value = self.dbs[usize::from(db)].grow(key, end, now, &mut self.env);
                value[at..end].copy_from_slice(bytes);
            }
            Effect::Expire { db, key, at } => {
                let key = self.key(key);
                let db = &mut self.dbs[usize::from(db)];
                if let Some(found) = db.records.find(key) {
                    db.set_expiry(found, key, at.map(not_zero));
                }
            }
            Effect::FlushDb { db } => {
                self.empty(usize::from(db));
                if let Some(held) = &mut self.held {
                    held.forget_db(db);
                }
            }
            Effect::SwapDb { a, b } => {
                self.exchange(usize::from(a), usize::from(b));
                if let Some(held) = &mut self.held {
                    held.swap_dbs(a, b);
                }
            }
            Effect::Horizon { .. } | Effect::Reported { .. } => self.keep_time(effect),
            Effect::Gone { db, key, tag, cut } => self.note((db, key), Note::Gone(tag, cut)),
            Effect::Ended { db, key, tag, end } => {
                self.note(
                    (db, key),
                    match planted::is(Planted::EndTakesCounts) {
                        true => Note::Gone(tag, end),
                        false => Note::Ended(tag, end),
                    },
                );
            }
            Effect::Keyspaces { bytes } => self.keep_keyspaces(bytes)?,
            Effect::Slot { slot, mark } => self.marks.set(slot, mark),
            Effect::Node { number } => self.marks.set_node(number),
            _ => return self.perform_on_any(effect),
        }
        Ok(())
    }

    /// Keeps a time of the files for the end of the startup.
    fn keep_time(&mut self, effect: &Effect<'_>) {
        match (&mut self.held, effect) {
            (Some(held), Effect::Horizon { time }) => held.note(*time),
            (Some(held), Effect::Reported { time }) => held.note_report(*time),
            _ => {}
        }
    }

    /// Takes a note of what has gone of a key.
    fn note(&mut self, (db, bytes): (u8, &[u8]), note: Note) {
        if let Some(held) = &mut self.held {
            return held.note_of((db, bytes), note, &self.env.tuning);
        }
        let key = self.key(bytes);
        self.drop_noted((usize::from(db), key), note, self.replay_now);
    }

    /// Applies effects on values of any type.
    fn perform_on_any(&mut self, effect: &Effect<'_>) -> Result<(), NotAnEffect> {
        let now = self.replay_now;
        match *effect {
            Effect::Update { db, key, tag, ops } => {
                let key = self.key(key);
                if tag.is_replicated() {
                    return self.join_ops((db, key), (tag, false), ops, now);
                }
                commit_encoded(&mut self.at(usize::from(db), key, now), tag, ops)?;
            }
            Effect::Put {
                db,
                key,
                tag,
                chunk,
                expire_at,
            } => {
                let key = self.key(key);
                if tag.is_replicated() {
                    return self.join_chunk((db, key), (tag, false), chunk, now);
                }
                self.forget_held(db, key.bytes);
                let db = usize::from(db);
                let mut at = self.at(db, key, now);
                if let Some(found) = at.db.records.find(key) {
                    at.db.remove(found, key.hash, &mut at.env.garbage);
                }
                extend(&mut at, tag, chunk)?;
                if let Some(found) = at.db.records.find(key) {
                    at.db.set_expiry(found, key, expire_at.map(not_zero));
                }
            }
            Effect::More {
                db,
                key,
                tag,
                chunk,
            } => {
                let key = self.key(key);
                if tag.is_replicated() {
                    // A type that is never sent in parts has this effect only from other nodes.
                    let told = says_all(tag);
                    return self.join_chunk((db, key), (tag, told), chunk, now);
                }
                extend(&mut self.at(usize::from(db), key, now), tag, chunk)?;
            }
            Effect::Move { db, key, to_db, to } => {
                let (key, to) = (self.key(key), self.key(to));
                self.transfer((usize::from(db), key), (usize::from(to_db), to), now);
            }
            Effect::Copy { db, key, to_db, to } => {
                let (key, to) = (self.key(key), self.key(to));
                let (from, into) = (usize::from(db), usize::from(to_db));
                if let Some(found) = self.dbs[from].records.find(key) {
                    let entry = self.dbs[from].records.entry(found.handle);
                    self.dbs[into].put(to, entry, now, &mut self.env);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn join_ops(
        &mut self,
        (db, key): (u8, Key<'_>),
        (tag, told): (Tag, bool),
        ops: &[u8],
        now: Now,
    ) -> Result<(), NotAnEffect> {
        let (at, holds) = (usize::from(db), self.holds());
        let mut left = Cow::Borrowed(ops);
        if let Some(held) = &mut self.held {
            // Counts first: even for a key that had another type before a removal, any file may have a removal that
            // was forgotten before the counts were made.
            if holds {
                left = Cow::Owned(held.take((db, key.bytes), (tag, told), ops)?);
            }
            if left.is_empty() || held.take_other((db, key.bytes), tag, &left, &self.env.tuning)? {
                return Ok(());
            }
        }
        merge_ops(&mut self.at(at, key, now), tag, &left).map(|_| ())
    }

    fn join_chunk(
        &mut self,
        (db, key): (u8, Key<'_>),
        (tag, told): (Tag, bool),
        chunk: &[u8],
        now: Now,
    ) -> Result<(), NotAnEffect> {
        let keeps = self.held.as_ref().is_some_and(|held| held.has_notes());
        if self.holds() || keeps {
            let ops = operations_of(tag, chunk);
            return self.join_ops((db, key), (tag, told), &ops, now);
        }
        let at = usize::from(db);
        merge_chunk(&mut self.at(at, key, now), tag, chunk).map(|_| ())
    }

    /// Keeps the table of keyspaces for the caller that loads.
    fn keep_keyspaces(&mut self, bytes: &[u8]) -> Result<(), NotAnEffect> {
        let table = Keyspaces::decode(bytes)?;
        if table.version() > self.keyspaces.version() {
            let old = std::mem::replace(&mut self.keyspaces, Arc::new(table));
            if let Some(workers) = self.held.as_ref().map(|held| held.workers) {
                let new = Arc::clone(&self.keyspaces);
                drop_reshaped(self, &old, &new, workers);
            }
        }
        Ok(())
    }

    /// The table of keyspaces that was replayed last.
    pub fn replayed_keyspaces(&self) -> &Arc<Keyspaces> {
        &self.keyspaces
    }

    /// Refuses an effect that only strings can have if the key has a value of another type.
    fn string_or_nothing(&self, db: u8, key: Key<'_>) -> Result<(), NotAnEffect> {
        let db = &self.dbs[usize::from(db)];
        let found = db.records.find(key);
        let value = found.map(|found| db.records.value(found.handle));
        let is_string = value.is_none_or(|value| value.string().is_ok());
        is_string.then_some(()).ok_or(NotAnEffect)
    }
}
