//! Whether anything is left to be sent or merged, for a startup or a change of the table of keyspaces that waits for
//! that.

use super::{Fresh, Replicas};
use rufous_base::Now;
use rufous_store::changeset::Changeset;

impl Replicas {
    /// Triggers an epoch at once, which sends local state or a report that there is none.
    pub fn start(&mut self) {
        self.fresh = Some(Fresh {
            first: Now::default(),
            last_us: 0,
            at_once: true,
        });
    }

    /// Until a startup has restored its held counts, state that these replace must neither be forgotten nor make way
    /// for anything else.
    pub fn keep_all(&mut self, keeps: bool) {
        self.keeps_all = keeps;
    }

    /// Whether every other worker of this node has sent the state that it started with.
    pub fn has_heard_all(&self) -> bool {
        self.heard.least_here() > 0
    }

    /// Whether all local changes have been sent; they may still be in transit.
    pub fn has_sent_all(&self, changes: &Changeset) -> bool {
        self.epoch.is_none() && self.fresh.is_none() && changes.is_empty()
    }

    /// Whether no message of another worker of this node waits here.
    pub fn has_merged_all(&self) -> bool {
        !self.inbox.keys().any(|&from| self.heard.is_here(from))
    }
}
