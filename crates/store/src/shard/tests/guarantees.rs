//! Guarantees of a shard beyond its replies: walks that survive growth and shrink, bounded work for each operation,
//! bounded memory for each key, exact accounts, and compaction that loses nothing.

use crate::shard::{ExpirySetting, Memory, NewValue, Shard};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_base::limits::{ALL_DATABASES, DATABASES};
use rufous_base::rng::Rng;
use std::collections::{BTreeSet, HashMap};

const NOW: Now = Now {
    mono_us: 0,
    unix_us: 1_000_000_000,
};

fn put(shard: &mut Shard, n: u64, len: usize) {
    let name = n.to_be_bytes();
    let key = shard.key(&name);
    let value = vec![n as u8; len];
    shard.set(0, key, NewValue::Copy(&value), ExpirySetting::Clear, NOW);
}

fn remove(shard: &mut Shard, n: u64) -> bool {
    let name = n.to_be_bytes();
    let key = shard.key(&name);
    shard.remove(0, key, NOW)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Between the calls of a walk, keys that are not part of the check come
    /// and go by the thousand: the table doubles and halves. The keys that
    /// stay are seen once each, and keys that were never there not at all.
    #[test]
    fn a_walk_survives_growth_and_shrink(
        seed in any::<u64>(),
        stay in 1u64..3000,
        count in 1usize..700,
        steps in proptest::collection::vec((0u64..6000, any::<bool>()), 1..20),
    ) {
        let mut shard = Shard::new(seed);
        (0..stay).for_each(|n| put(&mut shard, n, 1));
        let (mut seen, mut cursor) = (BTreeSet::new(), Some(0));
        // The steps are spread over the walk.
        let pause = stay as usize / count / steps.len() + 1;
        let mut steps = steps.into_iter();
        let (mut calls, mut others) = (0, 0);
        while let Some(from) = cursor {
            let mut visited = 0;
            cursor = shard.scan(0, from, count, NOW, &mut |item| {
                let n = u64::from_be_bytes(item.key.try_into().expect("eight bytes"));
                visited += 1;
                assert!(n >= 1 << 32 || seen.insert(n), "{n} was seen twice");
            });
            prop_assert!(cursor != Some(0));
            prop_assert!(visited <= count + 2, "{} of {}", visited, count);
            calls += 1;
            let step = if calls % pause == 0 { steps.next() } else { None };
            let (n, grow) = step.unwrap_or((0, true));
            if grow {
                (others..others + n).for_each(|n| put(&mut shard, 1 << 32 | n, 1));
                others += n;
            } else {
                for _ in 0..n.min(others) {
                    others -= 1;
                    prop_assert!(remove(&mut shard, 1 << 32 | others));
                }
            }
        }
        prop_assert!(seen.iter().copied().eq(0..stay));
        shard.check();
    }
}

#[test]
fn a_walk_through_a_nearly_empty_table_does_not_look_at_all_of_it() {
    let mut shard = Shard::new(5);
    (0..100_000).for_each(|n| put(&mut shard, n, 1));
    (0..100_000).filter(|n| n % 97 != 0).for_each(|n| {
        remove(&mut shard, n);
    });
    let (mut calls, mut seen, mut cursor) = (0, 0, Some(0));
    while let Some(from) = cursor {
        cursor = shard.scan(0, from, 10, NOW, &mut |_| seen += 1);
        calls += 1;
    }
    assert_eq!(seen, 100_000usize.div_ceil(97));
    assert!(calls < 2 * seen);
}

#[test]
fn a_key_of_8_with_a_value_of_64_takes_at_most_95_bytes() {
    let mut shard = Shard::new(7);
    let mut worst: (usize, u64) = (0, 0);
    for n in 1..=200_000 {
        put(&mut shard, n, 64);
        if n >= 100_000 && (n % 500 == 0) {
            worst = worst.max((shard.memory().total() * 100 / n as usize, n));
        }
        if [100_000, 120_000, 150_000, 190_000, 200_000].contains(&n) {
            let Memory {
                index_bytes,
                arena_bytes,
                ..
            } = shard.memory();
            assert!(index_bytes + arena_bytes <= n as usize * 95);
        }
    }
    assert!(worst.0 <= 9500, "{worst:?}");
}

#[test]
fn an_empty_or_tiny_shard_is_small() {
    let mut shard = Shard::new(8);
    assert!(shard.memory().total() < 16 * 1024);
    put(&mut shard, 1, 64);
    assert!(shard.memory().total() < 32 * 1024);
}

