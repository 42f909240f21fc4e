//! How replicas of lattice keyspaces converge [Anna §V].
//!
//! Each worker changes its own replicas. What it changed it sends to the
//! others of each key once an epoch, merged, and they merge it with theirs.
//! Who merges a batch does not send it on: everybody hears from everybody.
//!
//! Pure: states and bytes in, states and bytes out; the worker connects
//! it with the shard, the log and the other workers.
//!
//! Map, in reading order:
//! - [`batch`]: what is sent
//! - [`heard`]: how far workers have heard of one another, and what can be
//!   forgotten
//! - `epoch`: its changes on their way; `streams`: to whom
//! - [`replicas`]: one worker's part in all of it
//! - [`member`]: who a replica is among those of all nodes
//! - [`gossip`]: what goes to other nodes, and repairs them
//! - `figures`: what it counts
//! - [`session`]: what a client's session keeps for them
//! - [`transaction`]: what an open transaction keeps
#![forbid(unsafe_code)]

pub mod batch;
mod epoch;
mod figures;
pub mod gossip;
pub mod heard;
pub use rufous_store::{changeset, level};
pub mod member;
pub mod replicas;
pub mod session;
mod streams;
pub mod transaction;
