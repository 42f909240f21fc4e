//! Requests made before anything is timed: updates of keys of zipfian popularity, of any skew.

use rufous_base::WorkerId;
use rufous_base::rng::Rng;
use rufous_base::slot::{slot_of, worker_of_slot};

/// A key of eight bytes.
pub(crate) type Key = [u8; 8];

pub(crate) const VALUE_BYTES: usize = 1024;
pub(crate) type Value = [u8; VALUE_BYTES];

/// Values are taken in turn from so many, which stay in the nearest cache as a request's own bytes
/// would.
const VALUES: usize = 8;
/// Coprime to every number of keys that has no such factor: neighbours in popularity lie apart.
const SPREAD: u64 = 7_368_787;

/// The name of key `n`.
pub(crate) fn key(n: u64) -> Key {
    let mut name = *b"00000000";
    let mut rest = n;
    for digit in name.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    name
}

/// The worker that owns a key where it has one replica.
pub(crate) fn owner(key: &Key, workers: usize) -> usize {
    let WorkerId(owner) = worker_of_slot(slot_of(key), workers);
    usize::from(owner)
}

/// What is copied in.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    all: Vec<Value>,
    next: usize,
}

impl Values {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let value = || std::array::from_fn(|_| rng.next_u64() as u8);
        Self {
            all: std::iter::repeat_with(value).take(VALUES).collect(),
            next: 0,
        }
    }

    /// As [`Values::take`] so many times.
    #[inline]
    pub(crate) fn take_some<'a>(&'a mut self, count: usize) -> impl Fn(usize) -> &'a Value {
        let (all, first) = (&self.all, self.next + 1);
        self.next = (self.next + count) % VALUES;
        move |nth| &all[(first + nth) % VALUES]
    }

    #[inline]
    pub(crate) fn take(&mut self) -> &Value {
        self.next = (self.next + 1) % VALUES;
        &self.all[self.next]
    }
}

/// How popular keys are: the r-th most popular in proportion to 1 / r^skew.
#[derive(Clone, Debug)]
pub(crate) struct Popularity {
    /// Cumulative, by rank.
    below: Vec<f64>,
    /// Ranks that are about as popular: how many, and the share of one. To reckon with.
    alike: Vec<(f64, f64)>,
}

impl Popularity {
    pub(crate) fn new(keys: u64, skew: f64) -> Self {
        let mut sum = 0.0;
        let mut below: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        below.iter_mut().for_each(|p| *p /= sum);
        let mut alike = Vec::new();
        let (mut from, mut before) = (0, 0.0);
        while let Some(last) = below.len().checked_sub(from + 1) {
            let count = (from / 100).min(last) + 1;
            let to = below[from + count - 1];
            alike.push((count as f64, (to - before) / count as f64));
            (from, before) = (from + count, to);
        }
        Self { below, alike }
    }

    /// The probability of each rank.
    pub(crate) fn shares(&self) -> impl Iterator<Item = f64> {
        let before = std::iter::once(&0.0).chain(&self.below);
        self.below.iter().zip(before).map(|(to, from)| to - from)
    }

    fn number(&self, rank: usize) -> u64 {
        (rank as u64).wrapping_mul(SPREAD) % self.below.len() as u64
    }

    fn name(&self, rank: usize) -> Key {
        key(self.number(rank))
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let at = rng.unit();
        let rank = self.below.partition_point(|&below| below <= at);
        self.number(rank.min(self.below.len() - 1))
    }

    /// The numbers of the keys that `count` requests are for.
    pub(crate) fn numbers(&self, count: usize, rng: &mut Rng) -> Vec<u32> {
        (0..count).map(|_| self.draw(rng) as u32).collect()
    }

    /// `count` requests of one thread, for any key.
    pub(crate) fn requests(&self, count: usize, rng: &mut Rng) -> Vec<Key> {
        (0..count).map(|_| key(self.draw(rng))).collect()
    }

    /// Likewise of each of some threads.
    pub(crate) fn requests_each(
        &self,
        threads: usize,
        count: usize,
        rng: &mut Rng,
    ) -> Vec<Vec<Key>> {
        (0..threads).map(|_| self.requests(count, rng)).collect()
    }

    /// `count` requests of one thread, for the keys of one owner of `workers` alone.
    pub(crate) fn own_requests(
        &self,
        count: usize,
        rng: &mut Rng,
        own: usize,
        workers: usize,
    ) -> Vec<Key> {
        let draws = std::iter::repeat_with(|| key(self.draw(rng)));
        let own = draws.filter(|key| owner(key, workers) == own);
        own.take(count).collect()
    }

    /// Which part of all requests is for the keys of each owner.
    pub(crate) fn parts(&self, workers: usize) -> Vec<f64> {
        let mut parts = vec![0.0; workers];
        for (rank, share) in self.shares().enumerate() {
            parts[owner(&self.name(rank), workers)] += share;
        }
        parts
    }

    /// How many different keys are among so many requests.
    pub(crate) fn distinct(&self, requests: f64) -> f64 {
        let seen = |share: f64| -(requests * (-share).ln_1p()).exp_m1();
        self.alike.iter().map(|(n, share)| n * seen(*share)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rank_has_a_key_of_its_own() {
        let popularity = Popularity::new(10_000, 0.5);
        let names: BTreeSet<Key> = (0..10_000).map(|rank| popularity.name(rank)).collect();
        assert_eq!(names.len(), 10_000);
        assert_eq!(&key(123), b"00000123");
    }

    #[test]
    fn draws_are_as_popular_as_said() {
        let mut rng = Rng::new(1);
        let steep = Popularity::new(1000, 4.0);
        let requests = steep.requests(20_000, &mut rng);
        let hottest = requests.iter().filter(|&&k| k == steep.name(0)).count();
        assert!((hottest as f64 / 20_000.0 - 0.924).abs() < 0.01);
        let share: f64 = steep.shares().sum();
        assert!((share - 1.0).abs() < 1e-9);
        let own = steep.own_requests(500, &mut rng, 1, 2);
        assert!(own.len() == 500 && own.iter().all(|key| owner(key, 2) == 1));
        let parts = steep.parts(2);
        assert!((parts[0] + parts[1] - 1.0).abs() < 1e-9);
        assert!(parts.iter().any(|&part| part > 0.9));
    }

    #[test]
    fn as_many_keys_are_different_as_was_reckoned() {
        for skew in [0.5, 4.0] {
            let popularity = Popularity::new(5000, skew);
            let requests = popularity.requests(10_000, &mut Rng::new(2));
            let real = requests.iter().collect::<BTreeSet<_>>().len() as f64;
            let reckoned = popularity.distinct(10_000.0);
            assert!((real / reckoned - 1.0).abs() < 0.15, "{real} {reckoned}");
        }
    }
}
