//! Deadlines of collections: when the time comes what was written before goes,
//! everywhere and for good; what was written since stays. A deadline that is
//! set later replaces the one before, if it is set in time.
//!
//! Of some keys one client is the only one to write, at one worker in a life
//! of the node: there it is known which deadline counts.

use super::act::{Act, Deed};
use super::{Kind, Lattice, Thing};
use std::collections::BTreeSet;

/// The deadline of a collection, as requests state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// This many milliseconds from then on.
    In(i64),
    /// Unix milliseconds.
    At(i64),
    Never,
}

/// Wall clocks of workers may be read so much later than a reply is seen.
const LATE_MS: i64 = 1_000;

/// The acts on a key that set times.
struct Timing<'a> {
    key: usize,
    number: usize,
    act: &'a Act,
    time: Time,
    was_there: bool,
}

impl Lattice {
    /// From when to when a deadline may be, in Unix milliseconds, that was set before `now_us`.
    fn range(&self, set: &Timing<'_>, now_us: u64) -> Option<(i64, i64)> {
        match set.time {
            Time::In(ms) => {
                let (low, high) = self.counted_from(set.key, set.act, now_us);
                Some((low + ms, high + ms))
            }
            Time::At(at) => Some((at, at)),
            Time::Never => None,
        }
    }

    /// Whether commands on this key are executed at the worker of their connection, in all runs of it.
    pub(super) fn is_everywhere(&self, key: usize) -> bool {
        let space = self.keys[key].space.map(|space| &self.spaces[space]);
        space.is_some_and(|space| space.is_fixed && space.threads == 0)
    }

    /// The highest reading of the wall clock until then: no stamp is above it.
    fn highest_ms(&self, until_us: u64) -> i64 {
        self.clock.followed_ms(0, until_us).1
    }

    /// From when to when the deadline counts that an act sets on a key, in Unix milliseconds.
    pub(super) fn counted_from(&self, key: usize, act: &Act, now_us: u64) -> (i64, i64) {
        let until_us = act.answered_us.min(now_us);
        let (low, high) = self.clock.followed_ms(act.asked_us, until_us);
        if self.is_steady {
            return (low, high);
        }
        let reached = self.clocks.reached_before(act);
        let reached = reached.filter(|_| self.is_everywhere(key));
        (
            reached.map_or(low, |reached| reached.max(low)),
            self.highest_ms(until_us).max(high),
        )
    }

    pub(super) fn time(
        &mut self,
        client: usize,
        key: usize,
        now_us: u64,
    ) -> (Vec<Vec<u8>>, Vec<Deed>) {
        let wall = (self.clock.unix_us(now_us) / 1_000) as i64;
        let random = &mut self.clients[client].random;
        let ms = random.skewed(5, 3_000) as i64;
        let (command, number, time) = match random.below(10) {
            0..2 => ("PERSIST", None, Time::Never),
            // Also times that are over.
            2..5 => ("PEXPIREAT", Some(wall + ms - 20), Time::At(wall + ms - 20)),
            5 => ("EXPIRE", Some(1), Time::In(1_000)),
            _ => ("PEXPIRE", Some(ms), Time::In(ms)),
        };
        let mut words = vec![command.as_bytes().to_vec(), self.keys[key].name.clone()];
        words.extend(number.map(|number| number.to_string().into_bytes()));
        let deed = Deed::Time {
            key,
            time,
            was_there: false,
        };
        (words, vec![deed])
    }

