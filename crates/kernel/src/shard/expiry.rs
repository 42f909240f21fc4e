//! The exact order in which keys expire: a sorted list cut into chunks, found
//! by their first element. An element takes twelve bytes, and a list that
//! is filled in order, as with equal lifetimes, leaves no gaps.
//!
//! An element is a time and a hash, and stands for every record with that
//! hash that expires then: it names no handle, so that records can move.

use std::collections::BTreeMap;

/// Elements of a chunk before it is cut in two.
const CHUNK: usize = 128;

/// Ordered by time, then hash; three words of four bytes save the padding.
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

#[derive(Debug, Default)]
pub(super) struct Expiry {
    /// By a lower bound of their elements, which is above the elements of
    /// the chunk before. No chunk is empty.
    chunks: BTreeMap<Due, Vec<Due>>,
    len: usize,
    capacity: usize,
}

impl Expiry {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes allocated; the map's nodes by an estimate of their fill.
    pub(super) fn bytes(&self) -> usize {
        let entry = size_of::<Due>() + size_of::<Vec<Due>>();
        self.capacity * size_of::<Due>() + self.chunks.len() * entry * 3 / 2
    }

    /// The soonest expiry: Unix milliseconds and hash.
    pub(super) fn first(&self) -> Option<(u64, u32)> {
        let (_, chunk) = self.chunks.first_key_value()?;
        chunk.first().map(|due| (due.unix_ms(), due.hash))
    }

    pub(super) fn contains(&self, unix_ms: u64, hash: u32) -> bool {
        let due = Due::new(unix_ms, hash);
        let chunk = self.chunks.range(..=due).next_back();
        chunk.is_some_and(|(_, c)| c.binary_search(&due).is_ok())
    }

    pub(super) fn insert(&mut self, unix_ms: u64, hash: u32) {
        let due = Due::new(unix_ms, hash);
        let Some((_, chunk)) = self.chunks.range_mut(..=due).next_back() else {
            self.insert_first(due);
            return;
        };
        let Err(at) = chunk.binary_search(&due) else {
            return;
        };
        self.len += 1;
        if chunk.len() < CHUNK {
            self.capacity -= chunk.capacity();
            chunk.insert(at, due);
            self.capacity += chunk.capacity();
            return;
        }
        // In order of time, a full chunk stays full; else it is cut in the middle.
        let mut tail = Vec::new();
        if at < CHUNK {
            self.capacity -= chunk.capacity();
            tail = chunk.split_off(CHUNK / 2);
            let half = if at <= CHUNK / 2 { chunk } else { &mut tail };
            let at = if at <= CHUNK / 2 { at } else { at - CHUNK / 2 };
            half.insert(at, due);
            let chunk = self.chunks.range(..=due).next_back();
            self.capacity += chunk.map_or(0, |c| c.1.capacity());
        } else {
            tail.push(due);
        }
        self.capacity += tail.capacity();
        self.chunks.insert(tail[0], tail);
    }

    /// Before everything there is.
    fn insert_first(&mut self, due: Due) {
        let mut chunk = match self.chunks.first_entry() {
            Some(first) if first.get().len() < CHUNK => first.remove(),
            _ => Vec::new(),
        };
        self.capacity -= chunk.capacity();
        chunk.insert(0, due);
        self.capacity += chunk.capacity();
        self.len += 1;
        self.chunks.insert(due, chunk);
    }

    pub(super) fn remove(&mut self, unix_ms: u64, hash: u32) -> bool {
        let due = Due::new(unix_ms, hash);
        let Some((&bound, chunk)) = self.chunks.range_mut(..=due).next_back() else {
            return false;
        };
        let Ok(at) = chunk.binary_search(&due) else {
            return false;
        };
        self.len -= 1;
        chunk.remove(at);
        let len = chunk.len();
        if len == 0 {
            self.capacity -= chunk.capacity();
            self.chunks.remove(&bound);
        } else if len < CHUNK / 4 {
            self.join_next(bound);
        }
        true
    }

    /// Takes the next chunk's elements into this one where both are small.
    fn join_next(&mut self, bound: Due) {
        let mut both = self.chunks.range_mut(bound..);
        let (Some((_, chunk)), Some((&next_bound, next))) = (both.next(), both.next()) else {
            return;
        };
        if chunk.len() + next.len() > CHUNK * 3 / 4 {
            return;
        }
        self.capacity -= chunk.capacity() + next.capacity();
        chunk.append(next);
        self.capacity += chunk.capacity();
        self.chunks.remove(&next_bound);
    }

    /// Asserts the invariants of the list.
    pub(super) fn check(&self) {
        let mut last = None;
        let (mut len, mut capacity) = (0, 0);
        for (bound, chunk) in &self.chunks {
            assert!(!chunk.is_empty() && chunk.len() <= CHUNK);
            assert!(*bound <= chunk[0] && last.is_none_or(|l| l < *bound));
            assert!(chunk.is_sorted_by(|a, b| a < b));
            last = chunk.last().copied();
            len += chunk.len();
            capacity += chunk.capacity();
        }
        assert_eq!((len, capacity), (self.len, self.capacity));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_base::rng::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_sorted_set() {
        let mut rng = Rng::new(3);
        let (mut list, mut model) = (Expiry::default(), BTreeSet::new());
        for round in 0..200_000u64 {
            let item = (rng.below(3000) + round / 100, rng.below(4) as u32);
            // Phases of growth and of shrink.
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
    fn equal_lifetimes_leave_no_gaps() {
        let mut list = Expiry::default();
        for i in 0..100_000 {
            list.insert(1 << 40 | i, i as u32);
        }
        list.check();
        assert!(list.bytes() < 100_000 * 13);
    }
}
