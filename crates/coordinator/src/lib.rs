//! What agrees on mappings and knows who is alive: a file for one node, etcd
//! for several. Consensus is never home-made.
//!
//! A coordinator stores one value, the mapping, as bytes that it does not look
//! into, with an epoch that rises by one with each change. Nothing that serves
//! keys waits for it: while it is away, mappings do not change, and that is all.
//!
//! Invariants:
//! 1. Of two proposals for one epoch at most one is taken.
//! 2. An epoch is never taken back, and its mapping never changes.
//! 3. A view never goes back to an earlier epoch.
//! 4. Who is alive is a hint for the planner alone: who is said to be gone may
//!    be there, and the other way round. That nobody answers for a key which has
//!    passed on rests on leases between the nodes.
//!
//! | module | what it has |
//! |---|---|
//! | [`view`] | what is agreed on, as one node sees it |
//! | [`local`] | one process: a file that is synced |
//! | [`meeting`] | several nodes in one process: a lock |
//! | [`loopback`] | several on one machine: a process that all are connected to, for development |
//! | `etcd` | several: leases, transactions, watches (feature `etcd`) |
#![forbid(unsafe_code)]

#[cfg(feature = "etcd")]
pub mod etcd;
pub mod local;
pub mod loopback;
pub mod meeting;
pub mod view;

#[cfg(feature = "etcd")]
mod book;

pub use rufous_base::NodeId;
pub use view::{AgreedMapping, Member, View};

use std::future::Future;
use thiserror::Error;
use tokio::sync::watch;

/// Bytes of a mapping. etcd takes 1.5 MiB in a request.
pub const MAX_MAPPING: usize = 1024 * 1024;
/// Bytes of what a member says of itself.
pub const MAX_ABOUT: usize = 64 * 1024;

/// What became of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposed {
    /// It is in force.
    Taken,
    /// Somebody else was first: this is in force.
    Behind(Option<AgreedMapping>),
    /// This node does not count as alive, so that others may plan without it.
    NotAlive,
}

#[derive(Debug, Error)]
pub enum Error {
    /// The outcome of a proposal is not known then: read before the next one.
    #[error("the coordinator is away: {0}")]
    Away(String),
    #[error("a mapping of {0} bytes; {MAX_MAPPING} are allowed")]
    TooLarge(usize),
    #[error("{0} bytes that a node says of itself; {MAX_ABOUT} are allowed")]
    AboutTooLarge(usize),
    #[error("what the coordinator has makes no sense: {0}")]
    Damaged(String),
    #[error("{0}")]
    Settings(String),
}

/// See the crate's description. A node has one, which speaks for it.
pub trait Coordinator {
    /// What is agreed on, as far as has been heard; it follows by itself.
    fn view(&self) -> watch::Receiver<View>;

    /// What is in force now, nothing older.
    fn read(&self) -> impl Future<Output = Result<Option<AgreedMapping>, Error>> + Send;

    /// Puts a mapping into force as the epoch after `expected`, which has to be
    /// the last one; 0 where there was none.
    fn propose(
        &self,
        expected: u64,
        mapping: Vec<u8>,
    ) -> impl Future<Output = Result<Proposed, Error>> + Send;

    /// Says something else of this node than when it came; its place among the
    /// members stays as it is.
    fn announce(&self, about: Vec<u8>) -> impl Future<Output = Result<(), Error>> + Send;

    /// Stops being a member, at once and not when the lease runs out.
    fn leave(self) -> impl Future<Output = ()> + Send;
}

fn check_about(about: &[u8]) -> Result<(), Error> {
    match about.len() {
        len if len > MAX_ABOUT => Err(Error::AboutTooLarge(len)),
        _ => Ok(()),
    }
}

fn check_size(mapping: &[u8]) -> Result<(), Error> {
    match mapping.len() {
        len if len > MAX_MAPPING => Err(Error::TooLarge(len)),
        _ => Ok(()),
    }
}
