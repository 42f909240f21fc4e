//! How a shard is told of the keyspaces.

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
            is_shared: keyspace.spread(self.workers) > 1,
        })
    }

    fn resolve(&self, key: &[u8]) -> Resolve {
        let keyspace = self.table.lattice(key);
        keyspace.map_or(Resolve::Newest, |keyspace| keyspace.resolve)
    }

    fn is_replica(&self, replica: u16) -> bool {
        usize::from(replica) < self.workers
    }

    fn is_elsewhere(&self, key: &[u8]) -> bool {
        let is_lattice = self.table.lattice(key).is_some();
        is_lattice && !self.placement.is_primary(key)
    }
}

impl<P: Program> Worker<P> {
    /// As if there were so many workers: with one nobody is to hear of changes.
    pub(super) fn keying_of(&self, workers: usize) -> Option<Arc<dyn Keying>> {
        let keys = || Keys {
            table: Arc::clone(&self.lattice.table),
            workers,
            placement: self.placement.clone(),
        };
        let has_lattice = self.placement.has_lattice();
        has_lattice.then(|| Arc::new(keys()) as Arc<dyn Keying>)
    }
}
