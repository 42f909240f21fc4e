//! Random operations on a shard and on a model made of the standard library's maps: the replies have to agree, and
//! every invariant has to hold.

use crate::shard::{ExpirySetting, Key, Listing, NewValue, Policy, Shard, Value, record};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_base::rng::Rng;
use std::collections::BTreeMap;

/// Databases the operations use.
const DBS: usize = 2;

/// Unix milliseconds at the start.
const START_MS: u64 = 1_000_000;

#[derive(Clone, Debug)]
pub(super) enum Op {
    Set {
        key: u8,
        len: usize,
        own: bool,
        expiry: ExpirySetting,
    },
    Get {
        key: u8,
    },
    Append {
        key: u8,
        len: usize,
    },
    Grow {
        key: u8,
        len: usize,
    },
    Change {
        key: u8,
    },
    Remove {
        key: u8,
    },
    Rename {
        from: u8,
        to: u8,
    },
    Copy {
        from: u8,
        to: u8,
        other_db: bool,
    },
    SetExpiry {
        key: u8,
        at: Option<u64>,
    },
    Flush,
    Swap,
    Select {
        db: usize,
    },
    Wait {
        ms: u64,
    },
    ExpireStep {
        budget: usize,
    },
    Maintain {
        budget: usize,
    },
    Random {
        seed: u64,
    },
    Garbage,
}

/// Lengths around every boundary: classes, varints, inline and big.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0usize..300,
        2 => prop_oneof![Just(126), Just(127), Just(128), Just(129)],
        2 => 300usize..5000,
        2 => record::MAX_RECORD - 60..record::MAX_RECORD + 10,
        1 => 60_000usize..140_000,
    ]
}

fn times() -> impl Strategy<Value = u64> {
    prop_oneof![4 => START_MS..START_MS + 3000, 1 => Just(START_MS), 1 => Just(u64::MAX)]
}

fn settings() -> impl Strategy<Value = ExpirySetting> {
    prop_oneof![
        2 => Just(ExpirySetting::Keep),
        2 => Just(ExpirySetting::Clear),
        1 => times().prop_map(ExpirySetting::At),
    ]
}

pub(super) fn operations() -> impl Strategy<Value = Op> {
    let key = || 0u8..40;
    prop_oneof![
        12 => (key(), lengths(), any::<bool>(), settings())
            .prop_map(|(key, len, own, expiry)| Op::Set { key, len, own, expiry }),
        6 => key().prop_map(|key| Op::Get { key }),
        5 => (key(), lengths()).prop_map(|(key, len)| Op::Append { key, len }),
        4 => (key(), lengths()).prop_map(|(key, len)| Op::Grow { key, len }),
        2 => key().prop_map(|key| Op::Change { key }),
        5 => key().prop_map(|key| Op::Remove { key }),
        3 => (key(), key()).prop_map(|(from, to)| Op::Rename { from, to }),
        3 => (key(), key(), any::<bool>())
            .prop_map(|(from, to, other_db)| Op::Copy { from, to, other_db }),
        5 => (key(), proptest::option::of(times()))
            .prop_map(|(key, at)| Op::SetExpiry { key, at }),
        1 => Just(Op::Flush),
        1 => Just(Op::Swap),
        2 => (0..DBS).prop_map(|db| Op::Select { db }),
        3 => (0u64..300).prop_map(|ms| Op::Wait { ms }),
        2 => (0usize..20).prop_map(|budget| Op::ExpireStep { budget }),
        3 => (0usize..200).prop_map(|budget| Op::Maintain { budget }),
        1 => any::<u64>().prop_map(|seed| Op::Random { seed }),
        1 => Just(Op::Garbage),
    ]
}

