//! The speed at which a snapshot is written while requests are served.

use rufous_base::Now;

/// Minimum time between the starts of two slices of a snapshot.
const SLICE_PERIOD_US: u64 = 200;

/// A slice writes for the time since the last one, at about a quarter of a worker's speed; and is
/// short, so that no request waits long for it.
const SLICE_BYTES_PER_US: u64 = 60;
const SLICE_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=64 << 10;

/// The slices of the snapshot in progress.
#[derive(Debug, Default)]
pub(super) struct Slices {
    last_us: u64,
    more: bool,
}

impl Slices {
    /// The bytes to write between requests, if a slice begins now. `hurries`: no client is served,
    /// so that slices need not be limited.
    pub(super) fn on_turn_end(&mut self, now: Now, hurries: bool) -> Option<usize> {
        let since_us = now.mono_us - self.last_us;
        if hurries {
            return Some(*SLICE_BYTES.end() as usize);
        }
        let bytes = since_us.saturating_mul(SLICE_BYTES_PER_US);
        let bytes = bytes.clamp(*SLICE_BYTES.start(), *SLICE_BYTES.end());
        (since_us >= SLICE_PERIOD_US).then_some(bytes as usize)
    }

    /// A slice was written; there may be more.
    pub(super) fn on_written(&mut self, now: Now, more: bool) {
        (self.last_us, self.more) = (now.mono_us, more);
    }

    /// When the next slice may begin, if there is one.
    pub(super) fn wake_us(&self, hurries: bool) -> Option<u64> {
        let after_us = if hurries { 0 } else { SLICE_PERIOD_US };
        self.more.then_some(self.last_us + after_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_us: u64) -> Now {
        Now {
            mono_us,
            ..Now::default()
        }
    }

    #[test]
    fn a_slice_is_as_long_as_the_time_since_the_last_one() {
        let mut slices = Slices::default();
        slices.on_written(at(1000), true);
        assert_eq!(slices.on_turn_end(at(1199), false), None);
        assert_eq!(slices.wake_us(false), Some(1200));
        assert_eq!(slices.on_turn_end(at(1200), false), Some(12_000));
        assert_eq!(slices.on_turn_end(at(9_000), false), Some(64 << 10));
        slices.on_written(at(1200), false);
        assert_eq!(slices.wake_us(false), None);
    }

    #[test]
    fn without_clients_slices_are_not_limited() {
        let mut slices = Slices::default();
        slices.on_written(at(1000), true);
        assert_eq!(slices.on_turn_end(at(1000), true), Some(64 << 10));
        assert_eq!(slices.wake_us(true), Some(1000));
    }
}