/// Accounts of the arena and of what is big against what was put in; the
/// parts recount themselves in `check`.
#[test]
fn memory_is_accounted_exactly() {
    let mut shard = Shard::new(9);
    for n in 0..1000 {
        put(&mut shard, n, 64);
    }
    assert_eq!(shard.memory().record_bytes, 1000 * 80);
    for n in 0..1000 {
        put(&mut shard, n, 10_000);
    }
    let memory = shard.memory();
    let index = memory.index_bytes - DATABASES * Shard::new(1).memory().index_bytes / ALL_DATABASES;
    let charged = index + memory.record_bytes + memory.big_bytes + memory.expiry_bytes;
    assert_eq!(shard.charged(), charged, "only one database has keys");
    // A header of 6 bytes, 8 of the key, 4 of the value's number.
    assert_eq!(memory.record_bytes, 1000 * 24);
    let own = 1000 * (10_000 + 40);
    assert!(memory.big_bytes >= own && memory.big_bytes < own + 1000 * 8 + 8192);
    let name = 5u64.to_be_bytes();
    let key = shard.key(&name);
    let of_one = shard.memory_of(0, key, NOW).expect("there");
    assert_eq!(of_one, 24 + 8 + 10_000 + 40 + 8);
    shard.check();
    for n in 0..1000 {
        assert!(remove(&mut shard, n));
    }
    assert_eq!(shard.charged(), 0);
    while shard.maintain_step(100) {}
    let memory = shard.memory();
    assert_eq!(
        (memory.keys, memory.record_bytes, memory.big_bytes),
        (0, 0, 0)
    );
    shard.check();
}

#[test]
fn compaction_gives_memory_back_and_keeps_everything() {
    let mut shard = Shard::new(10);
    let mut rng = Rng::new(11);
    let mut model = HashMap::new();
    for n in 0..60_000 {
        let len = [20, 64, 200, 900][rng.below(4) as usize];
        put(&mut shard, n, len);
        model.insert(n, len);
    }
    // Some keys expire, some are long: both have to be found after a move.
    for n in (0..60_000u64).step_by(7) {
        let name = n.to_be_bytes();
        let key = shard.key(&name);
        shard.set_expire_at(0, key, Some(NOW.unix_ms() + 1 + n), NOW);
    }
    let long = vec![b'l'; 2000];
    let key = shard.key(&long);
    shard.set(0, key, NewValue::Copy(b"long"), ExpirySetting::Clear, NOW);
    for n in 0..60_000 {
        if rng.below(10) > 0 {
            assert!(remove(&mut shard, n));
            model.remove(&n);
        }
    }
    let before = shard.memory();
    let mut steps = 0;
    loop {
        let moved = shard.counters().compacted;
        let more = shard.maintain_step(100);
        assert!(shard.counters().compacted - moved <= 100);
        if steps % 50 == 0 {
            shard.check();
        }
        steps += 1;
        if !more {
            break;
        }
    }
    shard.check();
    let after = shard.memory();
    assert_eq!(after.record_bytes, before.record_bytes);
    assert!(after.arena_bytes < before.arena_bytes / 4);
    assert!(after.arena_bytes < after.record_bytes * 5 / 4 + (64 << 10));
    for (&n, &len) in &model {
        let name = n.to_be_bytes();
        let key = shard.key(&name);
        let expected = (n % 7 == 0).then(|| NOW.unix_ms() + 1 + n);
        assert_eq!(shard.expire_at(0, key, NOW), Some(expected));
        let value = shard
            .get(0, key, NOW)
            .expect("a string")
            .expect("kept")
            .bytes();
        assert_eq!(value, vec![n as u8; len]);
    }
    assert_eq!(
        shard.get(0, key, NOW).expect("a string").map(|v| v.bytes()),
        Some(&b"long"[..])
    );
    assert_eq!(shard.len(0), model.len() + 1);
}

fn soonest(shard: &Shard) -> Option<u64> {
    shard.draws().soonest().and_then(|drawn| drawn.expire_at)
}

#[test]
fn expiry_goes_in_steps_and_in_order() {
    let mut shard = Shard::new(12);
    for db in 0..2 {
        for n in 0..10_000u64 {
            let name = n.to_be_bytes();
            let key = shard.key(&name);
            let at = ExpirySetting::At(NOW.unix_ms() + 1 + n);
            shard.set(db, key, NewValue::Copy(b"v"), at, NOW);
        }
    }
    assert_eq!(soonest(&shard), Some(NOW.unix_ms() + 1));
    assert!(!shard.expire_step(NOW, 100));
    let later = Now {
        unix_us: NOW.unix_us + 5_000_999,
        ..NOW
    };
    let mut steps = 0;
    while shard.expire_step(later, 100) {
        steps += 1;
    }
    // The hundredth call finds the rest and reports that it was all.
    assert_eq!(steps, 99);
    assert_eq!((shard.len(0), shard.len(1)), (5000, 5000));
    assert_eq!(soonest(&shard), Some(NOW.unix_ms() + 5001));
    assert_eq!(shard.counters().expired, 10_000);
    shard.check();
}
