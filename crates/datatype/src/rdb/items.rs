//! Many byte strings in one buffer, as elements of a collection on its way in or out.

use foldhash::fast::FixedState;
use std::hash::BuildHasher;

/// Strings in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Items {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Items {
    pub fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + DoubleEndedIterator {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Of a hash: fields with their values.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        let at = |index| self.get(index).unwrap_or_default();
        (0..self.len() / 2).map(move |pair| (at(pair * 2), at(pair * 2 + 1)))
    }

    /// What it has on the heap, nearly.
    pub(super) fn weight(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    /// Whether two of every `step`th item are equal. Only items of equal hashes are compared, so
    /// that most are read once; if many hashes collide, the items are sorted.
    pub(super) fn has_duplicates(&self, step: usize) -> bool {
        let hashes = self.iter().map(|item| FixedState::default().hash_one(item));
        let mut all: Vec<(u64, usize)> = hashes.zip(0..).step_by(step).collect();
        all.sort_unstable();
        let groups = all.chunk_by(|a, b| a.0 == b.0);
        groups.filter(|group| group.len() > 1).any(|group| {
            let mut items: Vec<_> = group.iter().map(|(_, index)| self.get(*index)).collect();
            items.sort_unstable();
            items.windows(2).any(|pair| pair[0] == pair[1])
        })
    }
}

impl<'a> FromIterator<&'a [u8]> for Items {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(items: I) -> Self {
        let mut all = Self::default();
        for item in items {
            all.push(item);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_among_many() {
        let numbers = |range: std::ops::Range<u32>| {
            let mut items = Items::default();
            for number in range {
                items.push(&number.to_le_bytes());
            }
            items
        };
        let mut items = numbers(0..10_000);
        assert!(!items.has_duplicates(1));
        items.push(&77u32.to_le_bytes());
        assert!(items.has_duplicates(1));
        // Fields at even places, 77 at an odd one.
        assert!(!items.has_duplicates(2));
        items.push(b"");
        items.push(&78u32.to_le_bytes());
        assert!(items.has_duplicates(2));
    }
}
