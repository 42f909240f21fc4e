//! A slot that is copied while it changes equals, at the end of its parts, its state at that time; a dropped slot is
//! gone, and nothing else.

use super::journal::replay;
use crate::effect::Effect;
use crate::shard::{ExpirySetting, NewValue, OwnedValue, Shard, slot_of_effect};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_base::slot::slot_of;
use rufous_datatype::set::{Op as SetOp, Set};
use std::collections::{BTreeMap, BTreeSet};

const TAGS: [&str; 3] = ["{a}", "{b}", "{c}"];

/// Contents of a slot, or of the shard: bytes that represent a whole value, and its expiry.
type Contents = BTreeMap<(usize, Vec<u8>), (Vec<u8>, Option<u64>)>;

fn contents(shard: &mut Shard, slot: Option<u16>) -> Contents {
    let mut all = Contents::new();
    for db in 0..2 {
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = shard.scan(db, from, 100, Now::default(), &mut |item| {
                if slot.is_some_and(|slot| slot_of(item.key) != slot) {
                    return;
                }
                let bytes = match &item.value.to_owned() {
                    OwnedValue::Object(object) => object.canonical(),
                    other => other.any().string().expect("a string").bytes().to_vec(),
                };
                all.insert((db, item.key.to_vec()), (bytes, item.expire_at));
            });
        }
    }
    all
}

fn name(tag: u8, key: u8) -> Vec<u8> {
    format!("{}{key}", TAGS[usize::from(tag)]).into_bytes()
}

fn slot(tag: u8) -> u16 {
    slot_of(&name(tag, 0))
}

#[derive(Clone, Debug)]
enum Op {
    Set(u8, u8, usize, ExpirySetting),
    Append(u8, u8, usize),
    /// Adds this many elements; `Take` removes them.
    Add(u8, u8, u16),
    Take(u8, u8, u16),
    Remove(u8, u8),
    Rename(u8, u8, u8),
    Copy(u8, u8, u8),
    Expire(u8, u8, Option<u64>),
    /// Time passes: expired keys are removed.
    Wait(u64),
    /// Keys of other slots are added: the table grows, or shrinks.
    Grow(u16),
    Shrink,
    /// Parts are taken, examining this many records at most.
    Ask(u8, usize),
    /// A copy is restarted.
    Again(u8),
}

fn operations() -> impl Strategy<Value = Op> {
    let tag = || 0u8..2;
    let key = || 0u8..12;
    let len = || {
        prop_oneof![
            6 => 0usize..200,
            2 => 1000usize..70_000,
            1 => 100_000usize..400_000,
        ]
    };
    let expiry = prop_oneof![
        Just(ExpirySetting::Keep),
        Just(ExpirySetting::Clear),
        (1_000u64..9_000).prop_map(ExpirySetting::At),
    ];
    let time = proptest::option::of(1_000u64..9_000);
    prop_oneof![
        8 => (tag(), key(), len(), expiry).prop_map(|(t, k, l, e)| Op::Set(t, k, l, e)),
        5 => (tag(), key(), len()).prop_map(|(t, k, l)| Op::Append(t, k, l)),
        6 => (tag(), key(), 1u16..9000).prop_map(|(t, k, n)| Op::Add(t, k, n)),
        3 => (tag(), key(), 1u16..9000).prop_map(|(t, k, n)| Op::Take(t, k, n)),
        3 => (tag(), key()).prop_map(|(t, k)| Op::Remove(t, k)),
        6 => (tag(), key(), key()).prop_map(|(t, k, to)| Op::Rename(t, k, to)),
        5 => (tag(), key(), key()).prop_map(|(t, k, to)| Op::Copy(t, k, to)),
        3 => (tag(), key(), time).prop_map(|(t, k, at)| Op::Expire(t, k, at)),
        2 => (0u64..600).prop_map(Op::Wait),
        1 => (1u16..3000).prop_map(Op::Grow),
        1 => Just(Op::Shrink),
        12 => (tag(), 0usize..200).prop_map(|(t, looks)| Op::Ask(t, looks)),
        1 => tag().prop_map(Op::Again),
    ]
}

