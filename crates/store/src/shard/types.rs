//! Arguments and results of a shard's functions.

use rufous_datatype::algebra::{Algebra, DataType, MAX_PACKED, Tuning};
use rufous_datatype::object::{Object, Registered, Tag};
use rufous_datatype::replicated::register::Register;
use rufous_datatype::replicated::siblings::{self, Pick, Siblings};
use rufous_datatype::replicated::sketch::Sketch;
use rufous_lattice::Stamp;
use std::sync::Arc;

/// A key in a numbered database.
pub type KeyName = (u8, Box<[u8]>);

/// A key with its hash, made by `Shard::key`.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    pub bytes: &'a [u8],
    pub hash: u32,
}

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// A value of any type, as it is stored.
#[derive(Clone, Copy, Debug)]
pub enum Any<'a> {
    String(Value<'a>),
    Packed(Tag, &'a [u8]),
    Object(&'a Object),
}

impl<'a> Any<'a> {
    pub(super) fn of_object(object: &'a Object) -> Self {
        match object.packed() {
            Some(bytes) => Any::Packed(object.tag(), bytes),
            None => Any::Object(object),
        }
    }

    pub fn string(self) -> Result<Value<'a>, WrongType> {
        match self {
            Any::String(value) => Ok(value),
            Any::Packed(..) | Any::Object(_) => match self.shown() {
                Any::String(value) => Ok(value),
                _ => Err(WrongType),
            },
        }
    }

    /// The value, if it is of type `T`.
    #[inline]
    pub fn of<T: Registered>(self) -> Result<T::View<'a>, WrongType> {
        match self {
            Any::Packed(tag, bytes) if tag == T::TAG => Ok(T::packed_view(bytes)),
            Any::Packed(tag, bytes) => match T::REPLICATE {
                Some(link) if link.tag == tag => Ok((link.packed_inside)(bytes)),
                _ => Err(WrongType),
            },
            Any::Object(object) => match T::of(object) {
                Some(state) => Ok(T::view(state)),
                None => inside::<T>(object).ok_or(WrongType),
            },
            _ => Err(WrongType),
        }
    }

    /// `None` for strings.
    pub fn tag(self) -> Option<Tag> {
        match self {
            Any::String(_) => None,
            Any::Packed(tag, _) => Some(tag),
            Any::Object(object) => Some(object.tag()),
        }
    }

    /// See `Object::newest`.
    pub(super) fn newest(self) -> Stamp {
        match self {
            Any::String(_) => Stamp::ZERO,
            Any::Packed(Tag::Register, bytes) => Register::packed_view(bytes).newest(),
            Any::Packed(tag, bytes) => tag.unpack(bytes.to_vec()).newest(),
            Any::Object(object) => object.newest(),
        }
    }

    /// The value as commands see it, with `pick` choosing between concurrent values.
    #[inline]
    pub(super) fn shown_by(self, pick: impl FnOnce() -> Pick) -> Self {
        let view = match self {
            Any::Packed(Tag::Siblings, bytes) => bytes,
            Any::Object(Object::Siblings(state)) => Siblings::view(state),
            _ => return self.shown(),
        };
        Any::String(Value::Small(
            siblings::shown(view, pick()).unwrap_or_default(),
        ))
    }

    /// The value as commands see it: a replicated string is a string.
    #[inline]
    pub(super) fn shown(self) -> Self {
        let (shared, text) = match self {
            Any::Packed(Tag::Register, bytes) => (None, Register::packed_view(bytes).text()),
            Any::Object(Object::Register(state)) => {
                let view = Register::view(state);
                (view.shared_text(), view.text())
            }
            Any::Packed(Tag::Siblings, bytes) => (None, siblings::shown(bytes, Pick::Newest)),
            Any::Object(Object::Siblings(state)) => {
                let newest = siblings::shown(Siblings::view(state), Pick::Newest);
                (None, newest)
            }
            Any::Packed(Tag::Sketch, bytes) => (None, Sketch::packed_view(bytes).text()),
            Any::Object(Object::Sketch(state)) => {
                let view = Sketch::view(state);
                (view.shared_text(), view.text())
            }
            _ => return self,
        };
        match shared {
            Some(text) => Any::String(Value::Big(text)),
            // A value that shows nothing has no record.
            None => Any::String(Value::Small(text.unwrap_or_default())),
        }
    }

    /// The reply of `TYPE`.
    pub fn type_name(self) -> &'static str {
        self.tag().map_or("string", Tag::redis_name)
    }

    /// Number of elements; 1 for a string.
    pub fn len(self) -> usize {
        match self {
            Any::String(_) => 1,
            Any::Packed(tag, bytes) => tag.packed_len(bytes),
            Any::Object(object) => object.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// See `DataType::chunk`; appends nothing for a string.
    pub fn chunk(self, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        match self {
            Any::String(_) => None,
            Any::Packed(tag, bytes) => tag.packed_chunk(bytes, at, budget, out),
            Any::Object(object) => object.chunk(at, budget, out),
        }
    }

    /// The reply of `OBJECT ENCODING`; `None` for strings.
    pub fn encoding(self, tuning: &Tuning) -> Option<&'static str> {
        match self {
            Any::String(_) => None,
            Any::Packed(tag, bytes) => Some(tag.packed_encoding(bytes, tuning)),
            Any::Object(object) => Some(object.encoding(tuning)),
        }
    }

    /// A copy of the value; large data is shared.
    pub fn to_owned(self) -> OwnedValue {
        match self {
            Any::String(Value::Small(bytes)) => OwnedValue::Small(bytes.into()),
            Any::String(Value::Big(value)) => OwnedValue::Big(Arc::clone(value)),
            Any::Packed(tag, bytes) => OwnedValue::Object(tag.unpack(bytes.to_vec())),
            Any::Object(object) => OwnedValue::Object(object.clone()),
        }
    }
}

