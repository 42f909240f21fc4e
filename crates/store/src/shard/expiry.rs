//! The exact order in which keys expire: a sorted list in chunks, found by their first element. An element takes
//! twelve bytes, and a list that is filled in order, as with equal lifetimes, leaves no gaps.
//!
//! An element is a time and a hash, and stands for every record with that hash that expires then: it has no handle,
//! so that records can move.

use rufous_base::rng::Rng;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Elements of a chunk before it is split.
const CHUNK: usize = 128;

/// Ordered by time, then hash; three words of four bytes avoid padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    high: u32,
    low: u32,
    hash: u32,
}

impl Due {
    fn new(unix_ms: u64, hash: u32) -> Self {
        Self {
            high: (unix_ms >> 32) as u32,
            low: unix_ms as u32,
            hash,
        }
    }

    fn unix_ms(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

#[derive(Debug)]
struct Chunk {
    /// Its key in the map: a lower bound of its elements, and above the elements of the chunk before it.
    bound: Due,
    items: Vec<Due>,
}

#[derive(Debug, Default)]
pub(super) struct Expiry {
    /// The index of each chunk in `chunks`, by its bound.
    order: BTreeMap<Due, u32>,
    /// Unordered and without gaps, so that one can be drawn at random. None is empty.
    chunks: Vec<Chunk>,
    len: usize,
    capacity: usize,
}

impl Expiry {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes allocated, with an estimate of the fill of the map's nodes.
    pub(super) fn bytes(&self) -> usize {
        let entry = size_of::<Due>() + size_of::<u32>();
        self.capacity * size_of::<Due>()
            + self.chunks.capacity() * size_of::<Chunk>()
            + self.chunks.len() * entry * 3 / 2
    }

    /// The soonest expiry: Unix milliseconds and hash.
    pub(super) fn first(&self) -> Option<(u64, u32)> {
        let (_, &at) = self.order.first_key_value()?;
        let due = self.chunks[at as usize].items.first();
        due.map(|due| (due.unix_ms(), due.hash))
    }

    /// The element after this one.
    pub(super) fn after(&self, unix_ms: u64, hash: u32) -> Option<(u64, u32)> {
        let due = Due::new(unix_ms, hash);
        self.first_that(due, |other| other > due)
    }

    /// This element, or the next one after it.
    pub(super) fn from(&self, unix_ms: u64, hash: u32) -> Option<(u64, u32)> {
        let due = Due::new(unix_ms, hash);
        self.first_that(due, |other| other >= due)
    }

    fn first_that(&self, near: Due, is_behind: impl Fn(Due) -> bool) -> Option<(u64, u32)> {
        let at = self.order.range(..=near).next_back().map(|(due, _)| *due);
        let from = at.map_or(Bound::Unbounded, Bound::Included);
        self.order
            .range((from, Bound::Unbounded))
            .find_map(|(_, &at)| {
                let items = &self.chunks[at as usize].items;
                let first = items.partition_point(|due| !is_behind(*due));
                items.get(first).map(|due| (due.unix_ms(), due.hash))
            })
    }

    /// A random element; all have the same probability.
    pub(super) fn random(&self, rng: &mut Rng) -> Option<(u64, u32)> {
        if self.chunks.is_empty() {
            return None;
        }
        // Nearly all chunks are at least a quarter full, so that an unused place is seldom hit several times.
        let draw = |rng: &mut Rng| {
            let chunk = &self.chunks[rng.below(self.chunks.len() as u64) as usize];
            (chunk, rng.below(CHUNK as u64) as usize)
        };
        let hit = (0..64).find_map(|_| {
            let (chunk, place) = draw(rng);
            chunk.items.get(place)
        });
        let due = hit.or_else(|| draw(rng).0.items.first())?;
        Some((due.unix_ms(), due.hash))
    }

    /// The index of the chunk that has the element, or would have it.
    fn place_of(&self, due: Due) -> Option<usize> {
        let (_, &at) = self.order.range(..=due).next_back()?;
        Some(at as usize)
    }

    pub(super) fn contains(&self, unix_ms: u64, hash: u32) -> bool {
        let due = Due::new(unix_ms, hash);
        self.place_of(due)
            .is_some_and(|at| self.chunks[at].items.binary_search(&due).is_ok())
    }

    pub(super) fn insert(&mut self, unix_ms: u64, hash: u32) {
        let due = Due::new(unix_ms, hash);
        let Some(place) = self.place_of(due) else {
            self.insert_first(due);
            return;
        };
        let items = &mut self.chunks[place].items;
        let Err(at) = items.binary_search(&due) else {
            return;
        };
        self.len += 1;
        self.capacity -= items.capacity();
        // If elements arrive in order, a full chunk stays full; otherwise it is split in the middle.
        let mut tail = Vec::new();
        if items.len() < CHUNK {
            items.insert(at, due);
        } else if at == CHUNK {
            tail.push(due);
        } else {
            tail = items.split_off(CHUNK / 2);
            match at.checked_sub(CHUNK / 2) {
                None | Some(0) => items.insert(at, due),
                Some(at) => tail.insert(at, due),
            }
        }
        self.capacity += items.capacity();
        if let Some(&bound) = tail.first() {
            self.add_chunk(bound, tail);
        }
    }

    /// Inserts before all other elements.
    fn insert_first(&mut self, due: Due) {
        self.len += 1;
        if let Some(first) = self.order.first_entry() {
            let at = *first.get();
            let chunk = &mut self.chunks[at as usize];
            if chunk.items.len() < CHUNK {
                self.capacity -= chunk.items.capacity();
                chunk.items.insert(0, due);
                self.capacity += chunk.items.capacity();
                chunk.bound = due;
                first.remove();
                self.order.insert(due, at);
                return;
            }
        }
        self.add_chunk(due, vec![due]);
    }

    fn add_chunk(&mut self, bound: Due, items: Vec<Due>) {
        self.capacity += items.capacity();
        self.order.insert(bound, self.chunks.len() as u32);
        self.chunks.push(Chunk { bound, items });
    }

    fn drop_chunk(&mut self, at: usize) -> Vec<Due> {
        let chunk = self.chunks.swap_remove(at);
        self.capacity -= chunk.items.capacity();
        self.order.remove(&chunk.bound);
        if let Some(moved) = self.chunks.get(at) {
            self.order.insert(moved.bound, at as u32);
        }
        if self.chunks.is_empty() {
            self.chunks = Vec::new();
        }
        chunk.items
    }

    pub(super) fn remove(&mut self, unix_ms: u64, hash: u32) -> bool {
        let due = Due::new(unix_ms, hash);
        let Some(place) = self.place_of(due) else {
            return false;
        };
        let items = &mut self.chunks[place].items;
        let Ok(at) = items.binary_search(&due) else {
            return false;
        };
        self.len -= 1;
        items.remove(at);
        let len = items.len();
        if len == 0 {
            self.drop_chunk(place);
        } else if len < CHUNK / 4 {
            self.join_next(place);
        }
        true
    }

    /// Merges the next chunk into this one if both are small.
    fn join_next(&mut self, place: usize) {
        let bound = self.chunks[place].bound;
        let after = (Bound::Excluded(bound), Bound::Unbounded);
        let Some((_, &next)) = self.order.range(after).next() else {
            return;
        };
        let next = next as usize;
        if self.chunks[place].items.len() + self.chunks[next].items.len() > CHUNK * 3 / 4 {
            return;
        }
        let mut tail = self.drop_chunk(next);
        // The last chunk was moved to the index of the removed one.
        let place = if place == self.chunks.len() {
            next
        } else {
            place
        };
        let items = &mut self.chunks[place].items;
        self.capacity -= items.capacity();
        items.append(&mut tail);
        self.capacity += items.capacity();
    }

    /// Asserts the invariants of the list.
    pub(super) fn check(&self) {
        let mut last = None;
        let (mut len, mut capacity) = (0, 0);
        assert_eq!(self.order.len(), self.chunks.len());
        for (bound, &at) in &self.order {
            let Chunk { bound: own, items } = &self.chunks[at as usize];
            assert_eq!(bound, own);
            assert!(!items.is_empty() && items.len() <= CHUNK);
            assert!(*bound <= items[0] && last.is_none_or(|l| l < *bound));
            assert!(items.is_sorted_by(|a, b| a < b));
            last = items.last().copied();
            len += items.len();
            capacity += items.capacity();
        }
        assert_eq!((len, capacity), (self.len, self.capacity));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_sorted_set() {
        let mut rng = Rng::new(3);
        let (mut list, mut model) = (Expiry::default(), BTreeSet::new());
        for round in 0..200_000u64 {
            let item = (rng.below(3000) + round / 100, rng.below(4) as u32);
            // Alternating phases of growth and shrink.
            if rng.below(10) < if (round / 20_000) % 2 == 0 { 7 } else { 3 } {
                list.insert(item.0, item.1);
                model.insert(item);
            } else {
                assert_eq!(list.remove(item.0, item.1), model.remove(&item));
            }
            if rng.below(20) == 0
                && let Some(first) = list.first()
            {
                assert!(list.remove(first.0, first.1) && model.remove(&first));
            }
            assert_eq!(list.first(), model.first().copied());
            assert_eq!(list.contains(item.0, item.1), model.contains(&item));
            if round % 1000 == 0 {
                list.check();
                assert_eq!(list.len(), model.len());
            }
        }
        while let Some(first) = model.pop_first() {
            assert_eq!(list.first(), Some(first));
            assert!(list.remove(first.0, first.1));
        }
        list.check();
        assert_eq!(list.bytes(), 0);
    }

    #[test]
    fn elements_are_drawn_evenly() {
        let mut rng = Rng::new(4);
        let mut list = Expiry::default();
        // Chunks of different fills: filled in order, filled at random, and thinned out.
        for i in 0..1000 {
            list.insert(i, 0);
            list.insert(10_000 + rng.below(1 << 30), 0);
            list.insert(1 << 40 | i, 0);
        }
        for i in (0..1000).filter(|i| i % 3 > 0) {
            assert!(list.remove(1 << 40 | i, 0));
        }
        list.check();
        let mut hits = BTreeMap::<u64, u32>::new();
        for _ in 0..list.len() * 100 {
            let (at, _) = list.random(&mut rng).expect("not empty");
            *hits.entry(at).or_default() += 1;
        }
        // Poisson around 100: eight standard deviations either way.
        assert_eq!(hits.len(), list.len());
        assert!(hits.values().all(|&n| n > 20 && n < 180));
        assert_eq!(Expiry::default().random(&mut rng), None);
    }

    #[test]
    fn equal_lifetimes_leave_no_gaps() {
        let mut list = Expiry::default();
        for i in 0..100_000 {
            list.insert(1 << 40 | i, i as u32);
        }
        list.check();
        assert!(list.bytes() < 100_000 * 13);
    }
}
