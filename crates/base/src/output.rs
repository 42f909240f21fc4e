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
    /// Offsets at which errors begin, ascending: as replies, or as elements of one.
    pub errors: Vec<usize>,
}

impl Output {
    /// Sends the large value `value` after what was written so far.
    pub fn share(&mut self, value: Arc<Vec<u8>>) {
        self.shared.push((self.bytes.len(), value));
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
        self.errors.clear();
    }

    /// An error follows.
    #[cold]
    pub fn begin_error(&mut self) {
        self.errors.push(self.bytes.len());
    }

    /// Whether the reply that was written after `mark` is an error.
    #[inline]
    pub fn is_error(&self, mark: (usize, usize)) -> bool {
        !self.errors.is_empty() && self.errors.binary_search(&mark.0).is_ok()
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
        self.errors.truncate(self.errors_before(mark.0));
    }

    /// Appends a part of another output, given by two of its marks.
    pub fn append_range(&mut self, from: &Output, start: (usize, usize), end: (usize, usize)) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(&from.bytes[start.0..end.0]);
        for (offset, value) in &from.shared[start.1..end.1] {
            self.shared
                .push((base + offset - start.0, Arc::clone(value)));
        }
        if !from.errors.is_empty() {
            let errors = from.errors_before(start.0)..from.errors_before(end.0);
            let moved = from.errors[errors].iter().map(|at| base + at - start.0);
            self.errors.extend(moved);
        }
    }

    fn errors_before(&self, end: usize) -> usize {
        self.errors.partition_point(|at| *at < end)
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

    #[test]
    fn errors_are_known_wherever_replies_are_moved() {
        let mut a = Output::default();
        let ok = a.mark();
        a.bytes.extend_from_slice(b"+OK\r\n");
        let error = a.mark();
        a.begin_error();
        a.bytes.extend_from_slice(b"-ERR\r\n");
        let dash = a.mark();
        a.bytes.extend_from_slice(b"-");
        assert!(!a.is_error(ok) && a.is_error(error) && !a.is_error(dash));
        let mut b = Output::default();
        b.bytes.extend_from_slice(b"__");
        b.append_range(&a, error, dash);
        assert!(b.is_error((2, 0)) && b.errors.len() == 1);
        b.append_range(&a, ok, error);
        b.append_range(&a, dash, a.mark());
        assert_eq!(b.errors, [2]);
        // Another reply takes the place of the error.
        a.truncate(error);
        a.bytes.extend_from_slice(b"+OK\r\n");
        assert!(!a.is_error(error));
        b.clear();
        assert_eq!(b.errors, []);
    }
}
