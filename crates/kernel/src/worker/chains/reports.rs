//! What the leader and the operator are told about the slots of a worker.

use super::ChainHost;
use rufous_base::Now;
use rufous_chain::Replica;
use rufous_mapping::NodeNo;
use rufous_mapping::planner::Copy;

impl ChainHost {
    /// Slots whose learners have all data, with the epochs of their chains.
    pub(in crate::worker) fn learned(&self) -> Vec<(u16, NodeNo, u64)> {
        { self.replica.iter() }.flat_map(Replica::synced).collect()
    }

    /// What this worker has of slots whose chains are halted.
    pub(in crate::worker) fn held(&self) -> Vec<(u16, Option<Copy>)> {
        { self.replica.iter() }.flat_map(Replica::held).collect()
    }

    /// Slots whose data here is not as it should be.
    pub(in crate::worker) fn broken(&self) -> Vec<u16> {
        { self.replica.iter() }.flat_map(Replica::broken).collect()
    }

    /// The number of slots of which this node is the head and which it does not serve.
    pub(in crate::worker) fn unserved(&self, now: Now) -> usize {
        { self.replica.iter() }
            .map(|it| it.unserved(now.mono_us))
            .sum()
    }
}
