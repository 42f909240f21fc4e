//! The data of one worker: keys and values in numbered databases, and what decides where they lie
//! and which of them go at the memory limit.
//!
//! Pure: it is given the time and knows no clock, socket, file or thread; no command; no log, no
//! other node. What changes is told as an [`effect`], in bytes, and to replicas as a
//! [`changeset`].
//!
//! Map, in reading order:
//! - [`effect`]: one change of the data, as bytes
//! - [`level`]: consistency levels, one a file
//! - [`keyspace`]: what holds for keys by their prefixes
//! - [`placement`]: which worker answers for a key
//! - [`changeset`]: which keys an epoch has changed
//! - [`shard`]: the data of one worker
//! - [`evict`]: the memory limit, and which keys go at it
//! - [`marks`]: states that simulated runs must reach, counted
//! - [`planted`]: faults on purpose, for the tests of the simulator
#![forbid(unsafe_code)]

pub mod changeset;
pub mod effect;
pub mod evict;
pub mod keyspace;
pub mod level;
pub mod marks;
pub mod placement;
pub mod planted;
pub mod shard;
