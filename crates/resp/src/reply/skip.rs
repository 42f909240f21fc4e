//! Finding the end of replies without building them: for load generators and relays.

use super::header::{self, Header};
use super::{ReplyError, ReplyLimits};

/// Resumable search for the end of one reply after another. Needs neither stack nor heap: only
/// the number of replies still to come matters, not which aggregate they belong to.
#[derive(Debug, Default)]
pub struct Skipper {
    limits: ReplyLimits,
    /// Replies still to come before the outermost one ends; 0 between replies, and in the last
    /// payload of one.
    left: u64,
    /// Bytes of a payload in progress still to come, with its CR LF.
    payload: u64,
    scanned: usize,
}

impl Skipper {
    /// Only `max_line` of the limits applies: payloads and nesting cost nothing here.
    pub fn new(limits: ReplyLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Continues to the end of the current reply. Returns how many bytes of `buf` are consumed and
    /// whether the reply ended there; the caller presents the others again, with new bytes after
    /// them.
    pub fn skip(&mut self, buf: &[u8]) -> Result<(usize, bool), ReplyError> {
        let mut at = 0;
        if self.left == 0 && self.payload == 0 {
            self.left = 1;
        }
        loop {
            let passed = self.payload.min((buf.len() - at) as u64);
            at += passed as usize;
            self.payload -= passed;
            if self.payload > 0 {
                return Ok((at, false));
            }
            if self.left == 0 {
                return Ok((at, true));
            }
            let rest = &buf[at..];
            let Some(end) = header::line(rest, &mut self.scanned, self.limits.max_line)? else {
                return Ok((at, false));
            };
            self.scanned = 0;
            at += end + 2;
            let (&kind, text) = rest[..end]
                .split_first()
                .ok_or(ReplyError::MissingLineEnd)?;
            self.left -= 1;
            match (kind, text) {
                (b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(', _)
                | (b'$' | b'*', [b'-', b'1']) => {}
                _ => match header::structure(kind, text)? {
                    Header::Aggregate { left, .. } => {
                        let sum = self.left.checked_add(left);
                        self.left = sum.ok_or(ReplyError::TooBig)?;
                    }
                    Header::Blob { len, .. } => self.payload = len + 2,
                    Header::Scalar(_) => {}
                },
            }
        }
    }
}

/// Length of the reply at the front of `buf`, or `None` if its end has not arrived.
pub fn skip_reply(buf: &[u8]) -> Result<Option<usize>, ReplyError> {
    let (end, whole) = Skipper::default().skip(buf)?;
    Ok(whole.then_some(end))
}
