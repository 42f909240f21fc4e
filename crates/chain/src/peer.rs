//! The peers of a replica: workers of other nodes.

use rufous_mapping::{Mapping, NodeNo};

/// A worker of a node. What one worker knows and has promised does not hold for the others of its
/// node: each applies an epoch at its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    pub node: NodeNo,
    pub worker: u16,
}

impl Peer {
    /// The worker that has a slot at a node. A node that is in a chain is a member; for another
    /// node the result is meaningless.
    pub(crate) fn at(node: NodeNo, slot: u16, mapping: &Mapping) -> Self {
        let member = mapping.members.get(&node);
        let worker = member.map_or(0, |member| member.worker_of(slot));
        Self { node, worker }
    }
}
