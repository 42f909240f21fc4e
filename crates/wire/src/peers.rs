//! Who is connected: what tells two nodes with one id apart.

use crate::message::{Hello, ID};
use crate::refused::Refused;
use crate::version;
use rufous_mapping::member::MAX_MEMBERS;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A node's name for ever.
pub type Id = [u8; ID];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Start {
    incarnation: u64,
    /// Random; of two nodes that are copies of one it differs.
    start: u64,
    sessions: usize,
    versions: Versions,
}

/// What a connected node has said of its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Empty where the program does not say it.
    pub program: String,
    /// Of the messages between nodes: those that it speaks.
    pub oldest: u16,
    pub newest: u16,
}

/// The peers of one node, over all of its sessions, whichever workers have them:
/// clones are the same. It is asked when a session begins and ends, and never
/// in between.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    connected: Arc<Mutex<BTreeMap<Id, Start>>>,
}

impl Peers {
    /// A peer introduces itself. Of one node there can be several sessions: an
    /// old one whose end nobody has noticed yet, and the one that replaces it.
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
                // What is left of its earlier run leaves without a trace.
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

    /// What a node has said, while it is connected.
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
        // Greater ones are not let through.
        let number = |version: u32| u16::try_from(version).unwrap_or(u16::MAX);
        Self {
            program: hello.program.clone(),
            oldest: number(hello.oldest),
            newest: number(hello.newest),
        }
    }

    /// The newest version of the messages that both know.
    pub fn agree(&self, other: &Self) -> Option<u16> {
        version::agree(self.oldest..=self.newest, other.oldest..=other.newest)
    }
}
