//! The real clocks, read once per step.

use rufous_base::Now;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// All workers of a node count from the same start, so that their times compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

/// Timers are never set further ahead than this; they fire early and are set again.
const FARTHEST: Duration = Duration::from_secs(24 * 3600);

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Both clocks. `Instant` never goes back, so `mono_us` does not either.
    pub(crate) fn now(&self) -> Now {
        let mono_us = self.start.elapsed().as_micros() as u64;
        let unix_us = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_micros() as u64);
        Now { mono_us, unix_us }
    }

    pub(crate) fn mono_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    pub(crate) fn us_of(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_micros() as u64
    }

    /// When to wake for something due at `due_us`, and what that is in
    /// microseconds: then, or a day after `now_us`.
    pub(crate) fn instant(&self, now_us: u64, due_us: u64) -> (Instant, u64) {
        let due_us = due_us.min(now_us.saturating_add(FARTHEST.as_micros() as u64));
        (self.start + Duration::from_micros(due_us), due_us)
    }
}
