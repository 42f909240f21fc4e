//! A disk that does not answer.

use super::{Commit, Event, Out};
use crate::planted::{self, Planted};
use rufous_base::{Now, Until};

/// A log whose frames wait for so long without progress counts as one that cannot be written.
const STALLED_US: u64 = 1_000_000;

/// For how long the log has made no progress although frames wait.
#[derive(Debug, Default)]
pub(super) struct Stall {
    /// The log's position when it last made progress, and the time.
    logged: u64,
    since_us: u64,
    lasts_us: u64,
    /// Nothing waits for frames up to here any more.
    given_up: u64,
}

impl Stall {
    /// `waits`: frames up to some position after `logged` wait for the disk.
    pub(super) fn on_look(&mut self, now: Now, waits: bool, logged: u64) {
        if !waits || logged != self.logged {
            (self.logged, self.since_us) = (logged, now.mono_us);
        }
        self.lasts_us = now.mono_us.saturating_sub(self.since_us);
    }

    pub(super) fn is_long(&self) -> bool {
        self.lasts_us >= STALLED_US
    }
}

impl Commit {
    /// Notes since when frames wait for the disk without progress.
    pub(in crate::worker) fn look_at_stall(&mut self, now: Now) {
        let log = self.log.as_ref();
        let waits = log.is_some_and(|log| log.committed() < log.appended());
        let logged = self.logged();
        self.stall.on_look(now, waits, logged);
    }

    /// Whether the disk does not answer.
    pub(in crate::worker) fn hangs(&self) -> bool {
        self.stall.is_long()
    }

    /// No chain names this node any more, and its disk does not answer. It may never do so: what waits for the log
    /// is given up, as its outcome is at other nodes.
    pub(in crate::worker) fn on_left(&mut self, out: &mut Out) {
        if planted::is(Planted::LeftAwaited) {
            return;
        }
        let is_news = std::mem::replace(&mut self.stall.given_up, self.told) < self.told;
        if is_news && self.logged() < self.told {
            out.events.push(Event::Uncommitted(Until::Logged));
        }
        self.lose(Until::Logged, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_without_progress_is_long() {
        let mut stall = Stall::default();
        let mut look = |us: u64, waits, logged| {
            let now = Now {
                mono_us: us,
                ..Now::default()
            };
            stall.on_look(now, waits, logged);
            stall.is_long()
        };
        assert!(!look(5 * STALLED_US, true, 1), "it has just begun to wait");
        assert!(!look(6 * STALLED_US - 1, true, 1));
        assert!(look(6 * STALLED_US, true, 1));
        assert!(!look(6 * STALLED_US + 1, true, 2), "progress");
        assert!(!look(9 * STALLED_US, false, 2), "nothing waits");
        assert!(!look(9 * STALLED_US + 1, true, 2));
    }
}
