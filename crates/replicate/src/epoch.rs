//! The changes of one epoch: when they were made, and their report.

use rufous_base::Now;
use rufous_store::changeset::Changeset;

/// After this time without changes, pending ones are sent before the epoch is over.
const IDLE_US: u64 = 2_000;
/// Longer epochs do not end early: they are configured to save messages.
const SHORT_US: u64 = 1_000_000;

/// What was reported, or may be reported, about this worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    pub(super) upto: u64,
    pub(super) least: u64,
    pub(super) horizon: u64,
    /// The least received time, without nodes that are away. It is not sent.
    pub(super) needed: u64,
}

/// An epoch whose changes are being sent.
#[derive(Debug)]
pub(super) struct Epoch {
    pub(super) changes: Changeset,
    pub(super) next: usize,
    pub(super) said: Said,
    pub(super) flushes: u64,
    pub(super) since_us: u64,
    /// When its changes were taken, as the time of a stamp.
    pub(super) date: u64,
    /// For causal cuts: what the changes may depend on.
    pub(super) after: Vec<(u16, u64)>,
}

/// When the changes since the last epoch were made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    pub(super) first: Now,
    pub(super) last_us: u64,
    /// Whether the epoch ends at once.
    pub(super) at_once: bool,
}

impl Fresh {
    /// When the epoch ends.
    pub(super) fn end_us(&self, period_us: u64) -> u64 {
        let end = self.first.mono_us + period_us;
        match self.at_once {
            true => 0,
            false if period_us > SHORT_US => end,
            false => end.min(self.last_us + IDLE_US),
        }
    }
}
