//! What commands over several workers have written here and may not have
//! committed at all of them, and messages of replication that show some of it.
//!
//! A crash takes such writes back. Here nobody sees them, as their keys stay
//! held; other replicas must not see them either. But an epoch does not wait
//! until its keys are free, or commands that hold them one after the other
//! would keep it for ever: it is taken as the keys are, and its messages wait
//! until what it was taken amid is committed. Commands that come later, and
//! hold the same keys, are not waited for. Until the messages have left no
//! other epoch is taken, so that they stay in order.

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
    /// Those of them that the messages wait for.
    awaited: BTreeSet<Ticket>,
    outbox: Outbox,
    /// So often messages have waited.
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

    /// Keeps messages that show some of what is written.
    pub(super) fn keep(&mut self, outbox: &mut Outbox) {
        self.awaited = self.open.clone();
        self.outbox.append(outbox);
        self.epochs += 1;
    }

    /// All that the command of this hold has written is committed. What has to
    /// be sent now.
    fn end(&mut self, ticket: Ticket) -> Outbox {
        self.open.remove(&ticket);
        match self.awaited.remove(&ticket) && self.awaited.is_empty() {
            true => std::mem::take(&mut self.outbox),
            false => Outbox::new(),
        }
    }

    /// Nobody knows when it will be.
    fn give_up(&mut self) -> Outbox {
        self.awaited.clear();
        std::mem::take(&mut self.outbox)
    }
}

impl<P: Program> Worker<P> {
    /// What the command of this hold has written is committed at all workers.
    pub(super) fn settle_hold(&mut self, ticket: Ticket) {
        let outbox = self.lattice.unsettled.end(ticket);
        self.send_changes(outbox);
    }

    /// Whether changes wait. While this worker's log cannot be written, what
    /// tells of data does not wait for it.
    pub(super) fn keeps_changes(&mut self) -> bool {
        if self.lattice.unsettled.waits() && self.is_in_trouble() {
            let outbox = self.lattice.unsettled.give_up();
            self.send_changes(outbox);
        }
        self.lattice.unsettled.waits()
    }
}
