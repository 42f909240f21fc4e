//! Measures one shard: memory for each key, and the time of reads, writes and
//! insertions, with and without warming batches of 64; of writes to a journal,
//! of its replay, and of snapshots.
//!
//! `cargo run --release -p rufous-store --example shard` for times, with a
//! number of keys behind it (`-- 1000000`) for the memory of so many.

use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_store::effect::Effect;
use rufous_store::shard::{ExpirySetting, Key, NewValue, Shard};
use std::hint::black_box;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 64;
const BATCHES_OF_PART: usize = 200;
const PARTS: usize = 200;
const RUNS: usize = 5;

const NOW: Now = Now {
    mono_us: 1_000_000_000,
    unix_us: 1_700_000_000_000_000,
};

fn name(n: u64) -> [u8; 8] {
    (n ^ 0x6B65_7930_0000_0000).to_be_bytes()
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|n| n.parse().ok());
    pages.unwrap_or(0usize) * 4096
}

fn set(shard: &mut Shard, n: u64, value: &[u8], expiry: ExpirySetting) {
    let name = name(n);
    let key = shard.key(&name);
    shard.set(0, key, NewValue::Copy(value), expiry, NOW);
}

fn fill(keys: u64) -> Shard {
    let mut shard = Shard::new(42);
    for n in 0..keys {
        set(&mut shard, n, &[b'v'; 64], ExpirySetting::Clear);
    }
    shard
}

fn print_memory(keys: u64) {
    let before = resident_bytes();
    let shard = fill(keys);
    let memory = shard.memory();
    let each = |bytes: usize| bytes as f64 / keys as f64;
    println!(
        "{keys:>8} keys: {:.1} B a key (index {:.1}, records {:.1}), resident {:.1}",
        each(memory.total()),
        each(memory.index_bytes),
        each(memory.arena_bytes),
        each(resident_bytes().saturating_sub(before)),
    );
}

/// The insertions of each run are the same, so the fastest of several runs
/// of each one is its own cost, without what else the machine did. The first
/// ones are left out: there the allocator clears up after the run before.
fn print_insertions(keys: u64) {
    let mut fastest = vec![u32::MAX; keys as usize];
    for _ in 0..RUNS {
        let mut shard = Shard::new(42);
        for (n, fastest) in (0..).zip(&mut fastest) {
            let start = Instant::now();
            set(&mut shard, n, &[b'v'; 64], ExpirySetting::Clear);
            *fastest = (*fastest).min(start.elapsed().as_nanos() as u32);
        }
    }
    let mean = fastest.iter().map(|&ns| f64::from(ns)).sum::<f64>() / keys as f64;
    fastest[..1000].fill(0);
    fastest.sort_unstable();
    let us = |from_end: usize| f64::from(fastest[fastest.len() - from_end]) / 1000.0;
    println!(
        "{keys:>8} keys: insertion {mean:.0} ns, slowest of all {:.1} us, of 1,000 {:.1} us",
        us(1),
        us(keys as usize / 1000),
    );
}

/// Runs `operation` on random keys from the `first` on, one at a time or in warmed batches.
fn measure(
    title: &str,
    shard: &mut Shard,
    keys: u64,
    (first, warmed): (u64, bool),
    operation: impl Fn(&mut Shard, &[u8; 8], u32),
) {
    let mut rng = Rng::new(7);
    let mut names = [[0u8; 8]; BATCH];
    let mut hashes = [0u32; BATCH];
    let mut runs = Vec::new();
    for _ in 0..PARTS {
        let start = Instant::now();
        for _ in 0..BATCHES_OF_PART {
            for (name_of, hash) in names.iter_mut().zip(&mut hashes) {
                *name_of = name(first + rng.below(keys));
                *hash = shard.key(name_of).hash;
            }
            if warmed {
                let warm = hashes.map(|hash| shard.warm_index(0, hash));
                for warm in warm {
                    shard.warm_record(0, warm);
                }
            }
            for (name, &hash) in names.iter().zip(&hashes) {
                operation(shard, name, hash);
            }
        }
        let operations = (BATCHES_OF_PART * BATCH) as f64;
        runs.push(start.elapsed().as_nanos() as f64 / operations);
    }
    runs.sort_by(f64::total_cmp);
    let (best, median) = (runs[0], runs[PARTS / 2]);
    let how = if warmed { "warmed" } else { "alone" };
    println!("{keys:>8} keys: {title} {how}: best part {best:.1} ns, median {median:.1} ns");
}

