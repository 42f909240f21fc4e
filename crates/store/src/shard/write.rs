//! Writing strings to a database, whole or in parts.

use super::db::Db;
use super::env::Env;
use super::placed::New;
use super::record::{self, Head, INLINE};
use super::records::{Found, NewRecord};
use super::types::{Entry, ExpirySetting, Key, NewValue, OwnedValue};
use rufous_base::Now;
use rufous_datatype::object::Object;

impl Db {
    /// Returns whether the key existed before.
    #[inline]
    pub(super) fn set(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        setting: ExpirySetting,
        now: Now,
        env: &mut Env,
    ) -> bool {
        let probe = self.records.probe(key.hash);
        if probe.handle != 0
            && let Some(head) = self.records.matching(probe.handle, key.bytes)
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
        if let Some(found) = self.records.find_further(key) {
            let head = Head::of(self.records.slot(found.handle));
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
        let slot = self.records.slot_mut(found.handle);
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
        let new = NewRecord {
            value: New::String(value),
            expiry,
            stamp,
        };
        self.replace(found, key, new, &mut env.garbage);
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
        self.create_string(key, value, expiry, env.policy.first_stamp(now));
    }

    fn create_string(
        &mut self,
        key: Key<'_>,
        value: NewValue<'_>,
        expiry: Option<u64>,
        stamp: u32,
    ) -> u32 {
        let new = NewRecord {
            value: New::String(value),
            expiry,
            stamp,
        };
        self.create(key, new)
    }

    /// Stores an entry with its own expiry and access stamp.
    pub(super) fn put(&mut self, key: Key<'_>, entry: Entry, now: Now, env: &mut Env) {
        let new = NewRecord {
            value: match entry.value {
                OwnedValue::Small(ref bytes) => New::String(NewValue::Copy(bytes)),
                OwnedValue::Big(value) => New::String(NewValue::Shared(value)),
                OwnedValue::Object(object) => New::Object(object),
            },
            expiry: entry.expire_at,
            stamp: entry.access & record::STAMP,
        };
        match self.live(key, now, env) {
            Some(found) => self.replace(found, key, new, &mut env.garbage),
            None => {
                self.create(key, new);
            }
        }
    }

    /// Creates a record for an object under a missing key.
    pub(super) fn create_object(&mut self, key: Key<'_>, object: Object, now: Now, env: &Env) {
        let new = NewRecord {
            value: New::Object(object),
            expiry: None,
            stamp: env.policy.first_stamp(now),
        };
        self.create(key, new);
    }

    /// Replaces a record's value by an object; expiry and access stamp stay.
    pub(super) fn replace_object(
        &mut self,
        found: Found,
        key: Key<'_>,
        object: Object,
        env: &mut Env,
    ) {
        let new = NewRecord {
            value: New::Object(object),
            expiry: self.records.expiry(found.handle),
            stamp: self.records.stamp(found.handle),
        };
        self.replace(found, key, new, &mut env.garbage);
    }

    /// Extends the value to at least `min_len`, with zeros after the existing bytes.
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
                let found = self.as_string(found, key, env);
                let len = self.records.string_len(found.handle);
                self.records.extend(found, key, len.max(min_len))
            }
            None => {
                let value = NewValue::Own(vec![0; min_len]);
                self.create_string(key, value, None, env.policy.first_stamp(now))
            }
        };
        self.records.string_mut(handle)
    }

    /// A replicated string becomes a plain one before its bytes are changed.
    #[inline]
    fn as_string(&mut self, found: Found, key: Key<'_>, env: &mut Env) -> Found {
        if self.records.is_string(found.handle) {
            return found;
        }
        self.become_plain(found, key, env)
    }

    #[cold]
    fn become_plain(&mut self, found: Found, key: Key<'_>, env: &mut Env) -> Found {
        let item = self.records.item(found.handle);
        let text = item
            .value
            .string()
            .map_or(Vec::new(), |value| value.bytes().to_vec());
        let new = NewRecord {
            value: New::String(NewValue::Own(text)),
            expiry: item.expire_at,
            stamp: item.access,
        };
        self.replace(found, key, new, &mut env.garbage);
        self.records.find(key).unwrap_or(found)
    }

    /// Returns the new length.
    pub(super) fn append(&mut self, key: Key<'_>, tail: &[u8], now: Now, env: &mut Env) -> usize {
        let Some(found) = self.live(key, now, env) else {
            let stamp = env.policy.first_stamp(now);
            self.create_string(key, NewValue::Copy(tail), None, stamp);
            return tail.len();
        };
        self.touch(found.handle, now, env);
        let found = self.as_string(found, key, env);
        self.records.append(found, key, tail)
    }
}
