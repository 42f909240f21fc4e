//! The coordinator of several nodes on one machine: a process that all of them
//! are connected to by TCP. It is for development and tests.
//!
//! What it is not: it runs once, so that members cannot change while it is away,
//! and whoever can connect to it may say anything. For a cluster that has to
//! last, take etcd. To nodes it is as etcd is: a member that is not heard of for
//! two seconds is gone, a broken connection alone changes nothing, and epochs
//! that were agreed on outlive it in a file, if it was given a folder.
//!
//! - [`frames`]: what is said, as bytes
//! - [`server`]: the process that all are connected to
//! - [`client`]: a node's end

pub mod client;
pub mod frames;
pub mod server;

pub use client::Client;
pub use server::Server;

use std::time::Duration;

/// A node that is not heard of for so long is taken for dead, as with etcd.
pub const LEASE: Duration = Duration::from_secs(2);
/// How often a node says that it is there.
const BEAT: Duration = Duration::from_millis(500);
/// Nodes that it serves, at most.
pub const MAX_NODES: usize = 64;
