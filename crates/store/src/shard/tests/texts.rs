//! Replicated strings: the write with the highest stamp is read, increments of
//! one write add up, and deadlines pass everywhere.

use super::replicas::{Model, Write, run};
use crate::shard::strings;
use crate::shard::{ExpirySetting, Key, NewValue, Shard};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_lattice::Stamp;
use std::collections::BTreeMap;

/// The last write, and its increments, each with its dot.
#[derive(Clone, Debug, Default, PartialEq)]
struct Text {
    stamp: Stamp,
    value: Option<Vec<u8>>,
    deadline: u64,
    added: BTreeMap<Stamp, i64>,
    /// The last removal that any replica has forgotten.
    forgotten: Stamp,
}

impl Text {
    fn read(&self) -> Option<Vec<u8>> {
        if self.added.is_empty() {
            return self.value.clone();
        }
        let base = self.value.as_deref().unwrap_or(b"0");
        let base: i64 = std::str::from_utf8(base).ok()?.parse().ok()?;
        let sum = base + self.added.values().sum::<i64>();
        Some(sum.to_string().into_bytes())
    }
}

impl Model for Text {
    fn write(&mut self, shard: &mut Shard, key: Key<'_>, write: Write<'_>) -> Self {
        let Write { stamp, now, rng } = write;
        let by = rng.below(100) as i64 - 50;
        let later = now.unix_ms() + rng.below(40);
        let long = if rng.below(6) == 0 { 5000 } else { 3 };
        let set = |value: Vec<u8>, deadline| Text {
            stamp,
            value: Some(value),
            deadline,
            ..Text::default()
        };
        match rng.below(8) {
            0 | 1 => {
                let digits = by.to_string().into_bytes();
                let value = NewValue::Copy(&digits);
                shard.set(0, key, value, ExpirySetting::Clear, now);
                *self = set(digits, 0);
            }
            2 => {
                let value = vec![b'x'; long];
                let expiry = ExpirySetting::At(later);
                shard.set(0, key, NewValue::Copy(&value), expiry, now);
                *self = set(value, later);
            }
            3 => {
                let removed = shard.remove(0, key, now);
                assert_eq!(removed, self.read().is_some());
                if removed {
                    *self = Text {
                        stamp,
                        ..Text::default()
                    };
                }
            }
            4 => {
                let there = shard.set_expire_at(0, key, Some(later), now);
                assert_eq!(there, self.read().is_some());
                if let Some(value) = self.read() {
                    *self = set(value, later);
                }
            }
            _ => match strings::increment(&mut shard.at(0, key, now), by) {
                Some(Ok(sum)) => {
                    self.added.insert(stamp, by);
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
        if other.stamp > self.stamp {
            self.clone_from(other);
        } else if other.stamp == self.stamp {
            self.added.extend(&other.added);
        }
        self.forgotten = forgotten;
    }

    fn expire(&mut self, now: Now) {
        if self.deadline > 0 && self.deadline <= now.unix_ms() {
            *self = Text {
                stamp: self.stamp.expired(),
                ..Text::default()
            };
        }
    }

    /// Forgetting must not be visible: later increments belong to the forgotten state, as they do at a replica that
    /// has not forgotten it.
    fn forget(&mut self, horizon: u64) {
        assert!(self.read().is_none());
        assert!(self.stamp.time <= horizon || self.stamp <= self.forgotten);
        self.forgotten = self.forgotten.max(self.stamp);
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
