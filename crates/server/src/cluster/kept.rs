//! The last mapping that the node applied, kept beside its data, and whether the coordinator has lost
//! it since.
//!
//! ```text
//!   cluster/kept/name      the name of the cluster whose mapping it is
//!   cluster/kept/mapping   the mapping, in the format of `mapping` in docs/format
//!   cluster/kept/behind    exists while the coordinator does not have it
//! ```
//!
//! A coordinator that was restored to an earlier state would otherwise have a node that starts act by
//! chains of the past, whose members may lack acknowledged writes. A node that is started with another
//! cluster's name takes that cluster's mapping, whatever its epoch.

use super::settings::{CoordinatorAddress, Settings};
use rufous_cluster::control::Kept;
use rufous_coordinator::{AgreedMapping, Error, local};
use rufous_mapping::Mapping;
use rufous_wire::mapping::{decode, encode};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

const FOLDER: &str = "kept";
const BEHIND: &str = "behind";
/// Beside the folder: the node was in a cluster.
const JOINED: &str = "joined";
const NAME: &str = "name";

/// See the module's description. Without a folder nothing is kept: the next start is another node.
/// Nor is anything kept with a coordinator in the same folder, which goes back only with the data, or
/// with one in this process, which always begins with nothing.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    folder: Option<PathBuf>,
    /// Of the cluster.
    name: String,
    wanted: Mutex<Wanted>,
}

/// What is to be written. The latest mapping is enough.
#[derive(Debug, Default)]
struct Wanted {
    mapping: Option<Arc<Mapping>>,
    is_behind: Option<bool>,
    is_writing: bool,
}

impl Keeping {
    /// Below the folder of the node's identity.
    pub(super) fn below(folder: Option<&Path>, settings: &Settings) -> Self {
        let is_elsewhere = match settings.coordinator {
            CoordinatorAddress::Etcd(_) | CoordinatorAddress::Loopback(_) => true,
            CoordinatorAddress::Local | CoordinatorAddress::Meeting(_) => false,
        };
        Self {
            folder: folder
                .filter(|_| is_elsewhere)
                .map(|folder| folder.join(FOLDER)),
            name: settings.name.clone(),
            wanted: Mutex::default(),
        }
    }

    /// A mapping is applied. Like the next one, this does not wait for the disk: a disk that hangs must
    /// not keep the node from following its cluster.
    pub(super) fn keep_later(self: &Arc<Self>, mapping: Arc<Mapping>) {
        self.want(|wanted| wanted.mapping = Some(mapping));
    }

    /// The coordinator has lost the last mapping, or has it again.
    pub(super) fn set_behind_later(self: &Arc<Self>, is_behind: bool) {
        self.want(|wanted| wanted.is_behind = Some(is_behind));
    }

    fn want(self: &Arc<Self>, change: impl FnOnce(&mut Wanted)) {
        if self.folder.is_none() {
            return;
        }
        let mut wanted = self.wanted();
        change(&mut wanted);
        if wanted.is_writing {
            return;
        }
        let keeping = Arc::clone(self);
        let named = thread::Builder::new().name("kept".to_owned());
        // The process does not wait for this thread at its end.
        match named.spawn(move || keeping.write_all()) {
            Ok(_) => wanted.is_writing = true,
            Err(error) => warn(&error),
        }
    }

