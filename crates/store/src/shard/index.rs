//! From hash to record: extendible hashing over 32-bit hashes.
//!
//! The directory has an entry for every value of the top `depth` bits of a hash and names the segment that holds such
//! hashes. A segment grows in steps of a quarter of a power of two, so that memory follows the number of keys
//! smoothly; at [`SPLIT`] buckets it is split in two instead. Each step moves the entries of one segment by their
//! stored hashes: no operation moves more than those of two full segments, and none reads a record. Only the directory is
//! copied whole when it doubles, four bytes for about thirteen hundred keys.
//!
//! Buckets are in the order of hashes, so that a cursor, which is a hash, stays valid after any growth or shrink (see
//! [`Index::collect`]).

use super::segment::{PLACES, Place, Segment};
use super::table::Table;

/// Buckets of a segment at which it is split rather than grown.
pub(super) const SPLIT: usize = 256;

/// Bits of the hash the directory may use; the rest orders the buckets of a
/// segment. Segments at this depth grow beyond [`SPLIT`] instead: 2^24 full
/// segments hold more than the 2^32 records a database can have.
const MAX_DEPTH: u32 = 24;

/// Buddies are merged when they have at most this many entries together: well below the number after a split, so that
/// splits and merges do not alternate.
const MERGE: usize = SPLIT * PLACES / 2;

/// The position of an entry: its segment, and the place in it. One word, because it is passed along the hottest path.
/// Any insertion or removal invalidates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position(u64);

impl Position {
    #[inline(always)]
    fn new(segment: u32, place: Place) -> Self {
        Self(u64::from(segment) << 32 | u64::from(place.0))
    }

    #[inline(always)]
    fn segment(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline(always)]
    fn place(self) -> Place {
        Place(self.0 as u32)
    }
}

/// The result of a first look at the home bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) position: Position,
    /// 0 if nothing matches in the home bucket.
    pub(super) handle: u32,
    /// Entries of this home may be in later buckets.
    pub(super) further: bool,
}

#[derive(Debug)]
pub(super) struct Index {
    /// 2^depth numbers of segments.
    directory: Vec<u32>,
    pub(super) depth: u32,
    /// 32 - depth.
    shift: u32,
    pub(super) segments: Table<Segment>,
    /// Segments without buckets, to be reused.
    free: Vec<u32>,
    /// How many segments have each depth.
    of_depth: [u32; MAX_DEPTH as usize + 1],
    len: usize,
    segment_bytes: usize,
    moved: u64,
}

impl Default for Index {
    fn default() -> Self {
        let first = Segment::new(0, 1);
        let segment_bytes = first.bytes();
        let mut segments = Table::default();
        segments.push(first);
        let mut of_depth = [0; MAX_DEPTH as usize + 1];
        of_depth[0] = 1;
        Self {
            directory: vec![0],
            depth: 0,
            shift: 32,
            segment_bytes,
            segments,
            free: Vec::new(),
            of_depth,
            len: 0,
            moved: 0,
        }
    }
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// All bytes the index has allocated.
    pub(super) fn bytes(&self) -> usize {
        self.segment_bytes
            + self.directory.capacity() * 4
            + self.segments.bytes()
            + self.free.capacity() * 4
    }

    /// Entries moved by growth and shrink so far.
    #[cfg(test)]
    pub(super) fn moved(&self) -> u64 {
        self.moved
    }

    #[inline]
    pub(super) fn segment_of(&self, hash: u32) -> u32 {
        self.directory[(u64::from(hash) >> self.shift) as usize]
    }

    /// The handle that most probably belongs to the hash, for warming caches: it may be wrong, and is 0 if the home
    /// bucket has no match.
    #[inline]
    pub(super) fn candidate(&self, hash: u32) -> u32 {
        self.segments[self.segment_of(hash) as usize].candidate(hash)
    }

    /// The first entry with this hash in its home bucket. If it is not the right one, [`Index::find`] has to examine
    /// all of them.
    #[inline(always)]
    pub(super) fn probe(&self, hash: u32) -> Probe {
        let segment = self.segment_of(hash);
        let (place, handle, further) = self.segments[segment as usize].probe(hash);
        Probe {
            position: Position::new(segment, place),
            handle,
            further,
        }
    }

    /// The first entry with this hash whose handle `is_it` accepts.
    pub(super) fn find(
        &self,
        hash: u32,
        is_it: impl FnMut(u32) -> bool,
    ) -> Option<(Position, u32)> {
        let segment = self.segment_of(hash);
        let (place, handle) = self.segments[segment as usize].find(hash, is_it)?;
        Some((Position::new(segment, place), handle))
    }

    #[inline]
    pub(super) fn set_handle(&mut self, at: Position, handle: u32) {
        self.segments[at.segment()].set_handle(at.place(), handle);
    }

