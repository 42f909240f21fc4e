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
    pub folder: Folder,
}

/// What is known of the data folder of a node's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Folder {
    /// The node has none, or does not say.
    #[default]
    Unsaid,
    /// The last start before this one with this folder had this incarnation; 0: there was none.
    After(u64),
    /// A start that is known of the node used another folder. `is_renewed`: its copies are not those
    /// of that folder any more. `is_whole`: since then the node has had all copies that the ring
    /// places on it. Before, its next start is still one without what it lacked.
    Behind {
        was: Was,
        is_renewed: bool,
        is_whole: bool,
    },
}

/// What a folder was that is not the one that its node had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Was {
    Empty,
    /// From before the last known start: a restored backup, or a clone. Its copies of slots lack writes.
    Past,
}

impl Folder {
    /// What an announced folder is to a cluster that knows of this start of its node.
    pub(crate) fn judge(self, known: u64) -> Self {
        let was = match self {
            Self::After(0) => Was::Empty,
            Self::After(before) if before < known => Was::Past,
            other => return other,
        };
        Self::Behind {
            was,
            is_renewed: false,
            is_whole: false,
        }
    }

    /// What the folder of the next start of the node is, which announces this one.
    pub(crate) fn follow(self, announced: Self, known: u64) -> Self {
        // Its copies are still those that the folder had at an earlier start.
        if self.is_behind() {
            return self;
        }
        let judged = announced.judge(known);
        if self.lacks_copies() && !judged.is_behind() {
            return self;
        }
        judged
    }

    /// Whether it is renewed, and the node has not had all its copies since.
    pub(crate) fn lacks_copies(self) -> bool {
        matches!(
            self,
            Self::Behind {
                is_renewed: true,
                is_whole: false,
                ..
            }
        )
    }

    /// What it was, if it is not the one that its node had.
    pub fn was(self) -> Option<Was> {
        match self {
            Self::Behind { was, .. } => Some(was),
            Self::Unsaid | Self::After(_) => None,
        }
    }

    /// Whether its copies are none, or older than what the node had.
    pub fn is_behind(self) -> bool {
        matches!(
            self,
            Self::Behind {
                is_renewed: false,
                ..
            }
        )
    }

    /// Its copies are those of the chains now.
    pub(crate) fn renew(&mut self) {
        if let Self::Behind { is_renewed, .. } = self {
            *is_renewed = true;
        }
    }

    /// The node has all copies that the ring places on it.
    pub(crate) fn has_all(&mut self) {
        if let Self::Behind {
            is_renewed: true,
            is_whole,
            ..
        } = self
        {
            *is_whole = true;
        }
    }
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