/// The plain value of type `T` that a replicated value contains.
pub(super) fn inside<T: Registered>(object: &Object) -> Option<T::View<'_>> {
    T::REPLICATE.and_then(|link| (link.inside)(object))
}

/// A string as it is stored.
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

/// A value to be stored.
#[derive(Debug)]
pub enum NewValue<'a> {
    Copy(&'a [u8]),
    /// Stored without a copy if it is large.
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

/// The effect on a key's expiry when its value is set. A new key has none unless `At` gives one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpirySetting {
    Keep,
    Clear,
    /// Unix milliseconds. From that time on the key is absent.
    At(u64),
}

/// A value outside of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedValue {
    Small(Box<[u8]>),
    Big(Arc<Vec<u8>>),
    Object(Object),
}

impl OwnedValue {
    /// Whether the value is of a replicated type.
    pub fn is_replicated(&self) -> bool {
        matches!(self, OwnedValue::Object(object) if object.is_replicated())
    }

    pub fn any(&self) -> Any<'_> {
        match self {
            OwnedValue::Small(bytes) => Any::String(Value::Small(bytes)),
            OwnedValue::Big(value) => Any::String(Value::Big(value)),
            OwnedValue::Object(object) => Any::of_object(object),
        }
    }
}

/// Whether packed bytes may be stored in a record.
pub(super) fn fits_packed(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_PACKED
}

/// A key's value and metadata without its name: for renaming, copying and moving it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub value: OwnedValue,
    /// Unix milliseconds.
    pub expire_at: Option<u64>,
    /// The access stamp, 24 bits; see [`super::Policy`].
    pub access: u32,
}

impl Entry {
    /// Whether there is anything to read: a deleted value may have replicated state.
    pub fn shows(&self) -> bool {
        match &self.value {
            OwnedValue::Object(object) => !object.is_hidden(),
            _ => true,
        }
    }
}

/// One key as a walk visits it.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    pub key: &'a [u8],
    pub value: Any<'a>,
    /// Unix milliseconds.
    pub expire_at: Option<u64>,
    /// The access stamp, 24 bits; see [`super::Policy`].
    pub access: u32,
}

/// A handle that most probably belongs to the record looked for; passed between the two steps that warm the cache.
#[derive(Clone, Copy, Debug)]
pub struct Warm(pub(super) u32);

/// Memory by use. The sum of all but `record_bytes`, which are part of `arena_bytes`, is the memory of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub keys: usize,
    pub index_bytes: usize,
    /// Allocated for records.
    pub arena_bytes: usize,
    /// In use by records.
    pub record_bytes: usize,
    /// Values and keys too large for a record, and objects. A value shared by several keys counts for each of them.
    pub big_bytes: usize,
    pub expiry_bytes: usize,
    /// Replicated values that show nothing, until all replicas have received that.
    pub graves: usize,
    pub grave_bytes: usize,
    /// What a startup holds back until it has read all files.
    pub held_bytes: usize,
}

impl Memory {
    pub fn total(&self) -> usize {
        let values = self.index_bytes + self.arena_bytes + self.big_bytes + self.expiry_bytes;
        values + self.grave_bytes + self.held_bytes
    }

    pub fn add(&mut self, other: Memory) {
        self.keys += other.keys;
        self.index_bytes += other.index_bytes;
        self.arena_bytes += other.arena_bytes;
        self.record_bytes += other.record_bytes;
        self.big_bytes += other.big_bytes;
        self.expiry_bytes += other.expiry_bytes;
        self.graves += other.graves;
        self.grave_bytes += other.grave_bytes;
        self.held_bytes += other.held_bytes;
    }
}

/// A shard's counters. They never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Expired keys that were removed.
    pub expired: u64,
    /// Changes of data, expiry included; Redis calls this "dirty".
    pub changes: u64,
    /// Records moved by compaction.
    pub compacted: u64,
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Writes of strings with causal order that became siblings.
    pub concurrent_writes: u64,
    /// Values of replicated keys that were shown and have made way for one of another type.
    pub types_lost: u64,
}
