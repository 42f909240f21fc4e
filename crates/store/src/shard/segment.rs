//! A piece of the index: a small hash table whose order of buckets follows
//! the order of hashes, without tombstones.
//!
//! Invariants:
//! 1. An entry lies in its home bucket, or in a later one (wrapping around the end)
//!    if every bucket from its home to there was full; so a search ends at the
//!    first bucket with a free place.
//! 2. A bucket's entries are its first ones: it is full if the last place is used.
//! 3. There is always a bucket with a free place (the load is bounded).

/// Places of a bucket.
pub(super) const PLACES: usize = 8;

/// One cache line: eight hashes, compared in one step, and their handles. Handle 0 marks a free place.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    hashes: [u32; PLACES],
    handles: [u32; PLACES],
}

const EMPTY: Bucket = Bucket {
    hashes: [0; PLACES],
    handles: [0; PLACES],
};

impl Bucket {
    /// Bit `place + 1` is set if the hash matches, in a form that compilers turn into two vector comparisons (using
    /// bit 0 would prevent that). A free place may match hash 0; its handle distinguishes it.
    #[inline(always)]
    fn matches(&self, hash: u32) -> u32 {
        let mut bits = [0u32; PLACES];
        for (place, bit) in bits.iter_mut().enumerate() {
            *bit = if self.hashes[place] == hash {
                2 << place
            } else {
                0
            };
        }
        bits.iter().fold(0, |all, bit| all | bit)
    }

    fn find(&self, hash: u32, is_it: &mut impl FnMut(u32) -> bool) -> Option<(usize, u32)> {
        let mut matches = self.matches(hash);
        while matches != 0 {
            let place = first_place(matches);
            let handle = self.handles[place];
            if handle != 0 && is_it(handle) {
                return Some((place, handle));
            }
            matches &= matches - 1;
        }
        None
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.handles[PLACES - 1] != 0
    }

    #[inline]
    fn len(&self) -> usize {
        self.handles.iter().map(|&h| usize::from(h != 0)).sum()
    }

    fn entries(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pairs = self.hashes.iter().zip(&self.handles);
        pairs.map(|(&a, &b)| (a, b)).take_while(|e| e.1 != 0)
    }
}

/// Any place if nothing matches.
#[inline(always)]
fn first_place(matches: u32) -> usize {
    (matches.trailing_zeros() as usize).wrapping_sub(1) % PLACES
}

/// Buckets of a chunk, and chunks of a segment. Segments allocate buckets in chunks of one size (except the last), so
/// that the chunks that a segment frees when it grows fit the next one that grows: with another size for each step,
/// an allocator would retain pages that are nearly free.
const CHUNK_BITS: u32 = 5;
const CHUNKS: usize = 8;

/// The position of an entry in its segment: bucket and place in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) u32);

impl Place {
    #[inline(always)]
    fn new(bucket: usize, place: usize) -> Self {
        Self((bucket * PLACES + place) as u32)
    }

    #[inline(always)]
    fn bucket(self) -> usize {
        self.0 as usize / PLACES
    }

    #[inline(always)]
    fn place(self) -> usize {
        self.0 as usize % PLACES
    }
}

/// The table of all hashes that begin with the same `depth` bits.
#[derive(Debug)]
pub(super) struct Segment {
    /// Empty after the last bucket.
    chunks: [Box<[Bucket]>; CHUNKS],
    /// Buckets in all chunks.
    count: u32,
    len: u32,
    depth: u8,
    /// Bits of a bucket's number that count within a chunk.
    chunk_bits: u8,
}

