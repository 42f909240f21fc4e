//! The data folder of a node, which all lanes of all workers share.

use rustix::thread::CpuSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;

pub(crate) struct Folder {
    path: Option<PathBuf>,
    /// The device and number of the folder, as first seen.
    identity: OnceLock<(u64, u64)>,
    /// Where lanes may run, if not where the worker does that starts them.
    cpus: Option<CpuSet>,
    /// Times that a name came to mean another file, or none.
    replaced: AtomicU64,
    /// Threads that keep files open.
    lanes: Mutex<Vec<Thread>>,
}

impl Folder {
    /// Where there is no `path`, every request fails.
    pub(crate) fn new(path: Option<PathBuf>, cpus: Option<CpuSet>) -> Self {
        Self {
            path,
            identity: OnceLock::new(),
            cpus,
            replaced: AtomicU64::new(0),
            lanes: Mutex::default(),
        }
    }

    pub(super) fn path(&self) -> io::Result<&Path> {
        let path = self.path.as_deref();
        path.ok_or_else(|| io::Error::other("this node has no data folder"))
    }

    /// Fails where the path does not lead to the folder that the node began with: what is written to
    /// open files would not be found by a start.
    pub(super) fn check(&self) -> io::Result<()> {
        let path = self.path()?;
        let how = match fs::metadata(path) {
            Ok(found) => {
                let found = (found.dev(), found.ino());
                if *self.identity.get_or_init(|| found) == found {
                    return Ok(());
                }
                "is another one than at the start"
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => "was removed or renamed",
            Err(error) => return Err(error),
        };
        let text = format!(
            "the data folder {} {how}: put the one back that this node began with",
            path.display()
        );
        Err(io::Error::new(io::ErrorKind::NotFound, text))
    }

    /// Where the file of that name lies.
    pub(super) fn path_of(&self, name: &str) -> io::Result<PathBuf> {
        let inside = !name.is_empty() && name != "." && name != ".." && !name.contains('/');
        if !inside {
            let text = "not a name that a file of the data folder can have";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(self.path()?.join(name))
    }

    /// The calling thread keeps files open from now on.
    pub(super) fn join(&self) {
        if let Some(cpus) = &self.cpus
            && let Err(error) = rustix::thread::sched_setaffinity(None, cpus)
        {
            tracing::debug!(%error, "a disk thread shares its worker's core");
        }
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.push(std::thread::current());
    }

    /// Says that a name means another file now, or none. Every lane looks
    /// through its open files before it uses one again, those that have nothing
    /// to do at once: the room of a removed file is free when all have closed it.
    pub(super) fn replaced(&self) {
        self.replaced.fetch_add(1, Ordering::Release);
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in lanes.iter() {
            lane.unpark();
        }
    }

    /// Changes with every call of [`Folder::replaced`].
    pub(super) fn replacements(&self) -> u64 {
        self.replaced.load(Ordering::Acquire)
    }
}
