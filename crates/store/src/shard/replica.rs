//! Storage of this worker's replica of a key in a database, and its changes: a value that shows something is a
//! record, one that shows nothing has a grave.

use super::Env;
use super::db::{Db, Found, Outside, packed};
use super::gone::ends_of;
use super::lattice::is_small;
use super::record::Head;
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

impl Db {
    /// Lets `change` alter the replicated value of a key, or an empty one if the key has no state. A snapshot under
    /// way gets the earlier state.
    pub(super) fn alter_replica<R>(
        &mut self,
        key: Key<'_>,
        tag: Tag,
        now: Now,
        env: &mut Env,
        change: impl FnOnce(&mut Object, &mut Env) -> R,
    ) -> Result<R, Other> {
        let Some(found) = self.live(key, now, env) else {
            let mut object = self.exhume(key, tag, env)?;
            let time = env.lattice.time_ms(now);
            if deadline_of(&object).is_some_and(|at| at <= time) {
                expire(&mut object, env);
            }
            let result = change(&mut object, env);
            self.put_replica(key, object, now, env);
            return Ok(result);
        };
        match self.shape_of(found.handle).0 {
            Some(other) if other == tag => {}
            Some(other) if other.is_replicated() => return Err(Other::Replicated(other)),
            _ => return Err(Other::Plain),
        }
        self.touch(found.handle, now, env);
        Ok(self.revise_replica(found, key, env, change))
    }

    /// Alters the value of a record.
    fn revise_replica<R>(
        &mut self,
        found: Found,
        key: Key<'_>,
        env: &mut Env,
        change: impl FnOnce(&mut Object, &mut Env) -> R,
    ) -> R {
        self.capture(found.handle, &mut env.snapshot);
        if self.shape_of(found.handle).1 {
            let mut object = self.unpacked(found.handle, env);
            let result = change(&mut object, env);
            self.settle_replica(found, key, object, env);
            return result;
        }
        let (_, object) = self.object_mut(found.handle);
        let before = object.heap_bytes();
        let result = change(object, env);
        let (after, is_hidden, fades) = (object.heap_bytes(), object.is_hidden(), fades(object));
        let (deadline, newest) = (deadline_of(object), object.newest().time);
        let packed = take_packed(object);
        self.outside = self.outside + after - before;
        if is_hidden {
            self.bury(found, key);
        } else if let Some(object) = packed {
            self.settle_replica(found, key, object, env);
        } else {
            self.set_expiry(found, key, deadline, env);
            if fades {
                self.graves.enroll(key, newest);
            }
        }
        result
    }

    /// Takes the object out of the key's grave; an empty one if it has none.
    fn exhume(&mut self, key: Key<'_>, tag: Tag, env: &mut Env) -> Result<Object, Other> {
        match self.graves.tag_of(key.bytes) {
            None => Ok(tag.empty()),
            Some(other) if other != tag => Err(Other::Replicated(other)),
            Some(_) => {
                self.capture_grave(key.bytes, &mut env.snapshot);
                Ok(self.graves.take(key.bytes).unwrap_or_else(|| tag.empty()))
            }
        }
    }

    /// Drops all state of a key; a snapshot under way gets it.
    pub(super) fn drop_replica(&mut self, key: Key<'_>, env: &mut Env) {
        if let Some(found) = self.find(key) {
            self.capture(found.handle, &mut env.snapshot);
            self.remove(found, key.hash, env);
        }
        self.capture_grave(key.bytes, &mut env.snapshot);
        drop(self.graves.take(key.bytes));
    }

    fn unpacked(&self, handle: u32, env: &mut Env) -> Object {
        let slot = self.arena.get(handle);
        let (tag, bytes) = packed(Head::of(slot).value_part(slot));
        let mut buffer = std::mem::take(&mut env.packed);
        buffer.clear();
        buffer.extend_from_slice(bytes);
        tag.unpack(buffer)
    }

    /// Stores a replicated value as a record or in a grave; the key has no record.
    pub(super) fn put_replica(&mut self, key: Key<'_>, object: Object, now: Now, env: &mut Env) {
        if object.is_hidden() {
            return self.put_grave(key, object);
        }
        let deadline = deadline_of(&object);
        if fades(&object) {
            self.graves.enroll(key, object.newest().time);
        }
        self.create_object(key, object, now, env);
        if let Some(found) = self.find(key) {
            self.set_expiry(found, key, deadline, env);
        }
    }

    /// Stores the changed value of a record as a record or in a grave.
    fn settle_replica(&mut self, found: Found, key: Key<'_>, object: Object, env: &mut Env) {
        if object.is_hidden() {
            self.remove(found, key.hash, env);
            return self.put_grave(key, object);
        }
        if fades(&object) {
            self.graves.enroll(key, object.newest().time);
        }
        self.lay_replica(found, key, object, env);
    }

