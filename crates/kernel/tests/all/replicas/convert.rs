//! Changes of the table over keys that are there: values stay what they are,
//! whatever was not sent yet, and a crash leaves a table with what fits it.

use super::world::{ADD, GET, SADD, SET, World};
use rufous_base::WorkerId;
use rufous_datatype::set::Set;
use rufous_kernel::keyspace::{Keyspace, Keyspaces};
use std::collections::{BTreeMap, BTreeSet};

/// What there must be.
#[derive(Default)]
struct Model {
    strings: BTreeMap<Vec<u8>, Vec<u8>>,
    sums: BTreeMap<Vec<u8>, i64>,
    sets: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

impl Model {
    /// Writes that no other undoes, at random workers, among deliveries.
    fn play(&mut self, world: &mut World, rounds: usize) {
        for _ in 0..rounds {
            let at = world.draw(world.workers.len());
            match world.draw(6) {
                0 => {
                    world.deliver();
                }
                1 if world.draw(20) == 0 => world.wait(1_000),
                1 | 2 => {
                    let n = self.strings.len();
                    let (key, value) = (format!("k:s{n}"), format!("value {n}"));
                    world.submit(at, SET, value.as_bytes(), &[key.as_bytes()]);
                    self.strings.insert(key.into(), value.into());
                }
                3 if world.workers[0].keyspaces().has_lattice() => {
                    let key = format!("k:n{}", world.draw(3)).into_bytes();
                    let by = 1 + world.draw(9) as i64;
                    world.submit(at, ADD, by.to_string().as_bytes(), &[&key]);
                    *self.sums.entry(key).or_insert(0) += by;
                }
                _ => {
                    let key = format!("k:set{}", world.draw(3)).into_bytes();
                    let member = format!("m{}", world.draw(1000)).into_bytes();
                    world.submit(at, SADD, &member, &[&key]);
                    self.sets.entry(key).or_default().insert(member);
                }
            }
        }
    }

    /// Every connection sees all of it.
    fn check(&self, world: &mut World) {
        for (key, value) in &self.strings {
            assert_eq!(world.read(key), [value, &b"|"[..]].concat());
        }
        for (key, sum) in &self.sums {
            assert_eq!(world.read(key), format!("{sum}|").into_bytes());
        }
        for w in 0..world.workers.len() {
            for (key, expected) in &self.sets {
                let owner = world.workers[w].placement().owner(key);
                let now = world.now;
                let shard = &mut world.workers[owner.index()].shard;
                let key = shard.key(key);
                let any = shard.read(0, key, now).expect("a set is there");
                let mut members = BTreeSet::new();
                any.of::<Set>().expect("it is a set").each(|member, _| {
                    members.insert(member.to_vec());
                });
                assert_eq!(members, *expected);
            }
        }
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let all = self.strings.keys().chain(self.sums.keys());
        all.chain(self.sets.keys()).cloned().collect()
    }
}

/// A change of how the keys are replicated; none: they are strict.
fn draw_change(world: &mut World) -> Keyspaces {
    let table = Keyspaces::clone(world.workers[0].keyspaces());
    let threads = world.draw(4) as u16;
    let level = ["eventual", "causal"][world.draw(2)];
    let threads = if level == "causal" { 0 } else { threads };
    let keyspace = Keyspace {
        level: level.parse().expect("a level"),
        ..World::keyspace("k:", threads)
    };
    match (table.get("k").is_some(), world.draw(3)) {
        (false, _) => table.with(keyspace).unwrap(),
        (true, 0) => table.without("k").unwrap(),
        (true, 1) => table.altered(Keyspace::new("k", b"k:")).unwrap(),
        (true, _) => table.altered(keyspace).unwrap(),
    }
}

/// Nobody has more than the table says.
fn assert_in_place(world: &mut World, model: &Model) {
    let keys = model.keys();
    if world.workers[0].placement().has_lattice() {
        world.assert_converged(&keys);
        return;
    }
    for key in &keys {
        for w in 0..world.workers.len() {
            assert!(world.state(w, key).is_empty(), "a replica of a strict key");
            let (now, shard) = (world.now, &mut world.workers[w].shard);
            let name = shard.key(key);
            let is_here = shard.contains(0, name, now);
            let owner = world.workers[w].placement().owner(key);
            assert_eq!(is_here, owner == WorkerId(w as u16), "{key:?}");
        }
    }
    assert!(world.workers.iter().all(|w| w.shard.graves_len() == 0));
}

#[test]
fn keys_stay_what_they_are_however_they_are_replicated() {
    for seed in 0..40 {
        let mut world = World::new(1 + seed as usize % 4, seed);
        let mut model = Model::default();
        for _ in 0..8 {
            model.play(&mut world, 150);
            let at = world.draw(world.workers.len());
            // Those before it are done; what they changed need not be sent.
            (0..world.workers.len()).for_each(|w| world.end_turn(w));
            while world.deliver() {}
            let table = draw_change(&mut world);
            let workers = world.workers.len();
            let shape = |table: &Keyspaces| {
                let keyspace = table.lattice(b"k:")?;
                Some((keyspace.spread(workers), keyspace.level.keeps_siblings()))
            };
            let changes = shape(&table) != shape(world.workers[0].keyspaces());
            assert_eq!(world.change(at, table), b"OK", "seed {seed}");
            if changes {
                // At once, without any epoch.
                model.check(&mut world);
            }
            world.run_to_quiet();
            model.check(&mut world);
            assert_in_place(&mut world, &model);
        }
    }
}

#[test]
fn a_crash_within_a_change_leaves_values_that_fit_the_table() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..60 {
        let mut world = World::new(1, seed);
        let workers = 1 + seed as usize % 3;
        world.restart(workers);
        let mut model = Model::default();
        for _ in 0..4 {
            model.play(&mut world, 60);
            world.run_to_quiet();
            if world.draw(3) == 0 {
                world.save();
            }
            let table = draw_change(&mut world);
            let version = table.version();
            world.begin_change(0, table);
            let steps = world.draw(60);
            for _ in 0..steps {
                world.deliver();
            }
            let workers = match world.draw(3) {
                0 => 1 + world.draw(3),
                _ => world.workers.len(),
            };
            world.restart(workers);
            match world.workers[0].keyspaces().version() == version {
                true => new += 1,
                false => old += 1,
            }
            world.run_to_quiet();
            model.check(&mut world);
            assert_in_place(&mut world, &model);
        }
    }
    assert!(old > 20 && new > 20, "{old} {new}");
}

