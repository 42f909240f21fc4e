//! The part of a worker that machines borrow to work on its keys.

use crate::lock::KeyName;
use crate::multi::Part;
use crate::placement::Placement;
use crate::shard::{Shard, WatchId};
use rufous_base::{Now, WorkerId};

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

    /// Whether a key that the part's watcher watches here was touched.
    pub(super) fn is_part_dirty(&mut self, now: Now, part: &Part) -> bool {
        let is_dirty = |watcher| self.is_dirty(now, watcher, &part.watched);
        part.watcher.is_some_and(is_dirty)
    }

    /// Whether a key of this worker that `watcher` watches was touched, or may have been: for keys in
    /// a lattice keyspace that was created after the watch, there would be no timely report of
    /// changes by other replicas.
    pub(super) fn is_dirty(&mut self, now: Now, watcher: WatchId, watched: &[KeyName]) -> bool {
        let mut keys = watched.iter();
        if keys.any(|key| self.placement.lattice(&key.1).is_some()) {
            return true;
        }
        for (db, key) in watched {
            // An access to an expired key removes it, and so touches it.
            if self.placement.owner(key) == self.id {
                let key = self.shard.key(key);
                let _ = self.shard.contains(usize::from(*db), key, now);
            }
        }
        self.shard.observers().watches().is_dirty(watcher)
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
