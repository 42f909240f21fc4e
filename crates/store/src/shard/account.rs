//! The memory account of a database, and the check of its invariants.

use super::classes;
use super::db::{Db, big_bytes, packed};
use super::record::{self, Head, PACKED};
use super::types::{Any, Memory, Value};
use rufous_datatype::object::Object;
use std::sync::Arc;

impl Db {
    pub(super) fn memory(&self) -> Memory {
        Memory {
            keys: self.len(),
            index_bytes: self.index.bytes(),
            arena_bytes: self.arena.bytes(),
            record_bytes: self.arena.used_bytes(),
            big_bytes: self.outside_bytes(),
            expiry_bytes: self.expiry.bytes(),
            graves: self.graves.len(),
            grave_bytes: self.graves.bytes(),
            held_bytes: 0,
        }
    }

    /// The charge for the memory limit; see `Shard::charged`.
    #[inline]
    pub(super) fn charged(&self) -> usize {
        if self.len() == 0 {
            return self.graves.bytes();
        }
        let outside = self.outside_bytes() + self.graves.bytes();
        self.index.bytes() + self.arena.used_bytes() + outside + self.expiry.bytes()
    }

    fn outside_bytes(&self) -> usize {
        self.outside + self.bigs.bytes() + self.long_keys.bytes() + self.objects.bytes()
    }

    /// Memory of one record: its slot, its word of the index, its entry in the order of expiry, and what it keeps
    /// outside.
    pub(super) fn memory_of(&self, handle: u32) -> usize {
        let slot = self.arena.get(handle);
        let head = Head::of(slot);
        let mut bytes = slot.len() + 8;
        if head.has_expiry() {
            bytes += 12;
        }
        if head.has_long_key() {
            bytes += self.key_of(head, slot).len() + size_of::<Option<Box<[u8]>>>();
        }
        bytes
            + match self.value(handle) {
                Any::String(Value::Big(value)) => {
                    big_bytes(value) + size_of::<Option<Arc<Vec<u8>>>>()
                }
                Any::Object(object) => object.heap_bytes() + size_of::<Option<Object>>(),
                Any::String(Value::Small(_)) | Any::Packed(..) => 0,
            }
    }

    /// Asserts every invariant of the database and of its parts.
    pub(super) fn check(&self, hash_of: impl Fn(&[u8]) -> u32) {
        self.index.check();
        self.arena.check();
        self.expiry.check();
        self.graves.check();
        assert!(self.graves.walk.is_some() || self.graves.all_have(self.parity));
        assert_eq!(self.index.len(), self.arena.records());
        let (mut big, mut long, mut objects) = (0, 0, 0);
        let values = self.bigs.iter().map(big_bytes);
        let keys = self.long_keys.iter().map(|key| key.len());
        let objects_bytes = self.objects.iter().map(Object::heap_bytes);
        let all = values.chain(keys).chain(objects_bytes);
        assert_eq!(all.sum::<usize>(), self.outside);
        let (mut expiring, mut sum) = (0, 0u128);
        let mut handles: Vec<u32> = self.arena.handles().collect();
        let mut pairs = Vec::new();
        for (hash, handle) in self.index.entries() {
            let slot = self.arena.get(handle);
            assert!(record::is_record(slot), "the index names a free slot");
            let is_ahead = self.walk.is_some_and(|cursor| hash >= cursor);
            assert!(is_ahead || record::parity(slot) == self.parity);
            let head = Head::of(slot);
            let key = self.key_of(head, slot);
            assert_eq!(hash_of(key), hash);
            assert!(self.graves.tag_of(key).is_none(), "a record and a grave");
            assert_eq!(head.has_long_key(), key.len() > record::MAX_INLINE_KEY);
            if head.has_long_key() {
                long += 1;
            }
            match self.value(handle) {
                Any::String(Value::Big(_)) => big += 1,
                Any::Object(object) => {
                    objects += 1;
                    assert!(!object.is_empty(), "an empty collection is removed");
                }
                Any::Packed(tag, bytes) => assert!(tag.packed_len(bytes) > 0, "{tag:?} is empty"),
                Any::String(Value::Small(_)) => {}
            }
            let parts = (head.key_part(slot).len(), head.value_len());
            let size = record::size(parts.0, parts.1, head.has_expiry());
            let keeps_room = head.kind() == PACKED && packed(head.value_part(slot)).0.keeps_room();
            let suits = classes::suits(slot.len(), size, keeps_room);
            assert!(suits, "{size} bytes in a slot of {}", slot.len());
            if let Some(at) = head.expiry(slot) {
                expiring += 1;
                sum += u128::from(at);
                pairs.push((at, hash));
                assert!(self.expiry.contains(at, hash));
            }
        }
        let mut named: Vec<u32> = self.index.entries().map(|e| e.1).collect();
        handles.sort_unstable();
        named.sort_unstable();
        assert_eq!(handles, named);
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), self.expiry.len());
        for (number, object) in self.objects.numbered() {
            let unswept = self.unswept.contains(&number);
            assert!(unswept || !object.clone().sweep(&mut 0), "forgotten work");
        }
        let slabs = (self.bigs.len(), self.long_keys.len(), self.objects.len());
        assert_eq!((big, long, objects), slabs);
        assert_eq!((expiring, sum), (self.expiring, self.expiry_sum));
        let elsewhere = (self.elsewhere.keys, self.elsewhere.expiring);
        assert_eq!(self.count_elsewhere(), elsewhere);
        assert!(self.is_counted_by_slot());
    }
}
