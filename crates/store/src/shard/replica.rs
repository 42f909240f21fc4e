//! Storage of this worker's replica of a key in a database, and its changes: a value that shows something is a
//! record, one that shows nothing has a grave.

use super::beside::Outside;
use super::db::Db;
use super::env::Env;
use super::lattice::is_small;
use super::records::Found;
use super::remains::ends_of;
use super::types::{Key, fits_packed};
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_datatype::object::{Object, Tag};
use rufous_datatype::replicated::Forgotten;
use rufous_lattice::stamp::COUNTER_BITS;

/// The key has state of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// A plain one.
    Plain,
    Replicated(Tag),
}

/// Tombstones of one key that are dropped in one step.
const TOMBSTONES: usize = 64;

/// One second, in the time of stamps.
const SECOND: u64 = 1_000_000 << COUNTER_BITS;

/// When the value expires, if it does.
fn deadline_of(object: &Object) -> Option<u64> {
    Some(object.deadline()).filter(|&at| at > 0)
}

/// Whether a shown value has state that can be forgotten later.
fn fades(object: &Object) -> bool {
    !is_small(object.tag()) && object.may_make_way(u64::MAX)
}

/// Takes the object out if it has become small enough for a record.
fn take_packed(object: &mut Object) -> Option<Object> {
    let is_small = object.packed().is_some_and(fits_packed) && !object.is_hidden();
    is_small.then(|| {
        let empty = object.tag().empty();
        std::mem::replace(object, empty)
    })
}

/// Applies the expiry of a value, with the same result at every replica.
fn expire(object: &mut Object, env: &mut Env) {
    let mut ops = Vec::new();
    object.encode_expiry(&mut ops);
    let done = object.commit_encoded(&ops, &env.tuning);
    debug_assert!(done.is_ok(), "operations are as their type encodes them");
}

/// A large value after a change, in the order in which this is determined.
struct Altered<R> {
    result: R,
    is_hidden: bool,
    fades: bool,
    deadline: Option<u64>,
    newest: u64,
    /// The value, if it now belongs into the record.
    packed: Option<Object>,
}

/// What becomes of a tombstone of an earlier type.
#[derive(Clone, Copy, Debug)]
enum Earlier {
    Stays,
    /// If something is written. A later type stays at all replicas whatever these have of an earlier one (see `merging`), so it can
    /// be written as soon as the value is deleted here, or has expired. Not the other way round: where another replica still has the
    /// later type, the write would be lost.
    MakesWay,
}

/// This worker's replica of a key, and what its changes need of the shard.
pub(super) struct LocalReplica<'a> {
    db: &'a mut Db,
    env: &'a mut Env,
    key: Key<'a>,
}

impl<'a> LocalReplica<'a> {
    pub(super) fn new(db: &'a mut Db, env: &'a mut Env, key: Key<'a>) -> Self {
        Self { db, env, key }
    }

    /// Lets `change` alter the replicated value of a key, or an empty one if the key has no state. A snapshot under
    /// way gets the earlier state.
    pub(super) fn alter<R>(
        &mut self,
        tag: Tag,
        now: Now,
        change: impl FnOnce(&mut Object, &mut Env) -> R,
    ) -> Result<R, Other> {
        self.alter_as((tag, Earlier::Stays), now, change)
    }

    /// The same for a write by a command: see [`Earlier::MakesWay`].
    pub(super) fn rewrite<R>(
        &mut self,
        tag: Tag,
        now: Now,
        change: impl FnOnce(&mut Object, &mut Env) -> R,
    ) -> Result<R, Other> {
        self.alter_as((tag, Earlier::MakesWay), now, change)
    }

    fn alter_as<R>(
        &mut self,
        (tag, earlier): (Tag, Earlier),
        now: Now,
        change: impl FnOnce(&mut Object, &mut Env) -> R,
    ) -> Result<R, Other> {
        let Some(found) = self.db.live(self.key, now, self.env) else {
            let buried = match earlier {
                Earlier::Stays => None,
                Earlier::MakesWay => self.take_earlier(tag),
            };
            let mut object = match buried {
                Some(_) => tag.empty(),
                None => self.exhume(tag)?,
            };
            let time = self.env.lattice.time_ms(now);
            if deadline_of(&object).is_some_and(|at| at <= time) {
                expire(&mut object, self.env);
            }
            let result = change(&mut object, self.env);
            match buried.filter(|_| object.is_empty()) {
                // Others may not have heard of the deletion.
                Some(buried) => self.put_grave(buried),
                None => self.put(object, now),
            }
            return Ok(result);
        };
        match self.db.records.shape(found.handle).0 {
            Some(other) if other == tag => {}
            Some(other) if other.is_replicated() => return Err(Other::Replicated(other)),
            _ => return Err(Other::Plain),
        }
        self.db.touch(found.handle, now, self.env);
        Ok(self.revise(found, change))
    }

