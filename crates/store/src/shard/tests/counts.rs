//! Increments of fields and of members of sorted sets: those of one write, or of one removal, add up, whichever
//! replica has forgotten it.

use super::replicas::{Model, Write, run};
use crate::shard::{Key, Shard};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::sorted_set::{self, Only, SortedSet};
use rufous_lattice::Stamp;
use std::collections::BTreeMap;

const NAMES: [&[u8]; 3] = [b"x", b"y", b"a longer name"];

/// The last write, and what was added to it, each addition with its dot.
#[derive(Clone, Debug, Default)]
struct Element {
    stamp: Stamp,
    written: Option<i64>,
    added: BTreeMap<Stamp, i64>,
}

impl Element {
    fn read(&self) -> Option<i64> {
        let added = self.added.values().sum::<i64>();
        let is_there = self.written.is_some() || !self.added.is_empty();
        is_there.then(|| self.written.unwrap_or(0) + added)
    }
}

/// Key `a` is a sorted set, the others are hashes.
#[derive(Clone, Debug, Default)]
struct Counts(BTreeMap<&'static [u8], Element>);

impl Counts {
    fn read(&self, name: &[u8]) -> Option<i64> {
        self.0.get(name)?.read()
    }

    /// Applies the change to the element, and to the delta for others: the whole element.
    fn change(&mut self, told: &mut Counts, name: &'static [u8], f: impl FnOnce(&mut Element)) {
        let element = self.0.entry(name).or_default();
        f(element);
        told.0.insert(name, element.clone());
    }
}

fn put(shard: &mut Shard, key: Key<'_>, (name, value): (&[u8], Option<i64>), now: Now) {
    let done = match (key.bytes, value) {
        (b"a", _) => shard.update::<SortedSet, _>(0, key, now, |editor| {
            let (score, only) = (value.unwrap_or(0) as f64, Only::default());
            editor.apply(&match value {
                Some(_) => sorted_set::Op::Add {
                    member: name,
                    score,
                    only,
                },
                None => sorted_set::Op::Remove { member: name },
            });
        }),
        _ => shard.update::<Hash, _>(0, key, now, |editor| {
            let text = value.unwrap_or(0).to_string().into_bytes();
            editor.apply(&match value {
                Some(_) => hash::Op::Set {
                    field: name,
                    value: &text,
                },
                None => hash::Op::Delete { field: name },
            });
        }),
    };
    assert!(done.is_ok(), "keys keep to their types");
}

fn add(shard: &mut Shard, key: Key<'_>, (name, by): (&[u8], i64), now: Now) {
    let done = match key.bytes {
        b"a" => shard.update::<SortedSet, _>(0, key, now, |editor| {
            let (by, only) = (by as f64, Only::default());
            editor.apply(&sorted_set::Op::Increment {
                member: name,
                by,
                only,
            });
        }),
        _ => shard.update::<Hash, _>(0, key, now, |editor| {
            editor.apply(&hash::Op::Increment { field: name, by });
        }),
    };
    assert!(done.is_ok(), "keys keep to their types");
}

impl Model for Counts {
    fn write(&mut self, shard: &mut Shard, key: Key<'_>, write: Write<'_>) -> Self {
        let Write { stamp, now, rng } = write;
        let name = NAMES[rng.below(3) as usize];
        let by = rng.below(100) as i64 - 50;
        let mut told = Counts::default();
        match rng.below(10) {
            0 => {
                shard.remove(0, key, now);
                for name in NAMES {
                    if self.read(name).is_some() {
                        self.change(&mut told, name, |element| {
                            *element = Element {
                                stamp,
                                ..Element::default()
                            };
                        });
                    }
                }
            }
            what @ 1..4 => {
                let value = Some(by).filter(|_| what == 1);
                put(shard, key, (name, value), now);
                if value.is_some() || self.read(name).is_some() {
                    self.change(&mut told, name, |element| {
                        let added = BTreeMap::new();
                        *element = Element {
                            stamp,
                            written: value,
                            added,
                        };
                    });
                }
            }
            _ => {
                add(shard, key, (name, by), now);
                self.change(&mut told, name, |element| {
                    element.added.insert(stamp, by);
                });
            }
        }
        told
    }

    fn merge(&mut self, other: &Self, _: u64) {
        for (name, theirs) in &other.0 {
            let mine = self.0.entry(name).or_default();
            if theirs.stamp > mine.stamp {
                mine.clone_from(theirs);
            } else if theirs.stamp == mine.stamp {
                mine.added.extend(&theirs.added);
            }
        }
    }

    fn expire(&mut self, _: Now) {}

    /// Forgetting must not be visible.
    fn forget(&mut self, _: u64) {}

    fn shown(&self) -> String {
        format!("{:?}", NAMES.map(|name| self.read(name)))
    }

    fn check(&self, shard: &mut Shard, key: Key<'_>, now: Now) {
        for name in NAMES {
            let seen = match key.bytes {
                b"a" => {
                    let view = shard.collection::<SortedSet>(0, key, now);
                    let view = view.expect("a sorted set");
                    view.and_then(|view| view.score(name))
                        .map(|score| score as i64)
                }
                _ => {
                    let view = shard.collection::<Hash>(0, key, now).expect("a hash");
                    let text = view.and_then(|view| view.get(name).map(<[u8]>::to_vec));
                    let text = text.map(|text| String::from_utf8(text).expect("digits"));
                    text.map(|text| text.parse().expect("a number"))
                }
            };
            assert_eq!(seen, self.read(name), "{self:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn increments_of_elements_add_up_whatever_is_forgotten(seed in any::<u64>(), steps in 1usize..400) {
        run::<Counts>(seed, steps);
    }
}

/// A message has one field, and the whole hash has a grave. The receiver must not assume that the sender has
/// forgotten the rest of the hash.
#[test]
fn a_part_of_a_hash_makes_no_way_for_the_rest() {
    run::<Counts>(3837731250220344563, 65);
}

/// One replica had forgotten a hash, the other had incremented a field of it that it had not forgotten; then there
/// was a startup.
#[test]
fn counts_on_a_hash_that_only_one_has_forgotten_are_there_after_a_start() {
    run::<Counts>(13898439439591909833, 232);
}
