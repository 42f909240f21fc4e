//! Whatever sequence of types a key had, and whatever was removed, has gone with a deadline, or was forgotten by one
//! worker or both: a startup finds the last state in their files. Each worker receives every write before the next
//! one, so that the oracle is a plain map.

use super::gone::Pair;
use crate::shard::strings;
use crate::shard::{ExpirySetting, NewValue, Shard};
use proptest::prelude::*;
use rufous_base::rng::Rng;
use rufous_datatype::hash::{self, Hash};
use rufous_datatype::set::{self, Set};
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&[u8]; 2] = [b"k", b"l"];
const MEMBERS: [&[u8]; 2] = [b"x", b"y"];

#[derive(Clone, Debug, PartialEq)]
enum Plain {
    Text(Vec<u8>),
    Set(BTreeSet<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, i64>),
}

impl Plain {
    fn is_empty(&self) -> bool {
        match self {
            Plain::Text(_) => false,
            Plain::Set(members) => members.is_empty(),
            Plain::Hash(fields) => fields.is_empty(),
        }
    }
}

/// A value, and when it expires.
type Model = BTreeMap<&'static [u8], (Plain, Option<u64>)>;

struct World {
    pair: Pair,
    model: Model,
    rng: Rng,
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            pair: Pair::new(),
            model: Model::new(),
            rng: Rng::new(seed),
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    fn expire(&mut self) {
        let now = self.pair.now.unix_ms();
        self.model.retain(|_, (_, at)| at.is_none_or(|at| at > now));
    }

    fn write(&mut self) {
        let (at, name) = (self.below(2) as usize, NAMES[self.below(2) as usize]);
        let member = MEMBERS[self.below(2) as usize];
        match self.below(12) {
            0 | 1 => self.set(at, name),
            2..5 => self.increment(at, name),
            5 | 6 => self.change_set(at, (name, member)),
            7 | 8 => self.change_hash(at, (name, member)),
            9 | 10 => {
                let now = self.pair.now;
                self.pair.write(at, name, |shard| {
                    let key = shard.key(name);
                    shard.remove(0, key, now);
                });
                self.model.remove(name);
            }
            _ => self.deadline(at, name),
        }
    }

    fn set(&mut self, at: usize, name: &'static [u8]) {
        let text: &[u8] = [&b"7"[..], b"text"][self.below(2) as usize];
        let now = self.pair.now;
        let done = self.pair.try_write(at, name, |shard| {
            let (key, value) = (shard.key(name), NewValue::Copy(text));
            shard.set(0, key, value, ExpirySetting::Clear, now);
        });
        if done {
            self.model.insert(name, (Plain::Text(text.to_vec()), None));
        }
    }

    fn increment(&mut self, at: usize, name: &'static [u8]) {
        let (by, now) = (1 + self.below(9) as i64, self.pair.now);
        let before = match self.model.get(name) {
            None => 0,
            Some((Plain::Text(text), _)) if number(text).is_some() => number(text).unwrap_or(0),
            Some(_) => return,
        };
        let mut sum = None;
        let done = self.pair.try_write(at, name, |shard| {
            let key = shard.key(name);
            sum = strings::increment(&mut shard.at(0, key, now), by).and_then(Result::ok);
        });
        if done {
            assert_eq!(sum, Some(before + by));
            let text = Plain::Text((before + by).to_string().into_bytes());
            let entry = self.model.entry(name).or_insert((text.clone(), None));
            entry.0 = text;
        }
    }

    fn change_set(&mut self, at: usize, (name, member): (&'static [u8], &'static [u8])) {
        let (adds, now) = (self.below(3) > 0, self.pair.now);
        let mut was_done = false;
        let done = self.pair.try_write(at, name, |shard| {
            let key = shard.key(name);
            let op = match adds {
                true => set::Op::Add { member },
                false => set::Op::Remove { member },
            };
            let done = shard.update::<Set, _>(0, key, now, |editor| {
                editor.apply(&op);
            });
            was_done = done.is_ok();
        });
        if done && was_done {
            let new = (Plain::Set(BTreeSet::new()), None);
            let Plain::Set(members) = &mut self.model.entry(name).or_insert(new).0 else {
                panic!("a value of another type stays");
            };
            match adds {
                true => members.insert(member.to_vec()),
                false => members.remove(member),
            };
        }
    }

