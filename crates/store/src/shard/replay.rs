//! Replays a journal into an empty shard: without a clock, without expiry, and without reporting changes.

#[cfg(test)]
mod tests;

use super::at::At;
use super::collection::{commit_ops, extend};
use super::databases::Databases;
use super::db::Db;
use super::forms::reshapes;
use super::gone::drop_noted;
use super::held::Held;
use super::marks::Marks;
use super::merging::{merge_chunk, merge_ops};
use super::noted::Note;
use super::slots::is_on_slot;
use super::types::{ExpirySetting, Key, NewValue};
use crate::effect::{Effect, NotAnEffect};
use crate::keyspace::Keyspaces;
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_base::limits::{DATABASES, MAX_BULK};
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::{operations_of, says_all};
use std::borrow::Cow;
use std::sync::Arc;

/// After this no effect has an expiry of 0, so none is due at 0, the time of the replay. Both times are long past.
fn not_zero(at: u64) -> u64 {
    at.max(1)
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// The time while a journal is replayed: nothing is due at 0.
    now: Now,
    /// The table of keyspaces that was replayed last.
    keyspaces: Arc<Keyspaces>,
    /// Set while files are loaded.
    held: Option<Box<Held>>,
}

/// What effects are applied to.
pub(super) struct Store<'a> {
    pub(super) data: &'a mut Databases,
    pub(super) marks: &'a mut Marks,
}

impl Replay {
    /// The effects applied from now on are from files of a node with this many workers.
    pub(super) fn hold_counts(&mut self, workers: usize) {
        self.held = Some(Box::new(Held::new(workers)));
    }

    /// What is held back.
    pub(super) fn held(&self) -> Option<&Held> {
        self.held.as_deref()
    }

    /// Stops holding back, and returns what was held.
    pub(super) fn take_held(&mut self) -> Option<Box<Held>> {
        self.held.take()
    }

    /// Forgets what is held of a key that was replaced or removed.
    #[inline]
    fn forget_held(&mut self, db: u8, key: &[u8]) {
        if let Some(held) = self.held.as_mut().filter(|held| !held.is_empty()) {
            held.forget_key(db, key);
        }
    }

    /// Sets the time of the access stamps of replayed keys. (Until it is set, they have the start of the monotonic
    /// clock.)
    pub(super) fn set_time(&mut self, now: Now) {
        self.now.mono_us = now.mono_us;
    }

    /// Applies one effect. Refuses what no command can have done: a value beyond the size limit.
    #[inline]
    pub(super) fn apply(
        &mut self,
        effect: &Effect<'_>,
        to: &mut Store<'_>,
    ) -> Result<(), NotAnEffect> {
        let snapshot = &to.data.env.snapshot;
        debug_assert!(!snapshot.is_running(), "observers learn of no change");
        self.perform(effect, to)?;
        // No client waits while data is loaded, and overwritten values of a long log must not accumulate.
        to.data.env.garbage.clear();
        Ok(())
    }

    /// Applies effects of another worker or node, and reports them to all observers; stops at an invalid one, with an
    /// error. If a slot is given, an effect on anything else than its strict keys is invalid.
    pub(super) fn carry(
        &mut self,
        effects: &[u8],
        slot: Option<u16>,
        now: Now,
        to: &mut Store<'_>,
    ) -> Result<(), NotAnEffect> {
        let mut rest = effects;
        self.set_time(now);
        while !rest.is_empty() {
            let before = rest;
            let effect = Effect::decode(&mut rest)?;
            if slot.is_some_and(|slot| !is_on_slot(&effect, slot)) {
                return Err(NotAnEffect);
            }
            to.data.tell_carried(&effect);
            let journal = &mut to.data.env.observers.journal;
            let journaled = journal.bytes().len();
            if journal.is_on() {
                let bytes = &before[..before.len() - rest.len()];
                journal.carry(&effect, bytes);
            }
            if let Effect::Update { key, .. } = effect {
                let (key, env) = (to.data.key(key), &mut to.data.env);
                env.lattice.note_carried(&effect, key, &env.tuning);
            }
            if let Err(error) = self.perform(&effect, to) {
                let journal = &mut to.data.env.observers.journal;
                journal.bytes().truncate(journaled);
                return Err(error);
            }
        }
        Ok(())
    }

