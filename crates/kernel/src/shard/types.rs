//! What goes into a shard and comes out of it.

use std::sync::Arc;

/// A key with its hash, made by `Shard::key`.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    pub bytes: &'a [u8],
    pub hash: u32,
}

/// A value as it lies in the store.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Small(&'a [u8]),
    /// To be sent or kept by reference rather than copied.
    Big(&'a Arc<Vec<u8>>),
}

impl<'a> Value<'a> {
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Value::Small(bytes) => bytes,
            Value::Big(value) => value,
        }
    }
}

/// A value on its way in.
#[derive(Debug)]
pub enum NewValue<'a> {
    Copy(&'a [u8]),
    /// Kept without a copy where it is large.
    Own(Vec<u8>),
    Shared(Arc<Vec<u8>>),
}

impl NewValue<'_> {
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            NewValue::Copy(bytes) => bytes,
            NewValue::Own(bytes) => bytes,
            NewValue::Shared(bytes) => bytes,
        }
    }

    pub(super) fn into_shared(self) -> Arc<Vec<u8>> {
        match self {
            NewValue::Copy(bytes) => Arc::new(bytes.to_vec()),
            NewValue::Own(mut bytes) => {
                if bytes.capacity() - bytes.len() > bytes.len() / 8 {
                    bytes.shrink_to_fit();
                }
                Arc::new(bytes)
            }
            NewValue::Shared(value) => value,
        }
    }
}

/// What becomes of a key's expiry when its value is set. A new key has none
/// unless `At` gives one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpirySetting {
    Keep,
    Clear,
    /// Unix milliseconds. From that time on the key is gone.
    At(u64),
}

/// A value outside of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedValue {
    Small(Box<[u8]>),
    Big(Arc<Vec<u8>>),
}

impl OwnedValue {
    pub fn bytes(&self) -> &[u8] {
        match self {
            OwnedValue::Small(bytes) => bytes,
            OwnedValue::Big(value) => value,
        }
    }
}

/// Everything about a key but its name: for renaming, copying and moving it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub value: OwnedValue,
    /// Unix milliseconds.
    pub expire_at: Option<u64>,
    /// The access stamp, 24 bits; see [`super::Policy`].
    pub access: u32,
}

/// One key as a walk sees it.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    pub key: &'a [u8],
    pub value: Value<'a>,
    /// Unix milliseconds.
    pub expire_at: Option<u64>,
    /// The access stamp, 24 bits; see [`super::Policy`].
    pub access: u32,
}

/// A handle that most probably is the record looked for; between the two
/// steps that warm the cache.
#[derive(Clone, Copy, Debug)]
pub struct Warm(pub(super) u32);

/// Bytes by what they are for. The sum of all but `record_bytes`, which are
/// part of `arena_bytes`, is what the data takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub keys: usize,
    pub index_bytes: usize,
    /// Allocated for records.
    pub arena_bytes: usize,
    /// In use by records.
    pub record_bytes: usize,
    /// Values and keys too large for a record. A value that several keys share
    /// counts for each of them.
    pub big_bytes: usize,
    pub expiry_bytes: usize,
}

impl Memory {
    pub fn total(&self) -> usize {
        self.index_bytes + self.arena_bytes + self.big_bytes + self.expiry_bytes
    }

    pub(super) fn add(&mut self, other: Memory) {
        self.keys += other.keys;
        self.index_bytes += other.index_bytes;
        self.arena_bytes += other.arena_bytes;
        self.record_bytes += other.record_bytes;
        self.big_bytes += other.big_bytes;
        self.expiry_bytes += other.expiry_bytes;
    }
}

/// What a shard counts. Never goes down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Keys removed because their time had come.
    pub expired: u64,
    /// Changes of data, expiry included; what Redis calls dirty.
    pub changes: u64,
    /// Records moved by compaction.
    pub compacted: u64,
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
}
