//! Whether there is anything left to be sent or merged, where a start or a
//! change of the table of keyspaces waits for that.

use super::Replicas;
use crate::replicate::changeset::Changeset;
use std::collections::VecDeque;

impl Replicas {
    /// Whether every other worker has sent what it had when it started.
    pub fn has_heard_all(&self) -> bool {
        self.heard.least() > 0
    }

    /// Whether nothing that has changed here is left to be sent; it may be on
    /// its way.
    pub fn has_sent_all(&self, changes: &Changeset) -> bool {
        self.epoch.is_none() && self.fresh.is_none() && changes.is_empty()
    }

    /// Whether no message of another worker waits here.
    pub fn has_merged_all(&self) -> bool {
        self.inbox.iter().all(VecDeque::is_empty)
    }
}
