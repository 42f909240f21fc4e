//! Counters that are deleted, forgotten and begun anew, and starts that find
//! the deletions in files and must not take them for what came last.

use super::world::{ADD, DEL, NODE, PFADD, World};
use super::{create, names};
use rufous_datatype::hll::{Observation, Registers, Sketch};
use std::collections::{BTreeMap, BTreeSet};

fn keys() -> Vec<Vec<u8>> {
    ["count:", "pair:", "one:", "all:"]
        .iter()
        .flat_map(|prefix| names(prefix, 2))
        .collect()
}

/// What is added up: numbers, or elements of sketches.
trait Adds: Clone + Default {
    /// Adds something to a key.
    fn add(&mut self, world: &mut World, at: usize, key: &[u8]);

    /// Whether a read shows it, or that there is nothing.
    fn is_shown(of: Option<&Self>, read: &[u8]) -> bool;
}

impl Adds for i64 {
    fn add(&mut self, world: &mut World, at: usize, key: &[u8]) {
        let by = world.draw(9) as i64 + 1;
        world.submit(at, ADD, by.to_string().as_bytes(), &[key]);
        *self += by;
    }

    fn is_shown(of: Option<&Self>, read: &[u8]) -> bool {
        let text = of.map_or(String::new(), ToString::to_string);
        read == format!("{text}|").as_bytes()
    }
}

impl Adds for BTreeSet<usize> {
    fn add(&mut self, world: &mut World, at: usize, key: &[u8]) {
        let element = world.draw(50);
        world.submit(at, PFADD, element.to_string().as_bytes(), &[key]);
        self.insert(element);
    }

    fn is_shown(of: Option<&Self>, read: &[u8]) -> bool {
        let text = read.strip_suffix(b"|").expect("one value").to_vec();
        let Some(of) = of else {
            return text.is_empty();
        };
        let mut expected = Registers::default();
        for element in of {
            expected.raise(Observation::of(element.to_string().as_bytes()));
        }
        let shown = Sketch::parse(&text).and_then(Sketch::registers);
        shown.is_ok_and(|shown| shown.ranks() == expected.ranks())
    }
}

struct Counters<A> {
    world: World,
    sums: BTreeMap<Vec<u8>, A>,
    /// Deleted at this worker, and not everybody may know.
    deleted: BTreeMap<Vec<u8>, usize>,
}

impl<A: Adds> Counters<A> {
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
                let sum = self.sums.entry(key.clone()).or_default();
                sum.add(&mut self.world, at, &key);
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
            let read = self.world.read(&key);
            let name = String::from_utf8_lossy(&key).into_owned();
            let is_shown = A::is_shown(self.sums.get(&key), &read);
            assert!(is_shown, "{name} {when}: {}", read.escape_ascii());
        }
        self.world.assert_converged(&keys());
    }
}

fn outlive_starts<A: Adds>() {
    let (mut held, mut most) = (0, 0);
    for seed in 0..40 {
        let mut counters = Counters::<A>::new(seed);
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
        most += counters.world.most_held;
    }
    assert!(held > 100 && most > 0, "{held}, {most} bytes");
}

#[test]
fn counts_begun_anew_outlive_any_number_of_starts() {
    outlive_starts::<i64>();
}

/// Of a sketch every addition is said, and all of them have to be found again.
#[test]
fn sketches_begun_anew_outlive_any_number_of_starts() {
    outlive_starts::<BTreeSet<usize>>();
}
