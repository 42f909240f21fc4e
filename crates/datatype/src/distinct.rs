//! Whether the names in a pack are all different, in one pass over them: how
//! a small collection that comes from a file is looked through.

use crate::pack::Pack;
use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// Slots of the table on the stack.
const SLOTS: usize = 512;

/// The largest number of names for this number of slots.
const fn room(slots: usize) -> usize {
    slots / 2
}

/// The names seen so far.
pub(crate) struct Distinct<'a> {
    pack: Pack<'a>,
    /// Of an entry, the name.
    name: fn(&'a [u8]) -> &'a [u8],
    hashing: FixedState,
    small: [u32; SLOTS],
    /// Instead, where `small` has no room for all.
    large: Vec<u32>,
    left: usize,
}

impl<'a> Distinct<'a> {
    /// An empty table for a pack of at most `most` names. The author of the
    /// names must not know the seed, or might choose names
    /// of equal hashes.
    #[inline]
    pub(crate) fn new(
        pack: Pack<'a>,
        name: fn(&'a [u8]) -> &'a [u8],
        most: usize,
        seed: u64,
    ) -> Self {
        // A name takes a byte at least.
        let most = most.min(pack.0.len());
        let large = match most > room(SLOTS) {
            true => vec![0; (2 * most).next_power_of_two()],
            false => Vec::new(),
        };
        Self {
            pack,
            name,
            hashing: FixedState::with_seed(seed),
            small: [0; SLOTS],
            large,
            left: most,
        }
    }

    /// Whether the name is another than all before. It is that of the entry
    /// that begins at `offset`; offsets have 16 bits.
    #[inline]
    pub(crate) fn is_new(&mut self, offset: usize, name: &[u8]) -> bool {
        if self.left == 0 || offset >= usize::from(u16::MAX) {
            return false;
        }
        self.left -= 1;
        let mut hasher = self.hashing.build_hasher();
        hasher.write(name);
        let hash = hasher.finish();
        // In a slot the half above is of the hash, and the other leads to the name.
        let above = (hash >> 32) as u32 & 0xFFFF_0000;
        let slots = match self.large.is_empty() {
            true => &mut self.small[..],
            false => &mut self.large[..],
        };
        let mask = slots.len() - 1;
        let mut at = hash as usize & mask;
        // Half of the slots are empty, so that it ends.
        while slots[at] != 0 {
            let seen = slots[at];
            if seen & 0xFFFF_0000 == above {
                let offset = (seen & 0xFFFF) as usize - 1;
                if self.pack.entry_at(offset).map(self.name) == Some(name) {
                    return false;
                }
            }
            at = (at + 1) & mask;
        }
        slots[at] = above | (offset + 1) as u32;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_new_once_however_many_there_are() {
        for (most, differ) in [(10, 10), (128, 90), (256, 256), (257, 200), (9000, 5000)] {
            let names: Vec<Vec<u8>> = (0..most)
                .map(|n| format!("{}", n % differ).into_bytes())
                .collect();
            let mut bytes = Vec::new();
            names.iter().for_each(|name| pack::push(&mut bytes, name));
            let pack = Pack(&bytes);
            let (mut distinct, mut model) =
                (Distinct::new(pack, |name| name, most, 7), BTreeSet::new());
            for (offset, name) in pack.entries() {
                assert_eq!(distinct.is_new(offset, name), model.insert(name), "{most}");
            }
        }
    }

    #[test]
    fn there_are_no_more_than_there_is_room_for() {
        let bytes = [1, b'a', 0, 1, b'b', 1, b'c'];
        let mut distinct = Distinct::new(Pack(&bytes), |name| name, 3, 1);
        assert!(distinct.is_new(0, b"a") && distinct.is_new(2, b"") && distinct.is_new(3, b"b"));
        assert!(!distinct.is_new(5, b"c"), "three were announced");
    }
}
