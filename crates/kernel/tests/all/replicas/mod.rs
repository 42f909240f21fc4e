//! Replicated keys on workers driven by hand: messages between two workers keep
//! their order, all else is drawn by a seed. Whatever is written where, the
//! replicas come to be the same; what is deleted goes everywhere and stays
//! away; and a start from logs and snapshots, also with other numbers of
//! workers, finds what there was.

mod books;
mod convert;
mod counts;
mod disk;
mod holds;
mod world;

use rufous_base::WorkerId;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::set::Set;
use rufous_kernel::keyspace::{Keyspace, Keyspaces};
use std::collections::BTreeMap;
use world::{ADD, APPEND, DEL, GET, SADD, SET, SREM, World};

fn names(prefix: &str, count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|n| format!("{prefix}{n}").into_bytes())
        .collect()
}

/// All kinds of keys: with replicas on all workers, on two, on one, and strict.
fn keys() -> Vec<Vec<u8>> {
    let prefixes = ["all:", "two:", "one:", "strict:"];
    prefixes
        .iter()
        .flat_map(|prefix| names(prefix, 4))
        .collect()
}

fn world(workers: usize, seed: u64) -> World {
    let mut world = World::new(workers, seed);
    create(&mut world);
    world
}

fn create(world: &mut World) {
    for (prefix, threads) in [("all:", 0), ("two:", 2), ("one:", 1)] {
        world.create(prefix, threads);
    }
    world.create("count:", 0);
    world.create("pair:", 2);
    world.create("mix:", 0);
    world.create("bag:", 2);
}

/// Random writes on some keys at random workers, among deliveries. Returns the
/// sums that were added to each counter.
fn play(world: &mut World, rounds: usize) -> BTreeMap<Vec<u8>, i64> {
    let keys = keys();
    let mut sums = BTreeMap::new();
    for round in 0..rounds {
        let at = world.draw(world.workers.len());
        match world.draw(10) {
            0..4 => {
                world.deliver();
            }
            4 => world.wait(1_000),
            5 if world.draw(2) == 0 => {
                // Removed, forgotten and begun anew: the same everywhere, whatever it is.
                let kind = ["mix", "bag"][world.draw(2)];
                let key = format!("{kind}:{}", world.draw(3)).into_bytes();
                let what = match kind {
                    "mix" => [ADD, ADD, DEL, SET][world.draw(4)],
                    _ => [SADD, SADD, SADD, SREM, DEL][world.draw(5)],
                };
                let value = (1 + world.draw(5)).to_string();
                world.submit(at, what, value.as_bytes(), &[&key]);
            }
            5 => {
                let prefix = ["count:", "pair:"][world.draw(2)];
                let key = format!("{prefix}{}", world.draw(3)).into_bytes();
                let by = world.draw(100) as i64 - 30;
                world.submit(at, ADD, by.to_string().as_bytes(), &[&key]);
                *sums.entry(key).or_insert(0) += by;
            }
            what => {
                let some: Vec<&[u8]> = (0..1 + world.draw(3))
                    .map(|_| &*keys[world.draw(keys.len())])
                    .collect();
                let value = format!("value {round}").into_bytes();
                match what {
                    6 => world.submit(at, DEL, b"", &some),
                    7 => world.submit(at, GET, b"", &some),
                    _ => world.submit(at, SET, &value, &some),
                };
            }
        }
        if world.draw(2) == 0 {
            world.end_turn(at);
        }
    }
    sums
}

/// Whether these sets have the same members at every replica. What is known
/// of removals besides may differ: who has forgotten one before a member was
/// added anew has no trace of it, others keep it with the addition.
fn assert_same_members(world: &mut World, keys: &[Vec<u8>]) {
    for key in keys {
        let now = world.now;
        let owners: Vec<_> = world.workers[0].placement().owners(key).collect();
        let members = |owner: WorkerId| {
            let shard = &mut world.workers[owner.index()].shard;
            let key = shard.key(key);
            let set = shard.collection::<Set>(0, key, now);
            set.expect("nothing but sets is there").map(Set::canonical)
        };
        let all: Vec<_> = owners.into_iter().map(members).collect();
        assert!(all.iter().all(|set| *set == all[0]), "{key:?}: {all:?}");
    }
}

fn check(world: &mut World, sums: &BTreeMap<Vec<u8>, i64>) {
    world.run_to_quiet();
    world.assert_converged(&keys()[..12]);
    world.assert_converged(&names("mix:", 3));
    assert_same_members(world, &names("bag:", 3));
    for key in &keys()[12..] {
        world.read(key);
    }
    for (key, sum) in sums {
        let shown = String::from_utf8(world.read(key)).unwrap();
        assert_eq!(shown, format!("{sum}|"), "{key:?}");
    }
}

