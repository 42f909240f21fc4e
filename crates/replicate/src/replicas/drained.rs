//! Whether there is anything left to be sent or merged, where a start or a
//! change of the table of keyspaces waits for that.

use super::{Fresh, Replicas};
use rufous_base::Now;
use rufous_store::changeset::Changeset;

impl Replicas {
    /// Has what is here sent, or a report that there is nothing.
    pub fn start(&mut self) {
        self.fresh = Some(Fresh {
            first: Now::default(),
            last_us: 0,
            at_once: true,
        });
    }

    /// While a start has not brought back what it holds of files, what is to
    /// make way for that is neither forgotten nor makes way for anything else.
    pub fn keep_all(&mut self, keeps: bool) {
        self.keeps_all = keeps;
    }

    /// What was removed up to this may be forgotten. Nothing will be written
    /// under a stamp below that, also where there is nobody to be heard of.
    pub(super) fn settled(&self) -> u64 {
        if self.keeps_all {
            return 0;
        }
        let promised = self.promises.values().map(|&(upto, _)| upto);
        let own = promised.fold(self.clock.last(), u64::min);
        self.heard.settled().min(own)
    }

    /// Whether every other worker has sent what it had when it started.
    pub fn has_heard_all(&self) -> bool {
        self.heard.least_here() > 0
    }

    /// Whether nothing that has changed here is left to be sent; it may be on
    /// its way.
    pub fn has_sent_all(&self, changes: &Changeset) -> bool {
        self.epoch.is_none() && self.fresh.is_none() && changes.is_empty()
    }

    /// Whether no message of another worker of this node waits here.
    pub fn has_merged_all(&self) -> bool {
        !self.inbox.keys().any(|&from| self.heard.is_here(from))
    }
}