    fn write_all(&self) {
        loop {
            let mut wanted = self.wanted();
            let (mapping, is_behind) = (wanted.mapping.take(), wanted.is_behind.take());
            wanted.is_writing = mapping.is_some() || is_behind.is_some();
            if !wanted.is_writing {
                return;
            }
            drop(wanted);
            let kept = mapping.map_or(Ok(()), |mapping| self.keep(&mapping));
            let noted = is_behind.map_or(Ok(()), |is_behind| self.set_behind(is_behind));
            if let Err(error) = kept.and(noted) {
                warn(&error);
            }
        }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the folder has what was kept of this cluster.
    fn is_of_cluster(&self, folder: &Path) -> io::Result<bool> {
        match fs::read(folder.join(NAME)) {
            Ok(name) => Ok(name == self.name.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Drops what was kept of another cluster.
    fn begin(&self, folder: &Path) -> io::Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        // Never the data folder itself: it may have been moved, and is to be moved back.
        let above = folder.parent().unwrap_or(folder);
        File::create(above.join(JOINED))?.sync_all()?;
        fs::create_dir(folder)?;
        let mut file = File::create(folder.join(NAME))?;
        file.write_all(self.name.as_bytes())?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        folder
            .parent()
            .map_or(Ok(()), |above| File::open(above)?.sync_all())
    }

    /// Whether the node was in a cluster whose last mapping the folder does not have, and which it would not recognise.
    pub(super) fn has_lost(&self, kept: &Kept) -> bool {
        let above = self.folder.as_deref().and_then(Path::parent);
        kept.mapping.is_none() && above.is_some_and(|above| above.join(JOINED).exists())
    }

    pub(super) fn read(&self) -> Result<Kept, Error> {
        let Some(folder) = &self.folder else {
            return Ok(Kept::default());
        };
        let unreadable = |error| Error::Away(format!("{}: {error}", folder.display()));
        if !self.is_of_cluster(folder).map_err(unreadable)? {
            return Ok(Kept::default());
        }
        let damaged = |what: &str| Error::Damaged(format!("{}: {what}", folder.display()));
        let found = local::read_in(folder)?;
        let decoded = found.map(|state| decode(&state.mapping));
        let mapping = decoded
            .transpose()
            .map_err(|invalid| damaged(invalid.0))?
            .map(Arc::new);
        Ok(Kept {
            mapping,
            is_behind: folder.join(BEHIND).exists(),
        })
    }

    fn keep(&self, mapping: &Mapping) -> io::Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        if !self.is_of_cluster(folder)? {
            self.begin(folder)?;
        }
        let state = AgreedMapping {
            epoch: mapping.epoch,
            mapping: encode(mapping),
        };
        local::write(folder, &state)
    }

    fn set_behind(&self, is_behind: bool) -> io::Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let path = folder.join(BEHIND);
        let done = if is_behind {
            File::create(&path).map(|_| ())
        } else {
            fs::remove_file(&path)
        };
        match done {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            done => done?,
        }
        File::open(folder)?.sync_all()
    }
}

fn warn(error: &io::Error) {
    tracing::warn!(%error, "cannot keep the mapping beside the data: if the coordinator loses it, the next start of this node does not notice");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mapping_is_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = |name| Settings {
            coordinator: CoordinatorAddress::Loopback(String::new()),
            ..Settings::new(name)
        };
        let keeping = Keeping::below(Some(folder.path()), &settings("birds"));
        let none = keeping.read().expect("nothing");
        assert!(none.mapping.is_none() && !none.is_behind);
        assert!(!keeping.has_lost(&none));
        for epoch in [3, 4] {
            let mapping = Mapping {
                epoch,
                ..Mapping::new(2)
            };
            keeping.keep(&mapping).expect("kept");
            let kept = keeping.read().expect("kept");
            assert_eq!(kept.mapping.as_deref(), Some(&mapping));
        }
        for is_behind in [true, true, false, false] {
            keeping.set_behind(is_behind).expect("kept");
            assert_eq!(keeping.read().expect("kept").is_behind, is_behind);
        }
        keeping.set_behind(true).expect("kept");
        let other = Keeping::below(Some(folder.path()), &settings("fish"));
        let none = other.read().expect("another cluster");
        assert!(none.mapping.is_none() && !none.is_behind);
        assert!(other.has_lost(&none));
        other.keep(&Mapping::new(1)).expect("kept");
        let kept = other.read().expect("kept");
        assert!(kept.mapping.is_some() && !kept.is_behind);
        assert!(keeping.read().expect("replaced").mapping.is_none());
        fs::write(folder.path().join("kept/mapping"), b"short").expect("written");
        assert!(other.read().is_err());
        let local = Keeping::below(Some(folder.path()), &Settings::new("fish"));
        assert!(local.read().expect("not looked for").mapping.is_none());
    }

    #[test]
    fn a_folder_that_was_moved_is_not_made_again() {
        let above = tempfile::tempdir().expect("a folder");
        let [folder, moved] = ["here", "there"].map(|name| above.path().join(name));
        fs::create_dir(&folder).expect("made");
        let settings = Settings {
            coordinator: CoordinatorAddress::Loopback(String::new()),
            ..Settings::new("birds")
        };
        let keeping = Keeping::below(Some(&folder), &settings);
        keeping.keep(&Mapping::new(1)).expect("kept");
        fs::rename(&folder, &moved).expect("moved");
        assert!(keeping.keep(&Mapping::new(1)).is_err());
        assert!(!folder.exists());
        fs::rename(&moved, &folder).expect("moved back");
        keeping.keep(&Mapping::new(1)).expect("kept");
    }
}
