//! Replies that a connection did not take at once. Large values stay shared:
//! a slow reader of half a gigabyte costs a pointer.

use super::pieces::Piece;
use super::stream::Stream;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll};

/// Slices given to the kernel in one send.
pub(super) const SLICES: usize = 64;

/// Copied bytes go on into the last buffer up to this length.
const JOIN: usize = 64 * 1024;

/// What one turn sends of one connection's waiting replies at most, so that a
/// fast reader of a long queue does not keep the others waiting.
const FLUSH_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug)]
enum Kept {
    Copied(Vec<u8>),
    Shared(Arc<Vec<u8>>),
}

impl Kept {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Shared(value) => value,
        }
    }
}

/// Owns no memory while it is empty.
#[derive(Debug, Default)]
pub(super) struct Pending {
    queue: VecDeque<Kept>,
    /// Bytes of the first element that are sent already.
    sent: usize,
    /// Bytes that wait.
    len: usize,
    /// Bytes held here alone; shared values are held elsewhere too, or by many.
    copied: usize,
}

/// How far sending came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    All,
    /// The waker is registered.
    Blocked,
    /// Enough for this turn.
    More,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that are held only for this connection.
    pub(super) fn copied(&self) -> usize {
        self.copied
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps `piece` without its first `skip` bytes.
    pub(super) fn keep(&mut self, piece: Piece<'_>, skip: usize) {
        let bytes = &piece.bytes()[skip..];
        if bytes.is_empty() {
            return;
        }
        self.len += bytes.len();
        match piece {
            Piece::Bytes(_) => {
                self.copied += bytes.len();
                if let Some(Kept::Copied(last)) = self.queue.back_mut()
                    && last.len() + bytes.len() <= JOIN
                {
                    last.extend_from_slice(bytes);
                } else {
                    self.queue.push_back(Kept::Copied(bytes.to_vec()));
                }
            }
            Piece::Shared(value) => {
                if skip > 0 {
                    assert!(self.queue.is_empty(), "only the first piece is half sent");
                    self.sent = skip;
                }
                self.queue.push_back(Kept::Shared(Arc::clone(value)));
            }
        }
    }

    /// Sends until nothing is left, the peer takes no more, or it is enough
    /// for one turn. Counts what was sent.
    pub(super) fn flush(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        mut sent: impl FnMut(usize),
    ) -> io::Result<Flushed> {
        let mut left = FLUSH_BYTES;
        while !self.is_empty() {
            if left == 0 {
                return Ok(Flushed::More);
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut used = 0;
            for (slice, kept) in slices.iter_mut().zip(&self.queue) {
                let skip = if used == 0 { self.sent } else { 0 };
                *slice = IoSlice::new(&kept.bytes()[skip..]);
                used += 1;
            }
            match stream.poll_write_vectored(cx, &slices[..used]) {
                Poll::Pending => return Ok(Flushed::Blocked),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(n)) => {
                    sent(n);
                    self.advance(n);
                    left = left.saturating_sub(n);
                }
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        // A connection that was slow once goes back to owning nothing.
        self.queue = VecDeque::new();
        match stream.poll_flush(cx) {
            Poll::Pending => Ok(Flushed::Blocked),
            Poll::Ready(flushed) => flushed.map(|()| Flushed::All),
        }
    }

    fn advance(&mut self, n: usize) {
        self.len -= n;
        self.sent += n;
        while let Some(first) = self.queue.front()
            && self.sent >= first.bytes().len()
        {
            self.sent -= first.bytes().len();
            if let Kept::Copied(bytes) = first {
                self.copied -= bytes.len();
            }
            self.queue.pop_front();
        }
        debug_assert!(!self.queue.is_empty() || self.sent == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_kept_and_taken_away_in_order() {
        let mut pending = Pending::default();
        let value = Arc::new(vec![b'v'; 10]);
        pending.keep(Piece::Shared(&value), 4);
        pending.keep(Piece::Bytes(b"ab"), 0);
        pending.keep(Piece::Bytes(b"cd"), 1);
        pending.keep(Piece::Bytes(b""), 0);
        assert_eq!((pending.len(), pending.queue.len()), (9, 2));
        assert_eq!(pending.copied(), 3);
        assert_eq!(Arc::strong_count(&value), 2, "shared, not copied");
        pending.advance(5);
        assert_eq!((pending.len(), pending.sent), (4, 9));
        pending.advance(2);
        assert_eq!((pending.len(), pending.sent), (2, 1));
        assert_eq!(Arc::strong_count(&value), 1, "let go once sent");
        assert_eq!(&pending.queue[0].bytes()[1..], b"bd");
        pending.advance(2);
        assert!(pending.is_empty() && pending.queue.is_empty());
        assert_eq!(pending.copied(), 0);
    }
}
