//! The coordinator of one process: a file in the data directory.
//!
//! A change is written to a second file, synced, and renamed over the first, and the directory is
//! synced before the change is published. After an interruption the file is as it was.
//!
//! ```text
//!   0       8       12     16       24        24+n
//!   ┌───────┬───────┬──────┬────────┬─────────┐
//!   │ magic │ crc32 │ zero │ epoch  │ mapping │   (little-endian; the checksum is of
//!   └───────┴───────┴──────┴────────┴─────────┘    all behind it)
//! ```

use crate::{
    AgreedMapping, Coordinator, Error, MAX_MAPPING, Member, Proposed, View, check_about, check_size,
};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

const MAGIC: [u8; 8] = *b"\xb5Mappng\n";
const HEADER: usize = 24;
pub(crate) const NAME: &str = "mapping";
const NEXT: &str = "mapping.next";

/// See the module's description. The calling thread writes the file: it is meant for the thread
/// that plans, never for one that serves.
#[derive(Clone, Debug)]
pub struct Local {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    /// The content of the file; locked while it changes.
    state: Mutex<Option<AgreedMapping>>,
    view: watch::Sender<View>,
}

impl Local {
    /// The folder must belong to this process alone: the caller holds its lock.
    pub fn open(folder: &Path, me: Member) -> Result<Self, Error> {
        let state = read(&folder.join(NAME))?;
        let view = View {
            is_current: true,
            is_member: true,
            state: state.clone(),
            leader: Some(me.id),
            members: [(me.id, me)].into(),
            behind: None,
        };
        let inner = Inner {
            folder: folder.to_owned(),
            state: Mutex::new(state),
            view: watch::Sender::new(view),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }
}

impl Coordinator for Local {
    fn view(&self) -> watch::Receiver<View> {
        self.inner.view.subscribe()
    }

    async fn read(&self) -> Result<Option<AgreedMapping>, Error> {
        let state = self.inner.state.lock();
        Ok(state.unwrap_or_else(PoisonError::into_inner).clone())
    }

    async fn propose(&self, expected: u64, mapping: Vec<u8>) -> Result<Proposed, Error> {
        check_size(&mapping)?;
        let inner = &self.inner;
        if !inner.view.borrow().is_member {
            return Ok(Proposed::NotAlive);
        }
        let mut state = inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.as_ref().map_or(0, |state| state.epoch) != expected {
            return Ok(Proposed::Behind(state.clone()));
        }
        let next = AgreedMapping {
            epoch: expected + 1,
            mapping,
        };
        write(&inner.folder, &next).map_err(away)?;
        *state = Some(next.clone());
        inner.view.send_modify(|view| view.advance(next));
        Ok(Proposed::Taken)
    }

    async fn announce(&self, about: Vec<u8>) -> Result<(), Error> {
        check_about(&about)?;
        self.inner.view.send_modify(|view| {
            for member in view.members.values_mut() {
                member.about.clone_from(&about);
            }
        });
        Ok(())
    }

    async fn leave(self) {
        self.inner.view.send_modify(|view| {
            view.is_member = false;
            view.members.clear();
            view.leader = None;
        });
    }
}

fn away(error: io::Error) -> Error {
    Error::Away(error.to_string())
}

/// Puts a mapping into a folder, in place of the last one.
pub fn write(folder: &Path, state: &AgreedMapping) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&state.epoch.to_le_bytes());
    bytes.extend_from_slice(&state.mapping);
    let crc = crc32fast::hash(&bytes[12..]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    let next = folder.join(NEXT);
    let mut file = File::create(&next)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&next, folder.join(NAME))?;
    File::open(folder)?.sync_all()
}

/// The mapping in a folder.
pub fn read_in(folder: &Path) -> Result<Option<AgreedMapping>, Error> {
    read(&folder.join(NAME))
}

/// A damaged file is an error: without it the earlier epochs are unknown.
pub(crate) fn read(path: &Path) -> Result<Option<AgreedMapping>, Error> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => {
            let limit = (HEADER + MAX_MAPPING + 1) as u64;
            file.take(limit).read_to_end(&mut bytes).map_err(away)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(away(error)),
    }
    let damaged = |what: &str| Error::Damaged(format!("{} {what}", path.display()));
    let Some((header, mapping)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(damaged("is cut"));
    };
    if header[..8] != MAGIC || header[12..16] != [0; 4] {
        return Err(damaged("has another format or a newer version"));
    }
    if header[8..12] != crc32fast::hash(&bytes[12..]).to_le_bytes() {
        return Err(damaged("has a wrong checksum"));
    }
    check_size(mapping)?;
    let mut epoch = [0; 8];
    epoch.copy_from_slice(&header[16..24]);
    Ok(Some(AgreedMapping {
        epoch: u64::from_le_bytes(epoch),
        mapping: mapping.to_vec(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;

    fn me() -> Member {
        Member {
            id: NodeId([1; 20]),
            incarnation: 1,
            after: 0,
            about: Vec::new(),
        }
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = AgreedMapping {
            epoch: 7,
            mapping: b"who has what".to_vec(),
        };
        write(folder.path(), &state).expect("written");
        let path = folder.path().join(NAME);
        assert_eq!(read(&path).expect("whole"), Some(state));
        let whole = fs::read(&path).expect("a file");
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).expect("written");
            assert!(Local::open(folder.path(), me()).is_err(), "byte {at}");
            fs::write(&path, &whole[..at]).expect("written");
            assert!(Local::open(folder.path(), me()).is_err(), "cut at {at}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_not_in_force() {
        let folder = tempfile::tempdir().expect("a folder");
        let local = Local::open(folder.path(), me()).expect("open");
        assert_eq!(local.propose(0, vec![1]).await.ok(), Some(Proposed::Taken));
        // The file cannot be created any more.
        fs::create_dir(folder.path().join(NEXT)).expect("a folder");
        assert!(local.propose(1, vec![2]).await.is_err());
        let state = local.read().await.expect("read").expect("a state");
        assert_eq!((state.epoch, state.mapping), (1, vec![1]));
        assert_eq!(local.view().borrow().epoch(), 1);
        fs::remove_dir(folder.path().join(NEXT)).expect("gone");
        assert_eq!(local.propose(1, vec![3]).await.ok(), Some(Proposed::Taken));
        let again = Local::open(folder.path(), me()).expect("open");
        assert_eq!(again.view().borrow().epoch(), 2);
    }
}
