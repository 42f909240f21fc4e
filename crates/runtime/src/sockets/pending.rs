//! Replies that a connection did not take at once. Large values stay shared:
//! a slow reader of half a gigabyte costs a pointer. What is made while it is sent is
//! made a piece at a time, the next one when the reader has taken the last.

use super::pieces::Piece;
use super::stream::Stream;
use rufous_base::limits::MADE_AT_ONCE;
use rufous_base::{Garbage, Source};
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
    Made(Box<dyn Source>),
}

impl Kept {
    /// None where they are still to be made.
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Copied(bytes) => Some(bytes),
            Self::Shared(value) => Some(value),
            Self::Made(_) => None,
        }
    }
}

/// Owns no memory while it is empty.
#[derive(Debug, Default)]
pub(super) struct Pending {
    queue: VecDeque<Kept>,
    /// Bytes of the first element that are sent already.
    sent: usize,
    /// Bytes that wait, without those that are still to be made.
    len: usize,
    /// Bytes held here alone; shared values are held elsewhere too, or by many.
    copied: usize,
    /// Sources in the queue.
    sources: usize,
    /// What they kept for this connection alone when that was looked up.
    held: usize,
    /// Sources that have made all.
    used: Vec<Box<dyn Source>>,
    /// Pieces made and not counted.
    made: u64,
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
    /// More than any limit while some are still to be made.
    pub(super) fn len(&self) -> usize {
        match self.sources {
            0 => self.len,
            _ => usize::MAX,
        }
    }

