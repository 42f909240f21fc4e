//! A snapshot is the data as of its cut, whatever happens while it is written; and with the journal from the cut on,
//! it is the current data.

use super::journal::{Contents, contents, replay};
use super::model::{Item, Op, Pair, operations};
use crate::effect::Effect;
use crate::shard::{ExpirySetting, NewValue, Shard, SnapshotProgress};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_base::rng::Rng;
use std::collections::BTreeMap;

/// The contents of a snapshot, each key once.
fn read(mut stream: &[u8]) -> Contents {
    let mut all = Contents::new();
    while !stream.is_empty() {
        match Effect::decode(&mut stream) {
            Ok(Effect::Set {
                db,
                key,
                value,
                expire_at,
            }) => {
                let item = Item {
                    value: value.to_vec(),
                    expire_at,
                };
                let old = all.insert((usize::from(db), key.to_vec()), item);
                assert!(old.is_none(), "{key:?} was written twice");
            }
            other => panic!("{other:?} in a snapshot"),
        }
    }
    all
}

#[derive(Clone, Debug)]
enum Step {
    Run(Op),
    Walk(usize),
}

/// How a snapshot ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Complete,
    Abort,
    /// The next one begins at once.
    Replaced,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => operations().prop_map(Step::Run),
        1 => (0usize..3000).prop_map(Step::Walk),
    ];
    proptest::collection::vec(step, 0..80)
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![3 => Just(End::Complete), 1 => Just(End::Abort), 1 => Just(End::Replaced)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_is_the_data_of_its_cut(
        seed in any::<u64>(),
        before in proptest::collection::vec(operations(), 0..100),
        snapshots in proptest::collection::vec((steps(), ends(), 0usize..5000), 1..5),
    ) {
        let mut pair = Pair::new(seed);
        before.into_iter().for_each(|op| pair.run(op));
        pair.shard.observers_mut().set_journaling(true);
        for (steps, end, budget) in snapshots {
            pair.shard.begin_snapshot();
            pair.shard.journal().clear();
            let cut = contents(&mut pair.shard);
            let mut out = Vec::new();
            for step in steps {
                match step {
                    Step::Run(op) => pair.run(op),
                    Step::Walk(budget) => {
                        pair.shard.snapshot_step(budget, &mut out);
                    }
                }
            }
            pair.shard.check();
            match end {
                End::Replaced => continue,
                End::Abort => {
                    pair.shard.abort_snapshot();
                    prop_assert_eq!(pair.shard.snapshot().bytes(), 0);
                    out.clear();
                }
                End::Complete => {}
            }
            while pair.shard.snapshot_step(budget, &mut out) {
                pair.shard.check();
            }
            prop_assert!(!pair.shard.snapshot().is_running() && !pair.shard.is_unwinding());
            if matches!(end, End::Abort) {
                prop_assert!(out.is_empty());
                continue;
            }
            let SnapshotProgress { written, expected } = pair.shard.snapshot().progress();
            prop_assert_eq!((written, expected), (cut.len() as u64, cut.len() as u64));
            prop_assert_eq!(read(&out), cut);
            let mut copy = Shard::new(!seed);
            replay(&mut copy, &out);
            replay(&mut copy, pair.shard.journal());
            prop_assert_eq!(contents(&mut copy), contents(&mut pair.shard));
        }
        pair.compare();
    }
}

const NOW: Now = Now {
    mono_us: 0,
    unix_us: 1_000_000_000,
};

fn put(shard: &mut Shard, db: usize, n: u64, value: &[u8]) {
    let name = n.to_be_bytes();
    let key = shard.key(&name);
    shard.set(db, key, NewValue::Copy(value), ExpirySetting::Keep, NOW);
}