    /// Adds an entry. The caller has checked that the key is absent.
    #[inline]
    pub(super) fn insert(&mut self, hash: u32, handle: u32) {
        debug_assert_ne!(handle, 0, "0 means a free place");
        let mut number = self.segment_of(hash) as usize;
        let segment = &self.segments[number];
        if segment.len() >= most(segment.buckets()) {
            self.make_room(number, hash);
            number = self.segment_of(hash) as usize;
        }
        self.segments[number].insert(hash, handle);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, at: Position, hash: u32) {
        let segment = &mut self.segments[at.segment()];
        segment.remove(at.place());
        self.len -= 1;
        // Below 55 %; growth leaves a segment that is not small at least 60 % full.
        if segment.len() * 20 < segment.buckets() * PLACES * 11 {
            self.tighten(at.segment(), hash);
        }
    }

    #[cold]
    fn make_room(&mut self, number: usize, hash: u32) {
        loop {
            let segment = &self.segments[number];
            let (len, buckets) = (segment.len(), segment.buckets());
            if buckets < SPLIT || segment.depth() == MAX_DEPTH {
                self.rebuild(number, larger(buckets));
                return;
            }
            self.split(number, hash);
            // All entries may have moved to the half that is still full.
            let half = &self.segments[self.segment_of(hash) as usize];
            if half.len() < len || half.len() < most(half.buckets()) {
                return;
            }
        }
    }

    /// Rebuilds a segment with `buckets` buckets.
    fn rebuild(&mut self, number: usize, buckets: usize) {
        let old = &self.segments[number];
        let mut new = Segment::new(old.depth(), buckets);
        for (hash, handle) in old.entries() {
            new.insert(hash, handle);
        }
        self.moved += new.len() as u64;
        self.put(number, new);
    }

    fn put(&mut self, number: usize, segment: Segment) {
        self.segment_bytes += segment.bytes();
        self.segment_bytes -= self.segments[number].bytes();
        self.segments[number] = segment;
    }

    fn split(&mut self, number: usize, hash: u32) {
        let depth = self.segments[number].depth();
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|&s| [s, s]).collect();
            self.depth += 1;
            self.shift -= 1;
        }
        let old = &self.segments[number];
        let bit = 1 << (31 - depth);
        let upper = old.entries().filter(|e| e.0 & bit != 0).count();
        let mut low = Segment::new(depth + 1, fit(old.len() - upper));
        let mut high = Segment::new(depth + 1, fit(upper));
        for (hash, handle) in old.entries() {
            let half = if hash & bit == 0 { &mut low } else { &mut high };
            half.insert(hash, handle);
        }
        self.moved += old.len() as u64;
        self.put(number, low);
        self.segment_bytes += high.bytes();
        let new = match self.free.pop() {
            Some(new) => {
                self.segments[new as usize] = high;
                new
            }
            None => self.segments.push(high) as u32,
        };
        let prefix = hash & prefix_mask(depth) | bit;
        self.direct(prefix, depth + 1, new);
        self.of_depth[depth as usize] -= 1;
        self.of_depth[depth as usize + 1] += 2;
    }

    /// Points all directory entries of a prefix to a segment.
    fn direct(&mut self, prefix: u32, depth: u32, segment: u32) {
        let first = (u64::from(prefix) >> self.shift) as usize;
        let count = 1 << (self.depth - depth);
        self.directory[first..first + count].fill(segment);
    }

    /// Shrinks a segment of low load, and merges it with its buddy while both have few entries.
    #[cold]
    fn tighten(&mut self, number: usize, hash: u32) {
        let segment = &self.segments[number];
        let target = fit(segment.len());
        if target >= segment.buckets() {
            return;
        }
        if !self.merge(number, hash) {
            self.rebuild(number, target);
            return;
        }
        loop {
            let number = self.segment_of(hash) as usize;
            if !self.merge(number, hash) {
                break;
            }
        }
        while self.depth > 0 && self.of_depth[self.depth as usize] == 0 {
            self.directory = self.directory.iter().copied().step_by(2).collect();
            self.depth -= 1;
            self.shift += 1;
        }
    }

    /// Merges a segment with the one whose prefix differs in the last bit.
    fn merge(&mut self, number: usize, hash: u32) -> bool {
        let depth = self.segments[number].depth();
        if depth == 0 {
            return false;
        }
        let buddy = self.segment_of(hash ^ 1 << (32 - depth)) as usize;
        let together = self.segments[number].len() + self.segments[buddy].len();
        if self.segments[buddy].depth() != depth || together > MERGE {
            return false;
        }
        let mut whole = Segment::new(depth - 1, fit(together));
        let (a, b) = (&self.segments[number], &self.segments[buddy]);
        for (hash, handle) in a.entries().chain(b.entries()) {
            whole.insert(hash, handle);
        }
        self.moved += together as u64;
        self.put(number, whole);
        self.put(buddy, Segment::new(0, 0));
        self.free.push(buddy as u32);
        self.direct(hash & prefix_mask(depth - 1), depth - 1, number as u32);
        self.of_depth[depth as usize] -= 2;
        self.of_depth[depth as usize - 1] += 1;
        true
    }

    /// All entries, in no particular order; for checks.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.segments.iter().flat_map(Segment::entries)
    }

    /// Asserts every invariant of the index.
    pub(super) fn check(&self) {
        assert_eq!(self.directory.len(), 1 << self.depth);
        assert_eq!(self.shift, 32 - self.depth);
        let (mut at, mut live, mut len) = (0u64, 0, 0);
        let mut of_depth = [0; MAX_DEPTH as usize + 1];
        while at < 1 << 32 {
            let number = self.segment_of(at as u32);
            let segment = &self.segments[number as usize];
            let first = (at >> self.shift) as usize;
            let count = 1 << (self.depth - segment.depth());
            assert_eq!(first % count, 0, "a segment starts where its prefix does");
            let named = &self.directory[first..first + count];
            assert!(named.iter().all(|&n| n == number));
            segment.check(at as u32);
            assert!(segment.len() <= most(segment.buckets()));
            of_depth[segment.depth() as usize] += 1;
            live += 1;
            len += segment.len();
            at += 1 << (32 - segment.depth());
        }
        assert_eq!(live + self.free.len(), self.segments.len());
        assert_eq!(len, self.len);
        assert_eq!(of_depth, self.of_depth);
        let bytes: usize = self.segments.iter().map(Segment::bytes).sum();
        assert_eq!(bytes, self.segment_bytes);
    }
}

