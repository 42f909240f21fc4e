//! Walking the index in the order of hashes, and drawing from it at random.

use super::index::{Index, SPLIT, prefix_mask};
use super::segment::PLACES;
use rufous_base::rng::Rng;

/// Places that [`Index::random_some`] examines together.
const TOGETHER: usize = 8;

/// Buckets that [`Index::random_buckets`] examines together.
const BUCKETS: usize = 4;

impl Index {
    /// Fills `out` with the `count` entries of the lowest hashes from `cursor` on; entries with equal hashes are
    /// never separated. Returns the hash to continue from, or `None` at the end. An entry that stays in the index
    /// from the first call to the last appears exactly once, whatever growth and shrink happen in between.
    ///
    /// If the table is sparse, it returns early with fewer entries, so that no call examines more than a multiple of
    /// `count` buckets.
    pub(super) fn collect(
        &self,
        cursor: u32,
        count: usize,
        out: &mut Vec<(u32, u32)>,
    ) -> Option<u32> {
        out.clear();
        let count = count.max(1);
        let mut looks = count.saturating_mul(2).saturating_add(64);
        let mut next = u64::from(cursor);
        while let Ok(from) = u32::try_from(next) {
            let segment = &self.segments[self.segment_of(from) as usize];
            let prefix = from & prefix_mask(segment.depth());
            let home = segment.collect(from, count, &mut looks, out);
            next = segment.first_hash(prefix, home);
            if out.len() >= count || looks == 0 {
                break;
            }
        }
        // Whole runs of full buckets were taken: removes the excess.
        if out.len() > count {
            let (_, last, _) = out.select_nth_unstable_by_key(count - 1, |e| e.0);
            let limit = last.0;
            out.retain(|e| e.0 <= limit);
            next = u64::from(limit) + 1;
        }
        u32::try_from(next).ok()
    }

    /// Draws `count` entries, each with the same probability, or none if the index is empty. Several places are
    /// examined together, so that the cache misses overlap.
    pub(super) fn random_some(&self, count: usize, rng: &mut Rng, out: &mut Vec<(u32, u32)>) {
        let end = out.len() + count;
        let mut left = 1000;
        while out.len() < end && self.len() > 0 {
            if left == 0 {
                out.extend(self.random_after(rng));
                continue;
            }
            left -= 1;
            let places: [_; TOGETHER] = std::array::from_fn(|_| self.random_place(rng));
            // In a separate pass, as the next one branches on the loaded data.
            let found = places.map(|place| {
                place.map_or((0, 0), |(segment, place)| {
                    self.segments[segment].at(place / PLACES, place % PLACES)
                })
            });
            let full = found.into_iter().filter(|entry| entry.1 != 0);
            out.extend(full.take(end - out.len()));
        }
    }

    /// Like [`Index::random_some`], but takes all entries of each drawn bucket, which costs one cache miss for about
    /// six of them: each entry has the same probability, though not independently of its neighbours. `out` gets more
    /// than `count` if the last bucket has more.
    pub(super) fn random_buckets(&self, count: usize, rng: &mut Rng, out: &mut Vec<(u32, u32)>) {
        let end = out.len() + count;
        let mut left = 1000;
        while out.len() < end && self.len() > 0 {
            if left == 0 {
                out.extend(self.random_after(rng));
                continue;
            }
            left -= 1;
            let places: [_; BUCKETS] = std::array::from_fn(|_| self.random_place(rng));
            let drawn = || places.iter().flatten().map(|&(s, p)| (s, p / PLACES));
            // In a separate pass, as the next one branches on the loaded data.
            let firsts = drawn().map(|(segment, bucket)| self.segments[segment].at(bucket, 0));
            std::hint::black_box(firsts.fold(0, |all, entry| all ^ entry.1));
            for (segment, bucket) in drawn() {
                out.extend(self.segments[segment].entries_in(bucket));
                if out.len() >= end {
                    break;
                }
            }
        }
    }

    /// A random entry; all have the same probability. `None` if the index is empty.
    pub(super) fn random(&self, rng: &mut Rng) -> Option<(u32, u32)> {
        let mut found = Vec::with_capacity(1);
        self.random_some(1, rng, &mut found);
        found.pop()
    }

    /// A segment and a place in it; `None` if that place would be drawn too often.
    #[inline]
    fn random_place(&self, rng: &mut Rng) -> Option<(usize, usize)> {
        // A place is hit with probability 1 / (2^depth * buckets * 8): if that is high, the hit is accepted less
        // often. Segments of the greatest depth set the scale; shallower ones have more places for each hash prefix.
        let draw = rng.next_u64();
        let number = self.segment_of(draw as u32) as usize;
        let segment = &self.segments[number];
        let weight = (segment.buckets() as u64) << segment.depth();
        let scale = if self.depth == 0 {
            weight
        } else {
            (SPLIT as u64) << self.depth
        };
        // A product rather than a remainder, which is much slower.
        let place = ((draw >> 32) * (segment.buckets() * PLACES) as u64) >> 32;
        (weight == scale || rng.below(scale) < weight).then_some((number, place as usize))
    }

    fn random_after(&self, rng: &mut Rng) -> Option<(u32, u32)> {
        // For very uneven tables only: the first entry after a random hash.
        let mut out = Vec::new();
        let mut cursor = Some(rng.next_u64() as u32);
        while let Some(from) = cursor {
            cursor = self.collect(from, 1, &mut out);
            if let Some(&entry) = out.first() {
                return Some(entry);
            }
        }
        self.segments.iter().find_map(|s| s.entries().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_entries_are_spread_evenly() {
        let mut index = Index::default();
        let mut rng = Rng::new(2);
        const N: usize = 3000;
        for handle in 1..=N as u32 {
            index.insert(rng.next_u64() as u32, handle);
        }
        let mut found = Vec::new();
        let mut hits = vec![0u32; N];
        for _ in 0..N * 100 {
            index.random_some(1, &mut rng, &mut found);
            let (_, handle) = found.pop().expect("not empty");
            hits[handle as usize - 1] += 1;
        }
        // Poisson around 100: ten standard deviations either way.
        assert!(hits.iter().all(|&n| n > 20 && n < 200));
        hits.fill(0);
        let mut all = 0;
        while all < N * 100 {
            found.clear();
            index.random_buckets(7, &mut rng, &mut found);
            assert!((7..7 + PLACES).contains(&found.len()));
            for &(_, handle) in &found {
                hits[handle as usize - 1] += 1;
            }
            all += found.len();
        }
        assert!(hits.iter().all(|&n| n > 20 && n < 200));
    }
}
