//! Hashes of keys and what their bits are used for.
//!
//! ```text
//! bits 63..      as many as the depth of a segment: which segment
//!     the next 16: the tag, the place within the segment
//! bits 63..16    a position: SCAN's cursors count in them, and 48 bits fit the number types of all clients
//! ```

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use std::hash::Hasher;

/// With the tag's 16 bits, a segment at this depth tells positions apart.
pub(super) const MAX_DEPTH: u8 = 32;

/// How many bits of a hash a position leaves out.
pub(super) const BELOW_POSITION: u32 = 16;

/// Positions are below this.
pub(super) const POSITIONS: u64 = 1 << (u64::BITS - BELOW_POSITION);

#[derive(Clone, Debug)]
pub(super) struct Hashing {
    seed: SharedSeed,
    /// Lets a test make hashes collide.
    #[cfg(test)]
    pub(super) mask: u64,
}

impl Hashing {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed: SharedSeed::from_u64(seed),
            #[cfg(test)]
            mask: u64::MAX,
        }
    }

    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(0x44_69_63_74, &self.seed);
        hasher.write(key);
        let hash = hasher.finish();
        #[cfg(test)]
        let hash = hash & self.mask;
        hash
    }
}

#[inline]
pub(super) fn tag_of(hash: u64, depth: u8) -> u16 {
    (hash << depth >> 48) as u16
}

#[inline]
pub(super) fn position_of(hash: u64) -> u64 {
    hash >> BELOW_POSITION
}
