//! Reply bytes. Small values are copied into one vector; large ones go along
//! by reference, so that a reply of half a gigabyte costs no copy.

use std::sync::Arc;

/// Bytes to be sent, in order: `bytes`, with each element of `shared` put in
/// before the byte at its offset.
#[derive(Debug, Default)]
pub struct Output {
    pub bytes: Vec<u8>,
    /// Offsets never go down.
    pub shared: Vec<(usize, Arc<Vec<u8>>)>,
}

impl Output {
    /// Sends the large value `value` after what was written so far.
    pub fn share(&mut self, value: Arc<Vec<u8>>) {
        self.shared.push((self.bytes.len(), value));
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.shared.is_empty()
    }

    /// A mark to return to with [`Output::truncate`] or to copy from.
    pub fn mark(&self) -> (usize, usize) {
        (self.bytes.len(), self.shared.len())
    }

    /// Takes back everything after `mark`.
    pub fn truncate(&mut self, mark: (usize, usize)) {
        self.bytes.truncate(mark.0);
        self.shared.truncate(mark.1);
    }

    /// Appends a part of another output, given by two of its marks.
    pub fn append_range(&mut self, from: &Output, start: (usize, usize), end: (usize, usize)) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(&from.bytes[start.0..end.0]);
        for (offset, value) in &from.shared[start.1..end.1] {
            self.shared
                .push((base + offset - start.0, Arc::clone(value)));
        }
    }

    /// All bytes in sending order, copied; for tests and embedded use.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.bytes.len());
        let mut at = 0;
        for (offset, value) in &self.shared {
            all.extend_from_slice(&self.bytes[at..*offset]);
            all.extend_from_slice(value);
            at = *offset;
        }
        all.extend_from_slice(&self.bytes[at..]);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_values_keep_their_place() {
        let mut a = Output::default();
        a.bytes.extend_from_slice(b"ab");
        let start = a.mark();
        a.bytes.extend_from_slice(b"c");
        a.share(Arc::new(b"XX".to_vec()));
        a.bytes.extend_from_slice(b"d");
        assert_eq!(a.to_vec(), b"abcXXd");
        let mut b = Output::default();
        b.bytes.extend_from_slice(b"_");
        b.append_range(&a, start, a.mark());
        assert_eq!(b.to_vec(), b"_cXXd");
        a.truncate(start);
        assert_eq!(a.to_vec(), b"ab");
    }
}
