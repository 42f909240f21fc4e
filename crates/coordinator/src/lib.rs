//! Coordinators, which agree on mappings and track live nodes: a file for one node, etcd for
//! several. Rufous implements no consensus algorithm of its own.
//!
//! A coordinator stores one value, the mapping, as opaque bytes, with an epoch that rises by one
//! with each change. Serving keys does not depend on it: while it is unavailable, only mappings do
//! not change.
//!
//! Invariants:
//! 1. Of two proposals for one epoch at most one is taken.
//! 2. An epoch is never revoked, and its mapping never changes.
//! 3. A view never goes back to an earlier epoch.
//! 4. The set of live nodes is a hint for the planner alone: a node listed as dead may be alive,
//!    and the other way round. Leases between the nodes ensure that no node serves a key that has
//!    passed on.
//!
//! | module | what it has |
//! |---|---|
//! | [`view`] | the agreed state, as one node sees it |
//! | [`local`] | one process: a file that is synced |
//! | [`meeting`] | several nodes in one process: a lock |
//! | [`loopback`] | several nodes on one machine: a process to which all connect, for development |
//! | [`etcd`] | several nodes: leases, transactions, watches |
#![forbid(unsafe_code)]

mod book;
pub mod etcd;
pub mod local;
pub mod loopback;
pub mod meeting;
pub mod view;

pub use rufous_base::NodeId;
pub use view::{AgreedMapping, Member, View};

use std::future::Future;
use thiserror::Error;
use tokio::sync::watch;

/// Limit on the bytes of a mapping. etcd takes 1.5 MiB in a request.
pub const MAX_MAPPING: usize = 1024 * 1024;
/// Limit on the bytes of a member's announcement.
pub const MAX_ABOUT: usize = 64 * 1024;

/// The outcome of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposed {
    /// The mapping is in force.
    Taken,
    /// Another proposal was first: this mapping is in force.
    Behind(Option<AgreedMapping>),
    /// This node does not count as alive, so others may plan without it.
    NotAlive,
}

#[derive(Debug, Error)]
pub enum Error {
    /// The outcome of a proposal is then unknown: read before the next one.
    #[error("the coordinator is unreachable: {0}")]
    Away(String),
    #[error("a mapping has {0} bytes; the limit is {MAX_MAPPING}")]
    TooLarge(usize),
    #[error("a node's description has {0} bytes; the limit is {MAX_ABOUT}")]
    AboutTooLarge(usize),
    #[error("the coordinator has invalid data: {0}")]
    Damaged(String),
    #[error("{0}")]
    Settings(String),
}

/// See the crate's description. Each node has one, which registers it as alive.
pub trait Coordinator {
    /// The latest known state; it is updated as changes arrive.
    fn view(&self) -> watch::Receiver<View>;

    /// The mapping in force now, never an older one.
    fn read(&self) -> impl Future<Output = Result<Option<AgreedMapping>, Error>> + Send;

    /// Makes a mapping the epoch after `expected`, which has to be the last one; 0 if there was
    /// none.
    fn propose(
        &self,
        expected: u64,
        mapping: Vec<u8>,
    ) -> impl Future<Output = Result<Proposed, Error>> + Send;

    /// Changes this node's announcement; its rank among the members stays the same.
    fn announce(&self, about: Vec<u8>) -> impl Future<Output = Result<(), Error>> + Send;

    /// Leaves the members at once, without waiting for the lease to expire.
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
