//! Clock offsets of other nodes. Deadlines of keys and stamps of lattice keys depend on wall
//! clocks, so a large offset is logged.
//!
//! Each side of a session asks the other for its clock, at once and then periodically. The time of
//! the answer is known to within half the round trip: of the last answers the fastest is used. A
//! node of an earlier wire version is not asked, as its version does not have the message, and its
//! offset stays unknown.

use rufous_base::Now;
use rufous_mapping::NodeNo;
use rufous_wire::message::Clock;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How often a node is asked for its clock.
const PERIOD_US: u64 = 5_000_000;

/// Number of answers that are kept.
const KEPT: usize = 8;

/// A larger offset is reported.
const FAR_US: u64 = 1_000_000;

/// An offset up to this counts as normal again. Between the two nothing is reported, so that a
/// clock at the bound does not fill the log.
const NEAR_US: u64 = FAR_US / 2;

/// How much the wall clock of another node is ahead of this one's, and the error bound of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    pub us: i64,
    pub within_us: u64,
}

impl Offset {
    /// Whether the offset is far; `None` between the two bounds.
    fn is_far(self) -> Option<bool> {
        let off = self.us.unsigned_abs();
        match off.saturating_sub(self.within_us) > FAR_US {
            true => Some(true),
            false => (off <= NEAR_US).then_some(false),
        }
    }
}

/// An answer: how much the other's wall clock was ahead of this node's monotonic clock, and the
/// round-trip time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    ahead_us: i64,
    way_us: u64,
}

impl Sample {
    fn within_us(self) -> u64 {
        self.way_us.div_ceil(2)
    }

    /// Whether both samples can be right.
    fn agrees(self, other: Self) -> bool {
        let apart = self.ahead_us.abs_diff(other.ahead_us);
        apart <= self.within_us().saturating_add(other.within_us())
    }
}

/// The state of the clock at the other end of one session.
#[derive(Debug, Default)]
pub(super) struct Known {
    due_us: u64,
    /// When the pending question was sent.
    asked_us: Option<u64>,
    /// The last one first.
    samples: VecDeque<Sample>,
    /// As of the last look.
    pub(super) offset: Option<Offset>,
    /// What was last reported to [`Far`].
    was_far: Option<bool>,
}

impl Known {
    /// Whether to ask now; the answer is then awaited.
    pub(super) fn ask(&mut self, now: Now) -> bool {
        let is_due = now.mono_us >= self.due_us;
        if is_due {
            self.due_us = now.mono_us + PERIOD_US;
            self.asked_us = Some(now.mono_us);
        }
        is_due
    }

    /// Takes an answer, if it is the awaited one.
    pub(super) fn take(&mut self, now: Now, clock: &Clock) {
        let awaited = |asked: &mut u64| *asked == clock.asked_us;
        let Some(asked_us) = self.asked_us.take_if(awaited) else {
            return;
        };
        let way_us = now.mono_us.saturating_sub(asked_us);
        let between_us = asked_us + way_us / 2;
        let sample = Sample {
            ahead_us: clock.unix_us as i64 - between_us as i64,
            way_us,
        };
        // Of two samples that disagree, one is from before a clock was set.
        self.samples.retain(|earlier| earlier.agrees(sample));
        self.samples.push_front(sample);
        self.samples.truncate(KEPT);
        self.look(now);
    }

    /// Updates the offset: this node's own clock may have been set meanwhile.
    pub(super) fn look(&mut self, now: Now) {
        let best = self.samples.iter().min_by_key(|sample| sample.way_us);
        let own_us = now.unix_us as i64 - now.mono_us as i64;
        self.offset = best.map(|best| Offset {
            us: best.ahead_us.saturating_sub(own_us),
            within_us: best.within_us(),
        });
    }

    /// Whether it is far, if that was not reported yet.
    pub(super) fn news(&mut self) -> Option<bool> {
        let is_far = self.offset?.is_far()?;
        (self.was_far.replace(is_far) != Some(is_far)).then_some(is_far)
    }
}

/// Nodes whose clocks are far from this one's, by any session.
#[derive(Debug, Default)]
pub struct Far(Mutex<BTreeSet<NodeNo>>);

impl Far {
    /// Records the state of a node. Returns whether it is new.
    fn note(&self, no: NodeNo, is_far: bool) -> bool {
        let mut far = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match is_far {
            true => far.insert(no),
            false => far.remove(&no),
        }
    }
}