#[test]
fn a_value_that_cannot_be_replicated_has_the_change_refused() {
    let mut world = World::new(2, 1);
    for n in 0..3 {
        let key = format!("cart:{n}").into_bytes();
        let owner = world.workers[0].placement().owner(&key);
        let (now, shard) = (world.now, &mut world.workers[owner.index()].shard);
        let key = shard.key(&key);
        shard
            .update::<rufous_datatype::list::List, _>(0, key, now, |list| {
                let element = &b"x"[..];
                list.apply(&rufous_datatype::list::Op::PushBack { element });
            })
            .expect("nothing was there");
    }
    world.submit(0, SET, b"v", &[b"cart:x"]);
    let table = Keyspaces::default()
        .with(World::keyspace("cart:", 0))
        .unwrap();
    let reply = String::from_utf8(world.change(1, table)).unwrap();
    assert!(
        reply.starts_with("refused: keys with this prefix cannot be")
            && reply.contains(": 3 of them, 'cart:")
            && reply.contains("values of its type do not merge"),
        "{reply}"
    );
    assert_eq!(world.workers[1].keyspaces().version(), 0);
    let got = world.submit(1, GET, b"", &[b"cart:x"]);
    world.run_to_quiet();
    assert_eq!(world.reply(got), b"v|");
}

/// A request was looked at by an earlier table, in which its key was strict: now it is a lattice key.
#[test]
fn what_was_strict_by_an_earlier_table_is_looked_at_again() {
    let mut world = World::new(2, 5);
    let earlier = Some(world.workers[0].table_mark());
    world.create("k:", 0);
    world.run_to_quiet();
    assert!(!world.workers[0].knows_strict(earlier));
    world.submit_looked_at(0, SET, (b"v", &[b"k:a"]), earlier);
    world.run_to_quiet();
    let seq = world.submit(1, GET, b"", &[b"k:a"]);
    world.run_to_quiet();
    assert_eq!(
        world.reply(seq),
        b"v|",
        "a write to one replica reaches the other"
    );
    // By the table in force it is believed, so that a strict key costs no search.
    let current = Some(world.workers[0].table_mark());
    assert!(world.workers[0].knows_strict(current));
    assert!(!world.workers[0].knows_strict(None));
}
