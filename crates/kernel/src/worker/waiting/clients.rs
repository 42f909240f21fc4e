//! The waits of a worker's own clients, with their deadlines.

use super::queues::Claim;
use crate::batch::Header;
use rufous_base::{ConnId, Output, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A wait, as sent to the worker of the client's connection.
#[derive(Debug)]
pub struct WaitNote {
    pub(super) header: Header,
    /// The reply when the wait times out.
    pub(super) timed_out: Output,
    pub(super) deadline_us: Option<u64>,
    pub(super) claim: Arc<Claim>,
    /// The owners of the keys that it waits for.
    pub(super) owners: Vec<WorkerId>,
}

/// The waits of this worker's clients.
#[derive(Debug, Default)]
pub struct Clients {
    waits: BTreeMap<(u32, u32), WaitNote>,
    deadlines: BTreeSet<(u64, u32, u32)>,
}

impl Clients {
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waits.len()
    }

    /// The connections whose waits have a deadline.
    pub fn in_time(&self) -> impl Iterator<Item = ConnId> + '_ {
        let all = self.deadlines.iter();
        all.map(|&(_, slot, generation)| ConnId { slot, generation })
    }

    pub fn conns(&self) -> impl Iterator<Item = ConnId> + '_ {
        let all = self.waits.keys();
        all.map(|&(slot, generation)| ConnId { slot, generation })
    }

    /// When [`crate::Worker::end_due_waits`] must be called.
    pub fn next_deadline_us(&self) -> Option<u64> {
        self.deadlines.first().map(|d| d.0)
    }

    /// A client whose deadline has passed.
    pub(in crate::worker) fn next_due(&self, now_us: u64) -> Option<ConnId> {
        let &(at, slot, generation) = self.deadlines.first()?;
        (at <= now_us).then_some(ConnId { slot, generation })
    }

    pub(super) fn insert(&mut self, note: WaitNote) {
        let conn = note.header.conn;
        if let Some(at) = note.deadline_us {
            self.deadlines.insert((at, conn.slot, conn.generation));
        }
        let earlier = self.waits.insert((conn.slot, conn.generation), note);
        debug_assert!(earlier.is_none(), "a client waits at most once");
    }

    pub(super) fn remove(&mut self, conn: ConnId) -> Option<WaitNote> {
        let note = self.waits.remove(&(conn.slot, conn.generation))?;
        if let Some(at) = note.deadline_us {
            self.deadlines.remove(&(at, conn.slot, conn.generation));
        }
        Some(note)
    }

    pub(super) fn get(&self, conn: ConnId) -> Option<&WaitNote> {
        self.waits.get(&(conn.slot, conn.generation))
    }
}
