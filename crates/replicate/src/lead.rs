//! How far clocks may lead: the wall clock the time that has passed, and stamps the wall clock.
//!
//! Stamps follow the wall clock, and never go back. So a wall clock that is ahead for a moment would leave stamps that
//! lead it until it reaches them: deadlines would be counted from the wrong time, and writes of other nodes would lose
//! to earlier ones. [`Lead::real`] is the time that stamps may follow: a wall clock that jumps ahead of the monotonic
//! clock by more than [`MAX_LEAD_US`] is not followed before it has stayed there for [`TRIAL_US`], as it does after
//! the machine was suspended, or never if it has jumped by more than [`MAX_JUMP_US`]. [`Lead::excess`] says why
//! nothing may be written meanwhile. A wall clock that went back is followed at once, and again when it is put right.
//!
//! The first reading is taken as it is: nothing here contradicts it.

use rufous_base::Now;
use rufous_base::limits::CLOCK_TRIAL_US as TRIAL_US;
use rufous_base::limits::{MAX_CLOCK_JUMP_US as MAX_JUMP_US, MAX_STAMP_LEAD_US as MAX_LEAD_US};
use rufous_lattice::stamp::LATEST_US;
use rufous_store::planted::{self, Planted};
use std::fmt;

/// Why replicas here may not be written to. Microseconds. Its text is the reply to such a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// The wall clock has jumped ahead.
    Wall(u64),
    /// The wall clock shows a year after 2099.
    Year,
    /// The last stamp leads the wall clock.
    Stamps(u64),
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u64 = 1_000_000;
        match self {
            Excess::Wall(us) => {
                write!(
                    f,
                    "CLOCKAHEAD lattice keys are not written: the wall clock of this node has jumped ahead by {} s. \
                     If it is wrong, put it right; if it is right, ",
                    us / SECOND
                )?;
                match us {
                    ..=MAX_JUMP_US => write!(f, "writes are accepted after {} s", TRIAL_US / SECOND),
                    _ => f.write_str("restart the node"),
                }
            }
            Excess::Year => f.write_str(
                "CLOCKAHEAD lattice keys are not written: the wall clock of this node is beyond the year 2099. \
                 Put it right",
            ),
            Excess::Stamps(us) => write!(
                f,
                "CLOCKAHEAD lattice keys are not written: earlier writes have stamps that lead the wall clock of this \
                 node by {} s. If the clock is behind, put it right; if the earlier writes were made by a wrong clock, \
                 writes are accepted in {} s, or see docs/operations/faults/wrong-clocks.md",
                us / SECOND,
                us.saturating_sub(MAX_LEAD_US).div_ceil(SECOND)
            ),
        }
    }
}

/// See the module's description.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lead {
    /// A reading of both clocks that is trusted,
    base: Option<Now>,
    /// and the one of all such by which the wall clock is most ahead.
    farthest: Option<Now>,
    /// The monotonic time from which on the wall clock has been ahead.
    ahead_since: Option<u64>,
}

impl Lead {
    /// The wall clock in microseconds, as far as stamps may follow it.
    #[inline]
    pub fn real(&mut self, now: Now) -> u64 {
        let expected = self.expected(now);
        if now.unix_us <= expected.saturating_add(MAX_LEAD_US) && now.unix_us <= LATEST_US {
            return self.follow(now);
        }
        self.doubt(now, expected)
    }

    #[inline]
    fn follow(&mut self, now: Now) -> u64 {
        (self.base, self.ahead_since) = (Some(now), None);
        if self
            .farthest
            .is_none_or(|farthest| now.unix_us > after(farthest, now))
        {
            self.farthest = Some(now);
        }
        now.unix_us
    }

    #[cold]
    fn doubt(&mut self, now: Now, expected: u64) -> u64 {
        let since = *self.ahead_since.get_or_insert(now.mono_us);
        let has_lasted = now.mono_us.saturating_sub(since) >= TRIAL_US;
        let is_possible =
            now.unix_us.saturating_sub(expected) <= MAX_JUMP_US && now.unix_us <= LATEST_US;
        let farthest = self.farthest.map_or(0, |farthest| after(farthest, now));
        let is_back = now.unix_us <= farthest.saturating_add(MAX_LEAD_US);
        if now.unix_us <= LATEST_US && is_back || has_lasted && is_possible {
            return self.follow(now);
        }
        // Zero without any trusted reading: stamps are counted up from the last one.
        self.base.map_or(0, |_| expected)
    }

    /// The wall clock as it should be by the monotonic one.
    #[inline]
    fn expected(&self, now: Now) -> u64 {
        match self.base {
            Some(base) => after(base, now),
            None => now.unix_us.min(LATEST_US),
        }
    }

