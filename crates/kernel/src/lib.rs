//! The store as state machines: what one worker holds, and how a command that
//! concerns several workers stays atomic.
//!
//! The kernel is sans-io: it is given the time and an input and leaves
//! effects. It knows no socket, file, thread or clock, and no command by
//! name: what a command does is told to it by a [`Program`].
//!
//! Map, in reading order:
//! - [`program`]: what the kernel needs to know of commands
//! - [`keyspace`]: what holds for keys by their prefixes
//! - [`placement`]: which worker answers for a key
//! - [`shard`]: the data of one worker
//! - [`chains`]: a shard's slots as nodes of a cluster replicate them
//! - [`batch`]: requests on their way to another worker, and their replies
//! - [`lock`]: keys held by commands that span workers, and who waits for them
//! - [`multi`]: the coordinator's side of such a command
//! - [`replicate`]: how replicas of lattice keyspaces converge
//! - [`wait`]: clients whose commands wait for data
//! - [`worker`]: all of it together, one per thread
//! - [`evict`]: the memory limit, and which keys go at it
//! - [`durable`]: what is written to disk, and how it is read again
//! - [`stats`]: what is counted
//! - [`marks`]: places that simulated runs have come by
//! - [`planted`]: faults on purpose, for the tests of the simulator
#![forbid(unsafe_code)]

pub mod batch;
pub mod chains;
pub mod durable;
pub mod evict;
pub mod keyspace;
pub mod lock;
pub mod marks;
pub mod multi;
pub mod placement;
pub mod planted;
pub mod program;
pub mod replicate;
pub mod shard;
pub mod stats;
pub mod wait;
pub mod worker;

pub use batch::{Batch, Header};
pub use program::{Context, Program};
pub use worker::{Message, Outcome, Submitted, Worker};
