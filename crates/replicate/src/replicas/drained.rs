//! Whether anything is left to be sent or merged, for a startup, a change of the table of keyspaces, or a session of
//! another worker that waits for that; and what can be forgotten since nothing is.

use super::{Fresh, KEYS_PER_STEP, Replicas};
use crate::vector::Vector;
use rufous_base::Now;
use rufous_store::changeset::Changeset;
use rufous_store::placement::Placement;
use rufous_store::planted::{self, Planted};
use rufous_store::shard::Shard;

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

    /// What a session may have seen that has read and written here. `None` after a node has sent whole states, until the changes of
    /// all others are here that may be in these states; that is asked for. `is_up`: whether a node is there to report.
    pub fn seen(&mut self, changes: &Changeset, is_up: &dyn Fn(u16) -> bool) -> Option<Vector> {
        if self.told_again > 0 && !self.heard.has_all(self.told_again, is_up) {
            self.wanted = self.wanted.max(self.told_again);
            return None;
        }
        let own = match (&self.epoch, self.has_sent_all(changes)) {
            _ if self.heard.is_alone() => 0,
            (_, true) => self.ended,
            _ if planted::is(Planted::OwnNotSeen) => self.ended,
            (Some(epoch), false) if self.fresh.is_none() && changes.is_empty() => epoch.date,
            // The next epoch has a later date.
            _ => self.clock.last() + 1,
        };
        let others = self.heard.seen();
        let all = others.chain([(self.replica, own)]);
        // All have what lies before the horizon.
        let horizon = self.heard.horizon();
        Some(Vector::of(all.filter(|(_, date)| *date > horizon)))
    }

    /// The replicas of which something that a session has seen was not received here.
    pub fn lacks(&self, seen: &Vector, placement: &Placement) -> Vec<u16> {
        let cuts_alone = !placement.any_lattice(|of| !of.is_cut());
        self.heard.lacks(seen, cuts_alone)
    }

    /// A number that is another one when [`Replicas::lacks`], or whether [`Replicas::seen`] is known, may be another.
    pub fn news(&self, is_up: &dyn Fn(u16) -> bool) -> u64 {
        self.heard.news(is_up) ^ self.told_again
    }

    /// Whether no message of another worker of this node waits here.
    pub fn has_merged_all(&self) -> bool {
        !self.inbox.keys().any(|&from| self.heard.is_here(from))
    }

    /// The time up to which removals may be forgotten. It is limited by stamps of later writes here, which matters if
    /// there are no other workers.
    pub(super) fn settled(&self) -> u64 {
        if self.keeps_all {
            return 0;
        }
        let promised = self.promises.values().map(|&(upto, _)| upto);
        let own = promised.fold(self.clock.last(), u64::min);
        self.heard.settled().min(own)
    }

    /// The time up to which all removals here were forgotten.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Whether all that any worker wants to forget is known to be forgotten here. Within a node the time up to which
    /// removals may be forgotten does not fall, so that it need not be computed then; it may where other nodes join.
    #[inline]
    pub(super) fn has_forgotten_wanted(&self) -> bool {
        !self.in_cluster && self.wanted <= self.forgotten
    }

    /// Forgets what all workers have received, by a bounded step. Returns true if there is more.
    pub(super) fn forget(&mut self, now: Now, shard: &mut Shard) -> bool {
        let has_to_forget = shard.has_to_forget();
        if !has_to_forget && self.has_forgotten_wanted() {
            return false;
        }
        if has_to_forget && self.heard.is_alone() {
            // Reports advance the clocks of others; this worker has no writes to advance its own.
            self.stamp(now);
        }
        let settled = self.settled();
        if has_to_forget {
            if self.wanted <= settled {
                self.wanted = self.clock.last();
                self.asked_us = now.mono_us;
            }
            if shard.forget_step(settled, KEYS_PER_STEP) {
                return true;
            }
        }
        self.forgotten = settled;
        false
    }
}
