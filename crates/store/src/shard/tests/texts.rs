//! Replicated strings: the write with the highest stamp is read, increments of
//! one write add up, and deadlines pass everywhere.

use super::replicas::{Model, Write, run};
use crate::shard::strings;
use crate::shard::{ExpirySetting, Key, NewValue, Shard};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_lattice::Stamp;
use std::collections::BTreeMap;

/// The last write, and its increments, each with its dot; and beside them the last deadline.
#[derive(Clone, Debug, Default, PartialEq)]
struct Text {
    stamp: Stamp,
    value: Option<Vec<u8>>,
    added: BTreeMap<Stamp, i64>,
    /// When it was set, its time, 0 for none, and whether it has passed.
    deadline: (Stamp, bool, u64),
    /// The last state that any replica has forgotten.
    forgotten: Stamp,
}

impl Text {
    fn read(&self) -> Option<Vec<u8>> {
        if self.is_hidden() {
            return None;
        }
        if self.added.is_empty() {
            return self.value.clone();
        }
        let base = self.value.as_deref().unwrap_or(b"0");
        let base: i64 = std::str::from_utf8(base).ok()?.parse().ok()?;
        let sum = base + self.added.values().sum::<i64>();
        Some(sum.to_string().into_bytes())
    }

    /// Whether the deadline has passed, and nothing was counted since.
    fn is_hidden(&self) -> bool {
        let (set, has_passed, _) = self.deadline;
        let is_since = self.stamp == self.stamp.expired() && self.stamp >= set.expired();
        has_passed && !is_since
    }

    fn newest(&self) -> Stamp {
        let (set, has_passed, _) = self.deadline;
        self.stamp.max(if has_passed { set.expired() } else { set })
    }

    /// A write with a deadline, which may have passed already; `None`: it keeps the one before, if
    /// there is one that has not passed.
    fn write(&mut self, stamp: Stamp, value: Option<Vec<u8>>, deadline: Option<u64>) {
        let (_, has_passed, at) = self.deadline;
        let only_counts = self.value.is_none() && at == 0;
        let is_new = self.read().is_none() || has_passed || only_counts;
        (self.stamp, self.value) = (stamp, value);
        self.added.clear();
        match deadline {
            None if !is_new => {}
            at => self.deadline = (stamp, false, at.unwrap_or(0)),
        }
    }

    fn count(&mut self, stamp: Stamp, by: i64) {
        if self.read().is_none() {
            // A deadline on a removal is void.
            let (set, has_passed, at) = self.deadline;
            if at > 0 && !has_passed {
                self.deadline = if (at * 1000) << 12 <= stamp.time {
                    (set, true, at)
                } else {
                    (stamp, false, 0)
                };
            }
            if self.is_hidden() {
                let (newest, (.., at)) = (self.newest(), self.deadline);
                let time = newest.time.max((at * 1000) << 12);
                self.stamp = Stamp { time, ..newest }.expired();
            }
            self.value = None;
            self.added.clear();
        }
        self.added.insert(stamp, by);
    }
}

impl Model for Text {
    fn write(&mut self, shard: &mut Shard, key: Key<'_>, write: Write<'_>) -> Self {
        let Write { stamp, now, rng } = write;
        let by = rng.below(100) as i64 - 50;
        let later = now.unix_ms() + rng.below(40);
        let long = if rng.below(6) == 0 { 5000 } else { 3 };
        match rng.below(10) {
            what @ 0..3 => {
                let digits = by.to_string().into_bytes();
                let value = NewValue::Copy(&digits);
                let expiry = [ExpirySetting::Clear, ExpirySetting::Keep][what as usize / 2];
                shard.set(0, key, value, expiry, now);
                self.write(stamp, Some(digits), Some(0).filter(|_| what < 2));
            }
            3 => {
                let value = vec![b'x'; long];
                let expiry = ExpirySetting::At(later);
                shard.set(0, key, NewValue::Copy(&value), expiry, now);
                self.write(stamp, Some(value), Some(later));
            }
            4 => {
                let removed = shard.remove(0, key, now);
                assert_eq!(removed, self.read().is_some());
                if removed {
                    self.write(stamp, None, Some(0));
                }
            }
            what @ 5..7 => {
                let at = Some(later).filter(|_| what == 5);
                let there = shard.set_expire_at(0, key, at, now);
                assert_eq!(there, self.read().is_some());
                if there {
                    self.deadline = (stamp, false, at.unwrap_or(0));
                }
            }
            _ => match strings::increment(&mut shard.at(0, key, now), by) {
                Some(Ok(sum)) => {
                    self.count(stamp, by);
                    assert_eq!(self.read(), Some(sum.to_string().into_bytes()));
                }
                Some(Err(_)) => assert!(self.value.as_ref().is_some_and(|v| v[0] == b'x')),
                None => panic!("the key is replicated"),
            },
        }
        self.clone()
    }

    fn merge(&mut self, other: &Text, _: u64) {
        let forgotten = self.forgotten.max(other.forgotten);
        let deadline = self.deadline.max(other.deadline);
        if other.stamp > self.stamp {
            self.clone_from(other);
        } else if other.stamp == self.stamp {
            self.added.extend(&other.added);
        }
        (self.forgotten, self.deadline) = (forgotten, deadline);
    }

    fn expire(&mut self, now: Now) {
        let (set, has_passed, at) = self.deadline;
        let has_content = self.value.is_some() || !self.added.is_empty();
        let is_due = at > 0 && at <= now.unix_ms();
        if is_due && !has_passed && has_content {
            self.deadline = (set, true, at);
        }
    }

    /// Forgetting must not be visible: later increments belong to the forgotten state, as they do at a replica that
    /// has not forgotten it.
    fn forget(&mut self, horizon: u64) {
        assert!(self.read().is_none());
        assert!(self.newest().time <= horizon || self.newest() <= self.forgotten);
        self.forgotten = self.forgotten.max(self.newest());
    }

    fn shown(&self) -> String {
        format!("{:?}", self.read())
    }

    fn check(&self, shard: &mut Shard, key: Key<'_>, now: Now) {
        let seen = shard.peek(0, key, now).expect("a string");
        let seen = seen.map(|value| value.bytes().to_vec());
        assert_eq!(seen, self.read(), "{self:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn replicas_show_what_they_have_heard_and_converge(seed in any::<u64>(), steps in 1usize..400) {
        run::<Text>(seed, steps);
    }
}

/// Two replicas increment at the same time, one of which has forgotten a removal that the other one has not.
#[test]
fn what_is_counted_on_a_removal_and_where_it_is_forgotten_adds_up() {
    run::<Text>(5083742653698058673, 400);
}

/// A value that keeps no deadline, and deadlines of the counts before it.
#[test]
fn what_has_expired_hides_nothing_later_and_does_not_come_back() {
    let all = [
        (145470371625069775, 197),
        (13322167771326177705, 61),
        (8238261023679530826, 87),
        (1870867398060073511, 49),
    ];
    for (seed, steps) in all {
        run::<Text>(seed, steps);
    }
}
