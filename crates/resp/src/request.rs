//! Server-side request parser: finds requests at the front of the caller's buffer and hands their
//! arguments out as spans of it, without copying.
//!
//! Invariants:
//!
//! 1. The outcome does not depend on how the stream was split: the same requests in the same
//!    order, and the same error at the same request, whether bytes come one by one or all at once.
//! 2. An idle parser owns no heap memory.
//! 3. Memory grows with bytes that have arrived, never with announced lengths.
//! 4. No byte is examined more than a fixed number of times, however often `parse` is called.

mod inline;
mod pending;

use crate::error::ProtocolError;
use pending::{Pending, Step};

/// Start and length of an argument, from the start of the slice given to [`RequestParser::parse`].
///
/// `(0, 0)` says that the argument's bytes are in [`RequestParser::take_big`]; no argument found
/// in the buffer starts at 0, except the first word of an inline command, which is never empty.
pub type Span = (u32, u32);

/// From this length on, an argument that arrives in pieces gets a vector of its own.
pub const BIG_ARG: usize = 64 * 1024;
/// Most arguments of one request.
pub const MAX_ARGS: u64 = 1024 * 1024;
/// Longest argument.
pub const MAX_BULK: u64 = 512 * 1024 * 1024;
/// Longest line: an inline command, or a header without a line end.
pub const MAX_INLINE: usize = 64 * 1024;

/// What a client may send. A caller can change the limits between any two calls.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest argument, bytes.
    pub max_bulk: u64,
    /// Most arguments of a multibulk request.
    pub max_args: u64,
    /// Longest line, bytes without its end.
    pub max_inline: usize,
    /// Arguments of at least this length are collected apart when they arrive in pieces.
    pub big_arg: usize,
    /// Name the missing authentication as the reason when `max_args` or `max_bulk` is passed.
    pub unauthenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bulk: MAX_BULK,
            max_args: MAX_ARGS,
            max_inline: MAX_INLINE,
            big_arg: BIG_ARG,
            unauthenticated: false,
        }
    }
}

impl Limits {
    /// For clients that still have to authenticate: enough for `AUTH` and `HELLO`, too little to
    /// occupy memory with.
    pub fn unauthenticated() -> Self {
        Self {
            max_bulk: 16 * 1024,
            max_args: 10,
            unauthenticated: true,
            ..Self::default()
        }
    }
}

/// What [`RequestParser::parse`] found at the front of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A whole request in the first `consumed` bytes; its argument spans were pushed, and big
    /// arguments wait in [`RequestParser::take_big`] until the next call of `parse`.
    Request { consumed: usize },
    /// A blank line or an empty array in the first `consumed` bytes: nothing to run, no reply.
    Empty { consumed: usize },
    /// More bytes are needed. Keep the first `keep` bytes of the buffer and present them again,
    /// unchanged and with new bytes after them. Bytes after `keep` were taken into a big argument.
    Incomplete { keep: usize },
}

/// Resumable parser of one connection's requests.
///
/// The caller owns the buffer. After [`Progress::Incomplete`] it may append received bytes to the
/// kept ones and call [`parse`](Self::parse) again, or, while [`wants_big`](Self::wants_big) says
/// so, give them to [`fill_big`](Self::fill_big) instead and so spare a copy; once `wants_big` is
/// `None` it must call `parse` again, with the kept bytes at the front, even if nothing new came.
/// After an error the connection is to be closed.
#[derive(Debug, Default)]
pub struct RequestParser {
    // Boxed, since most connections have no request in progress most of the time.
    pending: Option<Box<Pending>>,
    ready: Vec<(u32, Vec<u8>)>,
}

