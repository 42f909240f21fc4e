//! The data of one worker: keys and values in numbered databases, their placement on workers, and eviction at the
//! memory limit.
//!
//! Pure: the caller passes the time. The crate knows no clock, socket, file, thread, command, log or other node. A
//! change of the data is reported as an [`effect`], in bytes, and for replicas as a [`changeset`].
//!
//! Map, in reading order:
//! - [`effect`]: one change of the data, as bytes
//! - [`level`]: consistency levels, one per file
//! - [`keyspace`]: policies of keys by prefix
//! - [`placement`]: which worker owns a key
//! - [`books`]: names of the entries in the books of transactions
//! - [`changeset`]: which keys an epoch has changed
//! - [`shard`]: the data of one worker
//! - [`evict`]: the memory limit, and the choice of keys to evict
//! - [`marks`]: counters of states that simulated runs must reach
//! - [`planted`]: deliberate faults, for the tests of the simulator
#![forbid(unsafe_code)]

pub mod books;
pub mod changeset;
pub mod effect;
pub mod evict;
pub mod keyspace;
pub mod level;
pub mod marks;
pub mod placement;
pub mod planted;
pub mod shard;
