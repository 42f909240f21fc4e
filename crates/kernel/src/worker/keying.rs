//! The keyspaces as a shard sees them.

use super::Worker;
use crate::keyspace::{Keyspaces, Resolve};
use crate::placement::Placement;
use crate::program::Program;
use crate::shard::{Keyed, Keying};
use rufous_datatype::object::Tag;
use std::sync::Arc;

/// The table, for one worker.
#[derive(Debug)]
struct Keys {
    table: Arc<Keyspaces>,
    workers: usize,
    /// Other nodes may have the same keys.
    has_nodes: bool,
    placement: Placement,
}

impl Keying for Keys {
    #[inline]
    fn of(&self, key: &[u8]) -> Option<Keyed> {
        let keyspace = self.table.lattice(key)?;
        Some(Keyed {
            strings: match keyspace.level.keeps_siblings() {
                true => Tag::Siblings,
                false => Tag::Register,
            },
            is_shared: self.has_nodes || keyspace.spread(self.workers) > 1,
        })
    }

    fn resolve(&self, key: &[u8]) -> Resolve {
        let keyspace = self.table.lattice(key);
        keyspace.map_or(Resolve::Newest, |keyspace| keyspace.resolve)
    }

    fn is_replica(&self, replica: u16) -> bool {
        self.has_nodes || usize::from(replica) < self.workers
    }

    fn is_elsewhere(&self, key: &[u8]) -> bool {
        let is_lattice = self.table.lattice(key).is_some();
        is_lattice && !self.placement.is_primary(key)
    }
}

impl<P: Program> Worker<P> {
    pub(super) fn keying(&self) -> Option<Arc<dyn Keying>> {
        self.keying_of(self.placement.workers(), self.lattice.nodes.is_some())
    }

    /// For copies of keys: their changes are not replicated.
    pub(super) fn keying_of_copies(&self) -> Option<Arc<dyn Keying>> {
        self.keying_of(1, false)
    }

    fn keying_of(&self, workers: usize, has_nodes: bool) -> Option<Arc<dyn Keying>> {
        let keys = || Keys {
            table: Arc::clone(&self.lattice.table),
            workers,
            has_nodes,
            placement: self.placement.clone(),
        };
        let has_lattice = self.placement.has_lattice();
        has_lattice.then(|| Arc::new(keys()) as Arc<dyn Keying>)
    }
}
