//! Writing to a database: new values, changed ones, and changed expiries.
//! A record is changed in place where its slot has the right size, and
//! written anew to another slot where not.

use super::Env;
use super::classes;
use super::db::{Db, Found, big_bytes, number};
use super::record::{self, BIG, Head, INLINE, LONG_KEY, MAX_INLINE_KEY, MAX_RECORD, Parts};
use super::types::{Entry, ExpirySetting, Key, NewValue, OwnedValue};
use rufous_base::Now;
use std::sync::Arc;

impl Db {
    /// Returns whether the key was there before.
    #[inline]
    pub(super) fn set(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        setting: ExpirySetting,
        now: Now,
        env: &mut Env,
    ) -> bool {
        let probe = self.index.probe(key.hash);
        if probe.handle != 0
            && let Some(head) = self.matching(probe.handle, key.bytes)
        {
            return self.overwrite((probe.found(), head), key, value, setting, now, env);
        }
        self.set_further(key, value, setting, now, env)
    }

    #[inline(never)]
    fn set_further(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        setting: ExpirySetting,
        now: Now,
        env: &mut Env,
    ) -> bool {
        if let Some(found) = self.find_further(key) {
            let head = Head::of(self.arena.get(found.handle));
            return self.overwrite((found, head), key, value, setting, now, env);
        }
        self.create_with(key, value, setting, now, env);
        false
    }

    #[inline(always)]
    fn overwrite(
        &mut self,
        (found, head): (Found, Head),
        key: Key<'_>,
        value: NewValue<'_>,
        setting: ExpirySetting,
        now: Now,
        env: &mut Env,
    ) -> bool {
        let slot = self.arena.get_mut(found.handle);
        let old = head.expiry(slot);
        if old.is_some_and(|at| at <= now.unix_ms()) {
            self.expire_untold(found, key.hash, env);
            self.create_with(key, value, setting, now, env);
            return false;
        }
        let expiry = match setting {
            ExpirySetting::Keep => old,
            ExpirySetting::Clear => None,
            ExpirySetting::At(unix_ms) => Some(unix_ms),
        };
        let stamp = env.next_stamp(record::stamp(slot), now);
        let bytes = value.bytes();
        if head.kind() == INLINE && expiry == old && head.value_len() == bytes.len() {
            head.value_part_mut(slot).copy_from_slice(bytes);
            record::put_stamp(slot, stamp);
            return true;
        }
        self.replace(found, key, value, expiry, stamp, env);
        true
    }

    #[inline(never)]
    fn create_with(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        setting: ExpirySetting,
        now: Now,
        env: &mut Env,
    ) {
        let expiry = match setting {
            ExpirySetting::At(unix_ms) => Some(unix_ms),
            ExpirySetting::Keep | ExpirySetting::Clear => None,
        };
        self.create(key, value, expiry, env.policy.first_stamp(now));
    }

    /// Puts an entry in, with its own expiry and access stamp.
    pub(super) fn put(&mut self, key: Key<'_>, entry: Entry, now: Now, env: &mut Env) {
        let value = match entry.value {
            OwnedValue::Small(ref bytes) => NewValue::Copy(bytes),
            OwnedValue::Big(value) => NewValue::Shared(value),
        };
        let stamp = entry.access & record::STAMP;
        match self.live(key, now, env) {
            Some(found) => self.replace(found, key, value, entry.expire_at, stamp, env),
            None => {
                self.create(key, value, entry.expire_at, stamp);
            }
        }
    }

