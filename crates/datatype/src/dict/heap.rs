//! The memory of a segment's elements: chunks of one size, filled one after the other.
//!
//! Segments that were split at the same time grow at the same time. If each heap were one buffer that is
//! reallocated as it grows, most of them would free one size class of the allocator at about the same time, and
//! that memory could not serve the next size class until whole pages of it are free: twice the memory in use. Chunks
//! are all alike, stay where they are, and are reused by any segment.
//!
//! An offset is the number of a chunk and, in the low [`CHUNK_BITS`] bits, a place in it. What takes more than
//! [`SHARED`] bytes has a chunk of its own. Nothing takes less than two bytes, so that nothing begins at the last
//! byte of a chunk: no offset's low bits are all ones.

const CHUNK_BITS: u32 = 10;
const CHUNK: usize = 1 << CHUNK_BITS;

/// At most a quarter of a chunk remains unused at its end.
const SHARED: usize = CHUNK / 4;

#[derive(Debug, Default)]
pub(super) struct Heap {
    chunks: Vec<Vec<u8>>,
    /// The chunk that is being filled; there is none where it is beyond the last.
    open: usize,
    /// What the first chunk will need, where that is known.
    first: usize,
    /// Bytes that were added.
    len: usize,
    /// What the chunks take by capacity.
    room: usize,
}

impl Heap {
    /// Empty, with an idea of the bytes to come.
    pub(super) fn with_room(bytes: usize) -> Self {
        Self {
            chunks: Vec::with_capacity(bytes.div_ceil(CHUNK)),
            first: (bytes + bytes / 16).min(CHUNK),
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What it takes besides itself.
    pub(super) fn bytes(&self) -> usize {
        self.room + self.chunks.capacity() * size_of::<Vec<u8>>()
    }

    /// The bytes from an offset to the end of its chunk.
    #[inline]
    pub(super) fn at(&self, offset: usize) -> &[u8] {
        &self.chunks[offset >> CHUNK_BITS][offset & (CHUNK - 1)..]
    }

    pub(super) fn bytes_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let start = offset & (CHUNK - 1);
        &mut self.chunks[offset >> CHUNK_BITS][start..start + len]
    }

    /// The offset of `size` more bytes, and where to append them.
    #[inline]
    pub(super) fn add(&mut self, size: usize) -> (usize, &mut Vec<u8>) {
        let chunk = match self.chunks.get(self.open) {
            Some(open) if open.len() + size <= open.capacity().min(CHUNK) => self.open,
            _ => self.make_room(size),
        };
        self.len += size;
        let to = &mut self.chunks[chunk];
        (chunk << CHUNK_BITS | to.len(), to)
    }

    #[cold]
    fn make_room(&mut self, size: usize) -> usize {
        if size > SHARED {
            self.push(size);
            // The first chunk for others is still to come.
            self.open += usize::from(self.open + 1 == self.chunks.len());
            return self.chunks.len() - 1;
        }
        // Only the first may be smaller than the others, and grows as a buffer does.
        if let Some(open) = self.chunks.get_mut(self.open)
            && open.len() + size <= CHUNK
        {
            let more = size.max(open.len() / 8 + 16);
            let before = open.capacity();
            open.reserve_exact(more.min(CHUNK - open.len()));
            self.room += open.capacity() - before;
            return self.open;
        }
        let is_first = self.open == 0;
        self.open = self.chunks.len();
        self.push(match is_first {
            true => self.first.max(size + 16),
            false => CHUNK,
        });
        self.open
    }

    fn push(&mut self, capacity: usize) {
        if self.chunks.len() == self.chunks.capacity() {
            self.chunks.reserve_exact(self.chunks.len() / 4 + 1);
        }
        let chunk = Vec::with_capacity(capacity);
        self.room += chunk.capacity();
        self.chunks.push(chunk);
    }
}

/// With the space that chunks have: they keep their sizes.
impl Clone for Heap {
    fn clone(&self) -> Self {
        let mut chunks = Vec::with_capacity(self.chunks.capacity());
        let mut room = 0;
        for chunk in &self.chunks {
            let mut copy = Vec::with_capacity(chunk.capacity());
            copy.extend_from_slice(chunk);
            room += copy.capacity();
            chunks.push(copy);
        }
        Self {
            chunks,
            room,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_base::rng::Rng;

    /// Adds what says where it lies.
    fn fill(heap: &mut Heap, sizes: impl Iterator<Item = usize>) -> Vec<(usize, Vec<u8>)> {
        let mut added = Vec::new();
        for (n, size) in sizes.enumerate() {
            let bytes = vec![n as u8; size];
            let (offset, to) = heap.add(size);
            to.extend_from_slice(&bytes);
            assert_ne!(offset & 0xFFFF, 0xFFFF);
            added.push((offset, bytes));
        }
        added
    }

    #[test]
    fn what_was_added_stays_where_it_is() {
        let mut rng = Rng::new(1);
        for most in [3, 30, 200, 300, 1000, 4096] {
            for room in [0, 10, 500, 50_000] {
                let mut heap = Heap::with_room(room);
                let sizes = (0..400).map(|_| 2 + rng.below(most - 1) as usize);
                let added = fill(&mut heap, sizes);
                let copy = heap.clone();
                for heap in [&heap, &copy] {
                    let held: usize = heap.chunks.iter().map(Vec::capacity).sum();
                    assert_eq!(held, heap.room);
                    let len: usize = heap.chunks.iter().map(Vec::len).sum();
                    assert_eq!(
                        (len, heap.len),
                        (heap.len(), added.iter().map(|a| a.1.len()).sum())
                    );
                    for (offset, bytes) in &added {
                        assert!(heap.at(*offset).starts_with(bytes));
                    }
                }
                assert_eq!(copy.bytes(), heap.bytes());
            }
        }
    }

    #[test]
    fn chunks_are_all_alike_but_for_what_has_its_own() {
        let mut heap = Heap::with_room(7000);
        fill(
            &mut heap,
            (0..1000).map(|n| if n % 100 == 50 { 1100 } else { 27 }),
        );
        let others = heap.chunks.iter().filter(|chunk| chunk.capacity() != 1100);
        assert!(others.clone().all(|chunk| chunk.capacity() == CHUNK));
        assert_eq!(others.count(), 990_usize.div_ceil(CHUNK / 27));
        let mut small = Heap::default();
        fill(&mut small, (0..20).map(|_| 20));
        assert!(small.bytes() < 400 + 400 / 8 + 64, "{}", small.bytes());
    }
}
