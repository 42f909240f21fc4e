//! Strings at replicated keys: set, incremented, or given a deadline.

use super::Shard;
use super::lattice::{Keyed, NOT_YET, is_small};
use super::types::{ExpirySetting, Key, NewValue};
use crate::planted::{self, Planted};
use rufous_base::Now;
use rufous_datatype::ValueError;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::hll::Registers;
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::Writer;
use rufous_datatype::replicated::register::{self, Register};
use rufous_datatype::replicated::sketch::{self, Sketch};

impl Shard {
    /// Sets a string; returns whether the key existed before.
    pub(super) fn write_string(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        value: &NewValue<'_>,
        expiry: ExpirySetting,
        now: Now,
    ) -> bool {
        let (bytes, tag) = (value.bytes(), keyed.strings);
        if expiry == ExpirySetting::Clear
            && let Some(writing) = &self.env.writing
        {
            let stamp = writing.writer.stamp;
            if self.overwrite_register((db, key), keyed, stamp, bytes, now) {
                self.step();
                return true;
            }
        }
        let at = self.expire_at(db, key, now);
        if self.is_plain(db, key, now) {
            self.remove_strictly(db, key, now);
        }
        let deadline = match expiry {
            ExpirySetting::Clear => 0,
            ExpirySetting::At(unix_ms) => unix_ms.max(1),
            ExpirySetting::Keep => at.flatten().unwrap_or(0),
        };
        if tag == Tag::Siblings {
            let (context, value) = (self.context_of(db, key), Some((bytes, deadline)));
            self.write_sibling((db, key), keyed, value, context.as_ref(), now);
            return at.is_some();
        }
        self.write_replica(db, key, (keyed, tag), now, |_, writer, ops| {
            register::set(writer, bytes, deadline, ops);
        });
        at.is_some()
    }

    /// Adds elements to a HyperLogLog, if the key is replicated; returns whether that changed it.
    pub fn add_to_sketch<'e>(
        &mut self,
        db: usize,
        key: Key<'_>,
        elements: impl Iterator<Item = &'e [u8]>,
        now: Now,
    ) -> Option<bool> {
        self.raise(db, key, now, |view, ops| sketch::add(view, elements, ops))
    }

    /// Merges other HyperLogLogs into that of the key, if it is replicated.
    pub fn merge_sketches(
        &mut self,
        db: usize,
        key: Key<'_>,
        observed: &Registers,
        now: Now,
    ) -> Option<bool> {
        self.raise(db, key, now, |view, ops| sketch::merge(view, observed, ops))
    }

    fn raise(
        &mut self,
        db: usize,
        key: Key<'_>,
        now: Now,
        change: impl FnOnce(sketch::View<'_>, &mut Vec<u8>) -> bool,
    ) -> Option<bool> {
        let keyed = self.replicated(key)?;
        let encode = |object: &Object, _: &Writer, ops: &mut Vec<u8>| {
            Sketch::of(object).is_some_and(|state| change(Sketch::view(state), ops))
        };
        let done = self.write_replica(db, key, (keyed, Tag::Sketch), now, encode);
        Some(done.unwrap_or(false))
    }

    /// Whether the running command writes to this key as a replica.
    #[inline]
    pub fn writes_replica(&self, key: Key<'_>) -> bool {
        self.replicated(key).is_some()
    }

    /// Whether the key shows a replicated value.
    pub fn is_replica(&mut self, db: usize, key: Key<'_>, now: Now) -> bool {
        let found = self.dbs[db].live(key, now, &mut self.env);
        found.is_some_and(|found| self.dbs[db].is_replicated(found.handle))
    }

    /// Adds to a number stored as text, if the key is replicated: additions at different replicas add up.
    pub fn increment(
        &mut self,
        db: usize,
        key: Key<'_>,
        by: i64,
        now: Now,
    ) -> Option<Result<i64, ValueError>> {
        let keyed = self.replicated(key)?;
        if keyed.strings == Tag::Siblings {
            return Some(self.increment_sibling(db, key, keyed, by, now));
        }
        let done = self.count(db, key, keyed, now, |view, writer, ops| {
            register::increment(view, by, writer, ops)
        });
        Some(done.unwrap_or(Ok(0)))
    }

    /// The same for a floating-point number; `by` is one as text.
    pub fn increment_float(
        &mut self,
        db: usize,
        key: Key<'_>,
        by: &[u8],
        now: Now,
    ) -> Option<Result<Vec<u8>, ValueError>> {
        let keyed = self.replicated(key)?;
        if keyed.strings == Tag::Siblings {
            // The caller reads the value and writes it again with its context.
            return None;
        }
        let done = self.count(db, key, keyed, now, |view, writer, ops| {
            register::increment_float(view, by, writer, ops)
        });
        Some(done.unwrap_or_else(|| Ok(Vec::new())))
    }

    fn count<R>(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        now: Now,
        add: impl FnOnce(register::View<'_>, &Writer, &mut Vec<u8>) -> R,
    ) -> Option<R> {
        let tag = keyed.strings;
        if self.is_plain(db, key, now) {
            self.adopt_string(db, key, keyed, now)?;
        }
        let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
            Register::of(object).map(|state| add(Register::view(state), writer, ops))
        };
        self.write_replica(db, key, (keyed, tag), now, encode)?
    }

    /// Rewrites a plain string, from before the key had replicas, as a replicated one.
    fn adopt_string(&mut self, db: usize, key: Key<'_>, keyed: Keyed, now: Now) -> Option<()> {
        let old = self.peek(db, key, now).ok()?;
        let old = NewValue::Own(old?.bytes().to_vec());
        self.write_string(db, key, keyed, &old, ExpirySetting::Keep, now);
        Some(())
    }

    /// Sets another deadline on what is shown; a string is rewritten for that. Returns whether the key exists.
    pub(super) fn set_deadline(
        &mut self,
        db: usize,
        key: Key<'_>,
        keyed: Keyed,
        unix_ms: Option<u64>,
        now: Now,
    ) -> bool {
        if self.is_plain(db, key, now) && self.adopt_string(db, key, keyed, now).is_none() {
            self.refuse(key, NOT_YET);
            return false;
        }
        let Some(tag) = self.tag_at(db, key, now) else {
            return false;
        };
        let deadline = unix_ms.map_or(0, |at| at.max(1));
        if tag == Tag::Siblings {
            return self.time_siblings((db, key), keyed, deadline, now);
        }
        let encode = |object: &Object, writer: &Writer, ops: &mut Vec<u8>| {
            object.encode_deadline(deadline, writer, ops)
        };
        let logged = self.journal().len();
        let done = self.write_replica(db, key, (keyed, tag), now, encode);
        if planted::is(Planted::DeadlineNotLogged) && !is_small(tag) {
            self.journal().truncate(logged);
        }
        match done {
            Some(Ok(())) => true,
            Some(Err(refused)) => {
                self.refuse(key, refused);
                false
            }
            None => false,
        }
    }
}
