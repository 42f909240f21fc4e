//! Who replicas speak with: workers of other nodes.

use rufous_mapping::{Mapping, NodeNo};

/// A worker of a node. What one worker knows and has promised holds for no other
/// one of its node: each takes up an epoch at a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    pub node: NodeNo,
    pub worker: u16,
}

impl Peer {
    /// Who has a slot at a node. A node that is in a chain is a member; of one
    /// that is none the answer means nothing.
    pub(crate) fn at(node: NodeNo, slot: u16, mapping: &Mapping) -> Self {
        let member = mapping.members.get(&node);
        let worker = member.map_or(0, |member| member.worker_of(slot));
        Self { node, worker }
    }
}
