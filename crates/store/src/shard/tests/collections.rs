//! Collections of every registered type: the journal, a snapshot and the effects of a command over workers reproduce
//! them.

use super::journal::replay;
use crate::shard::{Key, Shard};
use rufous_base::Now;
use rufous_base::limits::DATABASES;
use rufous_base::rng::Rng;
use rufous_datatype::algebra::{Packing, Tuning};
use rufous_datatype::object::{Registered, Tag, Visitor, visit_types};
use rufous_datatype::set::{Op as SetOp, Set};
use rufous_datatype::sorted_set::{Only, Op as SortedSetOp, SortedSet, Zone};
use std::collections::BTreeMap;

const NOW: Now = Now {
    mono_us: 5_000_000,
    unix_us: 1_000_000_000,
};

/// Type, elements in an order of their own, and expiry, by key.
type Contents = BTreeMap<(usize, Vec<u8>), (Option<Tag>, Vec<u8>, Option<u64>)>;

fn contents(shard: &mut Shard) -> Contents {
    let mut all = Contents::new();
    for db in 0..DATABASES {
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = shard.scan(db, from, 100, Now::default(), &mut |item| {
                let value = item.value.to_owned();
                let bytes = match &value {
                    crate::shard::OwnedValue::Object(object) => object.canonical(),
                    other => other.any().string().expect("a string").bytes().to_vec(),
                };
                let entry = (item.value.tag(), bytes, item.expire_at);
                all.insert((db, item.key.to_vec()), entry);
            });
        }
    }
    all
}

/// Small limits, so that all shapes occur.
fn tuning(rng: &mut Rng) -> Tuning {
    let packing = Packing {
        entries: rng.below(4) as usize,
        bytes: 2 + rng.below(8) as usize,
    };
    Tuning {
        hash: packing,
        list: packing,
        set: packing,
        sorted_set: packing,
        ..Tuning::default()
    }
}

/// Applies an operation of each type to a key of any type.
struct Apply<'a> {
    shard: &'a mut Shard,
    rng: &'a mut Rng,
    /// The index of the type.
    pick: u64,
    changed: bool,
}

impl Visitor for Apply<'_> {
    fn visit<T: Registered>(&mut self) {
        let is_it = self.pick == 0;
        self.pick = self.pick.wrapping_sub(1);
        // Replicated values are not changed in this way.
        if !is_it || T::TAG.is_replicated() {
            return;
        }
        let name = [b'k', b'0' + self.rng.below(5) as u8];
        let (key, db) = (self.shard.key(&name), self.rng.below(2) as usize);
        let ops: Vec<_> = (0..1 + self.rng.below(4))
            .map(|_| T::sample_op(self.rng))
            .collect();
        let result = self.shard.update::<T, _>(db, key, NOW, |editor| {
            for op in &ops {
                editor.apply(op);
            }
        });
        self.changed = result.is_ok();
    }
}