    /// Adds a record for a key that is not there. Returns its handle.
    fn create(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        expiry: Option<u64>,
        stamp: u32,
    ) -> u32 {
        let long_key;
        let (flags, key_part) = if key.bytes.len() > MAX_INLINE_KEY {
            self.outside += key.bytes.len();
            long_key = self.long_keys.insert(key.bytes.into()).to_le_bytes();
            (LONG_KEY, &long_key[..])
        } else {
            (0, key.bytes)
        };
        let big;
        let fits = fits(key_part.len(), value.bytes().len(), expiry);
        let (kind, value_part) = if fits {
            (INLINE, value.bytes())
        } else {
            big = self.add_big(value.into_shared()).to_le_bytes();
            (BIG, &big[..])
        };
        let parts = Parts {
            flags: flags | kind | self.parity,
            stamp,
            expiry,
            key: key_part,
            value: value_part,
        };
        let handle = self.arena.alloc(parts.size());
        parts.write(self.arena.get_mut(handle));
        self.index.insert(key.hash, handle);
        self.change_expiry(key.hash, handle, None, expiry);
        handle
    }

    /// Gives a record another value and expiry.
    #[inline(never)]
    fn replace(
        &mut self,
        found: Found,
        key: Key<'_>,
        value: NewValue<'_>,
        expiry: Option<u64>,
        stamp: u32,
        env: &mut Env,
    ) {
        let slot = self.arena.get(found.handle);
        let head = Head::of(slot);
        let old_big = (head.kind() == BIG).then(|| number(head.value_part(slot)));
        let old_expiry = head.expiry(slot);
        let long_key;
        let (flags, key_part) = if head.has_long_key() {
            long_key = number(head.key_part(slot)).to_le_bytes();
            (LONG_KEY, &long_key[..])
        } else {
            (0, key.bytes)
        };
        if let Some(number) = old_big {
            let old = self.remove_big(number);
            env.throw(old);
        }
        self.change_expiry(key.hash, found.handle, old_expiry, expiry);
        let big;
        let fits = fits(key_part.len(), value.bytes().len(), expiry);
        let (kind, value_part) = if fits {
            (INLINE, value.bytes())
        } else {
            big = self.add_big(value.into_shared()).to_le_bytes();
            (BIG, &big[..])
        };
        self.rewrite(
            found,
            Parts {
                flags: flags | kind | self.parity,
                stamp,
                expiry,
                key: key_part,
                value: value_part,
            },
        );
    }

    /// Writes the whole record, to another slot where its size asks for it.
    /// Returns its handle.
    fn rewrite(&mut self, found: Found, parts: Parts<'_>) -> u32 {
        let size = parts.size();
        let mut handle = found.handle;
        if self.arena.get(handle).len() != classes::slot_size(size) {
            handle = self.arena.alloc(size);
            self.index.set_handle(found.position, handle);
            parts.write(self.arena.get_mut(handle));
            self.arena.free(found.handle);
        } else {
            parts.write(self.arena.get_mut(handle));
        }
        handle
    }

    fn add_big(&mut self, value: Arc<Vec<u8>>) -> u32 {
        self.outside += big_bytes(&value);
        self.bigs.insert(value)
    }

    /// The value's bytes, to be changed in place.
    #[inline]
    pub(super) fn value_mut(&mut self, handle: u32) -> &mut [u8] {
        let head = Head::of(self.arena.get(handle));
        if head.kind() == BIG {
            let number = number(head.value_part(self.arena.get(handle)));
            return self.change_big(number, |_| ());
        }
        head.value_part_mut(self.arena.get_mut(handle))
    }

    /// Changes a big value, which is copied first where somebody else still
    /// reads it, and keeps account of its size.
    fn change_big(&mut self, number: u32, change: impl FnOnce(&mut Vec<u8>)) -> &mut [u8] {
        let value = self.bigs.get_mut(number);
        self.outside -= big_bytes(value);
        change(Arc::make_mut(value));
        self.outside += big_bytes(value);
        Arc::make_mut(value).as_mut_slice()
    }

    /// Makes the value at least `min_len` long, zeroes after what was there.
    pub(super) fn grow(
        &mut self,
        key: Key<'_>,
        min_len: usize,
        now: Now,
        env: &mut Env,
    ) -> &mut [u8] {
        let handle = match self.live(key, now, env) {
            Some(found) => {
                self.touch(found.handle, now, env);
                let len = self.value(found.handle).bytes().len();
                self.extend(found, key, len.max(min_len), env)
            }
            None => {
                let value = NewValue::Own(vec![0; min_len]);
                self.create(key, value, None, env.policy.first_stamp(now))
            }
        };
        self.value_mut(handle)
    }