/// A shard whose slots are copied, and those that receive the copies.
struct Pair {
    shard: Shard,
    /// By tag; with whether all parts were received.
    others: Vec<(Shard, bool)>,
    now: Now,
    rng: Rng,
    grown: u32,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut shard = Shard::new(seed);
        shard.observers_mut().set_journaling(true);
        Self {
            shard,
            others: (0..2).map(|_| (Shard::new(!seed), true)).collect(),
            now: Now {
                mono_us: 0,
                unix_us: 1_000_000,
            },
            rng: Rng::new(seed),
            grown: 0,
        }
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let byte = self.rng.below(256) as u8;
        vec![byte; len]
    }

    fn members(&mut self, count: u16) -> Vec<[u8; 4]> {
        let from = self.rng.below(9000) as u32;
        (from..from + u32::from(count))
            .map(u32::to_be_bytes)
            .collect()
    }

    fn run(&mut self, op: Op) {
        let now = self.now;
        match op {
            Op::Set(tag, key, len, expiry) => {
                let (name, value) = (name(tag, key), self.bytes(len));
                let key = self.shard.key(&name);
                self.shard.set(0, key, NewValue::Copy(&value), expiry, now);
            }
            Op::Append(tag, key, len) => {
                let (name, tail) = (name(tag, key), self.bytes(len));
                let key = self.shard.key(&name);
                let is_string = self.shard.get(0, key, now).is_ok();
                if is_string {
                    self.shard.append(0, key, &tail, now);
                }
            }
            Op::Add(tag, key, count) | Op::Take(tag, key, count) => {
                let name = name(tag, key);
                let members = self.members(count);
                let key = self.shard.key(&name);
                let _ = self.shard.update::<Set, _>(0, key, now, |editor| {
                    for member in &members {
                        editor.apply(&match op {
                            Op::Add(..) => SetOp::Add { member },
                            _ => SetOp::Remove { member },
                        });
                    }
                });
            }
            Op::Remove(tag, key) => {
                let name = name(tag, key);
                let key = self.shard.key(&name);
                self.shard.remove(0, key, now);
            }
            Op::Rename(tag, key, to) | Op::Copy(tag, key, to) => {
                let (name, to) = (name(tag, key), name(tag, to));
                let (key, to) = (self.shard.key(&name), self.shard.key(&to));
                let to_db = self.rng.below(2) as usize;
                match op {
                    Op::Rename(..) => self.shard.rename((0, key), (to_db, to), now),
                    _ => self.shard.copy((0, key), (to_db, to), now),
                };
            }
            Op::Expire(tag, key, at) => {
                let name = name(tag, key);
                let key = self.shard.key(&name);
                self.shard.set_expire_at(0, key, at, now);
            }
            Op::Wait(ms) => {
                self.now.unix_us += ms * 1000;
                self.shard.expire_step(self.now, 100);
            }
            Op::Grow(count) => self.grow(count),
            Op::Shrink => self.shrink(),
            Op::Ask(tag, looks) => self.ask(tag, looks),
            Op::Again(tag) => self.begin(tag),
        }
        self.note();
    }

    fn grow(&mut self, count: u16) {
        for _ in 0..count {
            self.grown += 1;
            let name = format!("other:{}", self.grown);
            let key = self.shard.key(name.as_bytes());
            let clear = ExpirySetting::Clear;
            self.shard
                .set(0, key, NewValue::Copy(b"o"), clear, self.now);
        }
    }

    fn shrink(&mut self) {
        for n in 0..std::mem::take(&mut self.grown) {
            let name = format!("other:{}", n + 1);
            let key = self.shard.key(name.as_bytes());
            self.shard.remove(0, key, self.now);
        }
    }

    /// Effects are noted before anything else.
    fn note(&mut self) {
        let journal = std::mem::take(self.shard.journal());
        let mut rest = &journal[..];
        while !rest.is_empty() {
            let before = rest;
            let effect = Effect::decode(&mut rest).expect("effects");
            let slot = slot_of_effect(&effect).expect("of one slot");
            let bytes = &before[..before.len() - rest.len()];
            self.shard.note_in_slot(slot, bytes);
            // A receiver of the whole copy is sent later effects.
            let mut tags = 0..2u8;
            if let Some(tag) = tags.find(|tag| self::slot(*tag) == slot)
                && let (other, true) = &mut self.others[usize::from(tag)]
            {
                let done = other.do_in_slot(slot, bytes, self.now);
                assert!(done.is_ok(), "{effect:?}");
            }
        }
    }

    fn begin(&mut self, tag: u8) {
        self.shard.begin_slot_copy(slot(tag));
        self.others[usize::from(tag)] = (Shard::new(7), false);
    }

    fn ask(&mut self, tag: u8, mut looks: usize) {
        let given = looks;
        let part = self.shard.copy_slot(slot(tag), &mut looks);
        assert!(looks <= given);
        let (other, is_done) = &mut self.others[usize::from(tag)];
        let Some(part) = part else {
            *is_done = true;
            return;
        };
        assert!(part.len() < 1 << 20, "a part of {} bytes", part.len());
        let done = other.do_in_slot(slot(tag), &part, self.now);
        assert!(done.is_ok(), "what comes is what can be done");
        other.take_garbage();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_copy_is_what_the_slot_is_at_its_end(
        seed in any::<u64>(),
        before in proptest::collection::vec(operations(), 0..60),
        during in proptest::collection::vec(operations(), 0..120),
        looks in 1usize..100,
    ) {
        let mut pair = Pair::new(seed);
        before.into_iter().for_each(|op| pair.run(op));
        (0..2).for_each(|tag| pair.begin(tag));
        during.into_iter().for_each(|op| pair.run(op));
        for tag in 0..2 {
            while !pair.others[usize::from(tag)].1 {
                pair.ask(tag, looks);
            }
            prop_assert_eq!(pair.shard.copy_slot(slot(tag), &mut 9), None);
        }
        // Once more, of the final state.
        let rest: Vec<Op> = vec![Op::Again(0), Op::Ask(0, usize::MAX)];
        rest.into_iter().for_each(|op| pair.run(op));
        while !pair.others[0].1 {
            pair.ask(0, usize::MAX);
        }
        for tag in 0..2 {
            let (other, _) = &mut pair.others[usize::from(tag)];
            other.check();
            let copied = contents(other, None);
            let there = contents(&mut pair.shard, Some(slot(tag)));
            let differs = |name: &&(usize, Vec<u8>)| copied.get(*name) != there.get(*name);
            let names: Vec<_> = copied.keys().chain(there.keys()).filter(differs).collect();
            prop_assert!(names.is_empty(), "tag {}: {:?}", tag, names);
        }
        prop_assert_eq!(pair.shard.slots.backlog(), 0);
        pair.shard.check();
    }

    #[test]
    fn what_is_dropped_is_gone_and_nothing_else(
        seed in any::<u64>(),
        before in proptest::collection::vec(operations(), 0..80),
        steps in proptest::collection::vec((1usize..100, 0u16..300), 0..40),
    ) {
        let mut pair = Pair::new(seed);
        before.into_iter().for_each(|op| pair.run(op));
        let mut stays = contents(&mut pair.shard, None);
        stays.retain(|(_, key), _| slot_of(key) != slot(1));
        let mut copy = Shard::new(!seed);
        let all = contents(&mut pair.shard, None);
        let whole: BTreeSet<_> = all.keys().cloned().collect();
        let mut dropped = false;
        for (looks, grown) in steps {
            let before = pair.shard.journal().len();
            prop_assert_eq!(before, 0);
            dropped = dropped || pair.shard.clear_slot(slot(1), &mut { looks });
            // The log has the removals.
            let journal = std::mem::take(pair.shard.journal());
            let mut rest = &journal[..];
            while !rest.is_empty() {
                let effect = Effect::decode(&mut rest).expect("effects");
                prop_assert_eq!(slot_of_effect(&effect), Some(slot(1)));
                let deletes = matches!(effect, Effect::Delete { .. });
                prop_assert!(deletes);
                for (db, key) in effect.keys() {
                    prop_assert!(whole.contains(&(usize::from(db), key.to_vec())));
                }
            }
            replay(&mut copy, &journal);
            pair.run(Op::Grow(grown));
        }
        while !dropped {
            dropped = pair.shard.clear_slot(slot(1), &mut 50);
        }
        pair.shard.journal().clear();
        pair.run(Op::Shrink);
        stays.retain(|(_, key), _| !key.starts_with(b"other"));
        prop_assert_eq!(contents(&mut pair.shard, None), stays);
        pair.shard.check();
    }
}

