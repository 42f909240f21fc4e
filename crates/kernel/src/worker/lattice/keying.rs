//! The keyspaces as a shard sees them.

use crate::keyspace::Resolve;
use crate::placement::{Owners, Placement};
use crate::shard::{Keyed, Keying};
use rufous_base::WorkerId;
use rufous_datatype::object::Tag;

/// The table, for one worker.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) workers: usize,
    /// Other nodes may have the same keys.
    pub(super) has_nodes: bool,
    /// Has the table, and tells most strict keys by their first byte.
    pub(super) placement: Placement,
}

impl Keying for Keys {
    #[inline]
    fn of(&self, key: &[u8]) -> Option<Keyed> {
        let keyspace = self.placement.lattice(key)?;
        Some(Keyed {
            strings: match keyspace.level.keeps_siblings() {
                true => Tag::Siblings,
                false => Tag::Register,
            },
            is_shared: self.has_nodes || keyspace.spread(self.workers) > 1,
        })
    }

    fn resolve(&self, key: &[u8]) -> Resolve {
        let keyspace = self.placement.lattice(key);
        keyspace.map_or(Resolve::Newest, |keyspace| keyspace.resolve)
    }

    fn is_replica(&self, replica: u16) -> bool {
        self.has_nodes || usize::from(replica) < self.workers
    }

    #[inline]
    fn owners(&self, key: &[u8]) -> Option<Owners> {
        self.placement.lattice_owners(key)
    }

    fn place(&self) -> (WorkerId, usize) {
        (self.placement.own(), self.placement.workers())
    }
}
