//! Where some entries of a leaf begin, so that no look-up walks over all that come before.

use crate::pack::Pack;

/// How many entries lie between two marks when they are set.
const SPACING: usize = 16;
/// How many entries may lie between two marks before the marks are rebuilt.
const GAP: usize = 2 * SPACING;
/// Enough for a full leaf.
const MARKS: usize = 7;

/// An entry and where it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) index: usize,
    pub(super) offset: usize,
}

/// Some entries in order. Marks move with their entries; where one goes, its mark passes to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    len: u8,
    indices: [u8; MARKS],
    offsets: [u16; MARKS],
}

impl Marks {
    /// Marks for the `count` entries of a pack.
    pub(super) fn of(pack: Pack<'_>, count: usize) -> Self {
        let mut marks = Self::default();
        let mut mark = Mark {
            index: SPACING,
            offset: 0,
        };
        while mark.index < count && usize::from(marks.len) < MARKS {
            let Some(offset) = pack.skip(mark.offset, SPACING) else {
                break;
            };
            mark.offset = offset;
            marks.push(mark);
            mark.index += SPACING;
        }
        marks
    }

    fn push(&mut self, mark: Mark) {
        let at = usize::from(self.len);
        (self.indices[at], self.offsets[at]) = (mark.index as u8, mark.offset as u16);
        self.len += 1;
    }

    fn get(&self, at: usize) -> Mark {
        Mark {
            index: self.indices[at].into(),
            offset: self.offsets[at].into(),
        }
    }

    /// The last mark at or before entry `index`.
    #[inline]
    pub(super) fn before(&self, index: usize) -> Mark {
        let passed = self.indices[..self.len.into()]
            .iter()
            .filter(|&&other| usize::from(other) <= index)
            .count();
        passed
            .checked_sub(1)
            .map_or(Mark::default(), |at| self.get(at))
    }

    /// The last mark for which `holds`, which does for none after one for which it does not.
    #[inline]
    pub(super) fn last_where(&self, holds: impl Fn(Mark) -> bool) -> Mark {
        let (mut low, mut high) = (0, usize::from(self.len));
        while low < high {
            let middle = (low + high) / 2;
            if holds(self.get(middle)) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low.checked_sub(1)
            .map_or(Mark::default(), |at| self.get(at))
    }

    /// An entry of `size` bytes came to lie at `new`.
    pub(super) fn inserted(&mut self, new: Mark, size: usize) {
        for at in 0..usize::from(self.len) {
            if usize::from(self.indices[at]) >= new.index {
                self.indices[at] += 1;
                self.offsets[at] += size as u16;
            }
        }
        let last = usize::from(self.len)
            .checked_sub(1)
            .map_or(0, |at| usize::from(self.indices[at]));
        if new.index >= last + SPACING && usize::from(self.len) < MARKS {
            self.push(new);
        }
    }

    /// The entry of `size` bytes at `offset` went; `end` is where the last entry ends now.
    pub(super) fn removed(&mut self, offset: usize, size: usize, end: usize) {
        for at in 0..usize::from(self.len) {
            if usize::from(self.offsets[at]) > offset {
                self.indices[at] -= 1;
                self.offsets[at] -= size as u16;
            }
        }
        self.cut(end);
    }

    /// The entry at `offset` changed its size, and with it all entries together theirs, from `before` to `after`.
    pub(super) fn resized(&mut self, offset: usize, before: usize, after: usize) {
        for other in &mut self.offsets[..self.len.into()] {
            if usize::from(*other) > offset {
                *other = (usize::from(*other) + after - before) as u16;
            }
        }
    }

    /// No entry begins at or after `end` any more.
    pub(super) fn cut(&mut self, end: usize) {
        while let Some(last) = usize::from(self.len).checked_sub(1)
            && usize::from(self.offsets[last]) >= end
        {
            self.len -= 1;
        }
    }

    /// Whether entry `index` of `count` lies in a gap between marks so long that the marks should be rebuilt.
    pub(super) fn leave_gap_at(&self, index: usize, count: usize) -> bool {
        let indices = &self.indices[..self.len.into()];
        let passed = indices
            .iter()
            .filter(|&&other| usize::from(other) <= index)
            .count();
        let start = passed
            .checked_sub(1)
            .map_or(0, |at| usize::from(indices[at]));
        let end = indices.get(passed).map_or(count, |&next| next.into());
        end - start > GAP
    }

    /// What must hold for the `count` entries of a leaf.
    pub(super) fn check(&self, pack: Pack<'_>, count: usize) {
        let mut last = 0;
        for at in 0..usize::from(self.len) {
            let mark = self.get(at);
            assert!((last..count).contains(&mark.index), "a mark out of order");
            assert!(mark.index - last <= GAP, "a gap of marks");
            assert_eq!(
                pack.offset_of(mark.index),
                Some(mark.offset),
                "a mark beside its entry"
            );
            last = mark.index;
        }
        assert!(count - last <= GAP, "a gap of marks at the end");
    }
}
