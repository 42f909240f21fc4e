//! How this worker's replica of a key lies in a database, and how it changes:
//! what shows something is a record, what shows nothing has a grave.

use super::Env;
use super::db::{Db, Found, Outside, packed};
use super::lattice::is_small;
use super::record::{Head, PACKED};
use super::types::{Key, fits_packed};
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::Forgotten;
use rufous_datatype::replicated::register::{self, Register};

/// What is known of a key is of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// No replicated one.
    Plain,
    Replicated(Tag),
}

/// Tombstones of one key that are dropped at a time.
const TOMBSTONES: usize = 64;

/// When the value expires, if it does.
fn deadline_of(object: &Object) -> Option<u64> {
    let view = Register::view(Register::of(object)?);
    Some(view.deadline()).filter(|&at| at > 0)
}

/// What every replica makes of a value whose time has come.
fn expire(object: &mut Object, env: &Env) {
    let mut ops = Vec::new();
    if let Some(state) = Register::of(object) {
        register::expire(Register::view(state), &mut ops);
    }
    let done = object.commit_encoded(&ops, &env.tuning);
    debug_assert!(done.is_ok(), "operations are as their type encodes them");
}

impl Db {
    /// Lets `change` alter the replicated value of a key, an empty one where
    /// nothing is known of it. A snapshot under way gets it as it was.
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
            let result = change(&mut object, env);
            self.put_replica(None, key, object, now, env);
            return Ok(result);
        };
        match self.shape_of(found.handle).0 {
            Some(other) if other == tag => {}
            Some(other) if other.is_replicated() => return Err(Other::Replicated(other)),
            _ => return Err(Other::Plain),
        }
        self.capture(found.handle, &mut env.snapshot);
        self.touch(found.handle, now, env);
        if self.shape_of(found.handle).1 {
            let mut object = self.unpacked(found.handle);
            let result = change(&mut object, env);
            self.put_replica(Some(found), key, object, now, env);
            return Ok(result);
        }
        let (_, object) = self.object_mut(found.handle);
        let before = object.heap_bytes();
        let result = change(object, env);
        let (after, is_hidden) = (object.heap_bytes(), object.is_hidden());
        let (deadline, newest) = (deadline_of(object), object.newest().time);
        self.outside = self.outside + after - before;
        if is_hidden {
            self.bury(found, key, |_, _| (), env);
        } else {
            self.set_expiry(found, key, deadline, env);
            if !is_small(tag) {
                self.graves.enroll(key, newest);
            }
        }
        Ok(result)
    }

    /// What the key's grave holds, taken out of it; where it has none, nothing.
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

    /// Takes all that is known of a key away; a snapshot under way gets it.
    pub(super) fn drop_replica(&mut self, key: Key<'_>, env: &mut Env) {
        if let Some(found) = self.find(key) {
            self.capture(found.handle, &mut env.snapshot);
            self.remove(found, key.hash, env);
        }
        self.capture_grave(key.bytes, &mut env.snapshot);
        drop(self.graves.take(key.bytes));
    }

    fn unpacked(&self, handle: u32) -> Object {
        let slot = self.arena.get(handle);
        let (tag, bytes) = packed(Head::of(slot).value_part(slot));
        tag.unpack(bytes.to_vec())
    }

    /// Puts a replicated value where it belongs; `found` is the key's record.
    pub(super) fn put_replica(
        &mut self,
        found: Option<Found>,
        key: Key<'_>,
        object: Object,
        now: Now,
        env: &mut Env,
    ) {
        if object.is_hidden() {
            if let Some(found) = found {
                self.remove(found, key.hash, env);
            }
            if !object.is_empty() {
                self.graves.put(key, object, self.parity);
            }
            return;
        }
        let deadline = deadline_of(&object);
        if !is_small(object.tag()) {
            self.graves.enroll(key, object.newest().time);
        }
        match found {
            None => self.create_object(key, object, now, env),
            Some(found) => match object.packed().filter(|bytes| fits_packed(bytes)) {
                Some(bytes) if self.shape_of(found.handle).1 => {
                    self.replace_packed(found, key, object.tag(), bytes);
                }
                _ => self.replace_object(found, key, object, env),
            },
        }
        if let Some(found) = self.find(key) {
            self.set_expiry(found, key, deadline, env);
        }
    }

    /// Makes a record a grave of what `turn` makes of its value.
    fn bury(
        &mut self,
        found: Found,
        key: Key<'_>,
        turn: impl FnOnce(&mut Object, &Env),
        env: &mut Env,
    ) {
        let slot = self.arena.get(found.handle);
        let mut object = match Head::of(slot).kind() {
            PACKED => {
                let object = self.unpacked(found.handle);
                self.remove(found, key.hash, env);
                object
            }
            _ => match self.unlink(found, key.hash) {
                Some(Outside::Object(object)) => object,
                _ => return,
            },
        };
        turn(&mut object, env);
        if object.is_hidden() {
            self.graves.put(key, object, self.parity);
        }
    }

    /// A replicated value's time has come. Every replica finds that by itself,
    /// and so no log is told.
    pub(super) fn expire_replica(&mut self, found: Found, hash: u32, env: &mut Env) {
        env.counters.expired += 1;
        env.counters.changes += 1;
        self.capture(found.handle, &mut env.snapshot);
        let bytes: Box<[u8]> = self.item(found.handle).key.into();
        let key = Key {
            bytes: &bytes,
            hash,
        };
        env.touch(key, self.number);
        self.bury(found, key, expire, env);
    }

    /// Forgets what everybody has heard of, looking at no more than `budget`
    /// keys. Returns whether there may be more.
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
        if object.newest().time <= horizon {
            return env.throw(Outside::Object(object));
        }
        if object.forget(horizon, TOMBSTONES) != Forgotten::Empty {
            self.graves.put(key, object, parity);
        }
    }

    /// What shows something may have lost elements, too.
    fn forget_tombstones(&mut self, key: Key<'_>, horizon: u64, env: &mut Env) {
        let Some(found) = self.find(key) else { return };
        if !self.is_replicated(found.handle) || self.shape_of(found.handle).1 {
            return;
        }
        if !planted::is(Planted::SnapshotMissesForgotten) {
            self.capture(found.handle, &mut env.snapshot);
        }
        let (_, object) = self.object_mut(found.handle);
        let before = object.heap_bytes();
        let forgotten = object.forget(horizon, TOMBSTONES);
        let (after, newest) = (object.heap_bytes(), object.newest().time);
        self.outside = self.outside + after - before;
        if forgotten == Forgotten::More {
            self.graves.enroll(key, horizon);
        } else if newest > horizon {
            self.graves.enroll(key, newest);
        }
    }

    #[inline]
    pub(super) fn is_replicated(&self, handle: u32) -> bool {
        self.shape_of(handle).0.is_some_and(Tag::is_replicated)
    }
}