/// Short names, the empty one, and names around the length that is kept inline.
fn name(key: u8) -> Vec<u8> {
    let len = match key {
        0 => 0,
        1..=4 => record::MAX_INLINE_KEY - 2 + usize::from(key),
        5 => 5000,
        6 => 127,
        7 => 128,
        _ => usize::from(key) % 20 + 1,
    };
    let mut name = vec![b'k'; len];
    if let Some(last) = name.last_mut() {
        *last = key;
    }
    name
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) value: Vec<u8>,
    pub(super) expire_at: Option<u64>,
}

pub(super) struct Pair {
    pub(super) shard: Shard,
    model: Vec<BTreeMap<Vec<u8>, Item>>,
    db: usize,
    now_ms: u64,
    fill: u8,
}

impl Pair {
    pub(super) fn new(seed: u64) -> Self {
        let mut shard = Shard::new(seed);
        if seed.is_multiple_of(2) {
            shard.data.count_slots();
        }
        Self {
            shard,
            model: vec![BTreeMap::new(); DBS],
            db: 0,
            now_ms: START_MS,
            fill: 0,
        }
    }

    fn now(&self) -> Now {
        Now {
            mono_us: self.now_ms * 1000,
            unix_us: self.now_ms * 1000 + 999,
        }
    }

    fn live(&mut self, name: &[u8]) -> Option<&mut Item> {
        let now_ms = self.now_ms;
        let items = &mut self.model[self.db];
        if items
            .get(name)
            .is_some_and(|i| i.expire_at.is_some_and(|at| at <= now_ms))
        {
            items.remove(name);
        }
        items.get_mut(name)
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        self.fill = self.fill.wrapping_add(1);
        vec![self.fill; len]
    }