fn fill(shard: &mut Shard, (db, key): (usize, Key<'_>), rng: &mut Rng) {
    let from = rng.below(3000);
    let _ = shard.update::<Set, _>(db, key, NOW, |editor| {
        for member in from..from + rng.below(3000) {
            let member = member.to_le_bytes();
            editor.apply(&SetOp::Add { member: &member });
        }
    });
}

/// Many more members than are removed in one step.
fn fill_sorted(shard: &mut Shard, (db, key): (usize, Key<'_>), rng: &mut Rng) {
    let from = rng.below(2000) as u32;
    let _ = shard.update::<SortedSet, _>(db, key, NOW, |editor| {
        for n in from..from + 1000 {
            editor.apply(&SortedSetOp::Add {
                member: &n.to_le_bytes(),
                score: f64::from(n),
                only: Only::default(),
            });
        }
    });
}

fn remove_range(shard: &mut Shard, (db, key): (usize, Key<'_>), rng: &mut Rng) {
    let low = rng.below(2000) as f64;
    let zone = Zone::scores(low, false, low + 600.0, false);
    let _ = shard.update::<SortedSet, _>(db, key, NOW, |editor| {
        editor.apply(&SortedSetOp::RemoveRange { zone });
    });
}

fn step(shard: &mut Shard, rng: &mut Rng) {
    let name = |rng: &mut Rng| [b'k', b'0' + rng.below(5) as u8];
    let (one, other) = (name(rng), name(rng));
    let (a, b) = (shard.key(&one), shard.key(&other));
    let (db, other_db) = (rng.below(2) as usize, rng.below(2) as usize);
    match rng.below(32) {
        0 => {
            shard.rename((db, a), (other_db, b), NOW);
        }
        1 => {
            shard.copy((db, a), (other_db, b), NOW);
        }
        2 => {
            shard.remove(db, a, NOW);
        }
        3 => {
            let at = rng.below(2).checked_sub(1).map(|_| NOW.unix_ms() + 1_000);
            shard.set_expire_at(db, a, at, NOW);
        }
        4 if rng.below(4) == 0 => shard.flush(db),
        5 if rng.below(4) == 0 => shard.swap(0, 1),
        6 => fill(shard, (db, a), rng),
        7 => {
            if let Some(entry) = shard.at(db, a, NOW).take() {
                shard.insert_entry(other_db, b, entry, NOW);
            }
        }
        8 | 9 => fill_sorted(shard, (db, a), rng),
        10 | 11 => remove_range(shard, (db, a), rng),
        12 => {
            let budget = rng.below(300) as usize;
            shard.sweep_step(budget);
        }
        _ => {
            let pick = rng.below(Tag::ALL.len() as u64);
            visit_types(&mut Apply {
                shard,
                rng,
                pick,
                changed: false,
            });
        }
    }
}

#[test]
fn the_journal_and_snapshots_say_what_became_of_them() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let mut shard = Shard::new(seed);
        shard.set_tuning(tuning(&mut rng));
        shard.observers_mut().set_journaling(true);
        let mut copy = Shard::new(seed + 1);
        copy.set_tuning(tuning(&mut rng));
        for _ in 0..4 {
            for _ in 0..rng.below(40) {
                step(&mut shard, &mut rng);
            }
            shard.check();
            replay(&mut copy, &std::mem::take(shard.journal()));
            copy.check();
            assert_eq!(contents(&mut copy), contents(&mut shard), "seed {seed}");

            let cut = contents(&mut shard);
            shard.begin_snapshot();
            let mut stream = Vec::new();
            let mut more = true;
            while more {
                for _ in 0..rng.below(3) {
                    step(&mut shard, &mut rng);
                }
                more = shard.snapshot_step(rng.below(6_000) as usize, &mut stream);
            }
            let mut loaded = Shard::new(seed + 2);
            loaded.set_tuning(tuning(&mut rng));
            replay(&mut loaded, &stream);
            loaded.check();
            assert_eq!(contents(&mut loaded), cut, "seed {seed}: as of the cut");
            let journal = std::mem::take(shard.journal());
            replay(&mut loaded, &journal);
            assert_eq!(contents(&mut loaded), contents(&mut shard), "seed {seed}");
            replay(&mut copy, &journal);
        }
    }
}

#[test]
fn effects_found_on_a_copy_are_carried_out_and_told() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let (mut home, mut scratch) = (Shard::new(1), Shard::new(2));
        for shard in [&mut home, &mut scratch] {
            shard.set_tuning(tuning(&mut Rng::new(seed)));
        }
        for _ in 0..20 {
            step(&mut home, &mut rng);
        }
        let names: Vec<(usize, Vec<u8>)> = contents(&mut home).into_keys().collect();
        for (db, name) in &names {
            let key = home.key(name);
            let entry = home.clone_entry(*db, key, NOW).expect("it is there");
            scratch.insert_entry(*db, scratch.key(name), entry, NOW);
        }
        home.observers_mut().set_journaling(true);
        home.begin_snapshot();
        let cut = contents(&mut home);
        scratch.observers_mut().set_journaling(true);
        for _ in 0..20 {
            step(&mut scratch, &mut rng);
        }
        let effects = std::mem::take(scratch.journal());
        home.carry_out(&effects, NOW);
        home.check();
        assert_eq!(contents(&mut home), contents(&mut scratch), "seed {seed}");
        assert_eq!(*home.journal(), effects, "what was done is what is logged");
        let mut stream = Vec::new();
        while home.snapshot_step(10_000, &mut stream) {}
        let mut loaded = Shard::new(3);
        replay(&mut loaded, &stream);
        assert_eq!(contents(&mut loaded), cut, "seed {seed}: as of the cut");
    }
}

