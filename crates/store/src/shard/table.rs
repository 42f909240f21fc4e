//! A growing array that never moves its elements (except the first few): with a plain vector, one insertion out of
//! millions would have to copy them all. An access costs one more load than a vector.

use std::ops::{Index, IndexMut};

/// Elements of a chunk.
const CHUNK: usize = 256;

#[derive(Debug)]
pub(super) struct Table<T> {
    /// All chunks but the last are full. The first one grows like a vector, so that a small table is small; later
    /// ones are allocated whole.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Returns the number of the new element.
    pub(super) fn push(&mut self, item: T) -> usize {
        let at = self.len();
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(item),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(item);
                self.chunks.push(chunk);
            }
            None => self.chunks.push(vec![item]),
        }
        at
    }

    pub(super) fn len(&self) -> usize {
        match self.chunks.last() {
            Some(last) => (self.chunks.len() - 1) * CHUNK + last.len(),
            None => 0,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// Bytes allocated, without memory that the elements own.
    pub(super) fn bytes(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::capacity);
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        (full + last) * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, at: usize) -> &T {
        &self.chunks[at / CHUNK][at % CHUNK]
    }
}

impl<T> IndexMut<usize> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks[at / CHUNK][at % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stay_where_they_are() {
        let mut table = Table::default();
        assert_eq!((table.len(), table.bytes()), (0, 0));
        let first: Vec<_> = (0..CHUNK).map(|i| table.push(i)).collect();
        assert!(first.iter().copied().eq(0..CHUNK));
        let place = std::ptr::from_ref(&table[5]);
        for i in CHUNK..CHUNK * 40 + 3 {
            assert_eq!(table.push(i), i);
        }
        assert_eq!(std::ptr::from_ref(&table[5]), place);
        assert_eq!(table.len(), CHUNK * 40 + 3);
        assert!(table.iter().copied().eq(0..table.len()));
        table[CHUNK * 3] = 0;
        assert_eq!(table[CHUNK * 3], 0);
        assert!(table.bytes() >= table.len() * size_of::<usize>());
    }
}