    /// Stores a shown value in its record.
    fn lay_replica(&mut self, found: Found, key: Key<'_>, object: Object, env: &mut Env) {
        let deadline = deadline_of(&object);
        let was_packed = self.shape_of(found.handle).1;
        match object.packed().filter(|bytes| fits_packed(bytes)) {
            Some(bytes) if was_packed => {
                self.replace_packed(found, key, object.tag(), bytes);
                if let Some(buffer) = object.into_buffer() {
                    env.packed = buffer;
                }
            }
            _ => self.replace_object(found, key, object, env),
        }
        if let Some(found) = self.find(key) {
            self.set_expiry(found, key, deadline, env);
        }
    }

    fn put_grave(&mut self, key: Key<'_>, object: Object) {
        if !object.is_empty() {
            self.graves.put(key, object, self.parity);
        }
    }

    /// Buries an object that is no longer packed and shows nothing.
    fn bury(&mut self, found: Found, key: Key<'_>) {
        if let Some(Outside::Object(object)) = self.unlink(found, key.hash) {
            self.put_grave(key, object);
        }
    }

    /// A replicated value has expired. Every replica determines that by itself, so it is not logged. Elements that
    /// were added since stay.
    pub(super) fn expire_replica(&mut self, found: Found, hash: u32, env: &mut Env) {
        env.counters.expired += 1;
        env.counters.changes += 1;
        let bytes: Box<[u8]> = self.item(found.handle).key.into();
        let key = Key {
            bytes: &bytes,
            hash,
        };
        env.observers.touch(key, self.number);
        self.revise_replica(found, key, env, expire);
    }

    /// Forgets what all replicas have received, examining at most `budget` keys. Returns whether there may be more.
    pub(super) fn forget(&mut self, horizon: u64, budget: &mut usize, env: &mut Env) -> bool {
        while self.graves.is_due(horizon) {
            if *budget == 0 {
                return true;
            }
            *budget -= 1;
            let Some((hash, bytes)) = self.graves.take_due() else {
                return false;
            };
            let key = Key {
                bytes: &bytes,
                hash,
            };
            if self.graves.tag_of(&bytes).is_some() {
                self.forget_grave(key, horizon, env);
            } else {
                self.forget_tombstones(key, horizon, env);
            }
        }
        false
    }

    fn forget_grave(&mut self, key: Key<'_>, horizon: u64, env: &mut Env) {
        if !planted::is(Planted::SnapshotMissesForgotten) {
            self.capture_grave(key.bytes, &mut env.snapshot);
        }
        let parity = self.graves.parity_of(key.bytes).unwrap_or(self.parity);
        let Some(mut object) = self.graves.take(key.bytes) else {
            return;
        };
        let until = object.until();
        if until <= horizon {
            env.tell_end((self.number, key), ends_of(&object, horizon));
            return env.garbage.throw(Outside::Object(object));
        }
        let ends = ends_of(&object, horizon);
        if object.forget(horizon, TOMBSTONES) == Forgotten::Empty {
            env.tell_end((self.number, key), ends);
        } else {
            // A grave with a deadline may stay for long: others behind it must not wait for it.
            let next = until.min(horizon.saturating_add(SECOND));
            self.graves.put_until(key, object, parity, next);
        }
    }

    /// Forgets tombstones of a value that shows something.
    fn forget_tombstones(&mut self, key: Key<'_>, horizon: u64, env: &mut Env) {
        let Some(found) = self.find(key) else { return };
        if !self.is_replicated(found.handle) {
            return;
        }
        if !planted::is(Planted::SnapshotMissesForgotten) {
            self.capture(found.handle, &mut env.snapshot);
        }
        let forgetting = |object: &mut Object| {
            let forgotten = object.forget(horizon, TOMBSTONES);
            let newest = object.newest().time;
            match forgotten {
                Forgotten::More => Some(horizon),
                _ => (newest > horizon && fades(object)).then_some(newest),
            }
        };
        let next = if self.shape_of(found.handle).1 {
            let mut object = self.unpacked(found.handle, env);
            let next = forgetting(&mut object);
            self.lay_replica(found, key, object, env);
            next
        } else {
            let (_, object) = self.object_mut(found.handle);
            let before = object.heap_bytes();
            let next = forgetting(object);
            let after = object.heap_bytes();
            let packed = take_packed(object);
            self.outside = self.outside + after - before;
            if let Some(object) = packed {
                self.lay_replica(found, key, object, env);
            }
            next
        };
        if let Some(next) = next {
            self.graves.enroll(key, next);
        }
    }

    #[inline]
    pub(super) fn is_replicated(&self, handle: u32) -> bool {
        self.shape_of(handle).0.is_some_and(Tag::is_replicated)
    }
}
