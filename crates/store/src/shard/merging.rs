//! Replication of the shard's data: merging received states, producing states to send, and forgetting what all
//! replicas have received.
//!
//! Received data is not trusted: bytes that are not a state of their type are an error. A key has values of one type;
//! if two replicas disagree, the value of the type with the higher tag wins, whole, at all of them.

use super::gone::ends_of;
use super::graves::GraveKeys;
use super::replica::Other;
use super::types::{Any, Entry, Key, OwnedValue};
use super::{Env, Shard};
use crate::effect::{Effect, NotAnEffect};
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_datatype::algebra::{Corrupt, DataType, Tuning};
use rufous_datatype::object::{Object, Tag};
use rufous_datatype::replicated::register::Register;
use rufous_datatype::replicated::{Known, chunk_gone, chunk_since};
use rufous_lattice::Stamp;
use std::borrow::Cow;

/// Bytes of a state in one part.
const CHUNK: usize = 64 << 10;

/// Summary of a replica's state of a key.
#[derive(Clone, Copy, Debug)]
pub struct Replica {
    pub tag: Tag,
    /// The newest stamp in it.
    pub newest: Stamp,
    /// Whether there is something to read.
    pub is_shown: bool,
}

impl Env {
    fn known(&self) -> Known {
        Known {
            here: self.horizon,
            there: self.horizon.min(self.sender_knows),
        }
    }
}

