//! One process alone uses a data folder: two would write over each other.

use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file that is locked; it holds the process's number and stays for ever.
const LOCK: &str = "lock";

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    #[error("cannot create the data folder {path}: {source}")]
    Create { path: PathBuf, source: io::Error },
    #[error("the data folder {path} is not a folder: move the file away, or choose another path")]
    NoFolder { path: PathBuf },
    #[error(
        "the data folder {path} belongs to user {owner}, and this process runs as user {user}: \
         run it as user {owner}, or make the folder and all its files over with `chown -R {user}`"
    )]
    Owner {
        path: PathBuf,
        owner: u32,
        user: u32,
    },
    #[error("cannot write to the data folder {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("the data folder {path} is in use by {}: stop that process, or choose another folder",
        .pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}")))]
    InUse { path: PathBuf, pid: Option<u32> },
    #[error("cannot lock the data folder {path}: {source}")]
    Lock { path: PathBuf, source: io::Error },
}

/// Keeps other processes, and other nodes of this one, out of a data folder
/// until it is dropped. The system lets go of it when the process ends.
#[derive(Debug)]
pub struct DirLock {
    path: PathBuf,
    /// Locked as long as it is open.
    file: File,
}

impl DirLock {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still leads to the folder that is locked.
    pub fn is_in_place(&self) -> bool {
        let named = std::fs::metadata(self.path.join(LOCK));
        match (named, self.file.metadata()) {
            (Ok(named), Ok(locked)) => (named.dev(), named.ino()) == (locked.dev(), locked.ino()),
            _ => false,
        }
    }
}

/// Makes the folder where there is none, and takes it for this process.
pub fn lock_data_dir(path: &Path) -> Result<DirLock, DirError> {
    let path = path.to_path_buf();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    let metadata = match (std::fs::metadata(&path), made) {
        (Ok(metadata), _) => metadata,
        (Err(_), Err(source)) | (Err(source), Ok(())) => {
            return Err(DirError::Create { path, source });
        }
    };
    if !metadata.is_dir() {
        return Err(DirError::NoFolder { path });
    }
    let (owner, user) = (metadata.uid(), geteuid().as_raw());
    if owner != user {
        return Err(DirError::Owner { path, owner, user });
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    let mut file = match options.open(path.join(LOCK)) {
        Ok(file) => file,
        Err(source) => return Err(DirError::Write { path, source }),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let pid = read_pid(&mut file);
            return Err(DirError::InUse { path, pid });
        }
        Err(TryLockError::Error(source)) => return Err(DirError::Lock { path, source }),
    }
    if let Err(source) = write_pid(&mut file)
        // The number is for people; a node with a full disk still answers reads.
        && !matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    {
        return Err(DirError::Write { path, source });
    }
    Ok(DirLock { path, file })
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_is_made_for_its_owner_alone_and_locked_once() {
        let temporary = tempfile::tempdir().expect("a folder");
        let path = temporary.path().join("new").join("data");
        let lock = lock_data_dir(&path).expect("free");
        assert_eq!(lock.path(), path);
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode();
        assert_eq!(mode(&path) & 0o777, 0o700);
        assert_eq!(mode(&path.join(LOCK)) & 0o777, 0o600);

        let error = lock_data_dir(&path).expect_err("in use");
        let pid = std::process::id();
        assert!(matches!(&error, DirError::InUse { pid: Some(by), .. } if *by == pid));
        let text = error.to_string();
        assert!(text.contains(&path.display().to_string()), "{text}");
        assert!(text.contains(&format!("process {pid}")), "{text}");

        drop(lock);
        lock_data_dir(&path).expect("free again");
    }

    #[test]
    fn what_cannot_be_a_data_folder_is_told_with_its_name() {
        let temporary = tempfile::tempdir().expect("a folder");
        let file = temporary.path().join("file");
        std::fs::write(&file, b"").expect("written");
        let error = lock_data_dir(&file).expect_err("no folder");
        assert!(matches!(error, DirError::NoFolder { .. }), "{error}");
        let error = lock_data_dir(&file.join("below")).expect_err("no folder above");
        assert!(matches!(error, DirError::Create { .. }), "{error}");
        assert!(error.to_string().contains("below"), "{error}");
        let taken = temporary.path().join("taken");
        std::fs::create_dir_all(taken.join(LOCK)).expect("made");
        let error = lock_data_dir(&taken).expect_err("the lock is a folder");
        assert!(matches!(error, DirError::Write { .. }), "{error}");
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused_with_what_to_do() {
        let temporary = tempfile::tempdir().expect("a folder");
        if !geteuid().is_root() {
            // Only the superuser can give a folder away; `/` is root's.
            let error = lock_data_dir(Path::new("/")).expect_err("not mine");
            assert!(matches!(error, DirError::Owner { owner: 0, .. }), "{error}");
            return;
        }
        std::os::unix::fs::chown(temporary.path(), Some(4321), None).expect("root may");
        let error = lock_data_dir(temporary.path()).expect_err("not mine");
        assert!(matches!(
            error,
            DirError::Owner {
                owner: 4321,
                user: 0,
                ..
            }
        ));
        let text = error.to_string();
        assert!(text.contains("chown") && text.contains("4321"), "{text}");
    }
}