    /// Alters the value of a record.
    fn revise<R>(&mut self, found: Found, change: impl FnOnce(&mut Object, &mut Env) -> R) -> R {
        self.env.snapshot.capture(self.db, found.handle);
        if self.db.records.shape(found.handle).1 {
            let mut object = self.unpacked(found.handle);
            let result = change(&mut object, self.env);
            self.settle(found, object);
            return result;
        }
        let (records, env) = (&mut self.db.records, &mut *self.env);
        let number = records.object_number(found.handle);
        let altered = records.beside.change_object(number, |object| Altered {
            result: change(object, env),
            is_hidden: object.is_hidden(),
            fades: fades(object),
            deadline: deadline_of(object),
            newest: object.newest().time,
            packed: take_packed(object),
        });
        if altered.is_hidden {
            self.bury(found);
        } else if let Some(object) = altered.packed {
            self.settle(found, object);
        } else {
            self.db.set_expiry(found, self.key, altered.deadline);
            if altered.fades {
                self.enroll(altered.newest);
            }
        }
        altered.result
    }

    /// Takes the object of an earlier type out of the key's grave.
    fn take_earlier(&mut self, tag: Tag) -> Option<Object> {
        let known = self.db.graves.tag_of(self.key.bytes);
        known.filter(|known| *known < tag)?;
        self.take_grave()
    }

    /// Takes the object out of the key's grave; an empty one if it has none.
    fn exhume(&mut self, tag: Tag) -> Result<Object, Other> {
        match self.db.graves.tag_of(self.key.bytes) {
            None => Ok(tag.empty()),
            Some(other) if other != tag => Err(Other::Replicated(other)),
            Some(_) => {
                let taken = self.take_grave();
                Ok(taken.unwrap_or_else(|| tag.empty()))
            }
        }
    }

    /// Takes the key's grave, if it has one; a snapshot under way gets it.
    fn take_grave(&mut self) -> Option<Object> {
        self.env.snapshot.capture_grave(self.db, self.key.bytes);
        self.db.graves.take(self.key.bytes)
    }

    /// Drops all state of the key; a snapshot under way gets it.
    pub(super) fn drop_all(&mut self) {
        if let Some(found) = self.db.records.find(self.key) {
            self.env.snapshot.capture(self.db, found.handle);
            self.remove(found);
        }
        drop(self.take_grave());
    }

    fn remove(&mut self, found: Found) {
        self.db.remove(found, self.key.hash, &mut self.env.garbage);
    }

    fn unpacked(&mut self, handle: u32) -> Object {
        self.db.records.unpacked(handle, &mut self.env.packed)
    }

    /// Stores a replicated value as a record or in a grave; the key has no record.
    pub(super) fn put(&mut self, object: Object, now: Now) {
        if object.is_hidden() {
            return self.put_grave(object);
        }
        let deadline = deadline_of(&object);
        if fades(&object) {
            self.enroll(object.newest().time);
        }
        self.db.create_object(self.key, object, now, self.env);
        self.set_deadline(deadline);
    }

    fn set_deadline(&mut self, deadline: Option<u64>) {
        if let Some(found) = self.db.records.find(self.key) {
            self.db.set_expiry(found, self.key, deadline);
        }
    }

    /// Stores the changed value of a record as a record or in a grave.
    fn settle(&mut self, found: Found, object: Object) {
        if object.is_hidden() {
            self.remove(found);
            return self.put_grave(object);
        }
        if fades(&object) {
            self.enroll(object.newest().time);
        }
        self.lay(found, object);
    }