impl Shard {
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
        if planted::is(Planted::MergeSkipped) && planted::now_and_then() {
            return Ok(false);
        }
        let plain = match tag {
            Tag::Register => self.merge_plain((db, key), chunk, now),
            _ => None,
        };
        let changed = match plain {
            Some(changed) => changed,
            None => self.merge_chunk(db, key, tag, chunk, now)?,
        };
        if changed {
            self.env.counters.changes += 1;
            self.env.observers.touch(key, db as u8);
        }
        Ok(changed)
    }

    pub(super) fn merge_chunk(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        chunk: &[u8],
        now: Now,
    ) -> Result<bool, NotAnEffect> {
        let chunk = self.without_gone(tag, chunk)?;
        self.join(db, key, tag, now, |object, tuning| {
            object.extend(&chunk, tuning)
        })
    }

    pub(super) fn merge_ops(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        ops: &[u8],
        now: Now,
    ) -> Result<bool, NotAnEffect> {
        self.join(db, key, tag, now, |object, tuning| {
            object.commit_encoded(ops, tuning)
        })
    }

    /// Removes what expired with a deadline that all replicas had received, and that the sender has not yet
    /// forgotten. If it is forgotten here, nothing here would hide it.
    fn without_gone<'a>(&self, tag: Tag, chunk: &'a [u8]) -> Result<Cow<'a, [u8]>, NotAnEffect> {
        match chunk_gone(tag, chunk, self.env.horizon) {
            Stamp::ZERO => Ok(Cow::Borrowed(chunk)),
            gone => chunk_since(tag, chunk, gone)
                .map(Cow::Owned)
                .map_err(|_| NotAnEffect),
        }
    }

    fn join(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        now: Now,
        change: impl Fn(&mut Object, &Tuning) -> Result<(), Corrupt>,
    ) -> Result<bool, NotAnEffect> {
        if !tag.is_replicated() {
            return Err(NotAnEffect);
        }
        let joined = |object: &mut Object, env: &mut Env| {
            // Small values are compared, large ones are assumed to have changed.
            let before = object.packed().map(<[u8]>::to_vec);
            let mut gone = Stamp::ZERO;
            let known = env.known();
            let forgets = object.may_make_way(known.there);
            if forgets {
                gone = object.gone(known.there);
            }
            if forgets || object.may_be_counted() {
                let mut sent = tag.empty();
                change(&mut sent, &env.tuning).map_err(|_| NotAnEffect)?;
                let last = object.make_way(&sent, known, &env.tuning);
                // No later time, since other code relies on everything up to it being settled.
                env.forgotten = env.forgotten.max(last);
            }
            change(object, &env.tuning).map_err(|_| NotAnEffect)?;
            if object.gone(known.there) < gone {
                env.tell_gone((db as u8, key), tag, gone);
            }
            Ok(before.is_none() || before.as_deref() != object.packed())
        };
        self.make_way(db, key, tag, &change)?;
        let at = &mut self.dbs[db];
        match at.alter_replica(key, tag, now, &mut self.env, joined) {
            Ok(done) => return done,
            Err(Other::Replicated(other)) if other > tag => return Ok(false),
            Err(_) => {}
        }
        // Only after the bytes are known to be a valid value.
        let mut object = tag.empty();
        change(&mut object, &self.env.tuning).map_err(|_| NotAnEffect)?;
        at.drop_replica(key, &mut self.env);
        at.put_replica(key, object, now, &mut self.env);
        Ok(true)
    }

    /// Drops the key's grave if the sender has forgotten it: its horizon covers the grave, but it sent less than the
    /// grave holds.
    fn make_way(
        &mut self,
        db: usize,
        key: Key<'_>,
        tag: Tag,
        change: &impl Fn(&mut Object, &Tuning) -> Result<(), Corrupt>,
    ) -> Result<(), NotAnEffect> {
        let at = &mut self.dbs[db];
        let Some(grave) = at.graves.get(key.bytes) else {
            return Ok(());
        };
        let horizon = self.env.known().there;
        if grave.until() > horizon {
            return Ok(());
        }
        let mut object = tag.empty();
        change(&mut object, &self.env.tuning).map_err(|_| NotAnEffect)?;
        // A chunk of a collection may be a part of it: there, elements make way one by one.
        let is_whole = matches!(tag, Tag::Register | Tag::Siblings);
        // Or it sends another type, which it could not have written otherwise.
        if is_whole && object.newest() < grave.newest() || grave.tag() != tag {
            let env = &mut self.env;
            env.forgotten = env.forgotten.max(grave.until());
            env.tell_end((db as u8, key), ends_of(&grave, horizon));
            at.drop_replica(key, env);
        }
        Ok(())
    }

    /// Every state that is still to be received here was made by a replica that had received everything up to this
    /// time of a stamp.
    pub fn set_horizon(&mut self, horizon: u64) {
        self.env.horizon = self.env.horizon.max(horizon);
    }

    /// The senders of the states merged from now on had received everything up to this time. A horizon taken over
    /// from one sender does not hold for what another one sent before it had received as much.
    pub fn merge_from(&mut self, knows: u64) {
        self.env.sender_knows = knows;
    }

    /// The sender of the next state merged has received everything that this worker has.
    pub fn merge_own(&mut self) {
        self.env.sender_knows = u64::MAX;
    }

    /// Produces the whole state of a key, in parts of about 64 KiB that can be merged in any order.
    pub fn show_replica(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
        f: &mut dyn FnMut(Tag, &[u8]),
    ) -> Option<Replica> {
        // An expired value is a grave from now on.
        let found = self.dbs[db].live(key, now, &mut self.env);
        let at = &self.dbs[db];
        let grave;
        let any = match found {
            Some(found) => at.value(found.handle),
            None => {
                grave = at.graves.get(key.bytes)?;
                Any::of_object(&grave)
            }
        };
        let tag = any.tag().filter(|tag| tag.is_replicated())?;
        let replica = Replica {
            tag,
            newest: any.newest(),
            is_shown: found.is_some(),
        };
        if let Any::Packed(Tag::Register, bytes) = any
            && let Some(delta) = Register::packed_view(bytes).delta()
        {
            f(tag, &delta);
            return Some(replica);
        }
        let mut chunk = std::mem::take(&mut self.env.packed);
        let mut next = Some(0);
        while let Some(from) = next {
            chunk.clear();
            next = any.chunk(from, CHUNK, &mut chunk);
            f(tag, &chunk);
        }
        self.env.packed = chunk;
        Some(replica)
    }

    /// Some keys that have graves, from `from` on (initially empty), and the next position.
    pub fn graves(&self, db: usize, from: &[u8], count: usize) -> GraveKeys {
        self.dbs[db].graves.keys_from(from, count)
    }

    /// Number of graves in all databases.
    pub fn graves_len(&self) -> usize {
        self.dbs.iter().map(|db| db.graves.len()).sum()
    }

    /// Whether there is state that is kept only until all replicas have received it.
    pub fn has_to_forget(&self) -> bool {
        self.dbs.iter().any(|db| !db.graves.is_settled())
    }

    /// Forgets deletions up to `horizon`, the time of a stamp, which all replicas must have set as their horizon:
    /// then they merge correctly what a replica writes to a key that it has forgotten. Examines at most `budget`
    /// keys; returns whether there may be more.
    pub fn forget_step(&mut self, horizon: u64, budget: usize) -> bool {
        if self.dbs.iter().any(|db| db.graves.is_due(horizon)) {
            self.set_forgotten(horizon);
        }
        let mut left = budget;
        let mut more = false;
        for db in &mut self.dbs {
            more |= db.forget(horizon, &mut left, &mut self.env);
        }
        more
    }

    /// A key's entry, for a command that runs on another shard; also the state of a value that shows nothing, which
    /// the command needs.
    pub fn gather_entry(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Entry> {
        let entry = self.clone_entry(db, key, now);
        entry.or_else(|| {
            let object = self.dbs[db].graves.get(key.bytes)?;
            Some(Entry {
                value: OwnedValue::Object(object),
                expire_at: None,
                access: self.env.policy.first_stamp(now),
            })
        })
    }

    /// Removes all state of a key without reporting it: for a shard on which commands are tried.
    pub fn take_entry(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Entry> {
        let taken = self.take(db, key, now);
        taken.or_else(|| {
            let entry = self.gather_entry(db, key, now);
            self.dbs[db].drop_replica(key, &mut self.env);
            entry
        })
    }

    /// Merges a whole value that was written elsewhere for this worker, and reports it to all observers.
    pub(super) fn merge_entry(&mut self, db: usize, key: Key<'_>, entry: &Entry, now: Now) {
        let any = entry.value.any();
        let Some(tag) = any.tag() else { return };
        let mut chunk = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            chunk.clear();
            next = any.chunk(from, CHUNK, &mut chunk);
            let done = self.merge_chunk(db, key, tag, &chunk, now);
            debug_assert!(done.is_ok(), "a value's chunks are parts of it");
        }
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            self.tell_entry(db as u8, key, entry);
        }
        if self.is_shared(key) {
            self.env.changes.touch(db as u8, key);
        }
    }

    /// Records a local change that was applied to a copy of the value first.
    pub(super) fn note_carried(&mut self, effect: &Effect<'_>) {
        if let Effect::Update { db, key, tag, ops } = *effect
            && tag.is_replicated()
        {
            let key = self.key(key);
            if self.is_shared(key) {
                self.env.note_change(db, key, tag, ops);
            }
        }
    }

    fn is_shared(&self, key: Key<'_>) -> bool {
        let keyed = self
            .env
            .keying
            .as_ref()
            .and_then(|keying| keying.of(key.bytes));
        keyed.is_some_and(|keyed| keyed.is_shared)
    }
}
