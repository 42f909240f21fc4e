//! Many byte strings in one buffer, as elements of a collection on its way in or out.

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

    /// Whether two of every `step`th item are equal. Sorting takes no hashes that someone could
    /// make collide.
    pub(super) fn has_duplicates(&self, step: usize) -> bool {
        let mut all: Vec<&[u8]> = self.iter().step_by(step).collect();
        all.sort_unstable();
        all.windows(2).any(|pair| pair[0] == pair[1])
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
