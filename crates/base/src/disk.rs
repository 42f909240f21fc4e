//! An actor's requests to its disk, and their answers.
//!
//! An actor names files and operations on them; the driver carries them out, off the
//! actor's thread if they may take long, and answers each request once. All files lie
//! directly in the node's data folder.
//!
//! What a driver promises:
//! 1. Requests of one lane are carried out one after the other, in the order
//!    asked for; lanes go on side by side.
//! 2. A request that fails leaves the later ones of its lane alone.
//! 3. `Ok` to a write means that the bytes outlive this process; only a sync
//!    makes them outlive the machine's power. Closing a file does neither.
//! 4. Names (created, renamed, removed) outlive the power after `SyncNames`.

use std::sync::Arc;

/// A file's name within the data folder: no separators, never empty.
pub type FileName = Arc<str>;

/// Requests that are carried out in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// What replies wait for.
    Log,
    /// Syncs that no reply waits for.
    Sync,
    /// Everything large: snapshots, loading, making and removing files.
    Bulk,
}

impl Lane {
    pub const ALL: [Lane; 3] = [Lane::Log, Lane::Sync, Lane::Bulk];

    pub fn index(self) -> usize {
        match self {
            Lane::Log => 0,
            Lane::Sync => 1,
            Lane::Bulk => 2,
        }
    }
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// Comes back with the answer; means nothing to the driver.
    pub id: u64,
    pub lane: Lane,
    pub op: DiskOp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskOp {
    /// Makes an empty file, also where there is one of that name, and reserves
    /// room for `reserve` bytes where the file system can (they read as zeros). Of a few
    /// bytes only the length is made, for which a full disk has room.
    Create {
        file: FileName,
        reserve: u64,
    },
    /// Writes at a place of a file that exists; then syncs its data, if so asked.
    Write {
        file: FileName,
        at: u64,
        bytes: Vec<u8>,
        sync: bool,
    },
    /// Everything written to the file so far outlives the power.
    Sync {
        file: FileName,
    },
    /// Likewise the names of files.
    SyncNames,
    /// Takes the place of a file called `to`.
    Rename {
        from: FileName,
        to: FileName,
    },
    /// Does nothing where there is no such file.
    Remove {
        file: FileName,
    },
    Truncate {
        file: FileName,
        bytes: u64,
    },
    /// Fewer than `bytes` come only at the end of the file.
    Read {
        file: FileName,
        at: u64,
        bytes: usize,
    },
    /// All files.
    List,
}

/// The answer to a request.
#[derive(Debug)]
pub struct DiskDone {
    pub id: u64,
    pub result: Result<DiskReply, DiskError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskReply {
    Done,
    /// The buffer of a write, to be used again.
    Wrote(Vec<u8>),
    Read(Vec<u8>),
    Files(Vec<FileInfo>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    pub file: FileName,
    pub bytes: u64,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskError {
    pub kind: DiskErrorKind,
    /// As the system says it, without the file's name.
    pub text: String,
    /// What was to be written, given back whole.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskErrorKind {
    /// No room, or over a quota: it may pass.
    Full,
    NotFound,
    /// No permission, or a read-only file system.
    Denied,
    /// Syncing failed: what was written to the file since the last sync may be
    /// gone although reading still shows it.
    Sync,
    /// Anything else.
    Io,
}

impl std::fmt::Display for DiskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
