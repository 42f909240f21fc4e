//! The first line of a reply: its type and value or length.

use super::{Reply, ReplyError, parse_double, parse_reply_integer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Array,
    Map,
    Set,
    Push,
    Attribute,
}

#[derive(Debug)]
pub(super) enum Header {
    /// The line is the whole reply.
    Scalar(Reply),
    /// A payload and CR LF follow; `kind` is the type byte.
    Blob { kind: u8, len: u64 },
    /// `left` replies follow.
    Aggregate { kind: Kind, left: u64 },
}

/// Reads the line at the front of `buf`; returns it with the position behind it, or `None` while
/// its end has not arrived. `scanned` keeps how far an end was searched for.
pub(super) fn read(
    buf: &[u8],
    scanned: &mut usize,
    max_line: usize,
) -> Result<Option<(Header, usize)>, ReplyError> {
    let Some(end) = line(buf, scanned, max_line)? else {
        return Ok(None);
    };
    let (&kind, text) = buf[..end].split_first().ok_or(ReplyError::MissingLineEnd)?;
    Ok(Some((interpret(kind, text)?, end + 2)))
}

/// Position of the CR that ends the line at the front of `buf`. Remembers what was searched.
pub(super) fn line(
    buf: &[u8],
    scanned: &mut usize,
    max_line: usize,
) -> Result<Option<usize>, ReplyError> {
    let window = buf.len().min(max_line.saturating_add(2));
    let unseen = buf.get(*scanned..window).unwrap_or_default();
    match memchr::memchr(b'\n', unseen) {
        Some(offset) => match (*scanned + offset).checked_sub(1) {
            Some(end) if buf[end] == b'\r' => Ok(Some(end)),
            _ => Err(ReplyError::MissingLineEnd),
        },
        None if buf.len() >= max_line.saturating_add(2) => Err(ReplyError::TooBig),
        None => {
            *scanned = window;
            Ok(None)
        }
    }
}

fn interpret(kind: u8, text: &[u8]) -> Result<Header, ReplyError> {
    let malformed = ReplyError::Malformed(kind);
    let scalar = match kind {
        b'+' => Reply::Simple(text.to_vec()),
        b'-' => Reply::Error(text.to_vec()),
        b':' => Reply::Integer(parse_reply_integer(text).ok_or(malformed)?),
        b'_' if text.is_empty() => Reply::Null,
        b'#' if text == b"t" => Reply::Boolean(true),
        b'#' if text == b"f" => Reply::Boolean(false),
        b',' => Reply::Double(parse_double(text).ok_or(malformed)?),
        b'(' if is_big_number(text) => Reply::BigNumber(text.to_vec()),
        b'$' if text == b"-1" => Reply::Null,
        b'*' if text == b"-1" => Reply::NullArray,
        _ => return structure(kind, text),
    };
    Ok(Header::Scalar(scalar))
}

/// The headers that announce more than their own line.
pub(super) fn structure(kind: u8, text: &[u8]) -> Result<Header, ReplyError> {
    let malformed = ReplyError::Malformed(kind);
    let aggregate = match kind {
        b'*' => Kind::Array,
        b'%' => Kind::Map,
        b'~' => Kind::Set,
        b'>' => Kind::Push,
        b'|' => Kind::Attribute,
        b'$' | b'!' | b'=' => {
            let len = length(text).ok_or(malformed)?;
            return Ok(Header::Blob { kind, len });
        }
        b'_' | b'#' | b'(' => return Err(malformed),
        _ => return Err(ReplyError::UnknownType(kind)),
    };
    let len = length(text).ok_or(malformed)?;
    // No overflow: a length is at most i64::MAX.
    let left = match aggregate {
        Kind::Map => len * 2,
        Kind::Attribute => len * 2 + 1,
        _ => len,
    };
    Ok(Header::Aggregate {
        kind: aggregate,
        left,
    })
}

fn length(text: &[u8]) -> Option<u64> {
    parse_reply_integer(text).and_then(|len| u64::try_from(len).ok())
}

fn is_big_number(text: &[u8]) -> bool {
    let digits = text
        .strip_prefix(b"-")
        .or_else(|| text.strip_prefix(b"+"))
        .unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}
