//! Outliving a crash: what is written to disk, and how it is read again.
//!
//! Pure: it makes requests to a disk and is told what became of them, never
//! touching a file itself. The bytes are drawn in docs/format.
//!
//! Map, in reading order:
//! - [`entry`]: what else stands between effects in a log
//! - [`frame`]: entries under a checksum, the unit that is written or not
//! - [`scan`]: frames out of a file's bytes, whatever those are
//! - [`evidence`]: what is still readable behind a damaged place
//! - [`file`](mod@file): names and headers of files
//! - [`manifest`]: which files hold the data
//! - [`load`]: a start: what the files hold, into a shard
//! - [`check`]: the same without a node, and repairs
//! - [`resolve`]: which commands over several workers are whole
//! - [`log`]: writes frames, and says how far they are committed
//! - [`keeper`]: when to save, and which files are needed
//! - [`note`]: what workers tell one another of loading and saving
//! - [`snapshot`]: writes all of a shard's data into a file
#![forbid(unsafe_code)]

pub mod check;
pub mod entry;
pub mod evidence;
pub mod file;
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
pub use log::{Fsync, Identity, LogConfig, LogGauges, LogWriter, Outcome};
pub use manifest::{Manifest, ManifestError, SnapshotFile};
pub use note::{Event, LoadPlan, Note};
pub use resolve::Verdict;
pub use rufous_store::effect::{self, Effect, SlotMark};
pub use scan::{Bad, Frame, FrameReader, Step, Why};
pub use snapshot::{SnapshotState, SnapshotWriter};

/// Whose a disk request is: the high byte of its id.
pub mod ids {
    pub const LOG: u64 = 1 << 56;
    pub const SNAPSHOT: u64 = 2 << 56;
    pub const LOAD: u64 = 3 << 56;
    pub const SAVE: u64 = 4 << 56;

    /// Which of them an id belongs to.
    pub fn space(id: u64) -> u64 {
        id & (0xFF << 56)
    }
}
