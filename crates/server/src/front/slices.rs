//! How fast a snapshot is written while requests are served.

use super::Front;
use rufous_base::Now;

/// Slices of a snapshot begin no sooner after one another.
const SLICE_PERIOD_US: u64 = 200;

/// A slice is for the time since the one before, at about a quarter of what a
/// worker could write; and short, so that no request waits long for it.
const SLICE_BYTES_PER_US: u64 = 60;
const SLICE_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=64 << 10;

impl Front {
    /// Takes a snapshot further, without getting in the way of requests.
    pub(super) fn take_slice(&mut self, now: Now) {
        let since_us = now.mono_us - self.durability.sliced_us;
        let hurry = self.hurries();
        if since_us < SLICE_PERIOD_US && !hurry {
            return;
        }
        let bytes = match hurry {
            true => *SLICE_BYTES.end(),
            false => since_us.saturating_mul(SLICE_BYTES_PER_US),
        };
        let bytes = bytes.clamp(*SLICE_BYTES.start(), *SLICE_BYTES.end());
        self.durability.more = self.kernel.snapshot_slice(bytes as usize);
        self.durability.sliced_us = now.mono_us;
    }

    /// When the next slice may begin.
    pub(super) fn next_slice_us(&self) -> u64 {
        let after_us = if self.hurries() { 0 } else { SLICE_PERIOD_US };
        self.durability.sliced_us + after_us
    }

    /// Where nobody is served nobody is in the way.
    fn hurries(&self) -> bool {
        self.stopping || self.durability.loading
    }
}
