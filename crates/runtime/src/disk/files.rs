//! The files that one lane has open.
//!
//! A file whose name was given to another file is closed before the next use of
//! the lane, or soon if the lane is idle. Other files stay open: Linux reports a
//! failed write-back to those that have the file open, so the lane that wrote it
//! must not close it before another lane syncs it.

use super::folder::Folder;
use rufous_base::disk::FileName;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A lane uses a log and its successor, or a snapshot's few files at a time.
const OPEN_FILES: usize = 16;

/// How long a file may be written to without its name being looked at. What is synced is looked at
/// each time.
const CHECK_PERIOD: Duration = Duration::from_millis(100);

struct Open {
    name: FileName,
    file: File,
    writable: bool,
    /// See [`super::ahead`].
    ahead: u64,
    /// When its name last led to it.
    checked: Instant,
}

/// When the name of a file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    Always,
    /// Once a [`CHECK_PERIOD`].
    Sometimes,
}

pub(super) struct Files {
    folder: Arc<Folder>,
    /// The last is the one used last.
    open: Vec<Open>,
    /// What of `Folder::replacements` was seen.
    seen: u64,
}

impl Files {
    pub(super) fn new(folder: Arc<Folder>) -> Self {
        Self {
            seen: folder.replacements(),
            folder,
            open: Vec::with_capacity(OPEN_FILES),
        }
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// An existing file, open for reading and perhaps for writing.
    pub(super) fn get(&mut self, name: &FileName, writable: bool) -> io::Result<&File> {
        self.close_replaced();
        let place = self.open.iter().rposition(|open| open.name == *name);
        if let Some(place) = place {
            let open = self.open.remove(place);
            if open.writable || !writable {
                self.open.push(open);
                return Ok(self.last());
            }
        }
        let path = self.folder.path_of(name)?;
        let file = OpenOptions::new().read(true).write(writable).open(path)?;
        Ok(self.keep(name, file, writable))
    }

    /// An existing file that is written to, and how far it is written ahead.
    pub(super) fn get_to_write(&mut self, name: &FileName) -> io::Result<(&File, &mut u64)> {
        self.get(name, true)?;
        let last = self.open.len() - 1;
        let Open { file, ahead, .. } = &mut self.open[last];
        Ok((file, ahead))
    }

    /// Fails where the name of the file used last does not lead to it any more: it was removed,
    /// replaced or moved away with its folder, and a start would not find what is in it.
    pub(super) fn check_last(&mut self, looks: Looks) -> io::Result<()> {
        let Some(open) = self.open.last_mut() else {
            return Ok(());
        };
        if looks == Looks::Sometimes && open.checked.elapsed() < CHECK_PERIOD {
            return Ok(());
        }
        if is_current(&self.folder, open) {
            open.checked = Instant::now();
            return Ok(());
        }
        self.folder.check()?;
        let text = "the file was removed or replaced while it was in use";
        Err(io::Error::new(io::ErrorKind::NotFound, text))
    }

    /// Whether a file is open for writing, and nothing has to be closed first.
    pub(super) fn is_at_hand(&self, name: &FileName) -> bool {
        let open = self.open.iter().rev().find(|open| open.name == *name);
        open.is_some_and(|open| open.writable) && self.folder.replacements() == self.seen
    }

    /// Keeps a file that was just opened under that name.
    pub(super) fn keep(&mut self, name: &FileName, file: File, writable: bool) -> &File {
        self.open.retain(|open| open.name != *name);
        if self.open.len() >= OPEN_FILES {
            self.open.remove(0);
        }
        self.open.push(Open {
            name: Arc::clone(name),
            file,
            writable,
            ahead: 0,
            checked: Instant::now(),
        });
        self.last()
    }

    fn last(&self) -> &File {
        &self.open[self.open.len() - 1].file
    }

    /// Closes what is not the file of its name any more.
    pub(super) fn close_replaced(&mut self) {
        let now = self.folder.replacements();
        if now == self.seen {
            return;
        }
        // Before looking: what is replaced meanwhile is looked at again.
        self.seen = now;
        let folder = &self.folder;
        self.open.retain(|open| is_current(folder, open));
    }
}

fn is_current(folder: &Folder, open: &Open) -> bool {
    let named = folder.path_of(&open.name).and_then(std::fs::metadata);
    match (named, open.file.metadata()) {
        (Ok(named), Ok(open)) => (named.dev(), named.ino()) == (open.dev(), open.ino()),
        _ => false,
    }
}