#[test]
fn replicas_come_to_be_the_same_and_counts_add_up() {
    for seed in 0..40 {
        let mut world = world(1 + seed as usize % 4, seed);
        let sums = play(&mut world, 1500);
        check(&mut world, &sums);
        let merged: u64 = world
            .workers
            .iter()
            .map(|w| w.replication_figures().merged_items)
            .sum();
        assert!(merged > 0 || world.workers.len() == 1);
    }
}

#[test]
fn a_write_is_seen_at_once_where_it_was_made_and_soon_everywhere() {
    let mut world = world(3, 1);
    world.submit(0, SET, b"cat", &[b"all:pet"]);
    world.submit(2, SET, b"dog", &[b"all:pet"]);
    let (mine, other) = (
        world.submit(0, GET, b"", &[b"all:pet"]),
        world.submit(1, GET, b"", &[b"all:pet"]),
    );
    assert_eq!(
        (world.reply(mine), world.reply(other)),
        (b"cat|".to_vec(), b"|".to_vec())
    );
    world.run_to_quiet();
    // The higher replica wins at equal times.
    assert_eq!(world.read(b"all:pet"), b"dog|");
    let later = world.submit(1, APPEND, b"s", &[b"all:pet"]);
    let text = String::from_utf8(world.reply(later)).unwrap();
    assert!(
        text.starts_with("refused: cannot be coordination-free: "),
        "{text}"
    );
    world.run_to_quiet();
    assert_eq!(world.read(b"all:pet"), b"dog|");
}

#[test]
fn updates_of_a_hot_key_are_merged_before_they_are_sent() {
    let mut world = world(2, 1);
    for n in 0..1000 {
        world.submit(0, SET, format!("{n}").as_bytes(), &[b"all:hot"]);
    }
    world.run_to_quiet();
    assert_eq!(world.read(b"all:hot"), b"999|");
    let figures = world.workers[0].replication_figures();
    assert_eq!((figures.updates, figures.sent_keys), (1000, 1));
}

#[test]
fn what_is_deleted_is_forgotten_everywhere_and_stays_away() {
    for seed in 0..6 {
        let workers = 1 + seed as usize % 4;
        let mut world = world(workers, seed);
        let prefixes = ["all:", "two:", "one:"];
        let keys: Vec<_> = prefixes.iter().flat_map(|p| names(p, 300)).collect();
        for key in &keys {
            let (a, b) = (world.draw(workers), world.draw(workers));
            world.submit(a, SET, &[b'x'; 100], &[key]);
            if world.draw(3) == 0 {
                world.submit(b, ADD, b"1", &[b"count:deleted"]);
                world.deliver();
            }
        }
        world.run_to_quiet();
        let deleted = [b"count:deleted".to_vec()];
        for key in keys.iter().chain(&deleted) {
            let at = world.draw(workers);
            world.submit(at, DEL, b"", &[key]);
            if world.draw(4) == 0 {
                world.end_turn(at);
                world.deliver();
            }
        }
        world.run_to_quiet();
        for worker in &mut world.workers {
            assert_eq!(worker.shard.graves_len(), 0, "seed {seed}");
            assert!(!worker.shard.has_to_forget());
            assert_eq!((worker.shard.memory().keys, worker.shard.charged()), (0, 0));
        }
        world.assert_converged(&keys);
    }
}

/// Whether any worker ever shows a copy of a number that is ahead of the
/// number. With `open` its writer has promised a time to a transaction.
fn runs_ahead(cut: bool, open: bool, seed: u64) -> bool {
    let mut world = World::new(3, seed);
    let keyspace = Keyspace {
        cut,
        gossip_ms: 1,
        ..World::keyspace("cut:", 0)
    };
    let table = Keyspaces::default().with(keyspace).unwrap();
    assert_eq!(world.change(0, table), b"OK");
    let number = |shown: &[u8]| -> u64 {
        let text = std::str::from_utf8(shown).unwrap().trim_end_matches('|');
        text.parse().unwrap_or(0)
    };
    let (name, now) = (1 << 63, world.now);
    if open {
        world.workers[0].promise_to(now, name);
    }
    let mut ahead = false;
    for round in 1..300 {
        match world.draw(3) {
            0 => {
                world.submit(0, SET, round.to_string().as_bytes(), &[b"cut:number"]);
            }
            1 => {
                let read = world.submit(1, GET, b"", &[b"cut:number"]);
                let seen = number(&world.reply(read)).to_string();
                world.submit(1, SET, seen.as_bytes(), &[b"cut:copy"]);
            }
            _ => world.wait(1_000),
        }
        (0..3).for_each(|w| world.end_turn(w));
        while world.draw(4) > 0 && world.deliver() {}
        for w in 0..3 {
            let (copy, number_) = (
                world.submit(w, GET, b"", &[b"cut:copy"]),
                world.submit(w, GET, b"", &[b"cut:number"]),
            );
            ahead |= number(&world.reply(copy)) > number(&world.reply(number_));
        }
    }
    world.workers[0].redeem_of(name);
    world.run_to_quiet();
    world.assert_converged(&[b"cut:copy".to_vec(), b"cut:number".to_vec()]);
    ahead
}

