//! Backups: files of an instant of a node, in a folder or an object store.
//!
//! A destination holds `files/<hash>` (contents, named by their BLAKE3 hash)
//! and `backups/<id>.json` (which of them make a backup). A backup's list is
//! written last and at once, so that one that was interrupted is never seen;
//! contents that are there already never travel again.
//!
//! - [`record`]: the list of a backup, and its bytes
//! - [`store`]: the destination
//! - [`server`]: the node whose files are backed up
//! - [`create`], [`restore`], [`prune`]: what the program does

pub mod create;
pub mod prune;
pub mod record;
pub mod restore;
pub mod server;
pub mod store;

/// Says how far a piece of work is, on standard error.
pub(crate) fn tell(text: impl std::fmt::Display) {
    eprintln!("{text}");
}

/// A number of bytes for people to read.
pub fn human(bytes: u64) -> String {
    let units = [
        (1u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}
