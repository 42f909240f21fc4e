//! The part of a worker that machines borrow to work on its keys.

use crate::placement::Placement;
use crate::shard::Shard;
use rufous_base::WorkerId;

/// This worker's keys, and the placement of keys.
#[derive(Debug)]
pub(super) struct Store<'a> {
    pub(super) id: WorkerId,
    pub(super) shard: &'a mut Shard,
    pub(super) placement: &'a Placement,
}

impl Store<'_> {
    /// The number of workers of the node.
    pub(super) fn workers(&self) -> usize {
        self.placement.workers()
    }

    /// The other workers of the node.
    pub(super) fn others(&self) -> impl Iterator<Item = WorkerId> + use<> {
        let own = self.id;
        let all = (0..self.workers()).map(|worker| WorkerId(worker as u16));
        all.filter(move |&worker| worker != own)
    }
}

/// Borrows the store of a worker, and no other of its fields.
macro_rules! store {
    ($worker:expr) => {
        $crate::worker::store::Store {
            id: $worker.id,
            shard: &mut $worker.shard,
            placement: &$worker.placement,
        }
    };
}