    /// Bytes of memory that are held only for this connection.
    pub(super) fn copied(&self) -> usize {
        self.copied + self.held
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn has_sources(&self) -> bool {
        self.sources > 0
    }

    /// Looks up what its sources keep: that grows when others change the data.
    pub(super) fn look(&mut self) {
        let held = self.queue.iter().map(|kept| match kept {
            Kept::Made(source) => source.held(),
            Kept::Copied(_) | Kept::Shared(_) => 0,
        });
        self.held = held.fold(0, usize::saturating_add);
    }

    /// The number of pieces made since the last call.
    pub(super) fn take_made(&mut self) -> u64 {
        std::mem::take(&mut self.made)
    }

    /// Sources that are no more needed. They may hold much that no other value has any more.
    pub(super) fn take_used(&mut self, garbage: &mut Vec<Garbage>) {
        garbage.extend(self.used.drain(..).map(thrown));
    }

    /// Likewise all of a connection that is gone.
    pub(super) fn take_all(self, garbage: &mut Vec<Garbage>) {
        let left = self.queue.into_iter().filter_map(|kept| match kept {
            Kept::Made(source) => Some(source),
            Kept::Copied(_) | Kept::Shared(_) => None,
        });
        garbage.extend(self.used.into_iter().chain(left).map(thrown));
    }

    /// Keeps `piece` without its first `skip` bytes.
    pub(super) fn keep(&mut self, piece: Piece<'_>, skip: usize) {
        match piece {
            Piece::Bytes(bytes) if skip < bytes.len() => {
                let bytes = &bytes[skip..];
                self.len += bytes.len();
                self.copied += bytes.len();
                if let Some(Kept::Copied(last)) = self.queue.back_mut()
                    && last.len() + bytes.len() <= JOIN
                {
                    last.extend_from_slice(bytes);
                } else {
                    self.queue.push_back(Kept::Copied(bytes.to_vec()));
                }
            }
            Piece::Shared(value) if skip < value.len() => {
                if skip > 0 {
                    assert!(self.queue.is_empty(), "only the first piece is half sent");
                    self.sent = skip;
                }
                self.len += value.len() - skip;
                self.queue.push_back(Kept::Shared(Arc::clone(value)));
            }
            Piece::Made(source) => {
                self.sources += 1;
                self.queue.push_back(Kept::Made(source.copy()));
            }
            Piece::Bytes(_) | Piece::Shared(_) => {}
        }
    }

    /// Puts the next piece of a source at the front of the queue before it.
    fn make(&mut self) {
        let Some(Kept::Made(source)) = self.queue.front_mut() else {
            return;
        };
        self.made += 1;
        let mut bytes = Vec::with_capacity(MADE_AT_ONCE + MADE_AT_ONCE / 8);
        if !source.write(MADE_AT_ONCE, &mut bytes)
            && let Some(Kept::Made(source)) = self.queue.pop_front()
        {
            self.sources -= 1;
            self.used.push(source);
            if self.sources == 0 {
                self.held = 0;
            }
        }
        self.len += bytes.len();
        self.copied += bytes.len();
        self.queue.push_front(Kept::Copied(bytes));
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
        let mut has_made = false;
        while !self.is_empty() {
            if matches!(self.queue.front(), Some(Kept::Made(_))) {
                if has_made {
                    return Ok(Flushed::More);
                }
                has_made = true;
                self.make();
            }
            if left == 0 {
                return Ok(Flushed::More);
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut used = 0;
            for (slice, bytes) in slices
                .iter_mut()
                .zip(self.queue.iter().map_while(Kept::bytes))
            {
                let skip = if used == 0 { self.sent } else { 0 };
                *slice = IoSlice::new(&bytes[skip..]);
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
            && let Some(bytes) = first.bytes()
            && self.sent >= bytes.len()
        {
            self.sent -= bytes.len();
            if let Kept::Copied(bytes) = first {
                self.copied -= bytes.len();
            }
            self.queue.pop_front();
        }
        let is_next_whole = matches!(self.queue.front(), None | Some(Kept::Made(_)));
        debug_assert!(!is_next_whole || self.sent == 0);
    }
}

fn thrown(source: Box<dyn Source>) -> Garbage {
    Garbage {
        bytes: source.held(),
        what: Box::new(source),
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
        assert_eq!(&pending.queue[0].bytes().unwrap()[1..], b"bd");
        pending.advance(2);
        assert!(pending.is_empty() && pending.queue.is_empty());
        assert_eq!(pending.copied(), 0);
    }

    /// So many bytes, and so much that is kept for them.
    #[derive(Clone, Debug)]
    struct Dots(usize, usize);

    impl Source for Dots {
        fn write(&mut self, room: usize, out: &mut Vec<u8>) -> bool {
            let count = self.0.min(room);
            out.resize(out.len() + count, b'.');
            self.0 -= count;
            self.0 > 0
        }

        fn remaining(&self) -> u64 {
            self.0 as u64
        }

        fn held(&self) -> usize {
            self.1
        }

        fn copy(&self) -> Box<dyn Source> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn a_piece_is_made_when_the_last_was_taken() {
        let mut pending = Pending::default();
        pending.keep(Piece::Bytes(b"*1"), 1);
        pending.keep(Piece::Made(&Dots(MADE_AT_ONCE + 1, 77)), 0);
        pending.keep(Piece::Bytes(b"ok"), 0);
        assert!(pending.has_sources() && pending.len() == usize::MAX);
        assert_eq!(pending.copied(), 3, "nothing was made");
        pending.look();
        assert_eq!(pending.copied(), 3 + 77);
        pending.advance(1);
        pending.make();
        assert_eq!((pending.len, pending.queue.len()), (2 + MADE_AT_ONCE, 3));
        pending.advance(MADE_AT_ONCE);
        pending.make();
        assert_eq!((pending.len(), pending.copied()), (3, 3));
        assert!(!pending.has_sources() && !pending.is_empty());
        assert_eq!((pending.take_made(), pending.take_made()), (2, 0));
        let mut garbage = Vec::new();
        pending.take_used(&mut garbage);
        assert_eq!(garbage.len(), 1);
        pending.advance(3);
        assert!(pending.is_empty());
        pending.keep(Piece::Made(&Dots(1, 0)), 0);
        pending.take_all(&mut garbage);
        assert_eq!(garbage.len(), 2, "what is not made is thrown away too");
    }
}
