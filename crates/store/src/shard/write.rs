//! Writing to a database: new values, changed ones, and changed expiries. A record is changed in place if its slot
//! has the right size, and otherwise rewritten in another slot.

use super::Env;
use super::classes;
use super::db::{Db, Found, big_bytes, number, outside};
use super::placed::{New, Placed, fits};
use super::record::{self, BIG, Head, INLINE, LONG_KEY, MAX_INLINE_KEY, OBJECT, PACKED, Parts};
use super::types::{Entry, ExpirySetting, Key, NewValue, OwnedValue, fits_packed};
use rufous_base::Now;
use rufous_datatype::object::{Object, Tag};
use std::sync::Arc;

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
        self.replace(found, key, New::String(value), expiry, stamp, env);
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
        let stamp = env.policy.first_stamp(now);
        self.create(key, New::String(value), expiry, stamp);
    }

    /// Stores an entry with its own expiry and access stamp.
    pub(super) fn put(&mut self, key: Key<'_>, entry: Entry, now: Now, env: &mut Env) {
        let value = match entry.value {
            OwnedValue::Small(ref bytes) => New::String(NewValue::Copy(bytes)),
            OwnedValue::Big(value) => New::String(NewValue::Shared(value)),
            OwnedValue::Object(object) => New::Object(object),
        };
        let stamp = entry.access & record::STAMP;
        match self.live(key, now, env) {
            Some(found) => self.replace(found, key, value, entry.expire_at, stamp, env),
            None => {
                self.create(key, value, entry.expire_at, stamp);
            }
        }
    }

    /// Creates a record for an object under a missing key.
    pub(super) fn create_object(&mut self, key: Key<'_>, object: Object, now: Now, env: &Env) {
        let stamp = env.policy.first_stamp(now);
        self.create(key, New::Object(object), None, stamp);
    }

    /// Replaces a record's value by an object; expiry and access stamp stay.
    pub(super) fn replace_object(
        &mut self,
        found: Found,
        key: Key<'_>,
        object: Object,
        env: &mut Env,
    ) {
        let slot = self.arena.get(found.handle);
        let (expiry, stamp) = (Head::of(slot).expiry(slot), record::stamp(slot));
        self.replace(found, key, New::Object(object), expiry, stamp, env);
    }

    /// Replaces the bytes of a packed record, in place if they fit.
    #[inline]
    pub(super) fn replace_packed(&mut self, found: Found, key: Key<'_>, tag: Tag, packed: &[u8]) {
        let slot = self.arena.get_mut(found.handle);
        let head = Head::of(slot);
        debug_assert_eq!(head.kind(), PACKED);
        let size = head.size_with(packed.len() + 1);
        if head.stays_with(packed.len() + 1) && classes::suits(slot.len(), size, tag.keeps_room()) {
            head.put_value_len(slot, packed.len() + 1);
            let start = head.value_at() + 1;
            slot[start..start + packed.len()].copy_from_slice(packed);
            return;
        }
        let (expiry, stamp) = (head.expiry(slot), record::stamp(slot));
        let long_key;
        let (flags, key_part) = if head.has_long_key() {
            long_key = number(head.key_part(slot)).to_le_bytes();
            (LONG_KEY, &long_key[..])
        } else {
            (0, key.bytes)
        };
        let parts = Parts {
            flags: flags | PACKED | self.parity,
            stamp,
            expiry,
            key: key_part,
            tag: Some(tag as u8),
            value: packed,
        };
        let size = match tag.keeps_room() {
            true => classes::roomy(parts.size()),
            false => parts.size(),
        };
        self.rewrite_in(size, found, parts);
    }

    /// Adds a record for a missing key. Returns its handle.
    fn create(&mut self, key: Key<'_>, value: New<'_>, expiry: Option<u64>, stamp: u32) -> u32 {
        let long_key;
        let (flags, key_part) = if key.bytes.len() > MAX_INLINE_KEY {
            self.outside += key.bytes.len();
            long_key = self.long_keys.insert(key.bytes.into()).to_le_bytes();
            (LONG_KEY, &long_key[..])
        } else {
            (0, key.bytes)
        };
        let value = self.put_outside(key_part.len(), value, expiry);
        let (kind, tag, value_part) = value.parts();
        let parts = Parts {
            flags: flags | kind | self.parity,
            stamp,
            expiry,
            key: key_part,
            tag,
            value: value_part,
        };
        let handle = self.arena.alloc(parts.size());
        parts.write(self.arena.get_mut(handle));
        self.index.insert(key.hash, handle);
        self.elsewhere.add(key.bytes);
        self.count_in_slot(key.bytes);
        if self.graves.len() > 0 {
            self.graves.take(key.bytes);
        }
        self.change_expiry(key.hash, handle, None, expiry);
        handle
    }

    /// Replaces a record's value and expiry.
    #[inline(never)]
    fn replace(
        &mut self,
        found: Found,
        key: Key<'_>,
        value: New<'_>,
        expiry: Option<u64>,
        stamp: u32,
        env: &mut Env,
    ) {
        let slot = self.arena.get(found.handle);
        let head = Head::of(slot);
        let old_outside = outside(head, slot);
        let old_expiry = head.expiry(slot);
        let long_key;
        let (flags, key_part) = if head.has_long_key() {
            long_key = number(head.key_part(slot)).to_le_bytes();
            (LONG_KEY, &long_key[..])
        } else {
            (0, key.bytes)
        };
        if let Some((kind, number)) = old_outside {
            let old = self.remove_outside(kind, number);
            env.garbage.throw(old);
        }
        self.change_expiry(key.hash, found.handle, old_expiry, expiry);
        let value = self.put_outside(key_part.len(), value, expiry);
        let (kind, tag, value_part) = value.parts();
        self.rewrite(
            found,
            Parts {
                flags: flags | kind | self.parity,
                stamp,
                expiry,
                key: key_part,
                tag,
                value: value_part,
            },
        );
    }

    /// Puts a value that does not fit a record into its slab.
    #[inline]
    fn put_outside<'a>(&mut self, key: usize, value: New<'a>, expiry: Option<u64>) -> Placed<'a> {
        match value {
            New::String(value) if fits(key, value.bytes().len(), expiry) => Placed::Inline(value),
            New::String(value) => {
                let number = self.add_big(value.into_shared());
                Placed::Outside(BIG, number.to_le_bytes())
            }
            New::Object(object) => {
                let tag = object.tag() as u8;
                if object.packed().is_some_and(fits_packed) {
                    return Placed::Packed(tag, object.into_buffer().unwrap_or_default());
                }
                self.outside += object.heap_bytes();
                let number = self.objects.insert(object);
                self.note_unswept(number);
                Placed::Outside(OBJECT, number.to_le_bytes())
            }
        }
    }

    /// Rewrites the whole record, in another slot if its size requires that. Returns its handle.
    fn rewrite(&mut self, found: Found, parts: Parts<'_>) -> u32 {
        self.rewrite_in(parts.size(), found, parts)
    }

    /// Rewrites the whole record in a slot of `size`.
    fn rewrite_in(&mut self, size: usize, found: Found, parts: Parts<'_>) -> u32 {
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

    /// Length of a string. The caller has checked the type.
    pub(super) fn string_len(&self, handle: u32) -> usize {
        let string = self.value(handle).string();
        string.map_or(0, |value| value.bytes().len())
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

    /// Changes a big value and updates its accounted size. The value is copied first if another reader still holds
    /// it.
    fn change_big(&mut self, number: u32, change: impl FnOnce(&mut Vec<u8>)) -> &mut [u8] {
        let value = self.bigs.get_mut(number);
        self.outside -= big_bytes(value);
        change(Arc::make_mut(value));
        self.outside += big_bytes(value);
        Arc::make_mut(value).as_mut_slice()
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
                let len = self.string_len(found.handle);
                self.extend(found, key, len.max(min_len), env)
            }
            None => {
                let value = NewValue::Own(vec![0; min_len]);
                self.create(key, New::String(value), None, env.policy.first_stamp(now))
            }
        };
        self.value_mut(handle)
    }

    /// A replicated string becomes a plain one before its bytes are changed.
    #[inline]
    fn as_string(&mut self, found: Found, key: Key<'_>, env: &mut Env) -> Found {
        match Head::of(self.arena.get(found.handle)).kind() {
            INLINE | BIG => found,
            _ => self.flatten(found, key, env),
        }
    }

    #[cold]
    fn flatten(&mut self, found: Found, key: Key<'_>, env: &mut Env) -> Found {
        let item = self.item(found.handle);
        let text = item
            .value
            .string()
            .map_or(Vec::new(), |value| value.bytes().to_vec());
        let (value, expiry, stamp) = (NewValue::Own(text), item.expire_at, item.access);
        self.replace(found, key, New::String(value), expiry, stamp, env);
        self.find(key).unwrap_or(found)
    }

    /// Returns the new length.
    pub(super) fn append(&mut self, key: Key<'_>, tail: &[u8], now: Now, env: &mut Env) -> usize {
        let Some(found) = self.live(key, now, env) else {
            let stamp = env.policy.first_stamp(now);
            self.create(key, New::String(NewValue::Copy(tail)), None, stamp);
            return tail.len();
        };
        self.touch(found.handle, now, env);
        let found = self.as_string(found, key, env);
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

    /// Extends the value with zeros to `len`. Returns the handle.
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

    /// Rewrites a record with another expiry, or with an inline value extended to `len`. Returns the handle.
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
            tag: None,
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