    fn change_hash(&mut self, at: usize, (name, field): (&'static [u8], &'static [u8])) {
        let (mut what, by, now) = (self.below(4), 1 + self.below(9) as i64, self.pair.now);
        let known = self.model.get(name);
        let has_field =
            matches!(known, Some((Plain::Hash(fields), _)) if fields.contains_key(field));
        if what > 1 && !has_field {
            // A count on nothing is a known gap: see record 16.
            what = 0;
        }
        let mut was_done = false;
        let done = self.pair.try_write(at, name, |shard| {
            let key = shard.key(name);
            let op = match what {
                0 => hash::Op::Set {
                    field,
                    value: b"100",
                },
                1 => hash::Op::Delete { field },
                _ => hash::Op::Increment { field, by },
            };
            let done = shard.update::<Hash, _>(0, key, now, |editor| {
                editor.apply(&op);
            });
            was_done = done.is_ok();
        });
        if done && was_done {
            let new = (Plain::Hash(BTreeMap::new()), None);
            let Plain::Hash(fields) = &mut self.model.entry(name).or_insert(new).0 else {
                panic!("a value of another type stays");
            };
            match what {
                0 => fields.insert(field.to_vec(), 100),
                1 => fields.remove(field),
                _ => {
                    let sum = fields.get(field).copied().unwrap_or(0) + by;
                    fields.insert(field.to_vec(), sum)
                }
            };
        }
    }

    fn deadline(&mut self, at: usize, name: &'static [u8]) {
        let now = self.pair.now;
        let when = match self.below(4) {
            0 => None,
            n => Some(now.unix_ms() + n),
        };
        let done = self.pair.try_write(at, name, |shard| {
            let key = shard.key(name);
            shard.set_expire_at(0, key, when, now);
        });
        if let Some((_, at)) = self.model.get_mut(name).filter(|_| done) {
            *at = when;
        }
    }

    fn step(&mut self) {
        match self.below(24) {
            0..15 => self.write(),
            15 | 16 => {
                let us = self.below(3000);
                self.pair.now.unix_us += us;
                self.pair.now.mono_us += us;
            }
            17..21 => {
                let who: &[usize] = [&[0][..], &[1], &[0, 1]][self.below(3) as usize];
                self.pair.forget(who);
            }
            21 => self.pair.cut(),
            22 => self.pair.restart(),
            _ => {
                // Other workers than those that wrote the files.
                self.pair.restart_with([1, 0]);
                self.pair.cut();
            }
        }
        self.model.retain(|_, (value, _)| !value.is_empty());
        self.expire();
        self.check();
    }

    fn check(&mut self) {
        let now = self.pair.now;
        for (number, shard) in self.pair.shards.iter_mut().enumerate() {
            shard.check();
            for name in NAMES {
                let expected = self.model.get(name).map(|(value, _)| value.clone());
                assert_eq!(shown(shard, name, now), expected, "{name:?} at {number}");
                let key = shard.key(name);
                let at = self.model.get(name).map(|(_, at)| *at);
                assert_eq!(shard.expire_at(0, key, now), at);
            }
        }
    }
}

fn shown(shard: &mut Shard, name: &[u8], now: rufous_base::Now) -> Option<Plain> {
    let key = shard.key(name);
    if let Ok(text) = shard.peek(0, key, now) {
        return text.map(|text| Plain::Text(text.bytes().to_vec()));
    }
    if let Ok(Some(view)) = shard.collection::<Set>(0, key, now) {
        let members = MEMBERS.into_iter().filter(|member| view.contains(member));
        return Some(Plain::Set(members.map(<[u8]>::to_vec).collect()));
    }
    let view = shard.collection::<Hash>(0, key, now).ok().flatten()?;
    let fields = MEMBERS.into_iter().filter_map(|field| {
        let value = number(view.get(field)?).expect("numbers");
        Some((field.to_vec(), value))
    });
    Some(Plain::Hash(fields.collect()))
}

fn run(seed: u64, steps: usize) {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world.pair.restart();
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_of_before_comes_back_with_files(seed in any::<u64>(), steps in 1usize..200) {
        run(seed, steps);
    }
}

/// Counts without a stamp, a deadline that passes, and counts without a stamp behind it.
#[test]
fn counts_that_have_expired_do_not_come_back() {
    let all = [
        (1741036430356223532, 57),
        (5633206181061513003, 99),
        (17134162535160098180, 90),
        (14490283918022220160, 31),
    ];
    for (seed, steps) in all {
        run(seed, steps);
    }
}
