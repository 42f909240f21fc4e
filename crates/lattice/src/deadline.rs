//! The deadline of a collection, and the cut of a deadline that has passed.
//!
//! A deadline has the stamp of its write; of two deadlines the one with the higher stamp wins, whole: the greater of
//! two states is their merge. When the time has come, every replica by itself replaces the deadline, with the same
//! result, by one that has *passed*: its stamp is that of the deadline's expiry, which lies between the deadline and
//! any later write. It has a *cut*: elements written below it are removed, those written since stay.
//!
//! A deadline that is set after another one has passed keeps the cut. One that was set elsewhere, by a replica that
//! did not know of the passing, has a higher stamp and a lower cut, and so restores what was removed: the extension
//! wins, as with registers.

use crate::code::{Coded, Malformed, Reader};
use crate::stamp::COUNTER_BITS;
use crate::{Lattice, Stamp, Total};

/// See the module's description. The default never had a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    stamp: Stamp,
    cut: Stamp,
    at: u64,
}

impl Deadline {
    /// Encoded bytes.
    pub const SIZE: usize = 2 * Stamp::SIZE + 8;

    /// Unix milliseconds; 0 for none.
    pub fn at(self) -> u64 {
        self.at
    }

    /// The stamp of its write, or of its passing.
    pub fn stamp(self) -> Stamp {
        self.stamp
    }

    /// Everything with a stamp below this has gone.
    pub fn cut(self) -> Stamp {
        self.cut
    }

    /// No stamp in it is newer.
    pub fn newest(self) -> Stamp {
        self.stamp.max(self.cut)
    }

    /// The time of a stamp from which on it can be forgotten if it affects nothing: later writes have stamps above
    /// its cut.
    pub fn until(self) -> u64 {
        let at = if self.at > 0 { time_of(self.at) } else { 0 };
        self.newest().time.max(at)
    }

    /// Everything written below has gone for good, once all replicas have received everything up to this time of a
    /// stamp: then no replica can have extended a deadline that had passed by that time.
    pub fn gone(self, horizon: u64) -> Stamp {
        let has_come = self.has_come_by(horizon);
        let Self { cut, .. } = if has_come { self.passed() } else { self };
        if cut.time <= horizon {
            cut
        } else {
            Stamp::ZERO
        }
    }

    /// What remains if everything written below this cut has gone for good: a deadline set below it is dropped, as
    /// its successor may have gone with the rest. One that has the cut itself stays.
    pub fn since(self, cut: Stamp) -> Option<Self> {
        let has_it = [self.cut, self.passed().cut].contains(&cut);
        (has_it || self.stamp >= cut).then_some(self)
    }

    /// Sets another deadline; 0 removes it. The stamp is that of a write.
    ///
    /// A time that the clock of the stamps has passed counts as passed, whatever the local time: so all that know of
    /// it and write later have the cut.
    #[must_use]
    pub fn set(self, stamp: Stamp, at: u64) -> Self {
        let has_come = self.has_come_by(stamp.time);
        let Self { cut, .. } = if has_come { self.passed() } else { self };
        Self { stamp, cut, at }
    }

    /// Whether its time is at or before this time of a stamp.
    pub(crate) fn has_come_by(self, time: u64) -> bool {
        self.at > 0 && time_of(self.at) <= time
    }

    /// The result at every replica when its time has come.
    #[must_use]
    pub fn passed(self) -> Self {
        if self.at == 0 {
            return self;
        }
        let stamp = self.stamp.expired();
        let time = Stamp {
            time: time_of(self.at),
            ..Stamp::ZERO
        };
        Self {
            stamp,
            // A deadline that had passed when it was set removes everything written before that.
            cut: self.cut.max(time).max(stamp),
            at: 0,
        }
    }
}

/// Unix milliseconds as the time of stamps.
pub(crate) fn time_of(unix_ms: u64) -> u64 {
    let unix_us = unix_ms.saturating_mul(1000);
    unix_us.min(u64::MAX >> COUNTER_BITS) << COUNTER_BITS
}

impl Lattice for Deadline {
    fn merge(&mut self, other: &Self) -> bool {
        let is_later = other > self;
        if is_later {
            *self = *other;
        }
        is_later
    }
}

impl Total for Deadline {}

