//! One worker as a state machine. It combines its data (`rufous_store`) with log and snapshots
//! (`rufous_durable`), replicas (`rufous_replicate`) and chains, and keeps commands over several
//! workers atomic. It re-exports modules of these crates for the crates above.
//!
//! The kernel is sans-io: it receives the time and an input, and leaves effects. It knows no
//! sockets, files, threads or clocks, and no command by name: a [`Program`] executes commands.
//!
//! Map, in reading order:
//! - [`program`]: the kernel's interface to commands
//! - [`chains`]: a shard's slots as nodes of a cluster replicate them
//! - [`body`]: the commands of a transaction over slots, as bytes
//! - [`batch`]: requests on their way to another worker, and their replies
//! - [`lock`]: keys held by commands that span workers, and the queues for them
//! - [`multi`]: the coordinator's side of such a command
//! - [`worker`]: all of it together, one per thread
//! - [`stats`]: counters per command
#![forbid(unsafe_code)]

pub mod batch;
pub mod body;
pub mod chains;
pub mod lock;
pub mod multi;
pub mod program;
pub mod stats;
pub mod worker;

pub use rufous_durable as durable;
pub use rufous_replicate as replicate;
pub use rufous_store::{
    changeset, effect, evict, keyspace, level, marks, placement, planted, shard,
};

pub use batch::{Batch, Header};
pub use program::{Context, Program, Unwritable};
pub use worker::{Message, Outcome, Submitted, Worker};