impl Segment {
    /// Sizes are those of quarter steps: at most eight quarters of a power
    /// of two, so that they fill at most eight chunks.
    pub(super) fn new(depth: u32, count: usize) -> Self {
        let quarter = count.max(1).ilog2().saturating_sub(2);
        let chunk_bits = quarter.max(CHUNK_BITS);
        let mut left = count;
        let chunks = std::array::from_fn(|_| {
            let take = left.min(1 << chunk_bits);
            left -= take;
            vec![EMPTY; take].into_boxed_slice()
        });
        debug_assert_eq!(left, 0);
        Self {
            chunks,
            count: count as u32,
            len: 0,
            depth: depth as u8,
            chunk_bits: chunk_bits as u8,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn depth(&self) -> u32 {
        u32::from(self.depth)
    }

    pub(super) fn buckets(&self) -> usize {
        self.count as usize
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets() * size_of::<Bucket>()
    }

    #[inline]
    fn bucket(&self, at: usize) -> &Bucket {
        let chunk = &self.chunks[(at >> self.chunk_bits) % CHUNKS];
        &chunk[at & ((1 << self.chunk_bits) - 1)]
    }

    #[inline]
    fn bucket_mut(&mut self, at: usize) -> &mut Bucket {
        let chunk = &mut self.chunks[(at >> self.chunk_bits) % CHUNKS];
        &mut chunk[at & ((1 << self.chunk_bits) - 1)]
    }

    fn iter(&self) -> impl Iterator<Item = &Bucket> {
        self.chunks.iter().flatten()
    }

    /// The bits of the hash below the segment's prefix, scaled to buckets.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        let below = u64::from(hash << self.depth);
        ((below * u64::from(self.count)) >> 32) as usize
    }

    /// The smallest hash whose home is `bucket`; more than 32 bits if no such hash exists. `prefix` is the segment's
    /// first hash.
    pub(super) fn first_hash(&self, prefix: u32, bucket: usize) -> u64 {
        let scaled = ((bucket as u64) << 32).div_ceil(u64::from(self.count));
        u64::from(prefix) + scaled.div_ceil(1 << self.depth)
    }

    #[inline]
    fn next(&self, bucket: usize) -> usize {
        if bucket + 1 == self.count as usize {
            0
        } else {
            bucket + 1
        }
    }

    /// The handle of the first matching place of the home bucket, without a branch on the loaded data; 0 or a wrong
    /// handle if there is no match.
    #[inline]
    pub(super) fn candidate(&self, hash: u32) -> u32 {
        let bucket = self.bucket(self.home(hash));
        bucket.handles[first_place(bucket.matches(hash))]
    }

    /// The first match in the home bucket, where nearly every entry is, and whether later buckets may have others:
    /// handle 0 and `false` mean that there is none.
    #[inline(always)]
    pub(super) fn probe(&self, hash: u32) -> (Place, u32, bool) {
        let at = self.home(hash);
        let bucket = self.bucket(at);
        let matches = bucket.matches(hash);
        let place = first_place(matches);
        let handle = if matches == 0 {
            0
        } else {
            bucket.handles[place]
        };
        (Place::new(at, place), handle, bucket.is_full())
    }

    /// The first entry with this hash whose handle `is_it` accepts.
    pub(super) fn find(
        &self,
        hash: u32,
        mut is_it: impl FnMut(u32) -> bool,
    ) -> Option<(Place, u32)> {
        let mut at = self.home(hash);
        loop {
            let bucket = self.bucket(at);
            if let Some((place, handle)) = bucket.find(hash, &mut is_it) {
                return Some((Place::new(at, place), handle));
            }
            if !bucket.is_full() {
                return None;
            }
            at = self.next(at);
        }
    }

    #[inline]
    pub(super) fn set_handle(&mut self, at: Place, handle: u32) {
        self.bucket_mut(at.bucket()).handles[at.place()] = handle;
    }

    /// The caller keeps invariant 3.
    #[inline]
    pub(super) fn insert(&mut self, hash: u32, handle: u32) {
        let mut at = self.home(hash);
        while self.bucket(at).is_full() {
            at = self.next(at);
        }
        let bucket = self.bucket_mut(at);
        let place = bucket.len() % PLACES;
        bucket.hashes[place] = hash;
        bucket.handles[place] = handle;
        self.len += 1;
    }

    /// Takes an entry out and closes the gap with a later entry that was
    /// pushed past this bucket, as long as there is one (invariant 1).
    pub(super) fn remove(&mut self, at: Place) {
        self.len -= 1;
        let mut gap = at;
        loop {
            let bucket = self.bucket_mut(gap.bucket());
            let was_full = bucket.is_full();
            let last = bucket.len() - 1;
            let place = gap.place();
            bucket.hashes[place] = bucket.hashes[last];
            bucket.handles[place] = bucket.handles[last];
            bucket.hashes[last] = 0;
            bucket.handles[last] = 0;
            if !was_full {
                return;
            }
            let Some(follower) = self.follower(gap.bucket()) else {
                return;
            };
            let from = self.bucket(follower.bucket());
            let hash = from.hashes[follower.place()];
            let handle = from.handles[follower.place()];
            let bucket = self.bucket_mut(gap.bucket());
            bucket.hashes[last] = hash;
            bucket.handles[last] = handle;
            gap = follower;
        }
    }

    /// The nearest later entry whose home is at or before `bucket`, whose last place has just become free.
    fn follower(&self, bucket: usize) -> Option<Place> {
        let n = self.buckets();
        let mut at = bucket;
        let mut distance = 0;
        loop {
            at = self.next(at);
            distance += 1;
            let entries = self.bucket(at).entries();
            for (place, (hash, _)) in entries.enumerate() {
                let pushed = (at + n - self.home(hash)) % n;
                if pushed >= distance {
                    return Some(Place::new(at, place));
                }
            }
            if !self.bucket(at).is_full() {
                return None;
            }
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.iter().flat_map(Bucket::entries)
    }

    /// Appends to `out` the entries whose hash is at least `from`, by home bucket, until `out` has `count` of them.
    /// Returns the first home bucket that was not visited, and subtracts the number of examined buckets from `looks`.
    pub(super) fn collect(
        &self,
        from: u32,
        count: usize,
        looks: &mut usize,
        out: &mut Vec<(u32, u32)>,
    ) -> usize {
        let n = self.buckets();
        let mut at = self.home(from);
        loop {
            *looks = looks.saturating_sub(1);
            let bucket = self.bucket(at);
            // Entries with a later home wrapped around the end.
            let own = bucket.entries().filter(|e| self.home(e.0) <= at);
            out.extend(own.filter(|e| e.0 >= from));
            at += 1;
            if at == n {
                break;
            }
            if !bucket.is_full() && (out.len() >= count || *looks == 0) {
                return at;
            }
        }
        let mut full = self.bucket(n - 1).is_full();
        for (at, bucket) in self.iter().enumerate() {
            if !full {
                break;
            }
            let pushed = bucket.entries().filter(|e| self.home(e.0) > at);
            out.extend(pushed.filter(|e| e.0 >= from));
            full = bucket.is_full();
        }
        n
    }

    /// The entries in a bucket, whatever their home.
    pub(super) fn entries_in(&self, bucket: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.bucket(bucket).entries()
    }

    /// The entry at a place, which may be free.
    pub(super) fn at(&self, bucket: usize, place: usize) -> (u32, u32) {
        let bucket = self.bucket(bucket);
        (bucket.hashes[place], bucket.handles[place])
    }

    /// Asserts the invariants above; `prefix` is the segment's first hash.
    pub(super) fn check(&self, prefix: u32) {
        let n = self.buckets();
        assert!(self.iter().any(|b| !b.is_full()), "no free place");
        let mut count = 0;
        for (at, bucket) in self.iter().enumerate() {
            assert!(bucket.handles[bucket.len()..].iter().all(|&h| h == 0));
            for (hash, _) in bucket.entries() {
                count += 1;
                let same = (u64::from(hash ^ prefix)) >> (32 - self.depth) == 0;
                assert!(same, "the hash belongs to another segment");
                let mut on_the_way = self.home(hash);
                while on_the_way != at {
                    assert!(self.bucket(on_the_way).is_full(), "gap before entry");
                    on_the_way = (on_the_way + 1) % n;
                }
            }
        }
        assert_eq!(count, self.len());
    }
}

const _: () = assert!(size_of::<Bucket>() == 64);