    #[inline]
    fn perform(&mut self, effect: &Effect<'_>, to: &mut Store<'_>) -> Result<(), NotAnEffect> {
        let (now, data) = (self.now, &mut *to.data);
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
            _ => return self.perform_other(effect, to),
        };
        self.forget_held(db, key);
        let key = data.key(key);
        let db = &mut data.dbs[usize::from(db)];
        db.set(key, NewValue::Copy(value), setting, now, &mut data.env);
        Ok(())
    }

    fn perform_other(
        &mut self,
        effect: &Effect<'_>,
        to: &mut Store<'_>,
    ) -> Result<(), NotAnEffect> {
        let (now, data) = (self.now, &mut *to.data);
        match *effect {
            Effect::Set { .. } | Effect::SetKeep { .. } => {}
            Effect::Delete { db, key } => {
                self.forget_held(db, key);
                // Drops all its state: no such effect is written if a grave stays.
                let key = data.key(key);
                data.at(usize::from(db), key, now).replica().drop_all();
            }
            Effect::Append { db, key, tail } => {
                let (key, db) = (data.key(key), &mut data.dbs[usize::from(db)]);
                string_or_nothing(db, key)?;
                db.append(key, tail, now, &mut data.env);
            }
            Effect::Write { db, key, at, bytes } => {
                let end = at.saturating_add(bytes.len() as u64);
                if end > MAX_BULK {
                    return Err(NotAnEffect);
                }
                let (at, end) = (at as usize, end as usize);
                let (key, db) = (data.key(key), &mut data.dbs[usize::from(db)]);
                string_or_nothing(db, key)?;
                let value = db.grow(key, end, now, &mut data.env);
                value[at..end].copy_from_slice(bytes);
            }
            Effect::Expire { db, key, at } => {
                let (key, db) = (data.key(key), &mut data.dbs[usize::from(db)]);
                if let Some(found) = db.records.find(key) {
                    db.set_expiry(found, key, at.map(not_zero));
                }
            }
            Effect::FlushDb { db } => {
                data.put_empty(usize::from(db));
                if let Some(held) = &mut self.held {
                    held.forget_db(db);
                }
            }
            Effect::SwapDb { a, b } => {
                data.exchange(usize::from(a), usize::from(b));
                if let Some(held) = &mut self.held {
                    held.swap_dbs(a, b);
                }
            }
            Effect::Horizon { .. } | Effect::Reported { .. } => self.keep_time(effect),
            Effect::Gone { db, key, tag, cut } => self.note((db, key), Note::Gone(tag, cut), data),
            Effect::Ended { db, key, tag, end } => {
                let note = match planted::is(Planted::EndTakesCounts) {
                    true => Note::Gone(tag, end),
                    false => Note::Ended(tag, end),
                };
                self.note((db, key), note, data);
            }
            Effect::Keyspaces { bytes } => self.keep_keyspaces(bytes, data)?,
            Effect::Slot { slot, mark } => to.marks.set(slot, mark),
            Effect::Node { number } => to.marks.set_node(number),
            _ => return self.perform_on_any(effect, data),
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
    fn note(&mut self, (db, bytes): (u8, &[u8]), note: Note, data: &mut Databases) {
        if let Some(held) = &mut self.held {
            return held.note_of((db, bytes), note, &data.env.tuning);
        }
        let key = data.key(bytes);
        drop_noted(&mut data.at(usize::from(db), key, self.now), note);
    }

    /// Applies effects on values of any type.
    fn perform_on_any(
        &mut self,
        effect: &Effect<'_>,
        data: &mut Databases,
    ) -> Result<(), NotAnEffect> {
        let now = self.now;
        match *effect {
            Effect::Update { db, key, tag, ops } => {
                let key = data.key(key);
                let mut at = data.at(usize::from(db), key, now);
                if tag.is_replicated() {
                    return self.join_ops(&mut at, (tag, false), ops);
                }
                commit_ops(&mut at, tag, ops)?;
            }
            Effect::Put {
                db,
                key,
                tag,
                chunk,
                expire_at,
            } => {
                let key = data.key(key);
                let mut at = data.at(usize::from(db), key, now);
                if tag.is_replicated() {
                    return self.join_chunk(&mut at, (tag, false), chunk);
                }
                self.forget_held(db, key.bytes);
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
                let key = data.key(key);
                let mut at = data.at(usize::from(db), key, now);
                if tag.is_replicated() {
                    // A type that is never sent in parts has this effect only from other nodes.
                    let told = says_all(tag);
                    return self.join_chunk(&mut at, (tag, told), chunk);
                }
                extend(&mut at, tag, chunk)?;
            }
            Effect::Move { db, key, to_db, to } => {
                let (key, to) = (data.key(key), data.key(to));
                data.transfer((usize::from(db), key), (usize::from(to_db), to), now);
            }
            Effect::Copy { db, key, to_db, to } => {
                let (key, to) = (data.key(key), data.key(to));
                let (from, into) = (usize::from(db), usize::from(to_db));
                if let Some(found) = data.dbs[from].records.find(key) {
                    let entry = data.dbs[from].records.entry(found.handle);
                    data.dbs[into].put(to, entry, now, &mut data.env);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn join_ops(
        &mut self,
        at: &mut At<'_>,
        (tag, told): (Tag, bool),
        ops: &[u8],
    ) -> Result<(), NotAnEffect> {
        let key = (at.db.number, at.key.bytes);
        let mut left = Cow::Borrowed(ops);
        if let Some(held) = &mut self.held {
            // Counts first: even for a key that had another type before a removal, any file may have a removal that
            // was forgotten before the counts were made.
            if held.holds() {
                left = Cow::Owned(held.take(key, (tag, told), ops)?);
            }
            if left.is_empty() || held.take_other(key, tag, &left, &at.env.tuning)? {
                return Ok(());
            }
        }
        merge_ops(at, tag, &left).map(|_| ())
    }

    fn join_chunk(
        &mut self,
        at: &mut At<'_>,
        (tag, told): (Tag, bool),
        chunk: &[u8],
    ) -> Result<(), NotAnEffect> {
        let held = self.held.as_ref();
        if held.is_some_and(|held| held.holds() || held.has_notes()) {
            let ops = operations_of(tag, chunk);
            return self.join_ops(at, (tag, told), &ops);
        }
        merge_chunk(at, tag, chunk).map(|_| ())
    }

    /// Keeps the table of keyspaces for the caller that loads.
    fn keep_keyspaces(&mut self, bytes: &[u8], data: &mut Databases) -> Result<(), NotAnEffect> {
        let table = Keyspaces::decode(bytes)?;
        if table.version() > self.keyspaces.version() {
            let old = std::mem::replace(&mut self.keyspaces, Arc::new(table));
            if let Some(workers) = self.held.as_ref().map(|held| held.workers) {
                let new = Arc::clone(&self.keyspaces);
                self.drop_reshaped((&old, &new), workers, data);
            }
        }
        Ok(())
    }

    /// The table of keyspaces that was replayed last.
    pub(super) fn keyspaces(&self) -> &Arc<Keyspaces> {
        &self.keyspaces
    }

    /// Applies a change of the table: drops the replicas that were converted by it, whose new values follow in the log.
    fn drop_reshaped(
        &mut self,
        (old, new): (&Keyspaces, &Keyspaces),
        workers: usize,
        data: &mut Databases,
    ) {
        if !old.has_lattice() {
            return;
        }
        let is_reshaped = |key: &[u8]| {
            let from = old.lattice(key);
            from.is_some() && reshapes((from, new.lattice(key)), workers)
        };
        for db in 0..DATABASES {
            for name in data.names_where(db, is_reshaped) {
                self.forget_held(db as u8, &name);
                let key = data.key(&name);
                data.at(db, key, self.now).replica().drop_all();
            }
        }
    }
}

/// Refuses an effect that only strings can have if the key has a value of another type.
fn string_or_nothing(db: &Db, key: Key<'_>) -> Result<(), NotAnEffect> {
    let found = db.records.find(key);
    let value = found.map(|found| db.records.value(found.handle));
    let is_string = value.is_none_or(|value| value.string().is_ok());
    is_string.then_some(()).ok_or(NotAnEffect)
}
