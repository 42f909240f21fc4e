//! The replies of a turn as runs of bytes in sending order.

use rufous_base::{Apart, Output, Source, Write};
use std::sync::Arc;

/// A run of bytes of one connection's replies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece<'a> {
    Bytes(&'a [u8]),
    Shared(&'a Arc<Vec<u8>>),
    Made(&'a dyn Source),
}

impl<'a> Piece<'a> {
    /// None where they are still to be made.
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Shared(value) => Some(value),
            Self::Made(_) => None,
        }
    }
}

impl<'a> From<&'a Apart> for Piece<'a> {
    fn from(apart: &'a Apart) -> Self {
        match apart {
            Apart::Value(value) => Self::Shared(value),
            Apart::Made(source) => Self::Made(&**source),
        }
    }
}

/// The end of a chain.
pub(super) const NONE: u32 = u32::MAX;

/// All writes of one turn; those of one connection form a chain through `next`.
#[derive(Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) output: &'a Output,
    pub(super) writes: &'a [Write],
    pub(super) next: &'a [u32],
}

impl<'a> Turn<'a> {
    /// The pieces of the chain that starts at `first`; none is empty.
    pub(super) fn pieces(self, first: u32) -> impl Iterator<Item = Piece<'a>> {
        let mut at = first;
        std::iter::from_fn(move || {
            let write = self.writes.get(at as usize)?;
            at = self.next[at as usize];
            Some(write)
        })
        .flat_map(move |write| pieces(self.output, write))
    }

    /// All of the chain's bytes, where they lie in one run.
    pub(super) fn contiguous(self, first: u32) -> Option<&'a [u8]> {
        let write = &self.writes[first as usize];
        let one = self.next[first as usize] == NONE && write.start.1 == write.end.1;
        one.then(|| &self.output.bytes[write.start.0..write.end.0])
    }
}

/// What lies between the two marks of `write`.
fn pieces<'a>(output: &'a Output, write: &Write) -> impl Iterator<Item = Piece<'a>> {
    let mut at = write.start.0;
    let end = write.end.0;
    let shared = output.shared[write.start.1..write.end.1].iter();
    shared
        .map(|(offset, value)| (*offset, Some(value)))
        .chain(std::iter::once((end, None)))
        .flat_map(move |(offset, value)| {
            let bytes = &output.bytes[at..offset];
            at = offset;
            [Some(Piece::Bytes(bytes)), value.map(Piece::from)]
        })
        .flatten()
        .filter(|piece| piece.bytes() != Some(&[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_base::{ConnId, Until};

    fn id(slot: u32) -> ConnId {
        ConnId {
            slot,
            generation: 0,
        }
    }

    #[test]
    fn a_chain_gives_its_bytes_in_order_and_no_others() {
        let mut output = Output::default();
        let mut writes = Vec::new();
        let mut write = |output: &mut Output, slot, before: &[u8], value: &[u8], after: &[u8]| {
            let start = output.mark();
            output.bytes.extend_from_slice(before);
            if !value.is_empty() {
                output.share(Arc::new(value.to_vec()));
            }
            output.bytes.extend_from_slice(after);
            writes.push(Write {
                conn: id(slot),
                start,
                end: output.mark(),
                until: Until::Passed,
            });
        };
        write(&mut output, 0, b"a", b"BIG", b"b");
        write(&mut output, 1, b"xx", b"", b"");
        write(&mut output, 0, b"", b"HUGE", b"");
        write(&mut output, 0, b"c", b"", b"");
        let turn = Turn {
            output: &output,
            writes: &writes,
            next: &[2, NONE, 3, NONE],
        };
        let sent = |first| {
            let parts: Vec<&[u8]> = turn.pieces(first).filter_map(Piece::bytes).collect();
            parts.concat()
        };
        assert_eq!(sent(0), b"aBIGbHUGEc");
        assert_eq!(sent(1), b"xx");
        assert_eq!(sent(NONE), b"");
        assert_eq!(turn.contiguous(1), Some(&b"xx"[..]));
        assert_eq!(turn.contiguous(0), None, "two writes");
        assert_eq!(turn.contiguous(2), None, "a shared value");
        assert_eq!(turn.contiguous(3), Some(&b"c"[..]));
    }
}
