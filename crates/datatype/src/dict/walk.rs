//! Reading all elements, at once or step by step, and drawing one at random.

use super::Dict;
use super::directory::Part;
use super::hash::{BELOW_POSITION, MAX_DEPTH, POSITIONS, position_of, tag_of};
use super::segment::Segment;
use rufous_base::rng::Rng;

/// Key, value, and what lies beside it.
pub(super) type Beside<'a> = (&'a [u8], &'a [u8], &'a [u8]);

impl Dict {
    /// All keys and values, in the order of hashes.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        let all = self.segments_from_start().flat_map(Segment::iter);
        all.map(|element| self.shown(element))
    }

    fn segments_from_start(&self) -> impl Iterator<Item = &Segment> + '_ {
        self.root.from(0).flat_map(|page| page.from(0))
    }

    /// The number of segments: the pieces in which one may walk a table that stays as it is, such as a clone.
    pub fn segments(&self) -> usize {
        self.root.parts().iter().map(|p| p.parts().len()).sum()
    }

    /// The elements of one of the [`Dict::segments`]; none beyond the last. The pieces stand in no order.
    pub fn segment(&self, index: usize) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        self.kept(index).map(|element| self.shown(element))
    }

    /// The same, with what lies beside their values.
    pub fn segment_beside(&self, index: usize) -> impl Iterator<Item = Beside<'_>> + '_ {
        self.kept(index).map(|(key, kept)| {
            let (value, beside) = self.parted(kept);
            (key, value, beside)
        })
    }

    fn kept(&self, mut index: usize) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        let mut found = None;
        for page in self.root.parts() {
            found = page.parts().get(index);
            if found.is_some() {
                break;
            }
            index -= page.parts().len();
        }
        found.into_iter().flat_map(|segment| segment.iter())
    }

    /// Shows about `count` elements, in the order of hashes, from the cursor on: first 0, then the cursor that the
    /// last call returned, until a call returns 0. Cursors are below 2^48.
    ///
    /// Whatever is added or removed in between, an element that is present from the first call to the last is shown
    /// exactly once. Elements whose hashes begin with the same bits are shown together, whatever `count` is.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> u64 {
        if cursor >= POSITIONS {
            return 0;
        }
        let mut start = cursor << BELOW_POSITION;
        let mut seen = 0;
        let mut end = 0;
        for page in self.root.from(start) {
            for segment in page.from(start) {
                if seen >= count.max(1) {
                    return end;
                }
                let depth = segment.depth();
                let first = tag_of(start, depth);
                let mut previous = None;
                let slots = segment.slots();
                for (slot, tag, _) in slots.iter_from(slots.lower_bound(first)) {
                    if previous != Some(tag) && seen >= count.max(1) {
                        return end;
                    }
                    let (key, value) = self.shown(segment.element(slot));
                    if previous != Some(tag) || tag == first {
                        let hash = self.hashing.hash(key);
                        if hash < start {
                            continue;
                        }
                        end = position_after(hash, depth);
                    }
                    previous = Some(tag);
                    visit(key, value);
                    seen += 1;
                }
                // All further segments are to be shown from their beginnings.
                start = 0;
            }
        }
        0
    }

    /// Any element, each with the same chance.
    pub fn random(&self, rng: &mut Rng) -> Option<(&[u8], &[u8])> {
        if self.is_empty() {
            return None;
        }
        let (page, nth) = self.root.nth(rng.below(self.len as u64))?;
        let (segment, _) = page.nth(nth)?;
        // Neither sparse nor empty: a few attempts do.
        let slots = segment.slots();
        loop {
            let slot = rng.below(slots.capacity() as u64) as usize;
            if !slots.is_empty_at(slot) {
                return Some(self.shown(segment.element(slot)));
            }
        }
    }
}

/// The first position whose hashes have another tag than this one at this depth; 0 when there is none.
fn position_after(hash: u64, depth: u8) -> u64 {
    let below = MAX_DEPTH - depth;
    (((position_of(hash) >> below) + 1) << below) % POSITIONS
}
