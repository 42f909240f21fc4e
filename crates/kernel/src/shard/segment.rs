//! A piece of the index: a small hash table whose order of buckets follows
//! the order of hashes, without tombstones.
//!
//! Invariants:
//! 1. An entry lies in its home bucket, or in a later one (around the end)
//!    where every bucket from its home on was full; so a search ends at the
//!    first bucket with a free place.
//! 2. A bucket's entries are its first ones: it is full where the last place is.
//! 3. There is always a bucket with a free place (the load is bounded).

/// Places of a bucket.
pub(super) const PLACES: usize = 8;

/// One cache line: eight hashes, compared in one go, and their handles.
/// Handle 0 is a free place.
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
    /// A byte for each place, 1 where the hash is the one looked for. A free
    /// place may match hash 0; its handle tells.
    #[inline]
    fn matches(&self, hash: u32) -> u64 {
        let mut equal = [0u8; PLACES];
        for (byte, &h) in equal.iter_mut().zip(&self.hashes) {
            *byte = u8::from(h == hash);
        }
        u64::from_le_bytes(equal)
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

/// Where an entry lies in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) bucket: u32,
    pub(super) place: u32,
}

/// The table of all hashes that begin with the same `depth` bits.
#[derive(Debug)]
pub(super) struct Segment {
    buckets: Box<[Bucket]>,
    len: u32,
    depth: u32,
}

impl Segment {
    pub(super) fn new(depth: u32, buckets: usize) -> Self {
        Self {
            buckets: vec![EMPTY; buckets].into_boxed_slice(),
            len: 0,
            depth,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<Bucket>()
    }

    /// The bits of the hash below the segment's prefix, scaled to buckets.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        let below = u64::from(hash << self.depth);
        ((below * self.buckets.len() as u64) >> 32) as usize
    }

    /// The smallest hash whose home is `bucket`; beyond 32 bits where no
    /// later hash exists. `prefix` is the segment's first hash.
    pub(super) fn first_hash(&self, prefix: u32, bucket: usize) -> u64 {
        let scaled = ((bucket as u64) << 32).div_ceil(self.buckets.len() as u64);
        u64::from(prefix) + scaled.div_ceil(1 << self.depth)
    }

    #[inline]
    fn next(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets.len() {
            0
        } else {
            bucket + 1
        }
    }

    /// The handle of the first matching place of the home bucket, without a
    /// branch on what was loaded; 0 or a wrong one where there is none.
    #[inline]
    pub(super) fn candidate(&self, hash: u32) -> u32 {
        let bucket = &self.buckets[self.home(hash)];
        let place = (bucket.matches(hash).trailing_zeros() / 8) as usize;
        bucket.handles[place % PLACES]
    }

    #[inline]
    pub(super) fn find(
        &self,
        hash: u32,
        mut is_it: impl FnMut(u32) -> bool,
    ) -> Option<(Place, u32)> {
        let mut at = self.home(hash);
        loop {
            let bucket = &self.buckets[at];
            let mut matches = bucket.matches(hash);
            while matches != 0 {
                let place = (matches.trailing_zeros() / 8) as usize % PLACES;
                let handle = bucket.handles[place];
                if handle != 0 && is_it(handle) {
                    let found = Place {
                        bucket: at as u32,
                        place: place as u32,
                    };
                    return Some((found, handle));
                }
                matches &= matches - 1;
            }
            if !bucket.is_full() {
                return None;
            }
            at = self.next(at);
        }
    }

    #[inline]
    pub(super) fn set_handle(&mut self, at: Place, handle: u32) {
        self.buckets[at.bucket as usize].handles[at.place as usize] = handle;
    }

    /// The caller keeps invariant 3.
    #[inline]
    pub(super) fn insert(&mut self, hash: u32, handle: u32) {
        let mut at = self.home(hash);
        while self.buckets[at].is_full() {
            at = self.next(at);
        }
        let bucket = &mut self.buckets[at];
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
            let bucket = &mut self.buckets[gap.bucket as usize];
            let was_full = bucket.is_full();
            let last = bucket.len() - 1;
            let place = gap.place as usize;
            bucket.hashes[place] = bucket.hashes[last];
            bucket.handles[place] = bucket.handles[last];
            bucket.hashes[last] = 0;
            bucket.handles[last] = 0;
            if !was_full {
                return;
            }
            let Some(follower) = self.follower(gap.bucket as usize) else {
                return;
            };
            let from = &self.buckets[follower.bucket as usize];
            let hash = from.hashes[follower.place as usize];
            let handle = from.handles[follower.place as usize];
            let bucket = &mut self.buckets[gap.bucket as usize];
            bucket.hashes[last] = hash;
            bucket.handles[last] = handle;
            gap = follower;
        }
    }

    /// The nearest later entry whose home is at or before `bucket`, which has
    /// just got a free place at its end.
    fn follower(&self, bucket: usize) -> Option<Place> {
        let n = self.buckets.len();
        let mut at = bucket;
        let mut distance = 0;
        loop {
            at = self.next(at);
            distance += 1;
            let entries = self.buckets[at].entries();
            for (place, (hash, _)) in entries.enumerate() {
                let pushed = (at + n - self.home(hash)) % n;
                if pushed >= distance {
                    return Some(Place {
                        bucket: at as u32,
                        place: place as u32,
                    });
                }
            }
            if !self.buckets[at].is_full() {
                return None;
            }
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.buckets.iter().flat_map(Bucket::entries)
    }

    /// Appends to `out` the entries whose hash is at least `from`, bucket by
    /// bucket of homes, until there are `count` of them in `out`. Returns the
    /// first home bucket that was left out; the number of buckets looked at is
    /// taken from `looks`.
    pub(super) fn collect(
        &self,
        from: u32,
        count: usize,
        looks: &mut usize,
        out: &mut Vec<(u32, u32)>,
    ) -> usize {
        let n = self.buckets.len();
        let mut at = self.home(from);
        loop {
            *looks = looks.saturating_sub(1);
            let bucket = &self.buckets[at];
            // Entries with a later home were pushed around the end.
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
        let mut full = self.buckets[n - 1].is_full();
        for (at, bucket) in self.buckets.iter().enumerate() {
            if !full {
                break;
            }
            let pushed = bucket.entries().filter(|e| self.home(e.0) > at);
            out.extend(pushed.filter(|e| e.0 >= from));
            full = bucket.is_full();
        }
        n
    }

    /// The entry at a place, which may be free.
    pub(super) fn at(&self, bucket: usize, place: usize) -> (u32, u32) {
        let bucket = &self.buckets[bucket];
        (bucket.hashes[place], bucket.handles[place])
    }

    /// Asserts the invariants above; `prefix` is the segment's first hash.
    pub(super) fn check(&self, prefix: u32) {
        let n = self.buckets.len();
        assert!(self.buckets.iter().any(|b| !b.is_full()), "no free place");
        let mut count = 0;
        for (at, bucket) in self.buckets.iter().enumerate() {
            assert!(bucket.handles[bucket.len()..].iter().all(|&h| h == 0));
            for (hash, _) in bucket.entries() {
                count += 1;
                let same = (u64::from(hash ^ prefix)) >> (32 - self.depth) == 0;
                assert!(same, "the hash belongs to another segment");
                let mut on_the_way = self.home(hash);
                while on_the_way != at {
                    assert!(self.buckets[on_the_way].is_full(), "gap before entry");
                    on_the_way = (on_the_way + 1) % n;
                }
            }
        }
        assert_eq!(count, self.len());
    }
}

const _: () = assert!(size_of::<Bucket>() == 64);