    /// By how much the wall clock is ahead of the time that has passed.
    pub fn wall_us(&self, now: Now) -> u64 {
        now.unix_us.saturating_sub(self.expected(now))
    }

    /// Why replicas here may not be written to, if the last stamp has this time in microseconds.
    #[inline]
    pub fn excess(&self, now: Now, stamp_us: u64) -> Option<Excess> {
        let wall = self.wall_us(now);
        let stamps = stamp_us.saturating_sub(now.unix_us);
        if planted::is(Planted::LeadIgnored) {
            None
        } else if now.unix_us > LATEST_US {
            Some(Excess::Year)
        } else if wall > MAX_LEAD_US {
            Some(Excess::Wall(wall))
        } else if stamps > MAX_LEAD_US {
            Some(Excess::Stamps(stamps))
        } else {
            None
        }
    }
}

/// What the wall clock of an earlier reading shows at a later one.
#[inline]
fn after(earlier: Now, now: Now) -> u64 {
    earlier.unix_us + now.mono_us.saturating_sub(earlier.mono_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000_000;
    const SECOND: u64 = 1_000_000;

    /// After so many seconds, with a wall clock that is off by others.
    fn at(seconds: u64, off: i64) -> Now {
        Now {
            mono_us: seconds * SECOND,
            unix_us: (START + seconds * SECOND).saturating_add_signed(off * SECOND as i64),
        }
    }

    #[test]
    fn a_clock_that_is_ahead_for_a_moment_is_not_followed() {
        let mut lead = Lead::default();
        assert_eq!(lead.real(at(0, 0)), START);
        assert_eq!(lead.real(at(1, 5)), START + 6 * SECOND, "a small step is");
        let last = lead.real(at(2, 5));
        let ahead = at(3, 605);
        assert_eq!(lead.real(ahead), last + SECOND);
        assert_eq!(lead.excess(ahead, last), Some(Excess::Wall(600 * SECOND)));
        assert_eq!(lead.real(at(30, 605)), last + 28 * SECOND);
        // It is put right.
        let right = at(31, 0);
        let followed = lead.real(right);
        assert_eq!(followed, right.unix_us);
        assert_eq!(lead.excess(right, followed), None);
    }

    #[test]
    fn a_clock_that_stays_ahead_is_followed() {
        let mut lead = Lead::default();
        lead.real(at(0, 0));
        assert_ne!(lead.real(at(1, 600)), at(1, 600).unix_us);
        let later = at(1 + TRIAL_US / SECOND, 600);
        assert_eq!(lead.real(later), later.unix_us);
        assert_eq!(lead.excess(later, later.unix_us), None);
        // Then it is put right: stamps lead by what was followed.
        let right = at(70, 0);
        lead.real(right);
        let stamps = later.unix_us - right.unix_us;
        assert_eq!(
            lead.excess(right, later.unix_us),
            Some(Excess::Stamps(stamps))
        );
        assert_eq!(
            lead.excess(at(700, 0), later.unix_us),
            None,
            "it has reached them"
        );
    }

    #[test]
    fn a_clock_that_was_behind_for_a_moment_is_followed_when_it_is_put_right() {
        let mut lead = Lead::default();
        lead.real(at(0, 0));
        for off in [-600, -3 * 86_400] {
            lead.real(at(10, off));
            let right = at(12, 0);
            assert_eq!(lead.real(right), right.unix_us);
            assert_eq!(lead.excess(right, right.unix_us), None);
            assert_ne!(lead.real(at(13, 60)), at(13, 60).unix_us, "it is ahead");
        }
    }

    #[test]
    fn a_reading_of_another_age_is_never_followed() {
        for unix_us in [
            u64::MAX,
            LATEST_US + 1,
            START + MAX_JUMP_US + 20_000 * SECOND,
        ] {
            let mut lead = Lead::default();
            lead.real(at(0, 0));
            for seconds in [1, 100, 10_000] {
                let now = Now {
                    unix_us,
                    ..at(seconds, 0)
                };
                assert_eq!(lead.real(now), START + seconds * SECOND);
                let excess = lead.excess(now, START).map(|excess| excess.to_string());
                let what = if unix_us > LATEST_US {
                    "beyond the year 2099"
                } else {
                    "if it is right, restart the node"
                };
                assert!(excess.is_some_and(|text| text.contains(what)));
            }
            assert_eq!(lead.real(at(10_001, 0)), at(10_001, 0).unix_us);
        }
        // Nor is the first one.
        let mut lead = Lead::default();
        let now = Now {
            unix_us: u64::MAX,
            ..at(0, 0)
        };
        assert_eq!(lead.real(now), 0);
        assert!(lead.excess(now, 0).is_some());
        assert_eq!(lead.real(at(1, 0)), at(1, 0).unix_us);
    }
}
