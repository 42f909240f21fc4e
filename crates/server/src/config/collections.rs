//! Up to which size collections are kept packed: Redis's settings, by their
//! names of today and those from before Redis 7.

use super::Config;
use super::params::Param;
use super::values::integer;
use rufous_datatype::algebra::{MAX_PACKED, Packing, Tuning};

/// How collections are shaped, as it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collections {
    pub hash: Packing,
    pub set: Packing,
    pub sorted_set: Packing,
    /// As Redis has it: so many elements, or for -1 to -5 a size of nodes.
    pub list_max_listpack_size: i64,
    /// Without effect: lists are not compressed, whatever a program asks for.
    pub list_compress_depth: i64,
    pub set_max_intset_entries: usize,
    pub hll_sparse_max_bytes: usize,
}

impl Default for Collections {
    fn default() -> Self {
        let tuning = Tuning::default();
        Self {
            hash: tuning.hash,
            set: tuning.set,
            sorted_set: tuning.sorted_set,
            list_max_listpack_size: -2,
            list_compress_depth: 0,
            set_max_intset_entries: tuning.intset_entries,
            hll_sparse_max_bytes: tuning.hll_sparse_max_bytes,
        }
    }
}

impl Collections {
    /// As the store takes it. (Its seed is the store's own.)
    pub fn tuning(&self) -> Tuning {
        let all = Tuning::default();
        let entries = match self.list_max_listpack_size {
            count @ 1.. => count as usize,
            _ => all.list.entries,
        };
        Tuning {
            hash: self.hash,
            set: self.set,
            sorted_set: self.sorted_set,
            intset_entries: self.set_max_intset_entries,
            hll_sparse_max_bytes: self.hll_sparse_max_bytes,
            list: Packing {
                entries,
                bytes: MAX_PACKED,
            },
            ..all
        }
    }
}

macro_rules! packing {
    ($field:ident, $part:ident, $name:literal, $what:literal) => {
        Param {
            name: $name,
            get: |config| config.collections.$field.$part.to_string(),
            set: Some(|config, value| {
                config.collections.$field.$part = integer(value, 0..=i64::MAX)? as usize;
                Ok(())
            }),
            help: $what,
        }
    };
}

const ENTRIES: &str = "Maximum number of elements of a packed collection, which has at most 3,500 bytes in \
    any case.";

macro_rules! entries {
    ($field:ident, $name:literal) => {
        Param {
            help: ENTRIES,
            ..packing!($field, entries, $name, "")
        }
    };
}

macro_rules! value {
    ($field:ident, $name:literal) => {
        packing!(
            $field,
            bytes,
            $name,
            "Maximum size of an element of a packed collection, which has at most 3,500 bytes in any case."
        )
    };
}

pub(super) const HASH_ENTRIES: Param = entries!(hash, "hash-max-listpack-entries");
pub(super) const HASH_VALUE: Param = value!(hash, "hash-max-listpack-value");
pub(super) const HASH_ENTRIES_OLD: Param = entries!(hash, "hash-max-ziplist-entries");
pub(super) const HASH_VALUE_OLD: Param = value!(hash, "hash-max-ziplist-value");
pub(super) const SET_ENTRIES: Param = entries!(set, "set-max-listpack-entries");
pub(super) const SET_VALUE: Param = value!(set, "set-max-listpack-value");
pub(super) const ZSET_ENTRIES: Param = entries!(sorted_set, "zset-max-listpack-entries");
pub(super) const ZSET_VALUE: Param = value!(sorted_set, "zset-max-listpack-value");
pub(super) const ZSET_ENTRIES_OLD: Param = entries!(sorted_set, "zset-max-ziplist-entries");
pub(super) const ZSET_VALUE_OLD: Param = value!(sorted_set, "zset-max-ziplist-value");

pub(super) const HLL_SPARSE: Param = Param {
    name: "hll-sparse-max-bytes",
    get: |config| config.collections.hll_sparse_max_bytes.to_string(),
    set: Some(|config, value| {
        config.collections.hll_sparse_max_bytes = integer(value, 0..=i64::MAX)? as usize;
        Ok(())
    }),
    help: "Maximum size of a sparse HyperLogLog; a larger one becomes dense.",
};

pub(super) const LIST_COMPRESS: Param = Param {
    name: "list-compress-depth",
    get: |config| config.collections.list_compress_depth.to_string(),
    set: Some(|config, value| {
        config.collections.list_compress_depth = integer(value, 0..=i64::from(i32::MAX))?;
        Ok(())
    }),
    help: "No effect: lists are not compressed. Accepted for compatibility.",
};

const fn list_size(name: &'static str) -> Param {
    Param {
        name,
        get: |config| config.collections.list_max_listpack_size.to_string(),
        set: Some(|config, value| {
            let size = integer(value, i64::from(i32::MIN)..=i64::from(i32::MAX))?;
            config.collections.list_max_listpack_size = size;
            Ok(())
        }),
        help: "Maximum number of elements of a packed list; negative: as many as fit.",
    }
}

pub(super) const LIST_SIZE: Param = list_size("list-max-listpack-size");
pub(super) const LIST_SIZE_OLD: Param = list_size("list-max-ziplist-size");

pub(super) const SET_INTSET: Param = Param {
    name: "set-max-intset-entries",
    get: |config| config.collections.set_max_intset_entries.to_string(),
    set: Some(|config: &mut Config, value| {
        config.collections.set_max_intset_entries = integer(value, 0..=i64::MAX)? as usize;
        Ok(())
    }),
    help: "Maximum number of integers of a set that OBJECT ENCODING reports as an intset. No effect \
        on how the set is stored.",
};
