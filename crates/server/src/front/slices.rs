//! The speed at which a snapshot is written while requests are served.

use super::Front;
use rufous_base::Now;

/// Minimum time between the starts of two slices of a snapshot.
const SLICE_PERIOD_US: u64 = 200;

/// A slice writes for the time since the last one, at about a quarter of a worker's speed; and is
/// short, so that no request waits long for it.
const SLICE_BYTES_PER_US: u64 = 60;
const SLICE_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=64 << 10;

impl Front {
    /// Writes the next slice of a snapshot, between requests.
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

    /// Whether no client is served, so that slices need not be limited.
    fn hurries(&self) -> bool {
        self.stopping || self.durability.loading
    }
}
