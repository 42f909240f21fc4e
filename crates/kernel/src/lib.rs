//! A worker as a state machine: it joins its data (`rufous_store`) with log and snapshots
//! (`rufous_durable`), replicas (`rufous_replicate`) and chains, and keeps commands over several
//! workers atomic. It names the modules of these crates too, for the crates above.
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
//! - [`wait`]: clients whose commands wait for data
//! - [`worker`]: all of it together, one per thread
//! - [`stats`]: what is counted
#![forbid(unsafe_code)]

pub mod batch;
pub mod chains;
pub mod lock;
pub mod multi;
pub mod program;
pub mod stats;
pub mod wait;
pub mod worker;

pub use rufous_durable as durable;
pub use rufous_replicate as replicate;
pub use rufous_store::{
    changeset, effect, evict, keyspace, level, marks, placement, planted, shard,
};

pub use batch::{Batch, Header};
pub use program::{Context, Program};
pub use worker::{Message, Outcome, Submitted, Worker};
