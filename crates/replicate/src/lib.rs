//! Convergence of the replicas of lattice keyspaces [Anna §V].
//!
//! Each worker changes its own replicas. Once per epoch it sends the merged changes of each key to the key's other
//! replicas, which merge them with their own state. A receiver does not forward a batch: every worker sends its
//! changes to all others itself.
//!
//! Pure: states and bytes in, states and bytes out; the worker connects it with the shard, the log and the other
//! workers.
//!
//! Map, in reading order:
//! - [`batch`]: messages between replicas
//! - [`heard`]: what workers have received from one another, and what can be forgotten
//! - `epoch`: the changes of one epoch; `streams`: their receivers
//! - [`replicas`]: one worker's part of replication
//! - [`member`]: numbers of replicas over all nodes
//! - [`gossip`]: messages to other nodes, and repair of what was missed
//! - `lead`: how far clocks may lead
//! - `figures`: counters
//! - [`transaction`]: the state of an open transaction
//! - [`vector`]: what a session has seen, for other workers
#![forbid(unsafe_code)]

pub mod batch;
mod epoch;
mod figures;
pub mod gossip;
pub mod heard;
pub mod lead;
pub use rufous_store::{changeset, level};
pub mod member;
pub mod replicas;
mod streams;
#[cfg(test)]
mod testing;
pub mod transaction;
pub mod vector;
