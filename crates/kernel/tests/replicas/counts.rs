//! Counters that are deleted, forgotten and begun anew, and starts that find
//! the deletions in files and must not take them for what came last.

use crate::world::{ADD, DEL, NODE, World};
use crate::{create, names};
use std::collections::BTreeMap;

fn keys() -> Vec<Vec<u8>> {
    ["count:", "pair:", "one:", "all:"]
        .iter()
        .flat_map(|prefix| names(prefix, 2))
        .collect()
}

/// What a read shows.
fn shown(sum: Option<i64>) -> Vec<u8> {
    let mut text = sum.map_or(Vec::new(), |sum| sum.to_string().into_bytes());
    text.push(b'|');
    text
}

struct Counters {
    world: World,
    sums: BTreeMap<Vec<u8>, i64>,
    /// Deleted at this worker, and not everybody may know.
    deleted: BTreeMap<Vec<u8>, usize>,
}

impl Counters {
    fn new(seed: u64) -> Self {
        let mut world = World::new(1, seed);
        let workers = 1 + world.draw(3);
        world.restart(workers);
        create(&mut world);
        Self {
            world,
            sums: BTreeMap::new(),
            deleted: BTreeMap::new(),
        }
    }

    fn quiet(&mut self) {
        self.world.run_to_quiet();
        self.deleted.clear();
    }

    fn draw_key(&mut self) -> Vec<u8> {
        let keys = keys();
        keys[self.world.draw(keys.len())].clone()
    }

    fn step(&mut self) {
        let at = self.world.draw(self.world.workers.len());
        let key = self.draw_key();
        match self.world.draw(12) {
            0 => {
                // What is counted elsewhere meanwhile would go with it or not.
                self.quiet();
                self.world.submit(at, DEL, b"", &[&key]);
                self.sums.remove(&key);
                self.deleted.insert(key, at);
            }
            1 => self.quiet(),
            2..6 => {
                self.world.deliver();
            }
            6 => self.world.wait(50_000),
            7 if self.world.draw(8) == 0 => self.world.save(),
            7 if self.world.draw(20) == 0 => {
                self.quiet();
                self.world.submit(at, NODE, b"", &[]);
                self.quiet();
                self.sums.clear();
            }
            _ => {
                let at = self.deleted.get(&key).copied().unwrap_or(at);
                let by = self.world.draw(9) as i64 + 1;
                self.world
                    .submit(at, ADD, by.to_string().as_bytes(), &[&key]);
                *self.sums.entry(key).or_insert(0) += by;
            }
        }
    }

    /// What is answered is kept.
    fn flush_logs(&mut self) {
        while self.world.deliver() {}
        (0..self.world.workers.len()).for_each(|w| self.world.end_turn(w));
        while self.world.deliver() {}
    }

    fn restart(&mut self) {
        self.flush_logs();
        let workers = match self.world.draw(2) {
            0 => self.world.workers.len(),
            _ => 1 + self.world.draw(4),
        };
        self.world.restart(workers);
        // The start has told everybody.
        self.deleted.clear();
    }

    fn check(&mut self, when: &str) {
        for key in keys() {
            let expected = shown(self.sums.get(&key).copied());
            let name = String::from_utf8_lossy(&key).into_owned();
            let read = self.world.read(&key);
            let (read, expected) = (
                String::from_utf8_lossy(&read),
                String::from_utf8_lossy(&expected),
            );
            assert_eq!(read, expected, "{name} {when}");
        }
        self.world.assert_converged(&keys());
    }
}

#[test]
fn counts_begun_anew_outlive_any_number_of_starts() {
    let mut held = 0;
    for seed in 0..40 {
        let mut counters = Counters::new(seed);
        for run in 0..6 {
            for _ in 0..120 {
                counters.step();
            }
            if counters.world.draw(2) == 0 {
                counters.quiet();
                counters.check(&format!("before a start, seed {seed}, run {run}"));
            }
            counters.restart();
            counters.check(&format!("after a start, seed {seed}, run {run}"));
            let workers = &counters.world.workers;
            let figures = workers.iter().map(|w| w.replication_figures().counts_held);
            held += figures.sum::<u64>();
        }
        counters.quiet();
        counters.check(&format!("in the end, seed {seed}"));
    }
    assert!(held > 100, "{held}");
}
