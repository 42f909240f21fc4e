//! The order of writes: stamps of hybrid logical clocks.
//!
//! ```text
//! 12 bytes, big endian, ordered as stamps are
//! 00 04 00 00 00 00 10 01   00 02     00 04
//! time: µs << 12 | counter  replica   step
//! ```
//!
//! A stamp is given to only one write of a key, so it is also a *dot*: it identifies that write. All writes of a
//! transaction have the same time and replica, and differ in their steps, so that any two transactions are ordered
//! alike at all keys [Anna §VI-C].
//!
//! Steps of writes are even. The odd step after a write is the stamp of its expiry, which every replica derives by
//! itself: above the write that expires, below any later write.

use crate::code::{Malformed, Reader};

/// See the module's description. The default is [`Stamp::ZERO`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Microseconds of Unix time, shifted left by 12, and a counter.
    pub time: u64,
    /// The replica whose clock issued it.
    pub replica: u16,
    /// Number within the transaction; see the module's description.
    pub step: u16,
}

/// Bits of [`Stamp::time`] below the microseconds.
pub const COUNTER_BITS: u32 = 12;

/// The last second of 2099, in microseconds of Unix time. Clocks do not follow readings beyond it: what is left of the
/// 52 bits, until 2112, is for stamps that are counted up from there, 10^18 and more.
pub const LATEST_US: u64 = 4_102_444_799_000_000;

const _: () = assert!(LATEST_US < (u64::MAX >> COUNTER_BITS) - (1 << 48));

impl Stamp {
    /// Below every stamp that a clock issues.
    pub const ZERO: Stamp = Stamp::new(0, 0);
    /// Encoded bytes.
    pub const SIZE: usize = 12;

    /// The first stamp of a transaction, or the stamp of a single write.
    #[inline]
    pub const fn new(time: u64, replica: u16) -> Stamp {
        let step = 0;
        Stamp {
            time,
            replica,
            step,
        }
    }

    #[inline]
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.time.to_be_bytes());
        // One word, like the loads and copies of it: a value stored in two parts must reach the cache before it can
        // be loaded as one.
        let low = u32::from(self.replica) << 16 | u32::from(self.step);
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        bytes
    }

    #[inline]
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Stamp {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        Stamp {
            time: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            replica: u16::from_be_bytes([i, j]),
            step: u16::from_be_bytes([k, l]),
        }
    }

    pub fn read(from: &mut Reader<'_>) -> Result<Stamp, Malformed> {
        from.array().map(Stamp::from_bytes)
    }

    /// The stamp of the next write of the same transaction. After very many steps it takes the next time: the caller
    /// must pass the last stamp to [`Clock::observe`].
    #[inline]
    #[must_use]
    pub fn next(self) -> Stamp {
        let step = self.step & !1;
        match step.checked_add(2) {
            Some(step) => Stamp { step, ..self },
            None => Stamp {
                time: self.time.saturating_add(1),
                step: 0,
                ..self
            },
        }
    }

    /// The stamp of a value after its expiry; see the module's description.
    #[inline]
    #[must_use]
    pub fn expired(self) -> Stamp {
        Stamp {
            step: self.step | 1,
            ..self
        }
    }

    /// Whether of two counts one began on a removal, and the other after that was forgotten: all replicas have
    /// received everything up to the horizon.
    pub fn are_of_one_life(a: Stamp, b: Stamp, horizon: u64) -> bool {
        a != b && a.min(b) == Stamp::ZERO && a.max(b).time <= horizon
    }

    /// Microseconds of Unix time.
    pub fn unix_us(self) -> u64 {
        self.time >> COUNTER_BITS
    }
}

/// Issues stamps, each above all that it has issued or observed.
#[derive(Clone, Debug)]
pub struct Clock {
    replica: u16,
    last: u64,
}

impl Clock {
    pub fn new(replica: u16) -> Self {
        Self { replica, last: 0 }
    }

    pub fn replica(&self) -> u16 {
        self.replica
    }

    /// The stamp of a transaction's first write. Follows real time, unless that went backwards or other clocks are
    /// ahead of it.
    #[inline]
    pub fn tick(&mut self, now_unix_us: u64) -> Stamp {
        let real = now_unix_us.min(LATEST_US) << COUNTER_BITS;
        self.last = real.max(self.last.saturating_add(1));
        Stamp::new(self.last, self.replica)
    }

    /// The first of `count` stamps with consecutive times.
    #[inline]
    pub fn ticks(&mut self, now_unix_us: u64, count: usize) -> Stamp {
        let first = self.tick(now_unix_us);
        self.last = self.last.saturating_add(count.saturating_sub(1) as u64);
        first
    }

    /// Ensures that later stamps are above this one.
    #[inline]
    pub fn observe(&mut self, stamp: Stamp) {
        self.last = self.last.max(stamp.time);
    }

    /// The time of the last stamp issued or observed.
    pub fn last(&self) -> u64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Stamp = Stamp {
        time: 0x0004_0000_0000_1001,
        replica: 2,
        step: 4,
    };

    #[test]
    fn golden_bytes() {
        let bytes = [0, 4, 0, 0, 0, 0, 0x10, 1, 0, 2, 0, 4];
        assert_eq!(SOME.to_bytes(), bytes);
        assert_eq!(Stamp::from_bytes(bytes), SOME);
    }

    #[test]
    fn bytes_are_ordered_as_stamps() {
        let some = [
            Stamp::ZERO,
            SOME,
            SOME.expired(),
            SOME.next(),
            Stamp { replica: 3, ..SOME },
            Stamp::new(SOME.time + 1, 0),
        ];
        assert!(some.is_sorted());
        for a in some {
            for b in some {
                assert_eq!(a.cmp(&b), a.to_bytes().cmp(&b.to_bytes()));
            }
        }
    }

    #[test]
    fn expiry_lies_between_a_write_and_the_next() {
        assert!(SOME < SOME.expired() && SOME.expired() < SOME.next());
        assert_eq!(SOME.expired().expired(), SOME.expired());
        assert_eq!(SOME.expired().next(), SOME.next());
        let last = Stamp {
            step: u16::MAX - 1,
            ..SOME
        };
        assert!(last.expired() < last.next() && last.next().step == 0);
    }

    #[test]
    fn stamps_grow_after_a_reading_beyond_any_time() {
        let mut clock = Clock::new(7);
        let first = clock.tick(u64::MAX);
        assert_eq!(first.unix_us(), LATEST_US);
        let later: Vec<_> = (0..9).map(|_| clock.tick(u64::MAX)).collect();
        assert!(later.is_sorted_by(|a, b| a < b) && later[0] > first);
        assert!(clock.ticks(5, 1 << 30) > later[8]);
    }

    #[test]
    fn clocks_rise_whatever_real_time_does() {
        let mut clock = Clock::new(7);
        let mut last = Stamp::ZERO;
        for now in [5, 5, 5, 9, 1, 0, u64::MAX, 3] {
            let stamp = clock.tick(now);
            assert!(stamp > last && stamp.replica == 7);
            last = stamp;
        }
        let mut other = Clock::new(1);
        assert_eq!(other.tick(5).unix_us(), 5);
        other.observe(SOME);
        assert!(other.tick(5) > SOME);
        assert_eq!(other.last(), SOME.time + 1);
    }
}
