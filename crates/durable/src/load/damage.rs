//! Why files cannot be loaded, as reported to users.

use super::super::file::MANIFEST;
use rufous_base::disk::{DiskError, FileName};
use std::fmt;

/// The reason that stops a start, and the file concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub file: FileName,
    pub offset: Option<u64>,
    pub what: String,
    pub kind: DamageKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// Bytes that were written are missing or changed.
    Damaged,
    /// Written by a newer version.
    Newer,
    /// The operating system's error when reading or changing a file.
    Disk,
}

impl Damage {
    pub(super) fn new(file: &FileName, offset: impl Into<Option<u64>>, what: String) -> Self {
        Self {
            file: file.clone(),
            offset: offset.into(),
            what,
            kind: DamageKind::Damaged,
        }
    }

    pub(super) fn newer(file: &FileName, error: impl fmt::Display) -> Self {
        Self {
            kind: DamageKind::Newer,
            ..Self::new(file, None, error.to_string())
        }
    }

    pub(super) fn manifest(what: String) -> Self {
        Self::new(&FileName::from(MANIFEST), None, what)
    }

    pub(super) fn disk(file: &FileName, doing: &str, error: &DiskError) -> Self {
        Self {
            kind: DamageKind::Disk,
            ..Self::new(file, None, format!("cannot {doing}: {error}"))
        }
    }

    /// What the user can do about it.
    pub fn advice(&self) -> &'static str {
        match self.kind {
            DamageKind::Damaged => {
                "run `rufous check-data` on the data folder: it says what is damaged, \
                 and with --repair gives up no more than it must, keeping a copy"
            }
            DamageKind::Newer => "start the version that wrote it, or a newer one",
            DamageKind::Disk => "check the disk and start again: nothing was changed",
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}