impl RequestParser {
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses one request at the front of `buf`.
    ///
    /// Only pushes to `spans`, so several requests of a batch can share one vector; pushes nothing
    /// unless the result is [`Progress::Request`].
    #[inline]
    pub fn parse(
        &mut self,
        buf: &[u8],
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Result<Progress, ProtocolError> {
        if !self.ready.is_empty() {
            self.ready = Vec::new();
        }
        if self.pending.is_none() {
            let mark = spans.len();
            if let Some(consumed) = whole_multibulk(buf, spans, limits) {
                return Ok(Progress::Request { consumed });
            }
            spans.truncate(mark);
            if buf.is_empty() {
                return Ok(Progress::Incomplete { keep: 0 });
            }
        }
        self.resume(buf, spans, limits)
    }

    /// The general way: any request, from wherever it was interrupted.
    #[inline(never)]
    fn resume(
        &mut self,
        buf: &[u8],
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Result<Progress, ProtocolError> {
        let visible = &buf[..buf.len().min(u32::MAX as usize)];
        let mut boxed = self.pending.take();
        let mut fresh = Pending::default();
        let pending = boxed.as_deref_mut().unwrap_or(&mut fresh);
        match pending.advance(visible, limits)? {
            Step::Request { consumed } => {
                spans.extend_from_slice(pending.spans());
                self.ready = pending.take_bigs();
                Ok(Progress::Request { consumed })
            }
            Step::Empty { consumed } => Ok(Progress::Empty { consumed }),
            Step::Incomplete { .. } if visible.len() < buf.len() => {
                Err(ProtocolError::TooBigRequest)
            }
            Step::Incomplete { keep } => {
                self.pending = Some(boxed.unwrap_or_else(|| Box::new(fresh)));
                Ok(Progress::Incomplete { keep })
            }
        }
    }

    /// How many bytes of a big argument, with the two after it, are still to come.
    #[inline]
    pub fn wants_big(&self) -> Option<usize> {
        self.pending.as_deref().and_then(Pending::wants_big)
    }

    /// Gives received bytes to the big argument in progress; returns how many it took. What is
    /// left belongs after the kept bytes.
    pub fn fill_big(&mut self, bytes: &[u8]) -> usize {
        self.pending
            .as_deref_mut()
            .map_or(0, |pending| pending.fill_big(bytes))
    }

    /// Big and unescaped arguments of the request just returned, as (argument index, bytes), in
    /// order of their index.
    #[inline]
    pub fn take_big(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut self.ready)
    }

    /// Whether the next byte starts a request.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.pending.is_none()
    }

    /// Heap bytes held for the request in progress, beyond the caller's buffer.
    pub fn held_bytes(&self) -> usize {
        self.pending.as_deref().map_or(0, Pending::held_bytes)
    }
}

/// The bytes of a span that lies in the buffer.
///
/// # Panics
/// If `buf` is shorter than the slice that was parsed.
#[inline]
pub fn slice(buf: &[u8], (start, len): Span) -> &[u8] {
    &buf[start as usize..start as usize + len as usize]
}

/// The common case in one pass without saved state: a multibulk request that is all there.
/// `None` for everything else, be it valid or not; the general way then decides.
#[inline]
fn whole_multibulk(buf: &[u8], spans: &mut Vec<Span>, limits: &Limits) -> Option<usize> {
    let (count, mut at) = header(buf, 0, b'*')?;
    if count == 0 || count as u64 > limits.max_args {
        return None;
    }
    for _ in 0..count {
        let (len, start) = header(buf, at, b'$')?;
        let next = start + len + 2;
        if len as u64 > limits.max_bulk || next > buf.len() || next > u32::MAX as usize {
            return None;
        }
        spans.push((start as u32, len as u32));
        at = next;
    }
    Some(at)
}

/// The number in a header and the position after its line. A header inside a whole request has at
/// least five bytes from its start to the request's end, which saves checks of single bytes.
#[inline(always)]
fn header(buf: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    let &[first, a, b, c, _] = buf.get(at..)?.first_chunk::<5>()?;
    if first != kind {
        return None;
    }
    let tens = a.wrapping_sub(b'0');
    if b == b'\r' && tens <= 9 {
        return Some((tens as usize, at + 4));
    }
    let units = b.wrapping_sub(b'0');
    if c == b'\r' && (1..=9).contains(&tens) && units <= 9 {
        return Some((tens as usize * 10 + units as usize, at + 5));
    }
    long_header(buf, at)
}

/// As [`header`], for numbers of three to ten digits.
fn long_header(buf: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut number = 0usize;
    for (i, &byte) in buf[at + 1..].iter().take(11).enumerate() {
        if byte == b'\r' && i > 0 {
            return Some((number, at + i + 3));
        }
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 || (i == 0 && digit == 0) {
            return None;
        }
        number = number * 10 + digit as usize;
    }
    None
}
