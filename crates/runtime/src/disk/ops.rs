//! What each request does to the files.

use super::ahead;
use super::files::{Files, Looks};
use super::folder::Folder;
use rufous_base::disk::{
    DiskDone, DiskError, DiskErrorKind, DiskOp, DiskReply, DiskRequest, FileInfo, FileName,
};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// New files are the owner's alone: they hold what users store.
const MODE: u32 = 0o600;

pub(super) struct Ops {
    files: Files,
    /// The folder itself, once its names were synced.
    names: Option<File>,
}

/// An error, and whether it came of syncing.
enum Failure {
    Plain(io::Error),
    Sync(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Plain(error)
    }
}

impl Ops {
    pub(super) fn new(folder: Arc<Folder>) -> Self {
        Self {
            files: Files::new(folder),
            names: None,
        }
    }

    /// See [`Files::close_replaced`].
    pub(super) fn close_replaced(&mut self) {
        self.files.close_replaced();
    }

    /// Whether carrying it out is a write to a file that is open, and no more.
    pub(super) fn only_writes(&self, op: &DiskOp) -> bool {
        match op {
            DiskOp::Write { file, sync, .. } => !sync && self.files.is_at_hand(file),
            _ => false,
        }
    }

    pub(super) fn carry_out(&mut self, request: DiskRequest) -> DiskDone {
        let DiskRequest { id, op, .. } = request;
        let mut written = Vec::new();
        let result = match self.attempt(op, &mut written) {
            Ok(reply) => Ok(reply),
            Err(failure) => Err(told(failure, written)),
        };
        DiskDone { id, result }
    }

    /// Leaves what was to be written in `written` where that fails.
    fn attempt(&mut self, op: DiskOp, written: &mut Vec<u8>) -> Result<DiskReply, Failure> {
        match op {
            DiskOp::Create { file, reserve } => self.create(&file, reserve)?,
            DiskOp::Write {
                file,
                at,
                bytes,
                sync,
            } => {
                *written = bytes;
                self.write(&file, at, written, sync)?;
                return Ok(DiskReply::Wrote(std::mem::take(written)));
            }
            DiskOp::Sync { file } => {
                let file = self.files.get(&file, true)?;
                file.sync_data().map_err(Failure::Sync)?;
                self.files.check_last(Looks::Always)?;
            }
            DiskOp::SyncNames => self.sync_names()?,
            DiskOp::Rename { from, to } => {
                let folder = self.files.folder();
                folder.check()?;
                fs::rename(folder.path_of(&from)?, folder.path_of(&to)?)?;
                folder.replaced();
            }
            DiskOp::Remove { file } => {
                let folder = self.files.folder();
                folder.check()?;
                match fs::remove_file(folder.path_of(&file)?) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    other => other?,
                }
                folder.replaced();
            }
            DiskOp::Truncate { file, bytes } => self.files.get(&file, true)?.set_len(bytes)?,
            DiskOp::Read { file, at, bytes } => {
                return Ok(DiskReply::Read(self.read(&file, at, bytes)?));
            }
            DiskOp::List => {
                self.files.folder().check()?;
                return Ok(DiskReply::Files(list(self.files.folder().path()?)?));
            }
        }
        Ok(DiskReply::Done)
    }

    fn write(&mut self, file: &FileName, at: u64, bytes: &[u8], sync: bool) -> Result<(), Failure> {
        let (file, written) = self.files.get_to_write(file)?;
        ahead::write_all(file, at, bytes, sync, written)?;
        let looks = if sync {
            file.sync_data().map_err(Failure::Sync)?;
            Looks::Always
        } else {
            Looks::Sometimes
        };
        Ok(self.files.check_last(looks)?)
    }

    /// A file that is there already is let go rather than truncated: it may
    /// have another name elsewhere.
    fn create(&mut self, name: &FileName, reserve: u64) -> io::Result<()> {
        self.files.folder().check()?;
        let path = self.files.folder().path_of(name)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(MODE);
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path)?;
                self.files.folder().replaced();
                options.open(&path)?
            }
            other => other?,
        };
        if let Err(error) = reserve_room(&file, reserve) {
            // Gives back what room there was.
            let _ = fs::remove_file(&path);
            self.files.folder().replaced();
            return Err(error);
        }
        self.files.keep(name, file, true);
        Ok(())
    }

    /// No more memory is taken than the file has bytes.
    fn read(&mut self, file: &FileName, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let file = self.files.get(file, false)?;
        let left = file.metadata()?.len().saturating_sub(at);
        let bytes = usize::try_from(left).map_or(bytes, |left| bytes.min(left));
        let mut all = Vec::new();
        all.try_reserve_exact(bytes)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        while all.len() < bytes {
            let place = at + all.len() as u64;
            // The capacity may be more than was asked for.
            let spare = rustix::buffer::spare_capacity(&mut all);
            match rustix::io::pread(file, spare, place) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        all.truncate(bytes);
        Ok(all)
    }

    fn sync_names(&mut self) -> Result<(), Failure> {
        let names = match &mut self.names {
            Some(names) => names,
            none => {
                let folder = self.files.folder();
                folder.check()?;
                none.insert(File::open(folder.path()?)?)
            }
        };
        names.sync_all().map_err(Failure::Sync)?;
        Ok(self.files.folder().check()?)
    }
}

/// So few bytes are a length alone, which a full disk can give, too.
const LENGTH_ALONE: u64 = 512;

/// Where the file system cannot reserve, the file gets its length at least.
fn reserve_room(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    if bytes <= LENGTH_ALONE {
        return file.set_len(bytes);
    }
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes)) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(bytes),
        Err(error) => Err(error.into()),
    }
}

fn list(folder: &Path) -> io::Result<Vec<FileInfo>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            // No actor could name it.
            continue;
        };
        let metadata = match entry.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        if metadata.is_file() {
            files.push(FileInfo {
                file: name.into(),
                bytes: metadata.len(),
            });
        }
    }
    Ok(files)
}

fn told(failure: Failure, bytes: Vec<u8>) -> DiskError {
    let (kind, error) = match failure {
        Failure::Sync(error) => (DiskErrorKind::Sync, error),
        Failure::Plain(error) => (kind(&error), error),
    };
    DiskError {
        kind,
        text: error.to_string(),
        bytes,
    }
}

fn kind(error: &io::Error) -> DiskErrorKind {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => DiskErrorKind::Full,
        Some(Errno::NOENT) => DiskErrorKind::NotFound,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => DiskErrorKind::Denied,
        None if error.kind() == io::ErrorKind::NotFound => DiskErrorKind::NotFound,
        _ => DiskErrorKind::Io,
    }
}
