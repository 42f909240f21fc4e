//! The connected nodes, and how two nodes with the same id are told apart.

use crate::message::{Hello, ID};
use crate::refused::Refused;
use crate::version;
use rufous_mapping::member::MAX_MEMBERS;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A node's permanent id.
pub type Id = [u8; ID];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Start {
    incarnation: u64,
    /// Random; differs between two nodes that are copies of one.
    start: u64,
    sessions: usize,
    versions: Versions,
}

/// What a connected node has announced about its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Empty if the program does not send it.
    pub program: String,
    /// The versions of the messages between nodes that it speaks.
    pub oldest: u16,
    pub newest: u16,
}

/// The peers of one node, over all of its sessions at any worker: clones share their state. It is
/// accessed when a session begins and ends, and never in between.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    connected: Arc<Mutex<BTreeMap<Id, Start>>>,
}

impl Peers {
    /// A peer introduces itself. One node can have several sessions: an old one whose end is not
    /// noticed yet, and the one that replaces it.
    pub(crate) fn enter(&self, id: Id, hello: &Hello) -> Result<(), Refused> {
        let new = Start {
            incarnation: hello.incarnation,
            start: hello.start,
            sessions: 1,
            versions: Versions::of(hello),
        };
        let mut connected = self.lock();
        if let Some(known) = connected.get_mut(&id) {
            if known.incarnation > new.incarnation {
                return Err(Refused::Outdated);
            }
            if known.incarnation < new.incarnation {
                // Sessions of its earlier incarnation have no effect when they end.
                *known = new;
            } else if known.start == new.start {
                known.sessions += 1;
            } else {
                return Err(Refused::Duplicate);
            }
            return Ok(());
        }
        if connected.len() >= MAX_MEMBERS {
            return Err(Refused::TooMany);
        }
        connected.insert(id, new);
        Ok(())
    }

    /// One of its sessions has ended.
    pub(crate) fn leave(&self, id: Id, hello: &Hello) {
        let mut connected = self.lock();
        let Some(known) = connected.get_mut(&id) else {
            return;
        };
        if (known.incarnation, known.start) != (hello.incarnation, hello.start) {
            return;
        }
        known.sessions -= 1;
        if known.sessions == 0 {
            connected.remove(&id);
        }
    }

    /// The versions of a node, while it is connected.
    pub fn versions(&self, id: &Id) -> Option<Versions> {
        self.lock().get(id).map(|known| known.versions.clone())
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Id, Start>> {
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Versions {
    pub(crate) fn of(hello: &Hello) -> Self {
        // Greater numbers are not accepted.
        let number = |version: u32| u16::try_from(version).unwrap_or(u16::MAX);
        Self {
            program: hello.program.clone(),
            oldest: number(hello.oldest),
            newest: number(hello.newest),
        }
    }

    /// The newest version of the messages that both nodes know.
    pub fn agree(&self, other: &Self) -> Option<u16> {
        version::agree(self.oldest..=self.newest, other.oldest..=other.newest)
    }
}
