//! Which worker of this node owns a key.

use rufous_base::WorkerId;
use rufous_base::slot::{slot_of, worker_of_slot};

/// The spread of slots over the workers of one node.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    workers: usize,
}

impl Placement {
    pub fn new(workers: usize) -> Self {
        assert!(workers > 0, "a node has at least one worker");
        Self { workers }
    }

    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The owner of `key`. A node with one worker computes no slot.
    #[inline]
    pub fn owner(&self, key: &[u8]) -> WorkerId {
        if self.workers == 1 {
            return WorkerId(0);
        }
        worker_of_slot(slot_of(key), self.workers)
    }
}
