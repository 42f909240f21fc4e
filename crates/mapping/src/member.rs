//! The nodes of a cluster.

use crate::invalid::Invalid;
use crate::ring::MAX_WEIGHT;
pub use rufous_base::NodeId;
use rufous_base::limits::MAX_WORKERS;
use rufous_base::slot::worker_of_slot;
use std::fmt;

/// Limit on the members of a cluster at a time.
pub const MAX_MEMBERS: usize = 4096;

/// Limit on the bytes of an address or of a zone's name.
pub const MAX_NAME: usize = 256;

/// A node's number in a mapping: short, for chains and stamps. A cluster never reuses a number, so
/// that data of an earlier node is not taken for another's.
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
    /// Rises with every start of the node: data that it had not logged by then is lost.
    pub incarnation: u64,
    /// Its addresses for other nodes, and for clients at both doors: `host:port`.
    pub peer: String,
    pub plain: String,
    pub cluster: String,
    /// Copies of a slot are in different zones if there are enough zones.
    pub zone: String,
    pub weight: u16,
    /// Each worker has a part of the node's slots, and chains are between the workers of different
    /// nodes that have the same slots. Only a restart changes it.
    pub workers: u16,
    /// It moves all its slots to others, and takes no more.
    pub drains: bool,
}

impl Member {
    /// The address for clients that follow redirections; if the node has no endpoint for them, the
    /// plain one.
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
            return Err(Invalid("a member has an invalid number of workers"));
        }
        match (1..=MAX_WEIGHT).contains(&self.weight) {
            true => Ok(()),
            false => Err(Invalid("a member has an invalid weight")),
        }
    }

    /// The worker of this node that has a slot.
    pub fn worker_of(&self, slot: u16) -> u16 {
        worker_of_slot(slot, usize::from(self.workers)).0
    }
}

/// Host and port of an address; an empty host and 0 if it has none.
pub fn host_and_port(address: &str) -> (&str, u16) {
    let Some((host, port)) = address.rsplit_once(':') else {
        return ("", 0);
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (host, port.parse().unwrap_or(0))
}
