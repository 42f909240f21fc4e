//! Who is connected: what tells two nodes with one id apart.

use crate::message::{Hello, ID};
use crate::refused::Refused;
use rufous_mapping::member::MAX_MEMBERS;
use std::collections::BTreeMap;

/// A node's name for ever.
pub type Id = [u8; ID];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    incarnation: u64,
    /// Random; of two nodes that are copies of one it differs.
    start: u64,
    sessions: usize,
}

/// The peers of one node, over all of its sessions.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    connected: BTreeMap<Id, Start>,
}

impl Peers {
    /// A peer introduces itself. Of one node there can be several sessions: an
    /// old one whose end nobody has noticed yet, and the one that replaces it.
    pub(crate) fn enter(&mut self, id: Id, hello: &Hello) -> Result<(), Refused> {
        let new = Start {
            incarnation: hello.incarnation,
            start: hello.start,
            sessions: 1,
        };
        if let Some(known) = self.connected.get_mut(&id) {
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
        if self.connected.len() >= MAX_MEMBERS {
            return Err(Refused::TooMany);
        }
        self.connected.insert(id, new);
        Ok(())
    }

    /// One of its sessions has ended.
    pub(crate) fn leave(&mut self, id: Id, hello: &Hello) {
        let Some(known) = self.connected.get_mut(&id) else {
            return;
        };
        if (known.incarnation, known.start) != (hello.incarnation, hello.start) {
            return;
        }
        known.sessions -= 1;
        if known.sessions == 0 {
            self.connected.remove(&id);
        }
    }

    pub fn len(&self) -> usize {
        self.connected.len()
    }

    pub fn is_empty(&self) -> bool {
        self.connected.is_empty()
    }
}
