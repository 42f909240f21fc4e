//! A worker as a state machine: it joins its data (`rufous_store`, whose modules are named here
//! too) with log, replicas and chains, and keeps commands over several workers atomic.
//!
//! The kernel is sans-io: it is given the time and an input and leaves
//! effects. It knows no socket, file, thread or clock, and no command by
//! name: what a command does is told to it by a [`Program`].
//!
//! Map, in reading order:
//! - [`program`]: what the kernel needs to know of commands
//! - [`chains`]: a shard's slots as nodes of a cluster replicate them
//! - [`batch`]: requests on their way to another worker, and their replies
//! - [`lock`]: keys held by commands that span workers, and who waits for them
//! - [`multi`]: the coordinator's side of such a command
//! - [`replicate`]: how replicas of lattice keyspaces converge
//! - [`wait`]: clients whose commands wait for data
//! - [`worker`]: all of it together, one per thread
//! - [`durable`]: what is written to disk, and how it is read again
//! - [`stats`]: what is counted
#![forbid(unsafe_code)]

pub mod batch;
pub mod chains;
pub mod durable;
pub mod lock;
pub mod multi;
pub mod program;
pub mod replicate;
pub mod stats;
pub mod wait;
pub mod worker;

pub use rufous_store::{
    changeset, effect, evict, keyspace, level, marks, placement, planted, shard,
};

pub use batch::{Batch, Header};
pub use program::{Context, Program};
pub use worker::{Message, Outcome, Submitted, Worker};
