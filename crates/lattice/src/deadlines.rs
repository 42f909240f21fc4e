//! The deadline of a collection, and the cuts of earlier ones that have passed.
//!
//! A deadline that passes raises the cut, and a replica that knows both does not need the cut before. But replicas
//! forget a passed deadline when all have received it, and one that has forgotten it may set another, without any
//! cut, before it receives a second one. The new one wins, having the higher stamp, and voids the second one's cut,
//! as it should, but it lacks the cut of the first. So earlier cuts are kept and sent along: [`Deadlines::gone`] is
//! the last one that all replicas have received.
//!
//! All replicas have the same state of one stamp, as each deadline has the cuts that its writer knew, and its passing
//! adds one. So the greater of two states is their merge, as with [`Deadline`] alone. At most [`Deadlines::MOST`] are
//! kept, the last ones. There can be more before all have received the first only if a replica is not heard for long;
//! then no replica forgets anything.
//!
//! ```text
//! deadline  32 bytes, as it is coded
//! before    12 bytes for each cut, ascending
//! ```

use crate::code::{Coded, Malformed, Reader};
use crate::{Deadline, Lattice, Stamp, Total};

/// See the module's description. The default never had a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadlines {
    last: Deadline,
    /// Ascending, and below the last one's cut; unused ones are zeros at the start.
    before: [Stamp; Self::MOST],
}

impl Deadlines {
    /// Number of cuts that are kept besides the last.
    pub const MOST: usize = 2;

    /// Unix milliseconds; 0 for none.
    pub fn at(self) -> u64 {
        self.last.at()
    }

    /// Everything with a stamp below this has gone.
    pub fn cut(self) -> Stamp {
        self.last.cut()
    }

    /// Number of cuts that are kept besides the last.
    pub fn earlier(self) -> usize {
        let some = self.before.iter().filter(|&&cut| cut > Stamp::ZERO);
        some.count()
    }

    /// No stamp in it is newer.
    pub fn newest(self) -> Stamp {
        self.last.newest()
    }

    /// See [`Deadline::until`].
    pub fn until(self) -> u64 {
        self.last.until()
    }

    /// See [`Deadline::gone`]; a deadline may have passed that is not known here to have.
    pub fn gone(self, horizon: u64) -> Stamp {
        self.come_by(horizon).settled(horizon)
    }

    /// Everything written below has gone for good, once all replicas have received everything up to this time of a
    /// stamp.
    pub fn settled(self, horizon: u64) -> Stamp {
        let cuts = [self.cut()].into_iter().chain(self.before);
        let known = cuts.filter(|cut| cut.time <= horizon);
        known.max().unwrap_or_default()
    }

    /// See [`Deadline::since`].
    pub fn since(self, cut: Stamp) -> Option<Self> {
        let is_left = self.before.contains(&cut) || self.last.since(cut).is_some();
        is_left.then_some(self)
    }

    /// See [`Deadline::set`].
    #[must_use]
    pub fn set(self, stamp: Stamp, at: u64) -> Self {
        let Self { before, .. } = self.come_by(stamp.time);
        let last = self.last.set(stamp, at);
        Self { last, before }
    }

    /// The result at every replica when its time has come.
    #[must_use]
    pub fn passed(self) -> Self {
        let (last, old) = (self.last.passed(), self.cut());
        let mut before = self.before;
        if last.cut() > old && old > Stamp::ZERO {
            before.rotate_left(1);
            before[Self::MOST - 1] = old;
        }
        Self { last, before }
    }

    fn come_by(self, time: u64) -> Self {
        if self.last.has_come_by(time) {
            self.passed()
        } else {
            self
        }
    }
}

impl Lattice for Deadlines {
    fn merge(&mut self, other: &Self) -> bool {
        let is_later = other > self;
        if is_later {
            *self = *other;
        }
        is_later
    }
}

impl Total for Deadlines {}

