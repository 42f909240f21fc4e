//! Reply bytes. Small values are copied into one vector; large ones go along
//! by reference, so that a reply of half a gigabyte costs no copy. What need not
//! exist before the client takes it goes along as a [`Source`].

use crate::limits::MADE_AT_ONCE;
use std::fmt::Debug;
use std::sync::Arc;

/// Bytes of a reply that are made while they are sent. It keeps what the command has read as of
/// its instant, so that later changes do not show in the reply.
pub trait Source: Debug + Send + Sync {
    /// Appends the next bytes, at least one, until `room` of them are exceeded. Returns whether
    /// more follow.
    fn write(&mut self, room: usize, out: &mut Vec<u8>) -> bool;

    /// The bytes that follow, about.
    fn remaining(&self) -> u64;

    /// Whether the request says how many bytes there are, and not the data.
    fn repeats(&self) -> bool {
        false
    }

    /// The memory that only this source and its copies keep, about.
    fn held(&self) -> usize;

    /// The same bytes once more.
    fn copy(&self) -> Box<dyn Source>;
}

/// Bytes of an output that are not copied into it.
#[derive(Debug)]
pub enum Apart {
    /// A large value.
    Value(Arc<Vec<u8>>),
    /// See [`Source`].
    Made(Box<dyn Source>),
}

impl Apart {
    /// The number of bytes, of a source about.
    pub fn len(&self) -> usize {
        match self {
            Self::Value(value) => value.len(),
            Self::Made(source) => usize::try_from(source.remaining()).unwrap_or(usize::MAX),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Clone for Apart {
    fn clone(&self) -> Self {
        match self {
            Self::Value(value) => Self::Value(Arc::clone(value)),
            Self::Made(source) => Self::Made(source.copy()),
        }
    }
}

/// Bytes to be sent, in order: `bytes`, with each element of `shared` put in
/// before the byte at its offset.
#[derive(Debug, Default)]
pub struct Output {
    pub bytes: Vec<u8>,
    /// Offsets never go down.
    pub shared: Vec<(usize, Apart)>,
    /// Offsets at which errors begin, ascending: as replies, or as elements of one.
    pub errors: Vec<usize>,
}

impl Output {
    /// Sends the large value `value` after what was written so far.
    pub fn share(&mut self, value: Arc<Vec<u8>>) {
        self.shared.push((self.bytes.len(), Apart::Value(value)));
    }

    /// Sends the bytes of `source` after what was written so far.
    pub fn make(&mut self, source: Box<dyn Source>) {
        self.shared.push((self.bytes.len(), Apart::Made(source)));
    }

    /// Whether bytes of it are made while it is sent.
    pub fn is_made(&self) -> bool {
        let mut apart = self.shared.iter();
        apart.any(|(_, apart)| matches!(apart, Apart::Made(_)))
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

    /// The memory that the reply keeps: without what is made while it is sent.
    pub fn held_bytes(&self) -> usize {
        let shared = self.shared.iter().map(|(_, apart)| match apart {
            Apart::Value(value) => value.len(),
            Apart::Made(_) => 0,
        });
        self.bytes.len() + shared.sum::<usize>()
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
        for (offset, apart) in &from.shared[start.1..end.1] {
            self.shared.push((base + offset - start.0, apart.clone()));
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
        for (offset, apart) in &self.shared {
            all.extend_from_slice(&self.bytes[at..*offset]);
            match apart {
                Apart::Value(value) => all.extend_from_slice(value),
                Apart::Made(source) => {
                    let mut source = source.copy();
                    while source.write(MADE_AT_ONCE, &mut all) {}
                }
            }
            at = *offset;
        }
        all.extend_from_slice(&self.bytes[at..]);
        all
    }
}

/// An output that is taken in pieces.
#[derive(Debug)]
pub struct Pieces {
    output: Output,
    /// The position in `bytes`, and the next part that is not in them.
    at: (usize, usize),
    /// Bytes of that part that were taken.
    taken: usize,
}

impl Pieces {
    pub fn new(output: Output) -> Self {
        Self {
            output,
            at: (0, 0),
            taken: 0,
        }
    }

    /// Appends the next bytes, until `room` of them are there or, of a source, exceeded. Returns
    /// whether more follow.
    pub fn write(&mut self, room: usize, out: &mut Vec<u8>) -> bool {
        let end = out.len().saturating_add(room);
        while out.len() < end {
            let left = end - out.len();
            let next = self.output.shared.get_mut(self.at.1);
            let stop = next.as_ref().map_or(self.output.bytes.len(), |next| next.0);
            if self.at.0 < stop {
                let from = self.at.0;
                self.at.0 = stop.min(from + left);
                out.extend_from_slice(&self.output.bytes[from..self.at.0]);
                continue;
            }
            let more = match next {
                None => return false,
                Some((_, Apart::Value(value))) => {
                    let part = &value[self.taken..value.len().min(self.taken + left)];
                    out.extend_from_slice(part);
                    self.taken += part.len();
                    self.taken < value.len()
                }
                Some((_, Apart::Made(source))) => source.write(left, out),
            };
            if !more {
                (self.at.1, self.taken) = (self.at.1 + 1, 0);
            }
        }
        self.at.1 < self.output.shared.len() || self.at.0 < self.output.bytes.len()
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

    /// Counts down.
    #[derive(Clone, Debug)]
    struct Down(u8);

    impl Source for Down {
        fn write(&mut self, room: usize, out: &mut Vec<u8>) -> bool {
            for _ in 0..=room {
                out.push(b'0' + self.0);
                if self.0 == 0 {
                    return false;
                }
                self.0 -= 1;
            }
            true
        }

        fn remaining(&self) -> u64 {
            u64::from(self.0) + 1
        }

        fn held(&self) -> usize {
            0
        }

        fn copy(&self) -> Box<dyn Source> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn what_is_made_keeps_its_place_and_is_made_again_for_each_copy() {
        let mut a = Output::default();
        a.bytes.extend_from_slice(b"ab");
        let start = a.mark();
        a.make(Box::new(Down(5)));
        a.bytes.extend_from_slice(b"c");
        a.share(Arc::new(b"XYZ".to_vec()));
        assert!(a.is_made());
        let mut b = Output::default();
        b.bytes.push(b'_');
        b.append_range(&a, start, a.mark());
        assert_eq!(a.to_vec(), b"ab543210cXYZ");
        assert_eq!(b.to_vec(), b"_543210cXYZ");
        for room in 1..15 {
            let mut copy = Output::default();
            copy.append_range(&a, (0, 0), a.mark());
            let (mut pieces, mut all) = (Pieces::new(copy), Vec::new());
            let mut before = 0;
            while pieces.write(room, &mut all) {
                assert!(all.len() > before && all.len() <= before + room + 1);
                before = all.len();
            }
            assert_eq!(all, b"ab543210cXYZ", "{room}");
        }
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