    fn timings(&self, key: usize) -> impl Iterator<Item = Timing<'_>> {
        let acts = self.of_key[key]
            .iter()
            .filter(|act| !self.acts[**act].refused);
        acts.flat_map(move |number| {
            let act = &self.acts[*number];
            let here = act.deeds.iter().filter(move |deed| deed.key() == Some(key));
            here.filter_map(move |deed| match *deed {
                Deed::Time {
                    time, was_there, ..
                } => Some(Timing {
                    key,
                    number: *number,
                    act,
                    time,
                    was_there,
                }),
                _ => None,
            })
        })
    }

    /// Whether a deadline may have come by now that took what that act made.
    pub(super) fn may_have_gone(&self, key: usize, made: &Act, now_us: u64) -> bool {
        self.has_gone(key, made, now_us, |_| false)
    }

    /// Likewise, where of these acts it is known that all replicas know of them.
    pub(super) fn has_gone(
        &self,
        key: usize,
        made: &Act,
        now_us: u64,
        is_sure: impl Fn(usize) -> bool,
    ) -> bool {
        self.kind(key).is_timed()
            && self.timings(key).any(|set| {
                let Some((low, high)) = self.range(&set, now_us) else {
                    return false;
                };
                // The clock of stamps does not go back with the wall clock.
                let from_us = if self.is_steady { set.act.asked_us } else { 0 };
                let may_have_come = low <= self.clock.followed_ms(from_us, now_us).1;
                // Written since, by a clock that was never put back.
                let since = self.clock.followed_ms(made.asked_us, made.asked_us).0 > high;
                let is_since = self.is_steady && since && set.act.is_before(made);
                // In time, another was set, or none.
                let in_time = |other: &Timing<'_>| {
                    let answered = other.act.answered_us;
                    self.is_steady
                        && other.was_there
                        && is_sure(other.number)
                        && set.act.is_before(other.act)
                        && self.clock.followed_ms(answered, answered).1 < low
                };
                may_have_come && !is_since && !self.timings(key).any(|other| in_time(&other))
            })
    }

    /// Whether one may come, or has just come, between these times.
    pub(super) fn comes_between(&self, key: usize, from_us: u64, now_us: u64) -> bool {
        let (first, last) = self.clock.followed_ms(from_us, now_us);
        self.timings(key).any(|set| {
            let range = self.range(&set, now_us);
            range.is_some_and(|(low, high)| low <= last && first <= high)
        })
    }

    /// What has gone for good by `from_us`: at keys that one client writes.
    pub(super) fn gone_in_time(
        &self,
        key: usize,
        from_us: u64,
        is_sure: impl Fn(usize) -> bool,
    ) -> BTreeSet<Thing> {
        if !self.keys[key].alone {
            return BTreeSet::new();
        }
        let now = self.clock.followed_ms(from_us, from_us).0;
        let counts = |set: &Timing<'_>| {
            let range = self.range(set, from_us);
            let range = range.filter(|_| set.was_there && is_sure(set.number));
            range.filter(|(_, high)| high + LATE_MS < now)
        };
        let mut gone = BTreeSet::new();
        for set in self.timings(key) {
            let Some((low, high)) = counts(&set) else {
                continue;
            };
            for &number in &self.of_key[key] {
                let act = &self.acts[number];
                let is_answered = act.answered_us != u64::MAX;
                let in_time = self.is_steady
                    && is_answered
                    && self.clock.followed_ms(act.answered_us, act.answered_us).1 < low;
                let is_earlier = is_answered && number < set.number;
                if (in_time || is_earlier) && !self.is_replaced(key, &set, number, high) {
                    gone.extend(act.deeds.iter().flat_map(Deed::makes));
                }
            }
        }
        gone
    }

    /// Whether the deadline that was set may not have counted for what that act made.
    fn is_replaced(&self, key: usize, set: &Timing<'_>, made: usize, high: i64) -> bool {
        let flushes = self.flushes.get(&self.keys[key].db).into_iter().flatten();
        let removals = self.of_key[key].iter().chain(flushes);
        let is_answered = |number: usize| self.acts[number].answered_us != u64::MAX;
        let may_void = |number: usize| {
            let act = &self.acts[number];
            let removes = |deed: &Deed| matches!(deed, Deed::Remove { .. } | Deed::Flush { .. });
            let is_alone = |deed: &Deed| matches!(deed, Deed::Remove { .. });
            let before = act.deeds.iter().all(is_alone) && is_answered(number);
            let is_earlier = before && number < set.number || act.is_before(set.act);
            let is_later =
                is_answered(made) && (number > made && before || self.acts[made].is_before(act));
            let is_over = self.clock.followed_ms(act.asked_us, act.asked_us).0 > high + LATE_MS;
            !act.refused && act.deeds.iter().any(removes) && !is_earlier && !is_later && !is_over
        };
        removals.copied().any(may_void)
            || self.timings(key).any(|other| {
                let is_earlier = is_answered(other.number) && other.number < set.number;
                let asked = self
                    .clock
                    .followed_ms(other.act.asked_us, other.act.asked_us)
                    .0;
                other.number != set.number && !is_earlier && asked <= high + LATE_MS
            })
    }
}

impl Kind {
    pub fn is_timed(self) -> bool {
        matches!(self, Kind::TimedSet | Kind::TimedHash | Kind::TimedSorted)
    }
}