fn measure_all(shard: &mut Shard, keys: u64) {
    for warmed in [false, true] {
        measure("get", shard, keys, (0, warmed), |shard, bytes, hash| {
            let value = shard.get(0, Key { bytes, hash }, NOW);
            black_box(value.is_ok_and(|v| v.is_some_and(|v| v.bytes()[0] == b'v')));
        });
        measure("set", shard, keys, (0, warmed), |shard, bytes, hash| {
            let value = NewValue::Copy(&[b'v'; 64]);
            shard.set(0, Key { bytes, hash }, value, ExpirySetting::Clear, NOW);
        });
        measure("miss", shard, keys, (keys, warmed), |shard, bytes, hash| {
            black_box(shard.read(0, Key { bytes, hash }, NOW).is_some());
        });
    }
}

fn print_expiry(keys: u64) {
    let mut shard = fill(keys);
    for title in ["first expiry", "changed expiry"] {
        let mut rng = Rng::new(3);
        let start = Instant::now();
        for n in 0..keys {
            let at = NOW.unix_ms() + rng.below(3_600_000);
            set(&mut shard, n, &[b'v'; 64], ExpirySetting::At(at));
        }
        let ns = start.elapsed().as_nanos() as f64 / keys as f64;
        let bytes = shard.memory().expiry_bytes as f64 / keys as f64;
        println!("{keys:>8} keys: {title}: set {ns:.0} ns, {bytes:.1} B a key for their order");
    }
}

fn print_durable(keys: u64) {
    let mut shard = fill(keys);
    let start = Instant::now();
    let rounds = 10_000_000;
    let charged: usize = (0..rounds).map(|_| black_box(&shard).charged()).sum();
    let ns = start.elapsed().as_nanos() as f64 / f64::from(rounds);
    black_box(charged);
    println!("{keys:>8} keys: charged {ns:.1} ns");

    shard.observers_mut().set_journaling(true);
    let title = "set journaled";
    let set = |shard: &mut Shard, bytes: &[u8; 8], hash: u32| {
        let value = NewValue::Copy(&[b'v'; 64]);
        shard.set(0, Key { bytes, hash }, value, ExpirySetting::Clear, NOW);
        if shard.journal().len() > 64 << 10 {
            shard.journal().clear();
        }
    };
    for warmed in [false, true] {
        measure(title, &mut shard, keys, (0, warmed), set);
    }
    shard.observers_mut().set_journaling(false);

    let start = Instant::now();
    shard.begin_snapshot();
    let begin = start.elapsed();
    let (mut stream, mut part) = (Vec::new(), Vec::new());
    let (mut time, mut slowest) = (Duration::ZERO, Duration::ZERO);
    let mut more = true;
    while more {
        part.clear();
        let start = Instant::now();
        more = shard.snapshot_step(64 << 10, &mut part);
        let step = start.elapsed();
        time += step;
        slowest = slowest.max(step);
        stream.extend_from_slice(&part);
    }
    println!(
        "{keys:>8} keys: snapshot began in {begin:?}, {:.0} ns a key, slowest step {slowest:?}",
        time.as_nanos() as f64 / keys as f64,
    );

    for again in [false, true] {
        let mut copy = Shard::new(1);
        if again {
            copy = fill(keys);
        }
        let mut rest = &stream[..];
        let start = Instant::now();
        while let Ok(effect) = Effect::decode(&mut rest) {
            black_box(copy.apply(&effect).is_ok());
        }
        let seconds = start.elapsed().as_secs_f64();
        let title = if again { "over old ones" } else { "when empty" };
        let rate = keys as f64 / seconds / 1e6;
        println!("{keys:>8} keys: replayed {title}, {rate:.1} million a second");
    }
}

fn main() {
    // A number: only the memory of so many keys, in a fresh process.
    if let Some(keys) = std::env::args().nth(1).and_then(|n| n.parse().ok()) {
        print_memory(keys);
        return;
    }
    for keys in [1000, 1_000_000] {
        measure_all(&mut fill(keys), keys);
    }
    for keys in [1_000_000, 2_000_000] {
        print_insertions(keys);
    }
    print_expiry(1_000_000);
    print_durable(1_000_000);
}