#[test]
fn what_is_not_of_the_slot_is_refused() {
    let mut shard = Shard::new(1);
    let now = Now::default();
    let (a, b) = (name(0, 1), name(1, 1));
    let encoded = |effect: Effect<'_>| {
        let mut bytes = Vec::new();
        effect.encode(&mut bytes);
        bytes
    };
    let set = |key| {
        encoded(Effect::Set {
            db: 0,
            key,
            value: b"v",
            expire_at: None,
        })
    };
    assert!(shard.do_in_slot(slot(0), &set(&a), now).is_ok());
    let moved = Effect::Move {
        db: 0,
        key: &a,
        to_db: 0,
        to: &b,
    };
    let cut = &set(&a)[..5];
    for refused in [
        &set(&b)[..],
        &encoded(moved),
        &encoded(Effect::FlushDb { db: 0 }),
        &encoded(Effect::SwapDb { a: 0, b: 1 }),
        &encoded(Effect::Keyspaces { bytes: b"" }),
        cut,
        b"\xff\xff",
    ] {
        assert!(shard.do_in_slot(slot(0), refused, now).is_err());
    }
    assert_eq!(contents(&mut shard, None).len(), 1);
}

#[test]
fn a_walk_for_one_slot_looks_at_no_more_than_it_may() {
    let mut shard = Shard::new(1);
    let now = Now::default();
    for n in 0..20_000 {
        let name = format!("k{n}");
        let key = shard.key(name.as_bytes());
        shard.set(0, key, NewValue::Copy(b"v"), ExpirySetting::Clear, now);
    }
    let slots: BTreeSet<u16> = (0..20_000)
        .map(|n| slot_of(format!("k{n}").as_bytes()))
        .collect();
    let some: Vec<u16> = slots.into_iter().take(200).collect();
    // Two hundred slots need one round of the walk together, not two hundred.
    some.iter().for_each(|slot| shard.begin_slot_copy(*slot));
    let (mut calls, mut looked, mut parts) = (0, 0, BTreeMap::<u16, Vec<u8>>::new());
    let mut open = some.clone();
    while !open.is_empty() {
        open.retain(|slot| {
            let mut looks = 100;
            let part = shard.copy_slot(*slot, &mut looks);
            (calls, looked) = (calls + 1, looked + 100 - looks);
            let Some(part) = part else { return false };
            parts.entry(*slot).or_default().extend(part);
            true
        });
    }
    assert!(looked < 2 * 20_000, "{looked} looks in {calls} calls");
    let mut copied = 0;
    for (slot, part) in &parts {
        let mut other = Shard::new(2);
        other.do_in_slot(*slot, part, now).expect("effects");
        let (mut cursor, mut listed) = (Some(0), 0);
        while let Some(from) = cursor {
            cursor = shard.scan_slot((0, *slot), from, 50, now, &mut |item| {
                assert_eq!(slot_of(item.key), *slot);
                listed += 1;
            });
        }
        assert_eq!(other.len(0), listed, "slot {slot}");
        copied += listed;
    }
    assert!(copied >= 200);
    shard.end_slot_copy(some[0]);
    assert_eq!(shard.slots.backlog(), 0);
}