    /// Returns the new length.
    pub(super) fn append(&mut self, key: Key<'_>, tail: &[u8], now: Now, env: &mut Env) -> usize {
        let Some(found) = self.live(key, now, env) else {
            let stamp = env.policy.first_stamp(now);
            self.create(key, NewValue::Copy(tail), None, stamp);
            return tail.len();
        };
        self.touch(found.handle, now, env);
        let slot = self.arena.get(found.handle);
        let head = Head::of(slot);
        if head.kind() == BIG {
            let number = number(head.value_part(slot));
            return self.change_big(number, |v| v.extend_from_slice(tail)).len();
        }
        let old = head.value_len();
        let handle = self.extend(found, key, old + tail.len(), env);
        self.value_mut(handle)[old..].copy_from_slice(tail);
        old + tail.len()
    }

    /// Gives the value zeroes at its end, up to `len`. Returns the handle.
    fn extend(&mut self, found: Found, key: Key<'_>, len: usize, env: &mut Env) -> u32 {
        let slot = self.arena.get_mut(found.handle);
        let head = Head::of(slot);
        if head.kind() == BIG {
            let number = number(head.value_part(slot));
            self.change_big(number, |v| v.resize(len, 0));
            return found.handle;
        }
        if head.resize_in_place(slot, len).is_some() {
            return found.handle;
        }
        let expiry = head.expiry(slot);
        self.recompose(found, key, expiry, len, env)
    }

    /// Writes a record anew with another expiry, or with an inline value
    /// extended to `len`. Returns the handle.
    fn recompose(
        &mut self,
        found: Found,
        key: Key<'_>,
        expiry: Option<u64>,
        len: usize,
        env: &mut Env,
    ) -> u32 {
        let slot = self.arena.get(found.handle);
        let head = Head::of(slot);
        let long_key;
        let (key_flag, key_part) = if head.has_long_key() {
            long_key = number(head.key_part(slot)).to_le_bytes();
            (LONG_KEY, &long_key[..])
        } else {
            (0, key.bytes)
        };
        let stamp = record::stamp(slot);
        let mut kind = head.kind();
        let mut value = std::mem::take(&mut env.scratch);
        value.clear();
        value.extend_from_slice(head.value_part(slot));
        if kind == INLINE && !fits(key_part.len(), len, expiry) {
            let mut big = Vec::with_capacity(len);
            big.extend_from_slice(&value);
            big.resize(len, 0);
            value.clear();
            value.extend_from_slice(&self.add_big(Arc::new(big)).to_le_bytes());
            kind = BIG;
        } else if kind == INLINE {
            value.resize(len, 0);
        }
        let parts = Parts {
            flags: key_flag | kind | self.parity,
            stamp,
            expiry,
            key: key_part,
            value: &value,
        };
        let handle = self.rewrite(found, parts);
        env.scratch = value;
        handle
    }

    pub(super) fn set_expiry(
        &mut self,
        found: Found,
        key: Key<'_>,
        expiry: Option<u64>,
        env: &mut Env,
    ) {
        let slot = self.arena.get_mut(found.handle);
        let head = Head::of(slot);
        let old = head.expiry(slot);
        self.change_expiry(key.hash, found.handle, old, expiry);
        match (old, expiry) {
            (None, None) => {}
            (Some(_), Some(at)) => head.put_expiry(self.arena.get_mut(found.handle), at),
            _ => {
                self.recompose(found, key, expiry, head.value_len(), env);
            }
        }
    }

    #[inline]
    pub(super) fn touch(&mut self, handle: u32, now: Now, env: &mut Env) {
        let slot = self.arena.get_mut(handle);
        let stamp = env.next_stamp(record::stamp(slot), now);
        record::put_stamp(slot, stamp);
    }
}

fn fits(key_part: usize, value: usize, expiry: Option<u64>) -> bool {
    record::size(key_part, value, expiry.is_some()) <= MAX_RECORD
}
