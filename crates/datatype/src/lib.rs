//! What users store: the pure operations on values behind the string, bit and expiry commands.
//!
//! Every function here takes bytes or numbers and returns bytes or numbers. The crate decides what Redis 7.2 would
//! Every function here takes bytes or numbers and returns bytes or numbers. The crate computes what Redis 7.2 would
//! reply and returns it as data; the callers look keys up, apply the result and write the reply.
//! What it never does: no I/O, no clock, no randomness, no state between calls, no knowledge of keys, connections or
//! the protocol's framing. It never panics on a user's bytes and never allocates more than a named limit allows.
//!
//! | module | concept |
//! |---|---|
//! | [`algebra`] | what a type states: operations, independence, phases, combining |
//! | [`object`] | the registered types |
//! | [`key`] | keys of any type, with deadlines: what holds them, and which operations are independent |
//! | `declared` | declarations that several types have in common |
//! | [`text`] | the algebra of strings |
//! | [`hash`] | hashes |
//! | [`set`] | sets |
//! | [`replicated`] | types whose replicas all take writes, and merge |
//! | [`table`] | elements found by name, packed or large: sets and hashes |
//! | `distinct` | whether the names in a pack are all different |
//! | [`top_k`] | rankings of the highest members |
//! | [`bag`] | summary bags, with exact sums |
//! | [`bounded`] | counters within bounds |
//! | [`uid`] | unique identifiers without order |
//! | [`list`] | elements in the order that their clients chose |
//! | [`sorted_set`] | members in the order of their scores |
//! | [`error`] | [`ValueError`], the texts of Redis's errors about values |
//! | [`integer`] | strict integers, counters |
//! | [`float`] | doubles: parsing, printing, score bounds |
//! | [`float::LongDouble`] | the 80-bit arithmetic behind `INCRBYFLOAT` |
//! | [`bits`] | `GETBIT`, `SETBIT`, `BITCOUNT`, `BITPOS`, `BITOP` |
//! | [`bitfield`] | integers of any width at any bit offset |
//! | [`range`] | index normalisation, size limits |
//! | [`pack`] | byte strings one after the other in one buffer |
//! | [`dict`] | a hash table that is copied by pieces: large hashes and sets, scores of sorted sets |
//! | [`seq`] | sequences of byte strings as a tree of shared packs |
//! | [`lcs`] | longest common subsequence |
//! | [`glob`] | Redis's patterns |
//! | [`geo`] | positions as scores, distances, ranges of scores to search |
//! | [`rdb`] | `DUMP` payloads in Redis's file format |
//! | [`hll`] | HyperLogLog, as Redis stores it in a string |
//! | [`expire`] | deadlines and the conditions of the `EXPIRE` family |
#![forbid(unsafe_code)]

pub mod algebra;
pub mod bag;
pub mod bitfield;
pub mod bits;
pub mod bounded;
mod declared;
pub mod dict;
mod distinct;
pub mod error;
pub mod expire;
pub mod float;
pub mod geo;
pub mod glob;
pub mod hash;
pub mod hll;
pub mod integer;
pub mod key;
pub mod lcs;
pub mod list;
pub mod object;
pub mod pack;
pub mod range;
pub mod rdb;
pub mod replicated;
pub mod seq;
pub mod set;
pub mod sorted_set;
pub mod table;
pub mod text;
pub mod top_k;
pub mod uid;

pub use error::ValueError;

/// Redis's default for `proto-max-bulk-len`: no string grows beyond this many bytes.
pub const DEFAULT_MAX_BULK_LEN: u64 = 512 * 1024 * 1024;
