//! The journal of a shard reproduces its data.

use super::model::{Item, Op, Pair, operations};
use crate::effect::{Effect, repeated};
use crate::shard::{Eviction, ExpirySetting, NewValue, Shard};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_base::limits::DATABASES;
use std::collections::BTreeMap;

pub(super) type Contents = BTreeMap<(usize, Vec<u8>), Item>;

/// All contents, including expired records that are not removed yet: at the time 0 nothing is due.
pub(super) fn contents(shard: &mut Shard) -> Contents {
    let mut all = Contents::new();
    for db in 0..DATABASES {
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = shard.scan(db, from, 100, Now::default(), &mut |item| {
                let copy = Item {
                    value: item.value.string().expect("a string").bytes().to_vec(),
                    expire_at: item.expire_at,
                };
                assert!(all.insert((db, item.key.to_vec()), copy).is_none());
            });
        }
    }
    all
}

/// The first effect of the rest of a journal.
pub(super) fn next_effect<'a>(journal: &'a [u8], rest: &mut &'a [u8]) -> Effect<'a> {
    let effect = match rest.first() {
        Some(&repeated::REPEATED) => repeated::decode(journal, rest),
        _ => Effect::decode(rest),
    };
    effect.expect("effects only")
}

pub(super) fn replay(shard: &mut Shard, journal: &[u8]) -> usize {
    let (mut rest, mut count) = (journal, 0);
    while !rest.is_empty() {
        let effect = next_effect(journal, &mut rest);
        shard.apply(&effect).expect("of a shard");
        count += 1;
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn replaying_the_journal_gives_the_same_contents_at_any_point(
        seed in any::<u64>(),
        batches in proptest::collection::vec(proptest::collection::vec(operations(), 1..50), 1..8),
    ) {
        let mut pair = Pair::new(seed);
        pair.shard.observers_mut().set_journaling(true);
        let mut copy = Shard::new(!seed);
        let mut whole = Vec::new();
        for batch in batches {
            for op in batch {
                pair.run(op);
            }
            // The comparison walks and removes expired keys: once after the replay, and once before it.
            for _ in 0..2 {
                let journal = std::mem::take(pair.shard.journal());
                replay(&mut copy, &journal);
                whole.extend_from_slice(&journal);
                prop_assert_eq!(contents(&mut copy), contents(&mut pair.shard));
                prop_assert!(pair.shard.journal().is_empty(), "looking is no change");
                pair.compare();
            }
            copy.check();
        }
        let mut fresh = Shard::new(seed);
        replay(&mut fresh, &whole);
        replay(&mut fresh, pair.shard.journal());
        prop_assert_eq!(contents(&mut fresh), contents(&mut pair.shard));
        prop_assert!(fresh.journal().is_empty() && fresh.take_garbage().is_empty());
    }

    #[test]
    fn nothing_is_written_while_nobody_wants_it(
        ops in proptest::collection::vec(operations(), 1..60),
    ) {
        let mut pair = Pair::new(1);
        ops.into_iter().for_each(|op: Op| pair.run(op));
        prop_assert!(pair.shard.journal().is_empty());
    }
}

/// The effects of one step.
fn told(shard: &mut Shard) -> Vec<u8> {
    std::mem::take(shard.journal())
}

fn encoded(effects: &[Effect<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    effects.iter().for_each(|effect| effect.encode(&mut out));
    out
}

#[test]
fn each_change_is_one_effect() {
    let mut shard = Shard::new(1);
    shard.observers_mut().set_journaling(true);
    let at = |ms: u64| Now {
        mono_us: 0,
        unix_us: ms * 1000,
    };
    let (name, db) = (&b"k"[..], 3);
    let key = shard.key(name);
    let number = db as u8;
    let set = |value, expire_at| Effect::Set {
        db: number,
        key: name,
        value,
        expire_at,
    };
    let delete = Effect::Delete {
        db: number,
        key: name,
    };
    shard.set(db, key, NewValue::Copy(b"1"), ExpirySetting::At(50), at(1));
    assert_eq!(told(&mut shard), encoded(&[set(b"1", Some(50))]));
    shard.set(db, key, NewValue::Copy(b"2"), ExpirySetting::Keep, at(2));
    let kept = |value| Effect::SetKeep {
        db: number,
        key: name,
        value,
    };
    assert_eq!(told(&mut shard), encoded(&[kept(b"2")]));
    // An expired key is removed first, unless its expiry is overwritten.
    shard.set(db, key, NewValue::Copy(b"3"), ExpirySetting::Keep, at(50));
    assert_eq!(told(&mut shard), encoded(&[delete, kept(b"3")]));
    shard.set_expire_at(db, key, Some(60), at(51));
    let expire = Effect::Expire {
        db: number,
        key: name,
        at: Some(60),
    };
    assert_eq!(told(&mut shard), encoded(&[expire]));
    shard.set(db, key, NewValue::Copy(b"4"), ExpirySetting::Clear, at(70));
    assert_eq!(told(&mut shard), encoded(&[set(b"4", None)]));
    shard.edit((db, key), 3, Some(2..3), at(71), |bytes| bytes[2] = b'!');
    let write = Effect::Write {
        db: number,
        key: name,
        at: 2,
        bytes: b"!",
    };
    assert_eq!(told(&mut shard), encoded(&[write]));
    shard.get(db, key, at(72)).expect("a string");
    assert!(!shard.set_expire_at(db + 1, key, None, at(72)));
    shard.flush(db + 1);
    shard.swap(db, db);
    assert!(told(&mut shard).is_empty());
    let entry = shard.at(db, key, at(73)).take().expect("there");
    assert_eq!(told(&mut shard), encoded(&[delete]));
    shard.insert_entry(db, key, entry, at(74));
    assert_eq!(told(&mut shard), encoded(&[set(b"4\0!", None)]));
    shard.swap(db, 0);
    shard.flush(0);
    let (swap, flush) = (
        Effect::SwapDb { a: number, b: 0 },
        Effect::FlushDb { db: 0 },
    );
    assert_eq!(told(&mut shard), encoded(&[swap, flush]));
}

#[test]
fn eviction_and_expiry_are_deletions() {
    let mut shard = Shard::new(1);
    shard.observers_mut().set_journaling(true);
    let at = |ms: u64| Now {
        mono_us: 0,
        unix_us: ms * 1000,
    };
    let name = &b"k"[..];
    let key = shard.key(name);
    shard.set(0, key, NewValue::Copy(b"5"), ExpirySetting::At(80), at(75));
    told(&mut shard);
    let drawn = shard.draws().soonest().expect("there");
    let entry = shard.clone_entry(0, key, at(76)).expect("there");
    assert_eq!(shard.evict(drawn, at(76), |_| false), Eviction::Evicted);
    let evicted = Effect::Delete { db: 0, key: name };
    assert_eq!(told(&mut shard), encoded(&[evicted]));
    shard.insert_entry(0, key, entry, at(76));
    told(&mut shard);
    assert!(!shard.expire_step(at(80), 10));
    assert_eq!(
        told(&mut shard),
        encoded(&[Effect::Delete { db: 0, key: name }])
    );
}

#[test]
fn replay_neither_expires_nor_believes_everything() {
    let mut shard = Shard::new(1);
    let (db, key) = (0, &b"k"[..]);
    let value = &[7u8; 100_000][..];
    let set = Effect::Set {
        db,
        key,
        value,
        expire_at: Some(0),
    };
    assert_eq!(shard.apply(&set), Ok(()));
    assert_eq!(shard.apply(&set), Ok(()));
    assert!(shard.take_garbage().is_empty(), "it drops what it replaces");
    assert_eq!((shard.len(0), shard.counted_expiring_len(0)), (1, 1));
    let far = Effect::Write {
        db,
        key,
        at: u64::MAX,
        bytes: b"x",
    };
    assert!(shard.apply(&far).is_err());
    shard.set_replay_time(Now {
        mono_us: 5_000_000,
        unix_us: 1,
    });
    let tail = &b"t"[..];
    assert_eq!(
        shard.apply(&Effect::Append {
            db,
            key: tail,
            tail
        }),
        Ok(())
    );
    let now = Now {
        mono_us: 7_000_000,
        unix_us: 1_000_000,
    };
    let stamp = shard.access(0, shard.key(tail), now).expect("there");
    assert_eq!(shard.policy().idle_s(stamp, now), 2);
    assert!(!shard.contains(0, shard.key(key), now), "long past");
    shard.check();
}
