//! The arguments of one request, borrowed from the bytes they were read in.

/// Start and length of an argument within the request's buffer.
pub type Span = (u32, u32);

/// An argument too large to copy twice: its index and its own bytes.
pub type BigArg = (u32, Vec<u8>);

/// The arguments of one request, the command's name first.
///
/// Small arguments are spans of a shared buffer. Large ones were collected in
/// vectors of their own (`big`, ordered by index), so that the store can take
/// them without a copy.
#[derive(Debug)]
pub struct Args<'a> {
    buf: &'a [u8],
    spans: &'a [Span],
    big: &'a mut [BigArg],
}

impl<'a> Args<'a> {
    /// Every span must lie within `buf`, save those whose index is in `big`.
    pub fn new(buf: &'a [u8], spans: &'a [Span], big: &'a mut [BigArg]) -> Self {
        Self { buf, spans, big }
    }

    /// How many there are, the command's name included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`, or an empty slice beyond the last one.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        if !self.big.is_empty()
            && let Ok(at) = self.big.binary_search_by_key(&(index as u32), |b| b.0)
        {
            return &self.big[at].1;
        }
        match self.spans.get(index) {
            Some(&(start, len)) => self
                .buf
                .get(start as usize..start as usize + len as usize)
                .unwrap_or_default(),
            None => &[],
        }
    }

    /// Takes a large argument's bytes out, leaving it empty; `None` where the
    /// argument is small and has to be copied.
    pub fn take_big(&mut self, index: usize) -> Option<Vec<u8>> {
        if self.big.is_empty() {
            return None;
        }
        let at = self
            .big
            .binary_search_by_key(&(index as u32), |b| b.0)
            .ok()?;
        Some(std::mem::take(&mut self.big[at].1))
    }

    /// All arguments from `from` on.
    pub fn iter_from(&self, from: usize) -> impl DoubleEndedIterator<Item = &[u8]> + '_ {
        (from.min(self.len())..self.len()).map(move |i| self.get(i))
    }

    /// The same arguments for a shorter time.
    pub fn reborrow(&mut self) -> Args<'_> {
        Args {
            buf: self.buf,
            spans: self.spans,
            big: self.big,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_arguments_read_alike() {
        let mut big = vec![(1, b"large".to_vec())];
        let mut args = Args::new(b"SETkv", &[(0, 3), (0, 0), (4, 1)], &mut big);
        let all: Vec<_> = args.iter_from(0).map(<[u8]>::to_vec).collect();
        assert_eq!(all, [b"SET".to_vec(), b"large".to_vec(), b"v".to_vec()]);
        assert_eq!(args.get(3), b"");
        assert_eq!(args.take_big(2), None);
        assert_eq!(args.take_big(1), Some(b"large".to_vec()));
        assert_eq!(args.get(1), b"");
    }
}
