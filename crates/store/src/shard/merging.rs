//! Replicas from the side of replication: merging what came from elsewhere,
//! showing what there is here, and forgetting what everybody knows.
//!
//! Nothing that comes is trusted: bytes that are no state of their type are an
//! error. A key has values of one type; where two replicas disagree, the type
//! with the higher tag stays, whole, at all of them.

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

/// Bytes of a state that are shown together.
const CHUNK: usize = 64 << 10;

/// What a replica knows of a key.
#[derive(Clone, Copy, Debug)]
pub struct Replica {
    pub tag: Tag,
    /// Nothing in it is newer.
    pub newest: Stamp,
    /// There is something to read.
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
    /// Merges a part of another replica's state with this one's, and tells
    /// whoever watches or waits, but not the journal: its writer logs it.
    /// Returns whether that may have changed anything.
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
            self.env.touch(key, db as u8);
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

    /// Who has sent this has not forgotten yet what has gone with a deadline that
    /// everybody knew of. Where that is forgotten, nothing would hide it.
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
            // What is small is compared, what is large is taken for changed.
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
                // No more than that: others go by it as by what is settled.
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
        // Not before it is clear that it is a value.
        let mut object = tag.empty();
        change(&mut object, &self.env.tuning).map_err(|_| NotAnEffect)?;
        at.drop_replica(key, &mut self.env);
        at.put_replica(key, object, now, &mut self.env);
        Ok(true)
    }

    /// Whoever sends less than what the key's grave holds, after everybody has
    /// said to know that, has forgotten it.
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
        // Of a collection it may be but a part: there, elements make way one by one.
        let is_whole = matches!(tag, Tag::Register | Tag::Siblings);
        // Or sends another type, which it could not have written before.
        if is_whole && object.newest() < grave.newest() || grave.tag() != tag {
            let env = &mut self.env;
            env.forgotten = env.forgotten.max(grave.until());
            env.tell_end((db as u8, key), ends_of(&grave, horizon));
            at.drop_replica(key, env);
        }
        Ok(())
    }

    /// Every state that is still to come here was made by a replica that knew
    /// of everything up to this time of a stamp.
    pub fn set_horizon(&mut self, horizon: u64) {
        self.env.horizon = self.env.horizon.max(horizon);
    }

    /// What is merged from here on was made by who knew of everything up to this. A
    /// horizon that was taken over of one sender says nothing of what another has
    /// told before it knew as much.
    pub fn merge_from(&mut self, knows: u64) {
        self.env.sender_knows = knows;
    }

    /// What is merged next knows all that this worker does.
    pub fn merge_own(&mut self) {
        self.env.sender_knows = u64::MAX;
    }

    /// Shows all that is known of a key here, in parts of about 64 KiB that
    /// others may merge in any order.
    pub fn show_replica(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
        f: &mut dyn FnMut(Tag, &[u8]),
    ) -> Option<Replica> {
        // What has expired is a grave from now on.
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

    /// Some keys that show nothing but are known, from `from` on (which begins
    /// empty), and where to go on.
    pub fn graves(&self, db: usize, from: &[u8], count: usize) -> GraveKeys {
        self.dbs[db].graves.keys_from(from, count)
    }

    /// Keys that show nothing but are known, of all databases.
    pub fn graves_len(&self) -> usize {
        self.dbs.iter().map(|db| db.graves.len()).sum()
    }

    /// Whether there is anything that is only kept until everybody has heard
    /// of it.
    pub fn has_to_forget(&self) -> bool {
        self.dbs.iter().any(|db| !db.graves.is_settled())
    }

    /// Forgets what was deleted up to `horizon`, the time of a stamp, which all
    /// replicas have set as their horizon: they take it well when who has
    /// forgotten begins anew. Looks at no more than `budget` keys; returns
    /// whether there may be more.
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

    /// A key's entry, for a command that runs elsewhere: also of what shows
    /// nothing, which it has to know of.
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

    /// Takes all of a key away, and tells nobody: of a shard on which commands
    /// are tried.
    pub fn take_entry(&mut self, db: usize, key: Key<'_>, now: Now) -> Option<Entry> {
        let taken = self.take(db, key, now);
        taken.or_else(|| {
            let entry = self.gather_entry(db, key, now);
            self.dbs[db].drop_replica(key, &mut self.env);
            entry
        })
    }

    /// Merges a whole value that was written elsewhere for this worker, and
    /// tells everybody.
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
        if self.env.observed {
            self.tell_entry(db as u8, key, entry);
        }
        if self.is_shared(key) {
            self.env.changes.touch(db as u8, key);
        }
    }

    /// An own change was done to a copy of the value first.
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