impl Coded for Deadline {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.stamp.to_bytes());
        out.extend_from_slice(&self.cut.to_bytes());
        out.extend_from_slice(&self.at.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let deadline = Deadline {
            stamp: Stamp::read(&mut reader)?,
            cut: Stamp::read(&mut reader)?,
            at: reader.u64()?,
        };
        reader.end()?;
        // None is set without a stamp, and a passed one has no time.
        let has_passed = deadline.stamp == deadline.stamp.expired();
        let is_sound = deadline.stamp > Stamp::ZERO && !(has_passed && deadline.at > 0);
        is_sound.then_some(deadline).ok_or(Malformed)
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

    fn deadline(draw: &mut Draw) -> Deadline {
        let mut deadline = Deadline::default();
        for time in 0..draw.below(4) {
            deadline = match draw.below(3) {
                0 => deadline.passed(),
                n => deadline.set(stamp(1 + time + draw.below(3)), n - 1),
            };
        }
        deadline
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Deadline>(60, 1, deadline).unwrap();
        laws::check_total::<Deadline>(60, 1, deadline).unwrap();
        let set = |draw: &mut Draw| deadline(draw).set(stamp(9 + draw.below(2)), draw.below(2));
        laws::check_code(600, 1, set).unwrap();
    }

    #[test]
    fn a_deadline_is_a_lexicographic_pair() {
        type Model = Lexicographic<Max<Stamp>, Max<(Stamp, u64)>>;
        // Of one stamp there is one state.
        laws::check_model::<Deadline, Model>(120, 1, deadline, |deadline| Lexicographic {
            rank: Max(deadline.stamp),
            value: Max((deadline.cut, deadline.at)),
        })
        .unwrap();
    }

    #[test]
    fn what_has_passed_cuts_off_what_was_before_it() {
        let set = Deadline::default().set(stamp(1), 2);
        assert_eq!((set.at(), set.cut()), (2, Stamp::ZERO));
        assert_eq!(set.until(), 2000 << COUNTER_BITS);
        assert_eq!(set.set(stamp(3), 0).until(), 3);
        let passed = set.passed();
        assert_eq!(passed.at(), 0);
        assert_eq!(passed.cut().unix_us(), 2000);
        assert_eq!(passed.passed(), passed);
        let late = Deadline::default().set(stamp(u64::MAX / 2), 2).passed();
        assert_eq!(late.cut(), stamp(u64::MAX / 2).expired());
        assert_eq!(Deadline::default().passed(), Deadline::default());
    }

    #[test]
    fn an_extension_wins_that_did_not_know_and_one_that_knew_keeps_the_cut() {
        let set = Deadline::default().set(stamp(1), 2);
        let mut passed = set.passed();
        let extended = set.set(stamp(2), 9);
        assert!(passed.merge(&extended) && passed.cut() == Stamp::ZERO);
        let mut passed = set.passed();
        let again = passed.set(stamp(3), 9);
        assert!(passed.merge(&again) && passed.cut().unix_us() == 2000);
        // By the clock of the stamps it should have known.
        let late = set.set(stamp(2000 << COUNTER_BITS), 0);
        assert_eq!(late.cut().unix_us(), 2000);
    }

    #[test]
    fn what_has_gone_is_known_to_all_when_the_horizon_has_passed_the_cut() {
        let time = 2000 << COUNTER_BITS;
        let set = Deadline::default().set(stamp(1), 2);
        for deadline in [set, set.passed()] {
            assert_eq!(deadline.gone(time - 1), Stamp::ZERO);
            assert_eq!(deadline.gone(time), set.passed().cut());
        }
        assert_eq!(Deadline::default().gone(u64::MAX), Stamp::ZERO);
    }

    #[test]
    fn one_that_was_set_below_what_has_gone_is_none_unless_it_took_that() {
        let cut = Deadline::default().set(stamp(1), 2).passed().cut();
        let (time, early) = (cut.time, Deadline::default().set(stamp(1), 2));
        for stays in [early, early.passed(), early.set(stamp(time), 0)] {
            assert_eq!(stays.since(cut), Some(stays));
            assert_eq!(stays.since(Stamp::ZERO), Some(stays));
        }
        for at in [0, 1, 9] {
            let other = Deadline::default().set(stamp(3), at);
            let gone = [other, other.passed(), early];
            assert_eq!(gone.map(|gone| gone.since(stamp(time - 1))), [None; 3]);
            assert_eq!(other.since(cut), None);
        }
    }

    #[test]
    fn golden_bytes() {
        let set = Deadline::default().set(stamp(7), 9);
        let stamp_bytes = stamp(7).to_bytes();
        let at = 9u64.to_be_bytes();
        assert_eq!(
            set.encoded(),
            [&stamp_bytes[..], &[0; Stamp::SIZE], &at].concat()
        );
        assert!(Deadline::decode(&[0; Deadline::SIZE]).is_err());
        assert!(Deadline::decode(&set.encoded()[1..]).is_err());
        let mut odd = set.encoded();
        odd[11] = 1;
        assert!(Deadline::decode(&odd).is_err(), "one that has passed");
    }
}
