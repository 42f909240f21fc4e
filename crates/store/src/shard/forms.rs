//! In which form the keys of a lattice keyspace are replicated.

use crate::keyspace::Keyspace;
use rufous_datatype::object::Tag;

/// The type of the strings of a lattice keyspace.
pub fn strings(keyspace: &Keyspace) -> Tag {
    match keyspace.level.keeps_siblings() {
        true => Tag::Siblings,
        false => Tag::Register,
    }
}

/// Whether a key that moves from one lattice keyspace, or none, to another changes its form of replication.
pub fn reshapes((from, to): (Option<&Keyspace>, Option<&Keyspace>), workers: usize) -> bool {
    let shape = |keyspace: &Keyspace| (keyspace.spread(workers), strings(keyspace));
    from.map(shape) != to.map(shape)
}