#[test]
fn a_large_collection_is_dropped_elsewhere_and_accounted_for() {
    let mut shard = Shard::new(1);
    let empty = shard.memory().total();
    let key = shard.key(b"set");
    let added = shard.update::<Set, _>(0, key, NOW, |editor| {
        for member in 0..20_000u64 {
            let member = member.to_le_bytes();
            editor.apply(&SetOp::Add { member: &member });
        }
    });
    assert_eq!(added, Ok(()));
    shard.check();
    let bytes = shard.memory_of(0, key, NOW).expect("it is there");
    assert!((20_000 * 8..20_000 * 40).contains(&bytes), "{bytes}");
    assert!(shard.memory().total() >= empty + 20_000 * 8);
    let copied = shard.copy((0, key), (0, shard.key(b"copy")), NOW);
    assert!(copied && shard.take_garbage().is_empty());
    assert!(shard.remove(0, key, NOW));
    let garbage = shard.take_garbage();
    assert_eq!(garbage.len(), 1);
    shard.check();
    let copy = shard.key(b"copy");
    let view = shard.collection::<Set>(0, copy, NOW).expect("a set");
    let mut members = 0;
    view.expect("there").each(|_, _| members += 1);
    assert_eq!(members, 20_000);
}

#[test]
fn a_snapshot_keeps_of_a_large_collection_what_changes() {
    const MEMBERS: u64 = 200_000;
    let add = |shard: &mut Shard, members: std::ops::Range<u64>| {
        let key = shard.key(b"set");
        let added = shard.update::<Set, _>(0, key, NOW, |editor| {
            for member in members {
                let member = member.to_le_bytes();
                editor.apply(&SetOp::Add { member: &member });
            }
        });
        assert_eq!(added, Ok(()));
    };
    for flush in [false, true] {
        let mut shard = Shard::new(1);
        add(&mut shard, 0..MEMBERS);
        let whole = shard.memory_of(0, shard.key(b"set"), NOW).expect("a set");
        shard.begin_snapshot();
        while shard.snapshot().progress().written == 0 {
            shard.snapshot_step(1, &mut Vec::new());
        }
        let shared = shard.snapshot().bytes();
        assert!(shared < whole / 100, "{shared} of {whole}");
        add(&mut shard, MEMBERS..MEMBERS + 4);
        let few = shard.snapshot().bytes() - shared;
        assert!(few > 8 << 10 && few < whole / 10, "{few} of {whole}");
        match flush {
            true => assert!(shard.remove(0, shard.key(b"set"), NOW)),
            false => add(&mut shard, MEMBERS + 4..MEMBERS * 2),
        }
        // What the shard dropped belongs to the garbage now, and is counted there.
        drop(shard.take_garbage());
        let most = shard.snapshot().bytes();
        assert!(most > whole * 9 / 10 && most < whole * 11 / 10, "{most}");
        while shard.snapshot_step(1 << 20, &mut Vec::new()) {}
        assert_eq!(shard.snapshot().bytes(), 0);
        let garbage = shard.take_garbage();
        assert_eq!(garbage.len(), 1);
        let bytes = garbage[0].bytes;
        assert!(bytes > whole * 9 / 10 && bytes < whole * 11 / 10, "{bytes}");
    }
    let mut shard = Shard::new(1);
    add(&mut shard, 0..MEMBERS);
    shard.begin_snapshot();
    while shard.snapshot_step(1 << 20, &mut Vec::new()) {}
    let garbage = shard.take_garbage();
    assert!(
        garbage.len() == 1 && garbage[0].bytes < 8 << 10,
        "it shares all"
    );
}

#[test]
fn what_is_left_of_removing_a_range_is_done_in_steps_also_in_copies() {
    let mut shard = Shard::new(3);
    let (one, two) = (shard.key(b"one"), shard.key(b"two"));
    let _ = shard.update::<SortedSet, _>(0, one, NOW, |editor| {
        for n in 0..20_000_u32 {
            editor.apply(&SortedSetOp::Add {
                member: &n.to_be_bytes(),
                score: f64::from(n),
                only: Only::default(),
            });
        }
    });
    let full = shard.memory().total();
    let zone = Zone::scores(1000.0, false, 30_000.0, false);
    let _ = shard.update::<SortedSet, _>(0, one, NOW, |editor| {
        editor.apply(&SortedSetOp::RemoveRange { zone });
    });
    assert!(shard.copy((0, one), (1, two), NOW));
    shard.check();
    let before = contents(&mut shard);
    let mut steps = 0;
    while shard.sweep_step(100) {
        steps += 1;
    }
    shard.check();
    assert!(steps >= 370, "{steps} steps for 2 times 19000 members");
    assert!(contents(&mut shard) == before);
    assert!(shard.memory().total() < full / 5);
    // A removed collection takes its deferred work with it.
    for key in [one, two] {
        shard.remove(usize::from(key.bytes == b"two"), key, NOW);
    }
    assert!(!shard.sweep_step(100));
}
