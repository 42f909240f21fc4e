//! Access stamps: 24 bits in each record that tell how useful it is to keep.
//!
//! Without LFU: sixteenths of a second of the monotonic clock. Whole seconds are too coarse for caches whose contents
//! change within a few of them: all keys would look alike (docs/benchmarks/eviction.md). The price is that idle times
//! wrap around after twelve days. With LFU, as in Redis: 16 bits of minutes, the time of the counter's last change,
//! above an 8-bit counter that grows with the logarithm of the accesses and decays with time.

use super::record::STAMP;
use rufous_base::Now;
use rufous_base::rng::Rng;

/// The counter of a new key, so that it is not evicted first.
const LFU_START: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub lfu: bool,
    /// The higher, the more accesses a counter needs to grow (`lfu-log-factor`).
    pub log_factor: u32,
    /// Minutes after which a counter is decremented; 0 for never (`lfu-decay-time`).
    pub decay_minutes: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lfu: false,
            log_factor: 10,
            decay_minutes: 1,
        }
    }
}

/// Steps of the clock per second.
const STEPS: u32 = 16;
/// The longest idle time that a stamp is made for: some days before stamps wrap around.
const MOST_IDLE: u32 = STAMP / 4 * 3;

fn steps(now: Now) -> u32 {
    (now.mono_us / (1_000_000 / u64::from(STEPS))) as u32 & STAMP
}

fn minutes(now: Now) -> u32 {
    (now.mono_us / 60_000_000) as u32 & 0xFFFF
}

impl Policy {
    /// The stamp of a new record.
    #[inline]
    pub fn first_stamp(&self, now: Now) -> u32 {
        if self.lfu {
            return minutes(now) << 8 | LFU_START;
        }
        steps(now)
    }

    /// The stamp after one more access.
    #[inline]
    pub(super) fn next_stamp(&self, stamp: u32, now: Now, rng: &mut Rng) -> u32 {
        if !self.lfu {
            return steps(now);
        }
        let counter = self.counter(stamp, now);
        let above = u64::from(counter.saturating_sub(LFU_START));
        let odds = above * u64::from(self.log_factor) + 1;
        let grows = counter < 255 && rng.below(odds) == 0;
        minutes(now) << 8 | (counter + u32::from(grows))
    }

    /// Time since the last access, in steps of the clock; meaningless with LFU.
    #[inline]
    pub fn idle(&self, stamp: u32, now: Now) -> u32 {
        steps(now).wrapping_sub(stamp) & STAMP
    }

    /// Seconds since the last access; meaningless with LFU.
    pub fn idle_s(&self, stamp: u32, now: Now) -> u32 {
        self.idle(stamp, now) / STEPS
    }

    /// The stamp of a record last accessed `idle_s` seconds ago, or as long ago as a stamp can represent.
    pub fn idle_stamp(&self, idle_s: u32, now: Now) -> u32 {
        let idle = idle_s.saturating_mul(STEPS).min(MOST_IDLE);
        steps(now).wrapping_sub(idle) & STAMP
    }

    /// The LFU counter as of now, 0 to 255.
    pub fn counter(&self, stamp: u32, now: Now) -> u32 {
        let elapsed = minutes(now).wrapping_sub(stamp >> 8) & 0xFFFF;
        let decay = elapsed.checked_div(self.decay_minutes).unwrap_or(0);
        (stamp & 0xFF).saturating_sub(decay)
    }

    /// The stamp of a record with this LFU counter.
    pub fn counter_stamp(&self, counter: u8, now: Now) -> u32 {
        minutes(now) << 8 | u32::from(counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Now {
        Now {
            mono_us: seconds * 1_000_000,
            unix_us: 0,
        }
    }

    #[test]
    fn idle_time_survives_the_clock_going_round() {
        let policy = Policy::default();
        let stamp = policy.first_stamp(at((1 << 20) - 5));
        assert_eq!(policy.idle_s(stamp, at((1 << 20) + 10)), 15);
        let stamp = policy.idle_stamp(40, at(7));
        assert_eq!(policy.idle_s(stamp, at(7)), 40);
        let day = 24 * 3600;
        let stamp = policy.idle_stamp(100 * day, at(7));
        assert!((9 * day..10 * day).contains(&policy.idle_s(stamp, at(7))));
    }

    #[test]
    fn a_counter_grows_slower_and_slower_and_decays() {
        let policy = Policy {
            lfu: true,
            ..Policy::default()
        };
        let mut rng = Rng::new(1);
        let mut stamp = policy.first_stamp(at(0));
        let mut after = Vec::new();
        for n in 1..=100_000 {
            stamp = policy.next_stamp(stamp, at(0), &mut rng);
            if [100, 1000, 100_000].contains(&n) {
                after.push(policy.counter(stamp, at(0)));
            }
        }
        assert!(after[0] > 5 && after[1] > after[0] && after[2] > after[1] * 2);
        let counter = policy.counter(stamp, at(0));
        assert_eq!(policy.counter(stamp, at(600)), counter - 10);
        assert_eq!(policy.counter(policy.counter_stamp(9, at(0)), at(0)), 9);
        let still = Policy {
            decay_minutes: 0,
            ..policy
        };
        assert_eq!(still.counter(stamp, at(600)), counter);
    }
}
