//! Serializability: what a transaction has read is the same when it commits, so all of it happens then. That needs
//! coordination: keyspaces have no such level, and `BEGIN` alone knows it. The keys that are read are copied as in an
//! item cut, and watched; `COMMIT` does nothing if one was changed.

use super::{Level, Spec, item_cut};

pub const LEVEL: Spec = Spec {
    name: "serializable",
    parts: 1 << 8 | item_cut::LEVEL.parts,
    joins: false,
};

/// The level that `BEGIN` names.
pub fn level() -> Level {
    Level(LEVEL.parts)
}
