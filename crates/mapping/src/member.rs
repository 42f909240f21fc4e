//! The nodes of a cluster.

use crate::invalid::Invalid;
use crate::ring::MAX_WEIGHT;
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

/// A node's name for ever: random, kept beside its data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub [u8; 20]);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
    /// It gives all that it has away, and takes nothing more.
    pub drains: bool,
}

impl Member {
    pub fn check(&self) -> Result<(), Invalid> {
        let names = [&self.peer, &self.plain, &self.cluster, &self.zone];
        if names.iter().any(|name| name.len() > MAX_NAME) {
            return Err(Invalid("an address or a zone is too long"));
        }
        match (1..=MAX_WEIGHT).contains(&self.weight) {
            true => Ok(()),
            false => Err(Invalid("a member has a weight that none may have")),
        }
    }
}
