//! The coordinator for several nodes on one machine: a process to which all of them connect by TCP.
//! It is for development and tests.
//!
//! Its limits: it is a single process, so members cannot change while it is down. With the cluster's secret it serves
//! the nodes that prove that they know it; without one it trusts each process of the machine. For production use etcd. For nodes it behaves like etcd: a
//! member that sends nothing for two seconds counts as dead, a broken connection alone changes
//! nothing, and agreed epochs survive its restart in a file, if it has a folder.
//!
//! - [`frames`]: the protocol, as bytes
//! - [`proof`]: both sides prove that they know the secret
//! - [`server`]: the coordinator process
//! - [`client`]: a node's client

pub mod client;
pub mod frames;
pub mod proof;
pub mod server;

pub use client::Client;
pub use proof::Secret;
pub use server::Server;

use std::time::Duration;

/// A node that sends nothing for this long counts as dead, as with etcd.
pub const LEASE: Duration = Duration::from_secs(2);
/// How often a node sends a heartbeat.
const BEAT: Duration = Duration::from_millis(500);
/// Limit on its nodes.
pub const MAX_NODES: usize = 64;
