//! The commands on data, one file each: what a command is called, takes,
//! touches and does, with its documentation and tests.
//!
//! Pure: a command is given a shard, the time and arguments, and appends a
//! reply. It never sees a connection, a socket or a clock, so the server and
//! the simulator run the same code. Commands on connections and on the server
//! itself live in the server crate and share [`spec::Spec`] and [`table::Table`].
//!
//! Map, in reading order:
//! - [`spec`]: the declaration of a command
//! - [`reply`]: typed replies, written as RESP
//! - [`failure`]: errors as clients see them
//! - [`options`]: reading arguments
//! - [`elements`]: replies, scans and draws of elements
//! - `made`: long replies, made while they are sent
//! - [`lattice`]: what commands mean on keys whose replicas all take writes
//! - [`table`]: finding a command by name
//! - [`touching`]: what a command touches of a key, for transactions
//! - [`string`], [`causal`], [`list`], [`bitmap`], [`set`], [`hash`], [`sorted_set`], [`geo`],
//!   [`hyperloglog`], [`claret`], [`key`], [`server`]: the commands
#![forbid(unsafe_code)]

pub mod bitmap;
pub mod blocking;
pub mod causal;
pub mod claret;
pub mod elements;
pub mod failure;
mod folded;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod key;
pub mod lattice;
pub mod list;
mod made;
pub mod options;
pub mod reply;
pub mod server;
pub mod set;
pub mod sorted_set;
pub mod spec;
pub mod string;
pub mod table;
#[cfg(test)]
pub mod testing;
pub mod touching;

pub use failure::Failure;
pub use reply::Reply;
pub use spec::{Command, Flags, Group, Joined, Keys, Queued, Secrets, Spec};
pub use table::{DataCommands, OUT_OF_MEMORY, Table, data_commands, unwritable};

use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_kernel::program::Wait;
use rufous_kernel::shard::{Key, Shard};
use std::ops::Range;

/// What a running command works with, its reply aside.
pub struct Ctx<'a> {
    pub shard: &'a mut Shard,
    /// The selected database.
    pub db: usize,
    pub now: Now,
    pub rng: &'a mut Rng,
    /// Hash of the command's first key, computed while the request was parsed.
    pub hash: u32,
    /// Set by [`Ctx::wait`].
    pub wait: Option<Wait>,
}

impl Ctx<'_> {
    /// The first key of the command, without hashing it again.
    #[inline]
    pub fn first_key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key {
            bytes,
            hash: self.hash,
        }
    }

    /// Has the client wait until one of the keys that these arguments name
    /// holds what the command is after, and the command run again then. What
    /// it has replied until now is the reply where nothing comes, or where it
    /// may not wait.
    pub fn wait(&mut self, keys: Range<usize>, timeout_us: Option<u64>) {
        self.wait = Some(Wait { keys, timeout_us });
    }

    /// The time in Unix milliseconds from which a deadline of this key counts.
    #[inline]
    pub fn time_ms(&self, key: Key<'_>) -> u64 {
        self.shard.time_ms(key, self.now)
    }

    /// Any other key.
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.shard.key(bytes)
    }
}
