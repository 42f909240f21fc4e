//! `DUMP` payloads: one value in Redis's file format, and a footer with its version and checksum.
//!
//! ```text
//! | type | value ...        | version | checksum |
//!   1      depends on type    2         8          bytes, little endian
//! ```
//! Written are the forms that every Redis since 4.0 reads: strings as they are, lists, sets and
//! hashes as counts and strings, scores as doubles. Read is every form up to version 11 (Redis
//! 7.2), the packed ones included, which old versions and small collections use.
//!
//! Types that Redis does not have get a form that only Rufous reads: the type `OWN`, a byte of
//! version, the type's tag, and its chunks as strings up to the footer.
//!
//! Payloads come from users, and the checksum is no secret: every count is compared with the bytes
//! that are left before anything is allocated, and what is decoded has a limit. Elements that a
//! collection cannot have twice, and empty collections, are refused as Redis does.

pub(crate) mod checksum;
mod integers;
mod items;
mod listpack;
mod lzf;
mod object;
mod read;
#[cfg(test)]
mod tests;
mod write;
mod ziplist;
mod zipmap;

pub use items::Items;
pub use object::{Restored, dump, restore};
pub use read::read;
pub use write::{DumpWriter, seal, write};

use crate::object::Tag;
use std::fmt;

/// The version written: that of Redis 7.0.
pub const VERSION: u16 = 10;
/// The latest version read: that of Redis 7.2.
pub const MAX_VERSION: u16 = 11;
/// Version and checksum.
const FOOTER_LEN: usize = 2 + 8;

/// A value of any type that a payload can have.
#[derive(Clone, Debug, PartialEq)]
pub enum RdbValue {
    String(Vec<u8>),
    List(Items),
    /// Without order, and no element twice.
    Set(Items),
    /// Fields, each followed by its value; no field twice.
    Hash(Items),
    /// Members and their scores, none of them NaN, in any order; no member twice.
    SortedSet(Items, Vec<f64>),
    /// A type that Redis does not have, in chunks of its own.
    Own(Tag, Items),
}

/// Why a payload was refused. `Display` gives Redis's text, without the leading `ERR `.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdbError {
    /// The footer is missing, of a later version, or not that of these bytes.
    Footer,
    /// The value is malformed, or of a type that is unknown here.
    Malformed,
    /// The value would take more than the reader allows.
    TooLarge,
}

impl fmt::Display for RdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Footer => "DUMP payload version or checksum are wrong",
            Self::Malformed => "Bad data format",
            Self::TooLarge => "Bad data format: the value is too large",
        })
    }
}

impl std::error::Error for RdbError {}

/// The types of the format.
mod types {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const SORTED_SET_TEXT: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const SORTED_SET: u8 = 5;
    pub(super) const HASH_ZIPMAP: u8 = 9;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTEGERS: u8 = 11;
    pub(super) const SORTED_SET_ZIPLIST: u8 = 12;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const SORTED_SET_LISTPACK: u8 = 17;
    pub(super) const LIST_QUICKLIST_2: u8 = 18;
    pub(super) const SET_LISTPACK: u8 = 20;
    /// Far from what Redis uses, which calls it a bad format.
    pub(super) const OWN: u8 = 0xd0;
    /// The byte after it: how what follows is to be read.
    pub(super) const OWN_VERSION: u8 = 1;
}