    /// Stores a shown value in its record.
    fn lay(&mut self, found: Found, object: Object) {
        let deadline = deadline_of(&object);
        let was_packed = self.db.records.shape(found.handle).1;
        match object.packed().filter(|bytes| fits_packed(bytes)) {
            Some(bytes) if was_packed => {
                let records = &mut self.db.records;
                records.replace_packed(found, self.key, object.tag(), bytes);
                if let Some(buffer) = object.into_buffer() {
                    self.env.packed = buffer;
                }
            }
            _ => self.db.replace_object(found, self.key, object, self.env),
        }
        self.set_deadline(deadline);
    }

    fn put_grave(&mut self, object: Object) {
        if !object.is_empty() {
            self.env.may_forget = true;
            self.db.graves.put(self.key, object);
        }
    }

    /// Has the key examined when the horizon has passed this time.
    fn enroll(&mut self, time: u64) {
        self.env.may_forget = true;
        self.db.graves.enroll(self.key, time);
    }

    /// Buries an object that is no longer packed and shows nothing.
    fn bury(&mut self, found: Found) {
        if let Some(Outside::Object(object)) = self.db.unlink(found, self.key.hash) {
            self.put_grave(object);
        }
    }

    /// The value has expired. Every replica determines that by itself, so it is not logged. Elements that were added
    /// since stay.
    pub(super) fn expire(&mut self, found: Found) {
        self.env.counters.expired += 1;
        self.env.counters.changes += 1;
        self.env.observers.touch(self.key, self.db.number);
        self.revise(found, expire);
    }

    /// Forgets what all replicas have received of the key.
    fn forget(&mut self, horizon: u64) {
        if self.db.graves.tag_of(self.key.bytes).is_some() {
            self.forget_grave(horizon);
        } else {
            self.forget_tombstones(horizon);
        }
    }

    fn forget_grave(&mut self, horizon: u64) {
        let key = self.key;
        if !planted::is(Planted::SnapshotMissesForgotten) {
            self.env.snapshot.capture_grave(self.db, key.bytes);
        }
        let Some((mut object, parity)) = self.db.graves.take_with_parity(key.bytes) else {
            return;
        };
        let until = object.until();
        let ends = ends_of(&object, horizon);
        let journal = &mut self.env.observers.journal;
        if until <= horizon {
            journal.write_notes((self.db.number, key), ends);
            return self.env.garbage.throw(Outside::Object(object));
        }
        if object.forget(horizon, TOMBSTONES) == Forgotten::Empty {
            journal.write_notes((self.db.number, key), ends);
        } else {
            // A grave with a deadline may stay for long: others behind it must not wait for it.
            let next = until.min(horizon.saturating_add(SECOND));
            self.env.may_forget = true;
            self.db.graves.put_until(key, object, parity, next);
        }
    }

    /// Forgets tombstones of a value that shows something.
    fn forget_tombstones(&mut self, horizon: u64) {
        let Some(found) = self.db.records.find(self.key) else {
            return;
        };
        if !self.db.records.is_replicated(found.handle) {
            return;
        }
        if !planted::is(Planted::SnapshotMissesForgotten) {
            self.env.snapshot.capture(self.db, found.handle);
        }
        let forgetting = |object: &mut Object| {
            let forgotten = object.forget(horizon, TOMBSTONES);
            let newest = object.newest().time;
            match forgotten {
                Forgotten::More => Some(horizon),
                _ => (newest > horizon && fades(object)).then_some(newest),
            }
        };
        let next = if self.db.records.shape(found.handle).1 {
            let mut object = self.unpacked(found.handle);
            let next = forgetting(&mut object);
            self.lay(found, object);
            next
        } else {
            let records = &mut self.db.records;
            let number = records.object_number(found.handle);
            let change = |object: &mut Object| (forgetting(object), take_packed(object));
            let (next, packed) = records.beside.change_object(number, change);
            if let Some(object) = packed {
                self.lay(found, object);
            }
            next
        };
        if let Some(next) = next {
            self.enroll(next);
        }
    }
}

/// Forgets what all replicas have received of keys of a database, examining at most `budget` of them. Returns whether
/// there may be more.
pub(super) fn forget(db: &mut Db, horizon: u64, budget: &mut usize, env: &mut Env) -> bool {
    while db.graves.is_due(horizon) {
        if *budget == 0 {
            return true;
        }
        *budget -= 1;
        let Some((hash, bytes)) = db.graves.take_due() else {
            return false;
        };
        let key = Key {
            bytes: &bytes,
            hash,
        };
        LocalReplica::new(db, env, key).forget(horizon);
    }
    false
}
