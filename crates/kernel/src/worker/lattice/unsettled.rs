//! Writes of commands over several workers that may not be committed at all of these workers yet,
//! and replication messages that contain some of them.
//!
//! A crash would undo such writes. Here they are invisible, as their keys stay held; they must not
//! be visible at other replicas either. But an epoch does not wait until its keys are free, or
//! commands that hold them one after the other would delay it for ever: it is taken with the keys
//! as they are, and its messages wait until the writes in progress at that time are committed.
//! Later commands that hold the same keys are not waited for. No other epoch is taken until the
//! messages are sent, so that they stay in order.

use crate::lock::Ticket;
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
    epochs: u64,
}

impl Unsettled {
    /// A command has written here that may not be committed elsewhere.
    pub(super) fn begin(&mut self, ticket: Ticket) {
        self.open.insert(ticket);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn waits(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// How often messages have waited.
    pub(super) fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Keeps messages that contain some of these writes.
    pub(super) fn keep(&mut self, outbox: &mut Outbox) {
        self.awaited = self.open.clone();
        self.outbox.append(outbox);
        self.epochs += 1;
    }

    /// All writes of this hold's command are committed. Returns the messages to send now.
    pub(super) fn end(&mut self, ticket: Ticket) -> Outbox {
        self.open.remove(&ticket);
        match self.awaited.remove(&ticket) && self.awaited.is_empty() {
            true => std::mem::take(&mut self.outbox),
            false => Outbox::new(),
        }
    }

    /// Stops waiting, as the time of the commit is unknown.
    pub(super) fn give_up(&mut self) -> Outbox {
        self.awaited.clear();
        std::mem::take(&mut self.outbox)
    }
}
