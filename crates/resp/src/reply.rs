//! Client-side reply parser: received bytes to owned replies of RESP2 and RESP3.
//!
//! Replies come from a server that need not be a friendly one, so nesting is limited, vectors grow
//! with elements that arrived, and parsing keeps its own stack.
//! Streamed aggregates and strings (`*?`, `$?`) are not supported; no server sends them.

mod error;
mod header;
mod skip;

pub use error::ReplyError;
pub use skip::{Skipper, skip_reply};

use crate::number::parse_integer;
use header::{Header, Kind};

/// A reply of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Simple(Vec<u8>),
    /// Text of `-` and `!` errors, starting with the error's code.
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// `_`, and `$-1` of RESP2.
    Null,
    /// `*-1` of RESP2.
    NullArray,
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    Set(Vec<Reply>),
    /// Not the answer to a request.
    Push(Vec<Reply>),
    Double(f64),
    Boolean(bool),
    /// Decimal digits with an optional sign.
    BigNumber(Vec<u8>),
    Verbatim {
        format: [u8; 3],
        text: Vec<u8>,
    },
    /// A reply with attributes that came before it.
    Attributed {
        attributes: Vec<(Reply, Reply)>,
        reply: Box<Reply>,
    },
}

/// What a client accepts.
#[derive(Clone, Debug)]
pub struct ReplyLimits {
    /// Aggregates inside one another.
    pub max_depth: usize,
    /// Longest bulk, bytes.
    pub max_bulk: u64,
    /// Longest line, bytes without its end.
    pub max_line: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self {
            max_depth: 64,
            max_bulk: 512 * 1024 * 1024,
            max_line: 1024 * 1024,
        }
    }
}

/// Elements reserved for an aggregate before any of them has arrived.
const FIRST_RESERVE: usize = 8;

/// Whether a reply is an error, given its first bytes.
#[inline]
pub fn is_error(reply: &[u8]) -> bool {
    reply.first() == Some(&b'-')
}

/// An aggregate in progress.
#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// Replies still to come; keys and values count apart, an attributed reply after its pairs.
    left: u64,
    items: Vec<Reply>,
}

/// Resumable parser of one connection's replies.
#[derive(Debug, Default)]
pub struct ReplyParser {
    limits: ReplyLimits,
    stack: Vec<Frame>,
    /// The line at the front of the buffer has no end in its first `scanned` bytes.
    scanned: usize,
}

impl ReplyParser {
    pub fn new(limits: ReplyLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Parses up to the end of one reply. Returns how many bytes of `buf` are done with, whether or
    /// not the reply is whole: the caller drops these and presents the others again, with new
    /// bytes after them. After an error the connection is to be closed.
    pub fn parse(&mut self, buf: &[u8]) -> Result<(usize, Option<Reply>), ReplyError> {
        let mut at = 0;
        while let Some((header, line_end)) =
            header::read(&buf[at..], &mut self.scanned, self.limits.max_line)?
        {
            let scalar = match header {
                Header::Scalar(reply) => reply,
                Header::Blob { kind, len } => {
                    if len > self.limits.max_bulk {
                        return Err(ReplyError::TooBig);
                    }
                    let start = at + line_end;
                    let Some(payload) = blob(&buf[start..], len as usize)? else {
                        break;
                    };
                    at = start + payload.len() + 2;
                    self.scanned = 0;
                    if let Some(reply) = self.close(blob_reply(kind, payload)?) {
                        return Ok((at, Some(reply)));
                    }
                    continue;
                }
                Header::Aggregate { kind, left: 0 } => aggregate(kind, Vec::new()),
                Header::Aggregate { kind, left } => {
                    self.open(kind, left)?;
                    at += line_end;
                    self.scanned = 0;
                    continue;
                }
            };
            at += line_end;
            self.scanned = 0;
            if let Some(reply) = self.close(scalar) {
                return Ok((at, Some(reply)));
            }
        }
        Ok((at, None))
    }

    /// Whether no aggregate is in progress: the bytes presented next start a reply.
    pub fn is_idle(&self) -> bool {
        self.stack.is_empty()
    }

    fn open(&mut self, kind: Kind, left: u64) -> Result<(), ReplyError> {
        if self.stack.len() >= self.limits.max_depth {
            return Err(ReplyError::TooDeep);
        }
        let items = Vec::with_capacity(FIRST_RESERVE.min(left as usize));
        self.stack.push(Frame { kind, left, items });
        Ok(())
    }

    /// Puts a whole reply where it belongs and closes the aggregates it completes. Returns the
    /// outermost reply once that is whole.
    fn close(&mut self, mut reply: Reply) -> Option<Reply> {
        while let Some(frame) = self.stack.last_mut() {
            frame.items.push(reply);
            frame.left -= 1;
            if frame.left > 0 {
                return None;
            }
            let kind = frame.kind;
            let items = std::mem::take(&mut frame.items);
            self.stack.pop();
            reply = aggregate(kind, items);
        }
        Some(reply)
    }
}

/// The payload of a blob at the front of `buf` if it is there with its line end.
fn blob(buf: &[u8], len: usize) -> Result<Option<&[u8]>, ReplyError> {
    match buf.get(len..) {
        Some([b'\r', b'\n', ..]) => Ok(Some(&buf[..len])),
        None | Some([] | [b'\r']) => Ok(None),
        Some(_) => Err(ReplyError::MissingLineEnd),
    }
}

fn blob_reply(kind: u8, payload: &[u8]) -> Result<Reply, ReplyError> {
    Ok(match (kind, payload) {
        (b'!', text) => Reply::Error(text.to_vec()),
        (b'=', &[a, b, c, b':', ref text @ ..]) => Reply::Verbatim {
            format: [a, b, c],
            text: text.to_vec(),
        },
        (b'=', _) => return Err(ReplyError::Malformed(b'=')),
        (_, bytes) => Reply::Bulk(bytes.to_vec()),
    })
}

fn aggregate(kind: Kind, mut items: Vec<Reply>) -> Reply {
    match kind {
        Kind::Array => Reply::Array(items),
        Kind::Set => Reply::Set(items),
        Kind::Push => Reply::Push(items),
        Kind::Map => Reply::Map(pairs(items)),
        Kind::Attribute => {
            let reply = items.pop().unwrap_or(Reply::Null);
            Reply::Attributed {
                attributes: pairs(items),
                reply: Box::new(reply),
            }
        }
    }
}

fn pairs(items: Vec<Reply>) -> Vec<(Reply, Reply)> {
    let mut items = items.into_iter();
    let mut pairs = Vec::with_capacity(items.len() / 2);
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        pairs.push((key, value));
    }
    pairs
}

/// A double as text: what [`crate::format_double`] writes, and signs and exponents of any form.
fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    match text {
        "inf" | "+inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        "nan" | "-nan" => Some(f64::NAN),
        _ if text.bytes().any(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

/// An integer as replies have it: as in requests, but a `+` may precede it.
fn parse_reply_integer(text: &[u8]) -> Option<i64> {
    match text {
        [b'+', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => {
            parse_integer(digits)
        }
        _ => parse_integer(text),
    }
}