pub(super) fn prefix_mask(depth: u32) -> u32 {
    !(u64::from(u32::MAX) >> depth) as u32
}

/// The most entries of a segment: 84 %, and never all places.
#[inline]
fn most(buckets: usize) -> usize {
    buckets * PLACES * 27 / 32
}

/// Sizes grow in quarters of a power of two, like the classes of common allocators.
fn larger(buckets: usize) -> usize {
    let step = (1 << buckets.ilog2()) / 4;
    buckets + step.max(1)
}

/// Buckets for this many entries with some room to grow: at most 70 % full.
fn fit(len: usize) -> usize {
    let needed = (len * 10).div_ceil(PLACES * 7).max(1);
    let step = ((1 << needed.ilog2()) / 4).max(1);
    needed.div_ceil(step) * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_base::rng::Rng;

    #[test]
    fn sizes_go_in_quarters() {
        let mut sizes = vec![1];
        while sizes[sizes.len() - 1] < 256 {
            sizes.push(larger(sizes[sizes.len() - 1]));
        }
        let first: Vec<_> = sizes[..14].to_vec();
        assert_eq!(first, [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24]);
        for len in 0..1400 {
            let buckets = fit(len);
            assert!(sizes.contains(&buckets), "{len} entries in {buckets}");
            assert!(len < most(buckets), "a fitted segment takes one more");
        }
    }

    /// No operation moves more entries than this (while `MAX_DEPTH` is not reached).
    const MOST_MOVED: u64 = 2 * (SPLIT * PLACES) as u64;

    #[test]
    fn a_growing_and_shrinking_index_moves_few_entries_at_a_time() {
        let mut index = Index::default();
        let mut rng = Rng::new(1);
        let hashes: Vec<u32> = (0..200_000).map(|_| rng.next_u64() as u32).collect();
        for (i, &hash) in hashes.iter().enumerate() {
            let before = index.moved();
            index.insert(hash, i as u32 + 1);
            assert!(index.moved() - before <= MOST_MOVED);
        }
        index.check();
        assert!(index.depth >= 6 && index.bytes() < hashes.len() * 13);
        let per_key = index.moved() / hashes.len() as u64;
        assert!(per_key <= 8, "{per_key} moves a key");
        for (i, &hash) in hashes.iter().enumerate() {
            let (at, _) = index.find(hash, |h| h == i as u32 + 1).expect("inserted");
            let before = index.moved();
            index.remove(at, hash);
            assert!(index.moved() - before <= MOST_MOVED);
            if i % 20_000 == 0 {
                index.check();
                let len = index.len();
                assert!(index.bytes() < len * 20 + 4096, "{len} left");
            }
        }
        index.check();
        assert_eq!((index.len(), index.depth), (0, 0));
    }

    #[test]
    fn equal_hashes_are_kept_apart_by_handle() {
        let mut index = Index::default();
        for handle in 1..=5000 {
            index.insert(0x1234_5678, handle);
        }
        index.check();
        let (at, _) = index.find(0x1234_5678, |h| h == 77).expect("inserted");
        index.remove(at, 0x1234_5678);
        assert!(index.find(0x1234_5678, |h| h == 77).is_none());
        assert_eq!(index.len(), 4999);
        index.check();
    }
}
