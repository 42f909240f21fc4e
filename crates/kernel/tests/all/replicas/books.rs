//! Books of slots through starts, saves and other numbers of workers, where all keys of clients are in a lattice
//! keyspace.

use super::world::{SET, World};
use rufous_base::slot::worker_of_slot;
use rufous_kernel::keyspace::{Keyspace, Regime};
use std::collections::BTreeMap;

type Books = BTreeMap<(u16, [u8; 18]), Vec<u8>>;

/// All entries, each at the worker of its slot and nowhere else.
fn books(world: &World) -> Books {
    let (mut all, workers) = (Books::new(), world.workers.len());
    for (at, worker) in world.workers.iter().enumerate() {
        worker.shard.check();
        for (slot, id, entry) in worker.shard.books() {
            assert_eq!(worker_of_slot(slot, workers).index(), at);
            assert!(all.insert((slot, id), entry.to_vec()).is_none());
        }
    }
    all
}

/// Random changes of entries, and a few keys of clients.
fn play(world: &mut World, books: &mut Books) {
    for n in 0..80 {
        let slot = world.draw(40) as u16 * 400;
        let id = [world.draw(5) as u8; 18];
        let owner = worker_of_slot(slot, world.workers.len()).index();
        let (now, entry) = (world.now, vec![n; world.draw(300)]);
        let workers = world.workers.len();
        let shard = &mut world.workers[owner].shard;
        if n % 3 == 0 {
            let was = books.remove(&(slot, id)).is_some();
            assert_eq!(shard.remove_book(slot, &id, now), was);
        } else {
            // Other slots of the worker have the same.
            let others = (0..40).map(|n| n * 400).filter(|other| {
                n % 3 == 1 && worker_of_slot(*other, workers).index() == owner && other % 3 == 0
            });
            for slot in others.chain([slot]) {
                let own = slot.to_le_bytes();
                shard.set_book(slot, &id, (&entry, &own), now);
                books.insert((slot, id), [&entry[..], &own].concat());
            }
        }
        if world.draw(4) == 0 {
            let name = format!("k{}", world.draw(9));
            let at = world.draw(world.workers.len());
            world.submit(at, SET, b"v", &[name.as_bytes()]);
            world.end_turn(owner);
        }
    }
    if world.draw(3) == 0 {
        // FLUSHALL.
        world.submit(0, super::world::NODE, b"", &[]);
    }
    world.run_to_quiet();
}

#[test]
fn a_start_finds_the_books_with_any_number_of_workers() {
    for seed in 0..16 {
        let mut world = World::new(1, seed);
        world.restart(1 + seed as usize % 4);
        let keyspace = Keyspace {
            regime: Regime::Lattice,
            threads: 0,
            ..Keyspace::new("all", b"")
        };
        let table = world.workers[0].keyspaces().with(keyspace).unwrap();
        assert_eq!(world.change(0, table), b"OK");
        let mut all = Books::new();
        for run in 0..4 {
            play(&mut world, &mut all);
            assert_eq!(books(&world), all, "seed {seed}, run {run}");
            if world.draw(2) == 0 {
                world.save();
                play(&mut world, &mut all);
            }
            let workers = 1 + world.draw(4);
            world.restart(workers);
            assert_eq!(books(&world), all, "seed {seed}, run {run}");
        }
        assert!(all.len() > 40, "{}", all.len());
    }
}