/// Tables that double and halve, pages that are emptied, and writers that
/// alone use up the budget of some steps.
#[test]
fn a_large_snapshot_survives_growth_shrink_and_compaction() {
    const KEYS: u64 = 30_000;
    let mut shard = Shard::new(3);
    for n in 0..KEYS {
        put(&mut shard, 2, n, &[1; 100]);
    }
    let mut rng = Rng::new(4);
    for round in 0..4 {
        shard.begin_snapshot();
        let cut = contents(&mut shard);
        let (mut out, mut part) = (Vec::new(), Vec::new());
        let (mut steps, mut backlog) = (0, 0);
        loop {
            for _ in 0..300 {
                let name = rng.below(KEYS * 2).to_be_bytes();
                let key = shard.key(&name);
                match (rng.below(8), round % 2) {
                    (0..5, 0) => drop(shard.at(2, key, NOW).take()),
                    (0..5, _) | (5, 0) => {
                        put(&mut shard, 2, rng.below(KEYS * 2), &[2; 60]);
                    }
                    (5 | 6, _) => {
                        shard.append(2, key, b"more", NOW);
                    }
                    _ => {
                        shard.set_expire_at(2, key, Some(NOW.unix_ms() + 1), NOW);
                    }
                }
            }
            shard.maintain_step(200);
            let later = Now {
                unix_us: NOW.unix_us + 10_000,
                ..NOW
            };
            shard.expire_step(later, 20);
            backlog = backlog.max(shard.data.env.snapshot.backlog_bytes());
            steps += 1;
            part.clear();
            let more = shard.snapshot_step(2048, &mut part);
            assert_eq!(shard.data.env.snapshot.backlog_bytes(), 0);
            out.extend_from_slice(&part);
            if !more {
                break;
            }
        }
        shard.check();
        assert!(
            steps > 20 && backlog > 2048,
            "{steps} steps, {backlog} bytes"
        );
        assert!(read(&out) == cut, "round {round}");
    }
}

#[test]
fn a_step_keeps_to_its_budget() {
    let mut shard = Shard::new(5);
    for n in 0..5000 {
        put(&mut shard, 0, n, &[7; 50]);
    }
    put(&mut shard, 1, 0, &vec![8; 1 << 20]);
    shard.begin_snapshot();
    let mut out = Vec::new();
    let mut largest = BTreeMap::new();
    while shard.snapshot().is_running() {
        out.clear();
        shard.snapshot_step(10_000, &mut out);
        *largest.entry(out.len()).or_insert(0) += 1;
    }
    let mut largest = largest.into_iter().rev();
    let (big, count) = largest.next().expect("steps");
    assert!(count == 1 && big > 1 << 20);
    let (usual, _) = largest.next().expect("steps");
    assert!((1000..10_100).contains(&usual), "{usual}");
}

#[test]
fn a_flushed_database_is_kept_until_it_is_written() {
    let mut shard = Shard::new(6);
    for n in 0..2000 {
        put(&mut shard, 0, n, &[7; 50]);
    }
    shard.begin_snapshot();
    let cut = contents(&mut shard);
    let mut out = Vec::new();
    shard.snapshot_step(1000, &mut out);
    shard.swap(0, 4);
    shard.flush(4);
    put(&mut shard, 0, 1, b"new");
    put(&mut shard, 4, 2, b"new");
    assert!(shard.take_garbage().is_empty() && shard.snapshot().bytes() > 2000 * 50);
    while shard.snapshot_step(1000, &mut out) {}
    assert_eq!(read(&out), cut);
    assert_eq!(
        (shard.take_garbage().len(), shard.snapshot().bytes()),
        (1, 0)
    );
    shard.check();

    shard.begin_snapshot();
    shard.flush(0);
    assert!(shard.take_garbage().is_empty());
    shard.abort_snapshot();
    assert_eq!(shard.take_garbage().len(), 1);
    assert!(shard.is_unwinding() && !shard.snapshot().is_running());
    while shard.snapshot_step(1, &mut out) {}
    assert!(!shard.data.env.observers.any() && !shard.is_unwinding());
}