    fn key<'a>(&self, name: &'a [u8]) -> Key<'a> {
        self.shard.key(name)
    }

    pub(super) fn run(&mut self, op: Op) {
        match op {
            Op::Set {
                key,
                len,
                own,
                expiry,
            } => self.set(&name(key), len, own, expiry),
            Op::Get { key } => self.get(&name(key)),
            Op::Append { key, len } => self.append(&name(key), len),
            Op::Grow { key, len } => self.grow(&name(key), len),
            Op::Change { key } => self.change(&name(key)),
            Op::Remove { key } => {
                let (name, now) = (name(key), self.now());
                let there = self.live(&name).is_some();
                self.model[self.db].remove(&name);
                assert_eq!(self.shard.remove(self.db, self.key(&name), now), there);
            }
            Op::Rename { from, to } => self.rename(&name(from), &name(to)),
            Op::Copy { from, to, other_db } => self.copy(&name(from), &name(to), other_db),
            Op::SetExpiry { key, at } => {
                let (name, now) = (name(key), self.now());
                let item = self.live(&name);
                let there = item.is_some();
                if let Some(item) = item {
                    item.expire_at = at;
                }
                let done = self.shard.set_expire_at(self.db, self.key(&name), at, now);
                assert_eq!(done, there);
            }
            Op::Flush => {
                self.shard.flush(self.db);
                self.model[self.db].clear();
            }
            Op::Swap => {
                self.shard.swap(0, 1);
                self.model.swap(0, 1);
            }
            Op::Select { db } => self.db = db,
            Op::Wait { ms } => self.now_ms += ms,
            Op::ExpireStep { budget } => self.expire_step(budget),
            Op::Maintain { budget } => {
                self.shard.maintain_step(budget);
            }
            Op::Random { seed } => self.random(seed),
            Op::Garbage => drop(self.shard.take_garbage()),
        }
    }

    fn set(&mut self, name: &[u8], len: usize, own: bool, setting: ExpirySetting) {
        let (value, now) = (self.bytes(len), self.now());
        let old = self.live(name).cloned();
        let expire_at = match setting {
            ExpirySetting::Keep => old.as_ref().and_then(|item| item.expire_at),
            ExpirySetting::Clear => None,
            ExpirySetting::At(at) => Some(at),
        };
        let item = Item {
            value: value.clone(),
            expire_at,
        };
        self.model[self.db].insert(name.to_vec(), item);
        let key = self.key(name);
        let new = if own {
            NewValue::Own(value)
        } else {
            NewValue::Copy(&value)
        };
        let there = self.shard.set(self.db, key, new, setting, now);
        assert_eq!(there, old.is_some());
    }

    fn get(&mut self, name: &[u8]) {
        let now = self.now();
        let expected = self.live(name).cloned();
        let (key, db) = (self.key(name), self.db);
        let warm = self.shard.warm_index(db, key.hash);
        self.shard.warm_record(db, warm);
        let value = self.shard.get(db, key, now).expect("a string");
        let inline = value.is_some_and(|v| matches!(v, Value::Small(_)));
        assert_eq!(
            value.map(|v| v.bytes().to_vec()),
            expected.as_ref().map(|i| i.value.clone())
        );
        if let Some(expected) = &expected {
            assert!(!inline || expected.value.len() <= record::MAX_RECORD);
        }
        let at = self.shard.expire_at(db, key, now);
        assert_eq!(at, expected.as_ref().map(|i| i.expire_at));
        assert_eq!(self.shard.contains(db, key, now), expected.is_some());
        assert_eq!(
            self.shard.memory_of(db, key, now).is_some(),
            expected.is_some()
        );
    }

    fn append(&mut self, name: &[u8], len: usize) {
        let (tail, now) = (self.bytes(len), self.now());
        self.live(name);
        let empty = Item {
            value: Vec::new(),
            expire_at: None,
        };
        let item = self.model[self.db].entry(name.to_vec()).or_insert(empty);
        item.value.extend_from_slice(&tail);
        let expected = item.value.len();
        assert_eq!(
            self.shard.append(self.db, self.key(name), &tail, now),
            expected
        );
    }

    fn grow(&mut self, name: &[u8], len: usize) {
        let (fill, now) = (self.bytes(1)[0], self.now());
        self.live(name);
        let empty = Item {
            value: Vec::new(),
            expire_at: None,
        };
        let item = self.model[self.db].entry(name.to_vec()).or_insert(empty);
        item.value.resize(item.value.len().max(len), 0);
        let key = self.shard.key(name);
        // If the value is long enough, only its last byte changes; if it grows, sometimes none of the ranges reaches
        // the end.
        let last = item.value.len().max(1) - 1;
        let changed = if fill % 2 == 0 { 0..0 } else { last..last + 1 };
        self.shard
            .edit((self.db, key), len, Some(changed.clone()), now, |bytes| {
                assert_eq!(bytes, item.value);
                if let Some(last) = bytes.last_mut()
                    && !changed.is_empty()
                {
                    *last = fill;
                    *item.value.last_mut().expect("as long") = fill;
                }
            });
    }

    fn change(&mut self, name: &[u8]) {
        let now = self.now();
        let (key, db) = (self.shard.key(name), self.db);
        let expected = self.live(name).map(|item| {
            item.value.reverse();
            item.value.clone()
        });
        let value = self.shard.peek(db, key, now).expect("a string");
        let len = value.map(|value| value.bytes().len());
        assert_eq!(len, expected.as_ref().map(Vec::len));
        let (Some(len), Some(expected)) = (len, expected) else {
            return;
        };
        // Two ranges with unchanged bytes between them.
        let ranges = [0..len / 2, len.div_ceil(2)..len];
        self.shard.edit((db, key), 0, ranges, now, |bytes| {
            bytes.reverse();
            assert_eq!(bytes, expected);
        });
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        let now = self.now();
        let expected = self.live(from).cloned();
        self.live(to);
        let (from_key, to_key) = (self.shard.key(from), self.shard.key(to));
        let access = self.shard.access(self.db, from_key, now);
        let entry = self.shard.at(self.db, from_key, now).take();
        assert_eq!(entry.is_some(), expected.is_some());
        if let (Some(entry), Some(expected)) = (entry, expected) {
            assert_eq!(Some(entry.access), access);
            assert_eq!(
                entry.value.any().string().expect("a string").bytes(),
                expected.value
            );
            assert_eq!(entry.expire_at, expected.expire_at);
            self.shard.insert_entry(self.db, to_key, entry, now);
            self.model[self.db].remove(from);
            self.model[self.db].insert(to.to_vec(), expected);
            assert_eq!(self.shard.access(self.db, to_key, now), access);
        }
    }

    fn copy(&mut self, from: &[u8], to: &[u8], other_db: bool) {
        let now = self.now();
        let expected = self.live(from).cloned();
        let entry = self.shard.clone_entry(self.db, self.key(from), now);
        assert_eq!(entry.is_some(), expected.is_some());
        let db = if other_db {
            (self.db + 1) % DBS
        } else {
            self.db
        };
        if let (Some(entry), Some(expected)) = (entry, expected) {
            self.shard.insert_entry(db, self.key(to), entry, now);
            self.model[db].insert(to.to_vec(), expected);
        }
    }

    fn expire_step(&mut self, budget: usize) {
        let before = self.shard.counters().expired;
        let more = self.shard.expire_step(self.now(), budget);
        let expired = self.shard.counters().expired - before;
        assert!(expired as usize <= budget);
        if !more {
            for items in &mut self.model {
                items.retain(|_, item| item.expire_at.is_none_or(|at| at > self.now_ms));
            }
            for (db, items) in self.model.iter().enumerate() {
                assert_eq!(self.shard.len(db), items.len());
            }
        } else {
            assert_eq!(expired as usize, budget);
        }
        let next = self
            .shard
            .draws()
            .soonest()
            .and_then(|drawn| drawn.expire_at);
        let all = self.model.iter().flat_map(|items| items.values());
        assert!(more || next == all.filter_map(|item| item.expire_at).min());
    }

    fn random(&mut self, seed: u64) {
        let now = self.now();
        let of = (self.db, Listing::STRICT);
        let key = self.shard.random_key(of, now, &mut Rng::new(seed));
        match key {
            Some(name) => assert!(self.live(&name).is_some()),
            None => {
                let items = self.model[self.db].values();
                let mut live = items.filter(|i| i.expire_at.is_none_or(|at| at > self.now_ms));
                assert!(live.next().is_none());
            }
        }
    }

    /// Compares everything, by a walk in small steps.
    pub(super) fn compare(&mut self) {
        self.shard.check();
        let now = self.now();
        for db in 0..DBS {
            let now_ms = self.now_ms;
            self.model[db].retain(|_, item| item.expire_at.is_none_or(|at| at > now_ms));
            let mut seen = BTreeMap::new();
            let mut cursor = Some(0);
            while let Some(from) = cursor {
                cursor = self.shard.scan(db, from, 3, now, &mut |item| {
                    let value = item.value.string().expect("a string").bytes().to_vec();
                    let copy = Item {
                        value,
                        expire_at: item.expire_at,
                    };
                    assert!(seen.insert(item.key.to_vec(), copy).is_none(), "seen twice");
                });
            }
            assert_eq!(seen, self.model[db]);
            assert_eq!(self.shard.len(db), seen.len());
            let expiring = seen.values().filter(|i| i.expire_at.is_some()).count();
            assert_eq!(self.shard.counted_expiring_len(db), expiring);
        }
        self.shard.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_shard_does_what_maps_do(
        seed in any::<u64>(),
        lfu in any::<bool>(),
        batches in proptest::collection::vec(proptest::collection::vec(operations(), 1..60), 1..8),
    ) {
        let mut pair = Pair::new(seed);
        pair.shard.set_policy(Policy { lfu, ..Policy::default() });
        for batch in batches {
            for op in batch {
                pair.run(op);
            }
            pair.compare();
        }
    }
}
