//! The nodes of a cluster.

use crate::invalid::Invalid;
use crate::ring::MAX_WEIGHT;
pub use rufous_base::NodeId;
use rufous_base::limits::MAX_WORKERS;
use rufous_base::slot::worker_of_slot;
use std::fmt;

/// Members of a cluster at a time.
pub const MAX_MEMBERS: usize = 4096;

/// Bytes of an address or of a zone's name.
pub const MAX_NAME: usize = 256;

/// A node's place in a mapping: short, for chains and stamps. A cluster gives
/// each number once, so that what an earlier node has left is nobody else's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeNo(pub u16);

impl fmt::Display for NodeNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// A node as the cluster knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: NodeId,
    /// Rises with every start of the node: what it had not written down by
    /// then is gone.
    pub incarnation: u64,
    /// Where other nodes reach it, and clients of both doors: `host:port`.
    pub peer: String,
    pub plain: String,
    pub cluster: String,
    /// Copies of a slot are in different zones where there are enough.
    pub zone: String,
    pub weight: u16,
    /// Each has a part of the node's slots, and chains are between those of
    /// different nodes that have the same. Only a start changes it.
    pub workers: u16,
    /// It gives all that it has away, and takes nothing more.
    pub drains: bool,
}

impl Member {
    /// Where clients reach it that go to other nodes when they are told to; where
    /// it has no endpoint for them, the plain one.
    pub fn for_clients(&self) -> (&str, u16) {
        match self.cluster.is_empty() {
            true => host_and_port(&self.plain),
            false => host_and_port(&self.cluster),
        }
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let names = [&self.peer, &self.plain, &self.cluster, &self.zone];
        if names.iter().any(|name| name.len() > MAX_NAME) {
            return Err(Invalid("an address or a zone is too long"));
        }
        if !(1..=MAX_WORKERS).contains(&usize::from(self.workers)) {
            return Err(Invalid("a member has as many workers as none may have"));
        }
        match (1..=MAX_WEIGHT).contains(&self.weight) {
            true => Ok(()),
            false => Err(Invalid("a member has a weight that none may have")),
        }
    }

    /// Its worker that has a slot.
    pub fn worker_of(&self, slot: u16) -> u16 {
        worker_of_slot(slot, usize::from(self.workers)).0
    }
}

/// Host and port of an address; nothing and 0 where it has none.
pub fn host_and_port(address: &str) -> (&str, u16) {
    let Some((host, port)) = address.rsplit_once(':') else {
        return ("", 0);
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (host, port.parse().unwrap_or(0))
}