#[test]
fn a_causal_cut_never_shows_a_write_before_what_it_depends_on() {
    let seeds = 0..20;
    for open in [false, true] {
        let mut all = seeds.clone();
        assert!(all.all(|seed| !runs_ahead(true, open, seed)), "{open}");
    }
    assert!(
        seeds.clone().any(|seed| runs_ahead(false, false, seed)),
        "it is hard to see"
    );
}

#[test]
fn nothing_comes_back_after_a_flush() {
    for seed in 0..40 {
        let workers = 2 + seed as usize % 3;
        let mut world = world(workers, seed);
        play(&mut world, 300);
        // All is done where it was asked for, and told to nobody, or half of it.
        (0..workers).for_each(|w| world.end_turn(w));
        while world.deliver() {}
        world.wait(2_000 * (seed % 2));
        (0..workers).for_each(|w| world.end_turn(w));
        let at = world.draw(workers);
        let flushed = world.submit(at, world::NODE, b"", &[]);
        world.end_turn(at);
        while world.draw(50) > 0 && world.deliver() {}
        world.run_to_quiet();
        assert_eq!(world.reply(flushed), b"");
        for worker in &world.workers {
            assert_eq!(
                (worker.shard.memory().keys, worker.shard.graves_len()),
                (0, 0)
            );
        }
        let sums = play(&mut world, 300);
        check(&mut world, &sums);
    }
}

#[test]
fn tables_change_everywhere_or_nowhere() {
    let mut world = World::new(3, 1);
    world.submit(1, SET, b"v", &[b"cart:1"]);
    world.run_to_quiet();
    let carts = Keyspaces::default()
        .with(World::keyspace("cart:", 0))
        .unwrap();
    assert_eq!(world.change(1, carts.clone()), b"OK");
    let stale = String::from_utf8(world.change(2, carts)).unwrap();
    assert!(
        stale.starts_with("refused: the keyspaces were changed"),
        "{stale}"
    );
    for worker in &world.workers {
        assert_eq!(worker.keyspaces().version(), 1);
        assert!(worker.keyspaces().lattice(b"cart:1").is_some());
    }
    world.submit(0, SET, b"v", &[b"cart:1"]);
    world.run_to_quiet();
    world.assert_converged(&[b"cart:1".to_vec()]);
    let dropped = world.workers[0].keyspaces().without("cart").unwrap();
    assert_eq!(world.change(0, dropped), b"OK");
    assert!(world.workers[2].keyspaces().lattice(b"cart:1").is_none());
    assert_eq!(world.read(b"cart:1"), b"v|");
}

#[test]
fn a_start_finds_what_there_was_with_any_number_of_workers() {
    for seed in 0..24 {
        let mut world = World::new(1, seed);
        world.restart(1 + seed as usize % 4);
        create(&mut world);
        let mut all = BTreeMap::<Vec<u8>, i64>::new();
        for run in 0..4 {
            for (key, sum) in play(&mut world, 400) {
                *all.entry(key).or_insert(0) += sum;
            }
            // What is answered is in the logs; what others were told need not be.
            check(&mut world, &all);
            if world.draw(2) == 0 {
                world.save();
                for (key, sum) in play(&mut world, 100) {
                    *all.entry(key).or_insert(0) += sum;
                }
                while world.deliver() {}
                (0..world.workers.len()).for_each(|w| world.end_turn(w));
                while world.deliver() {}
            }
            let before: Vec<_> = match run {
                // Told to nobody: the start has to do it.
                1 => Vec::new(),
                _ => {
                    check(&mut world, &all);
                    keys().iter().map(|key| world.read(key)).collect()
                }
            };
            let workers = 1 + world.draw(4);
            world.restart(workers);
            assert_eq!(world.workers[0].keyspaces().version(), 7, "seed {seed}");
            check(&mut world, &all);
            if run != 1 {
                let after: Vec<_> = keys().iter().map(|key| world.read(key)).collect();
                assert_eq!(after, before, "seed {seed}, run {run}");
            }
        }
    }
}
