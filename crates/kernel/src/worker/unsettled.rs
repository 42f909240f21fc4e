//! Writes of commands over several workers that may not be committed at all of these workers yet,
//! and replication messages that contain some of them.
//!
//! A crash would undo such writes. Here they are invisible, as their keys stay held; they must not
//! be visible at other replicas either. But an epoch does not wait until its keys are free, or
//! commands that hold them one after the other would delay it for ever: it is taken with the keys
//! as they are, and its messages wait until the writes in progress at that time are committed.
//! Later commands that hold the same keys are not waited for. No other epoch is taken until the
//! messages are sent, so that they stay in order.

use super::Worker;
use crate::lock::Ticket;
use crate::program::Program;
use crate::replicate::replicas::Outbox;
use std::collections::BTreeSet;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    /// Holds whose commands have written here, but which have not ended.
    open: BTreeSet<Ticket>,
    /// Those of them whose commit the messages wait for.
    awaited: BTreeSet<Ticket>,
    outbox: Outbox,
    /// How often messages have waited.
    pub(super) epochs: u64,
}

impl Unsettled {
    pub(super) fn begin(&mut self, ticket: Ticket) {
        self.open.insert(ticket);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn waits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Keeps messages that contain some of these writes.
    pub(super) fn keep(&mut self, outbox: &mut Outbox) {
        self.awaited = self.open.clone();
        self.outbox.append(outbox);
        self.epochs += 1;
    }

    /// All writes of this hold's command are committed. Returns the messages to send now.
    fn end(&mut self, ticket: Ticket) -> Outbox {
        self.open.remove(&ticket);
        match self.awaited.remove(&ticket) && self.awaited.is_empty() {
            true => std::mem::take(&mut self.outbox),
            false => Outbox::new(),
        }
    }

    /// Stops waiting, as the time of the commit is unknown.
    fn give_up(&mut self) -> Outbox {
        self.awaited.clear();
        std::mem::take(&mut self.outbox)
    }
}

impl<P: Program> Worker<P> {
    /// The writes of this hold's command are committed at all workers.
    pub(super) fn settle_hold(&mut self, ticket: Ticket) {
        let outbox = self.lattice.unsettled.end(ticket);
        self.send_changes(outbox);
    }

    /// Whether changes wait. While this worker's log cannot be written, messages with data do not
    /// wait for it.
    pub(super) fn keeps_changes(&mut self) -> bool {
        if self.lattice.unsettled.waits() && self.commit.is_in_trouble() {
            let outbox = self.lattice.unsettled.give_up();
            self.send_changes(outbox);
        }
        self.lattice.unsettled.waits()
    }
}
