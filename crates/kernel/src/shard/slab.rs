//! Things too large for a record, numbered. Kept in chunks, so that it never
//! has to move what it already holds in order to grow.

const CHUNK: usize = 512;

/// A numbered store of `T` whose numbers are used again.
#[derive(Debug)]
pub(super) struct Slab<T> {
    chunks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, item: T) -> u32 {
        self.len += 1;
        if let Some(number) = self.free.pop() {
            *self.place(number) = Some(item);
            return number;
        }
        if self.chunks.last().is_none_or(|c| c.len() == CHUNK) {
            self.chunks.push(Vec::new());
        }
        let full = (self.chunks.len() - 1) * CHUNK;
        let last = self.chunks.last_mut().expect("pushed above");
        last.push(Some(item));
        (full + last.len() - 1) as u32
    }

    /// Numbers come from records of the same database, so they are valid.
    pub(super) fn get(&self, number: u32) -> &T {
        self.chunks[number as usize / CHUNK][number as usize % CHUNK]
            .as_ref()
            .expect("a record's number is in use")
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        self.place(number)
            .as_mut()
            .expect("a record's number is in use")
    }

    pub(super) fn remove(&mut self, number: u32) -> T {
        let item = self
            .place(number)
            .take()
            .expect("a record's number is in use");
        self.len -= 1;
        if self.len == 0 {
            *self = Self::default();
        } else {
            self.free.push(number);
        }
        item
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().flatten()
    }

    /// Bytes of the slab itself, without what its items own.
    pub(super) fn bytes(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::capacity);
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        (full + last) * size_of::<Option<T>>()
            + self.chunks.capacity() * size_of::<Vec<Option<T>>>()
            + self.free.capacity() * 4
    }

    fn place(&mut self, number: u32) -> &mut Option<T> {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut slab = Slab::default();
        let numbers: Vec<_> = (0..1500).map(|i| slab.insert(i)).collect();
        assert!(numbers.iter().enumerate().all(|(i, &n)| *slab.get(n) == i));
        assert_eq!(slab.remove(numbers[700]), 700);
        assert_eq!(slab.len(), 1499);
        assert_eq!(slab.insert(9), numbers[700]);
        *slab.get_mut(numbers[700]) += 1;
        assert_eq!(slab.iter().filter(|&&i| i == 10).count(), 2);
        for n in numbers {
            slab.remove(n);
        }
        assert_eq!(slab.bytes(), 0);
    }
}
