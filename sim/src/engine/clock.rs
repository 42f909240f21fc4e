//! The wall clock of the world: it jumps, the monotone one never does.

/// The wall clock as a function of virtual time.
#[derive(Clone, Debug)]
pub struct Clock {
    /// From when on which difference holds, in microseconds.
    offsets: Vec<(u64, i64)>,
}

/// What the wall clock shows at time zero.
const START_US: i64 = 1_700_000_000_000_000;

impl Default for Clock {
    fn default() -> Self {
        Self {
            offsets: vec![(0, START_US)],
        }
    }
}

impl Clock {
    pub fn jump(&mut self, at_us: u64, by_us: i64) {
        let last = self.offsets[self.offsets.len() - 1].1;
        self.offsets.push((at_us, last + by_us));
    }

    /// When it jumped, and by how many microseconds.
    pub fn jumps(&self) -> impl Iterator<Item = (u64, i64)> {
        let pairs = self.offsets.windows(2);
        pairs.map(|pair| (pair[1].0, pair[1].1 - pair[0].1))
    }

    pub fn unix_us(&self, at_us: u64) -> u64 {
        let place = self.offsets.partition_point(|(from, _)| *from <= at_us);
        (at_us as i64 + self.offsets[place - 1].1) as u64
    }

    /// The lowest and the highest reading, in milliseconds, between two times.
    pub fn range_ms(&self, from_us: u64, to_us: u64) -> (i64, i64) {
        let to_us = to_us.max(from_us);
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for (index, (start, offset)) in self.offsets.iter().enumerate() {
            let end = self.offsets.get(index + 1).map_or(u64::MAX, |next| next.0);
            if *start > to_us || end < from_us {
                continue;
            }
            low = low.min((*start).max(from_us) as i64 + offset);
            high = high.max(end.min(to_us) as i64 + offset);
        }
        (low.div_euclid(1000), high.div_euclid(1000))
    }
}

/// A jump ahead by less is followed at once by the keys of lattice keyspaces, and another one after this time at the
/// latest: the limits, and what readings may differ.
const FOLLOWED_US: i64 = 9_000_000;
const TRIAL_US: u64 = 65_000_000;

impl Clock {
    /// The same, as keys of lattice keyspaces may take it: a jump ahead is not followed at once.
    pub fn followed_ms(&self, from_us: u64, to_us: u64) -> (i64, i64) {
        let (mut low, high) = self.range_ms(from_us, to_us);
        let mut followed = self.offsets[0].1;
        for (start, offset) in self.offsets.iter().filter(|(start, _)| *start <= from_us) {
            let is_new = from_us - start < TRIAL_US;
            if offset - followed < FOLLOWED_US || !is_new {
                followed = *offset;
            }
        }
        for (_, offset) in self.offsets.iter().filter(|(start, _)| *start > from_us) {
            followed = followed.min(*offset);
        }
        low = low.min((from_us as i64 + followed).div_euclid(1000));
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_ahead_is_followed_later() {
        let mut clock = Clock::default();
        let start = START_US / 1000;
        clock.jump(1_000_000, 5_000_000);
        assert_eq!(
            clock.followed_ms(2_000_000, 3_000_000),
            (start + 7_000, start + 8_000)
        );
        clock.jump(4_000_000, 600_000_000);
        assert_eq!(
            clock.followed_ms(5_000_000, 5_000_000),
            (start + 10_000, start + 610_000)
        );
        assert_eq!(
            clock.followed_ms(70_000_000, 70_000_000),
            (start + 675_000, start + 675_000)
        );
        clock.jump(75_000_000, -605_000_000);
        assert_eq!(
            clock.followed_ms(76_000_000, 76_000_000),
            (start + 76_000, start + 76_000)
        );
    }

    #[test]
    fn jumps_widen_the_range() {
        let mut clock = Clock::default();
        let start = START_US / 1000;
        clock.jump(5_000_000, -3_000_000);
        assert_eq!(clock.unix_us(4_000_000) as i64, START_US + 4_000_000);
        assert_eq!(clock.unix_us(5_000_000) as i64, START_US + 2_000_000);
        assert_eq!(clock.range_ms(0, 1_000_000), (start, start + 1000));
        assert_eq!(
            clock.range_ms(4_500_000, 6_000_000),
            (start + 2000, start + 5000)
        );
        assert_eq!(
            clock.range_ms(6_000_000, 7_000_000),
            (start + 3000, start + 4000)
        );
    }
}
