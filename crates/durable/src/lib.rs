//! Durability: the files written to disk, and how they are read again.
//!
//! Pure: it makes requests to a disk and receives their results, and never touches a file itself.
//! docs/format describes the bytes.
//!
//! Map, in reading order:
//! - [`entry`]: the entries of a log besides effects
//! - [`frame`]: entries under one checksum, written as a whole or not at all
//! - [`scan`]: reads frames from the bytes of a file, whatever its state
//! - [`evidence`]: finds readable frames behind a damaged place
//! - [`file`](mod@file): names and headers of files
//! - [`manifest`]: names the files that hold the data
//! - [`load`]: a start: loads the files into a shard
//! - [`check`]: checks files without a node, and repairs them
//! - [`resolve`]: decides which commands over several workers are complete
//! - [`log`]: writes frames, and reports how far they are committed
//! - [`keeper`]: decides when to save, and which files are needed
//! - [`note`]: messages between workers on loading and saving
//! - [`snapshot`]: writes all of a shard's data into a file
#![forbid(unsafe_code)]

pub mod check;
pub mod entry;
pub mod evidence;
pub mod file;
mod flip;
pub mod frame;
pub mod keeper;
pub mod load;
pub mod log;
pub mod manifest;
pub mod note;
pub mod resolve;
pub mod scan;
pub mod snapshot;
#[cfg(test)]
mod testing;

pub use entry::{Entry, TxnId};
pub use evidence::{Evidence, EvidenceFinder};
pub use file::{DataFile, FileHeader, FileKind, HeaderError};
pub use load::{Damage, Folder, Loaded, Loader, LogSummary, Plan, Stage};
pub use log::{Bounds, Fsync, Identity, LogConfig, LogGauges, LogWriter, Outcome};
pub use manifest::{Manifest, ManifestError, SnapshotFile};
pub use note::{Event, LoadPlan, Note};
pub use resolve::Verdict;
pub use rufous_store::effect::{self, Effect, SlotMark};
pub use scan::{Bad, Frame, FrameReader, Step, Why};
pub use snapshot::{SnapshotState, SnapshotWriter};

/// The owner of a disk request: the high byte of its id.
pub mod ids {
    pub const LOG: u64 = 1 << 56;
    pub const SNAPSHOT: u64 = 2 << 56;
    pub const LOAD: u64 = 3 << 56;
    pub const SAVE: u64 = 4 << 56;

    /// The owner of an id.
    pub fn space(id: u64) -> u64 {
        id & (0xFF << 56)
    }
}