pub(super) fn report(far: &Far, node: NodeNo, is_far: bool, offset: Offset) {
    let Offset { us, within_us } = offset;
    match (far.note(node, is_far), is_far) {
        (true, true) => tracing::warn!(
            %node,
            offset_us = us,
            within_us,
            "a node's clock is far from this one's: deadlines of keys and the order of writes of lattice keys go by them"
        ),
        (true, false) => {
            tracing::info!(%node, offset_us = us, within_us, "a node's clock is synchronized again");
        }
        (false, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIX_US: u64 = 1_700_000_000_000_000;

    /// A monotonic clock and a wall clock, at some time.
    fn at(mono_us: u64) -> Now {
        Now {
            mono_us,
            unix_us: UNIX_US + mono_us,
        }
    }

    /// Asks at a time; the answer takes the two ways, from a clock that is this far ahead.
    fn answered(known: &mut Known, mono_us: u64, ways_us: [u64; 2], ahead_us: i64) -> Offset {
        assert!(known.ask(at(mono_us)));
        let there = mono_us + ways_us[0];
        let clock = Clock {
            asked_us: mono_us,
            unix_us: (at(there).unix_us as i64 + ahead_us) as u64,
        };
        known.take(at(there + ways_us[1]), &clock);
        known.offset.expect("answered")
    }

    #[test]
    fn the_offset_is_right_to_within_half_the_way() {
        for (there, back) in [(0, 0), (5_000, 5_000), (1, 900_000), (900_000, 2)] {
            for ahead in [-86_400_000_000, -1, 0, 1, 1_500_000] {
                let mut known = Known::default();
                let offset = answered(&mut known, 7_000_000, [there, back], ahead);
                assert_eq!(offset.within_us, (there + back).div_ceil(2));
                let wrong = offset.us.abs_diff(ahead);
                assert!(wrong <= offset.within_us, "{offset:?} for {ahead}");
            }
        }
    }

    #[test]
    fn the_fastest_of_the_last_answers_counts() {
        let mut known = Known::default();
        let mut time = 1_000_000;
        let mut ask = |ways_us| {
            time += PERIOD_US;
            answered(&mut known, time, ways_us, 40)
        };
        let slow = [100, 500];
        assert_eq!(ask(slow).within_us, 300);
        assert_eq!((ask([3, 5]).within_us, ask([3, 5]).us), (4, 39));
        for _ in 0..KEPT - 1 {
            assert_eq!(ask(slow).within_us, 4);
        }
        assert_eq!(ask(slow).within_us, 300, "it is forgotten in the end");
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_at_the_next_answer() {
        let mut known = Known::default();
        assert_eq!(answered(&mut known, 10_000_000, [5, 5], 0).us, 0);
        // A slower answer, which cannot be right if the first one is.
        let offset = answered(&mut known, 20_000_000, [50, 50], -3_000_000);
        assert_eq!((offset.us, offset.within_us), (-3_000_000, 50));
        // A change of this node's own clock is noticed without any answer.
        let mut now = at(21_000_000);
        now.unix_us -= 3_000_000;
        known.look(now);
        assert_eq!(known.offset.map(|offset| offset.us), Some(0));
    }

    #[test]
    fn answers_to_nothing_say_nothing() {
        let mut known = Known::default();
        let clock = |asked_us| Clock {
            asked_us,
            unix_us: UNIX_US,
        };
        known.take(at(9), &clock(9));
        assert!(known.ask(at(10)) && !known.ask(at(11)));
        known.take(at(12), &clock(11));
        assert_eq!(known.offset, None);
        known.take(at(12), &clock(10));
        assert!(known.offset.is_some());
        let before = known.offset;
        known.take(at(4_000_000), &clock(10));
        assert_eq!(known.offset, before, "it is answered once");
        // No number that a session accepts causes an overflow.
        for unix_us in [0, rufous_wire::message::MAX_UNIX_US] {
            let mut known = Known::default();
            known.ask(at(10));
            known.take(
                at(12),
                &Clock {
                    asked_us: 10,
                    unix_us,
                },
            );
            assert_eq!(known.offset.and_then(Offset::is_far), Some(true));
        }
    }

    #[test]
    fn what_is_far_is_said_once_until_it_is_near_again() {
        let mut known = Known::default();
        let mut time = 1_000_000;
        let mut ask = |ahead_us| {
            time += PERIOD_US;
            answered(&mut known, time, [10, 10], ahead_us);
            known.news()
        };
        assert_eq!(ask(1_000_001), None, "it may be within a second");
        assert_eq!(ask(-1_100_000), Some(true));
        assert_eq!(ask(1_200_000), None);
        assert_eq!(ask(700_000), None, "not near yet");
        assert_eq!(ask(1_200_000), None);
        assert_eq!(ask(500_000), Some(false));
        assert_eq!(ask(900_000), None);
        assert_eq!(ask(1_200_000), Some(true));
        // Nor is it reported again by another session with that node.
        let far = Far::default();
        let heard = [true, true, false, false, true].map(|is| far.note(NodeNo(1), is));
        assert_eq!(heard, [true, false, true, false, true]);
        assert!(far.note(NodeNo(2), true));
    }
}