impl Coded for Deadlines {
    fn encode(&self, out: &mut Vec<u8>) {
        self.last.encode(out);
        for cut in self.before.iter().filter(|&&cut| cut > Stamp::ZERO) {
            out.extend_from_slice(&cut.to_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (last, rest) = bytes.split_at_checked(Deadline::SIZE).ok_or(Malformed)?;
        let last = Deadline::decode(last)?;
        let mut before = [Stamp::ZERO; Self::MOST];
        let mut reader = Reader(rest);
        let mut newest = Stamp::ZERO;
        while !reader.0.is_empty() {
            let cut = Stamp::read(&mut reader)?;
            if before[0] > Stamp::ZERO || cut <= newest || cut >= last.cut() {
                return Err(Malformed);
            }
            newest = cut;
            before.rotate_left(1);
            before[Self::MOST - 1] = cut;
        }
        Ok(Self { last, before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};
    use crate::{Lexicographic, Max};

    fn stamp(time: u64) -> Stamp {
        Stamp::new(time, 1)
    }

    /// Stamps go beyond times of deadlines and fall short of them.
    fn deadlines(draw: &mut Draw) -> Deadlines {
        let mut deadlines = Deadlines::default();
        for time in 0..draw.below(9) {
            deadlines = match draw.below(2) {
                0 => deadlines.passed(),
                _ => deadlines.set(stamp(1 + (time << 21) + draw.below(3)), draw.below(9)),
            };
        }
        deadlines
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Deadlines>(60, 1, deadlines).unwrap();
        laws::check_total::<Deadlines>(60, 1, deadlines).unwrap();
        let set = |draw: &mut Draw| deadlines(draw).set(stamp(9 << 30), draw.below(2));
        laws::check_code(600, 1, set).unwrap();
    }

    #[test]
    fn deadlines_are_a_deadline_with_more() {
        type Model = Lexicographic<Max<(Stamp, (Stamp, u64))>, Max<(Stamp, Stamp)>>;
        laws::check_model::<Deadlines, Model>(120, 1, deadlines, |deadlines| {
            let (last, [first, second]) = (deadlines.last, deadlines.before);
            Lexicographic {
                rank: Max((last.stamp(), (last.cut(), last.at()))),
                value: Max((first, second)),
            }
        })
        .unwrap();
        // Whatever is done, the last deadline equals a single one.
        let mut draw = Draw::new(3);
        for _ in 0..600 {
            let (all, at, time) = (deadlines(&mut draw), draw.below(9), draw.below(9) << 21);
            assert_eq!(all.passed().last, all.last.passed());
            assert_eq!(all.set(stamp(time), at).last, all.last.set(stamp(time), at));
            assert!(all.gone(time) >= all.last.gone(time));
            // The cut up to which everything has gone stays with the rest.
            assert_eq!(all.since(all.gone(time)), Some(all));
        }
    }

    #[test]
    fn the_last_cut_that_all_know_of_is_known_behind_later_ones() {
        let time = |ms: u64| crate::deadline::time_of(ms);
        let mut all = Deadlines::default();
        for ms in [2, 4, 6] {
            all = all.set(stamp(time(ms - 1)), ms);
            assert_eq!(all.gone(time(ms)).time, time(ms), "it has come");
            all = all.passed();
        }
        assert_eq!((all.cut().time, all.earlier()), (time(6), 2));
        for (horizon, gone) in [(1, 0), (2, 2), (3, 2), (5, 4), (6, 6), (9, 6)] {
            assert_eq!(all.gone(time(horizon)).time, time(gone));
        }
        assert_eq!(all.passed(), all);
        let more = all.set(stamp(time(7)), 8).passed();
        assert_eq!(
            (more.gone(time(3)).time, more.gone(time(5)).time),
            (0, time(4))
        );
        // A deadline that did not know of the others lacks their cuts.
        let mut other = Deadlines::default().set(stamp(time(9)), 20);
        assert!(!other.merge(&more) && other.gone(time(9)) == Stamp::ZERO);
        // A deadline that had passed by the stamp's clock.
        let late = all.set(stamp(time(7)), 8).set(stamp(time(9)), 0);
        assert_eq!((late.cut().time, late.earlier()), (time(8), 2));
    }

    #[test]
    fn golden_bytes() {
        let cut = |time| Stamp { time, ..stamp(0) };
        let last = Deadline::default().set(stamp(7), 1).passed();
        let mut all = Deadlines {
            last,
            before: [Stamp::ZERO; Deadlines::MOST],
        };
        // Encoded as before there were earlier cuts.
        assert_eq!(all.encoded(), last.encoded());
        all.before = [cut(3), cut(5)];
        let bytes = [&last.encoded()[..], &cut(3).to_bytes(), &cut(5).to_bytes()].concat();
        assert_eq!(all.encoded(), bytes);
        let with = |before: &[Stamp]| {
            let mut bytes = last.encoded();
            before
                .iter()
                .for_each(|cut| bytes.extend_from_slice(&cut.to_bytes()));
            Deadlines::decode(&bytes)
        };
        assert!(with(&[cut(3)]).is_ok());
        for bad in [
            &[cut(5), cut(3)][..],
            &[cut(3), cut(3)],
            &[Stamp::ZERO],
            &[last.cut()],
            &[cut(3), cut(4), cut(5)],
        ] {
            assert!(with(bad).is_err(), "{bad:?}");
        }
        assert!(Deadlines::decode(&bytes[1..]).is_err());
        assert!(Deadlines::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
