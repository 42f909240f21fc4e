//! Who is connected: what tells two nodes with one id apart.

use crate::message::{Hello, ID};
use crate::refused::Refused;
use rufous_mapping::member::MAX_MEMBERS;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A node's name for ever.
pub type Id = [u8; ID];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    incarnation: u64,
    /// Random; of two nodes that are copies of one it differs.
    start: u64,
    sessions: usize,
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
