//! The agreed mapping and the live members, as one node sees them.

use rufous_base::NodeId;
use std::collections::BTreeMap;
use std::fmt;

/// A mapping in force.
#[derive(Clone, PartialEq, Eq)]
pub struct AgreedMapping {
    pub epoch: u64,
    pub mapping: Vec<u8>,
}

impl fmt::Debug for AgreedMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {} ({} bytes)", self.epoch, self.mapping.len())
    }
}

/// A node that counts as alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: NodeId,
    /// Rises with every start of the node.
    pub incarnation: u64,
    /// The last start before this one with the same data folder; 0: there was none. Not shown to others.
    pub after: u64,
    /// Its announcement: addresses, weight, zone; opaque bytes here.
    pub about: Vec<u8>,
}

impl Member {
    /// Whether another start of the node takes the place of this one. One that has not its folder may
    /// run beside it, and waits until this one does not count as alive.
    pub(crate) fn gives_way_to(&self, other: &Self) -> bool {
        self.incarnation <= other.after
    }
}

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Whether the following fields are up to date.
    pub is_current: bool,
    /// Whether this node counts as alive.
    pub is_member: bool,
    pub state: Option<AgreedMapping>,
    pub members: BTreeMap<NodeId, Member>,
    /// The leader, which plans: the oldest member. For a moment two nodes may take themselves for
    /// it; proposals decide.
    pub leader: Option<NodeId>,
    /// The epoch that the coordinator has now, if it had a later one before: it was restored to an
    /// earlier state. [`Self::state`] is that of the later one.
    pub behind: Option<u64>,
}

impl View {
    pub fn epoch(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.epoch)
    }

    /// Applies a state, unless a newer one is known.
    pub(crate) fn advance(&mut self, state: AgreedMapping) {
        self.behind = (state.epoch < self.epoch()).then_some(state.epoch);
        if state.epoch > self.epoch() {
            self.state = Some(state);
        }
    }

    /// The coordinator has no mapping.
    pub(crate) fn has_none(&mut self) {
        self.behind = self.state.as_ref().map(|_| 0);
    }
}
