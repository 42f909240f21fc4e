//! A request in progress: everything needed to go on at the byte where the last call stopped.

use super::{Limits, MAX_ARGS, MAX_BULK, Span, inline};
use crate::error::ProtocolError;
use crate::number::parse_integer;

/// First reservation for an argument that is collected apart.
const FIRST_RESERVE: usize = 64 * 1024;

/// As [`super::Progress`], before spans and big arguments are handed out.
pub(super) enum Step {
    Request { consumed: usize },
    Empty { consumed: usize },
    Incomplete { keep: usize },
}

/// What the byte at [`Pending::at`] is.
#[derive(Debug, Default)]
enum Stage {
    /// The first byte of the request.
    #[default]
    Start,
    /// The `$` of the next argument, or the end of the request.
    Header,
    /// The first byte of an argument of this length.
    Payload { len: usize },
    /// The next byte of an argument that is collected apart.
    Big(Collecting),
}

#[derive(Debug, Default)]
struct Collecting {
    bytes: Vec<u8>,
    /// Length announced.
    len: usize,
    /// Bytes still to come, with the two of the line end.
    missing: usize,
}

/// Invariant: positions and spans count from the start of the caller's buffer, whose first `at`
/// bytes the caller presents unchanged at every call.
#[derive(Debug, Default)]
pub(super) struct Pending {
    spans: Vec<Span>,
    bigs: Vec<(u32, Vec<u8>)>,
    /// First byte that is not yet understood.
    at: usize,
    /// The line that starts at `at` has no end before this position.
    scanned: usize,
    args_left: usize,
    stage: Stage,
    /// Heap bytes in `bigs`.
    bigs_bytes: usize,
}

impl Pending {
    pub(super) fn advance(&mut self, buf: &[u8], limits: &Limits) -> Result<Step, ProtocolError> {
        loop {
            match &mut self.stage {
                Stage::Start => match buf.first() {
                    None => return Ok(Step::Incomplete { keep: 0 }),
                    Some(b'*') => {
                        let too_big = ProtocolError::TooBigMultibulkHeader;
                        let Some((end, next)) = self.header_line(buf, limits, too_big)? else {
                            return Ok(Step::Incomplete { keep: buf.len() });
                        };
                        self.args_left = multibulk_count(&buf[1..end], limits)?;
                        if self.args_left == 0 {
                            return Ok(Step::Empty { consumed: next });
                        }
                        self.expect(next, Stage::Header);
                    }
                    Some(_) => return self.inline(buf, limits),
                },
                Stage::Header if self.args_left == 0 => {
                    return Ok(Step::Request { consumed: self.at });
                }
                Stage::Header => {
                    let too_big = ProtocolError::TooBigBulkHeader;
                    let Some((end, next)) = self.header_line(buf, limits, too_big)? else {
                        return Ok(Step::Incomplete { keep: buf.len() });
                    };
                    let len = bulk_length(&buf[self.at..end], limits)?;
                    self.expect(next, Stage::Payload { len });
                }
                &mut Stage::Payload { len } => {
                    let there = buf.len().saturating_sub(self.at);
                    if there >= len + 2 {
                        self.spans.push((self.at as u32, len as u32));
                        self.args_left -= 1;
                        self.expect(self.at + len + 2, Stage::Header);
                    } else if len >= limits.big_arg {
                        self.stage = Stage::Big(Collecting {
                            len,
                            missing: len + 2,
                            ..Collecting::default()
                        });
                    } else {
                        return Ok(Step::Incomplete { keep: buf.len() });
                    }
                }
                Stage::Big(_) => {
                    // Bytes taken from the middle of the buffer stay in it, unused, if the
                    // request continues behind them: moving the rest up is left to the caller.
                    let taken = self.fill_big(buf.get(self.at..).unwrap_or_default());
                    if matches!(self.stage, Stage::Big(_)) {
                        return Ok(Step::Incomplete { keep: self.at });
                    }
                    self.expect(self.at + taken, Stage::Header);
                }
            }
        }
    }

    fn expect(&mut self, at: usize, stage: Stage) {
        self.at = at;
        self.scanned = at;
        self.stage = stage;
    }

    /// Where the header line at `at` ends and where the next one starts; `None` if its end has
    /// not arrived. As in Redis, a line ends with CR and any one byte.
    fn header_line(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        too_big: ProtocolError,
    ) -> Result<Option<(usize, usize)>, ProtocolError> {
        let Some(end) = self.find(b'\r', buf, limits.max_inline, too_big)? else {
            return Ok(None);
        };
        // Without the byte after it, CR itself is looked at again by the next call.
        self.scanned = end;
        Ok((end + 1 < buf.len()).then_some((end, end + 2)))
    }

    /// Position of `byte` in the line at `at`, at most `limit` bytes from its start: deciding by
    /// that distance alone keeps the outcome independent of how the line was split.
    fn find(
        &mut self,
        byte: u8,
        buf: &[u8],
        limit: usize,
        too_big: ProtocolError,
    ) -> Result<Option<usize>, ProtocolError> {
        let window = buf
            .len()
            .min(self.at.saturating_add(limit).saturating_add(1));
        let unseen = buf.get(self.scanned..window).unwrap_or_default();
        match memchr::memchr(byte, unseen) {
            Some(offset) => Ok(Some(self.scanned + offset)),
            None if buf.len() > self.at.saturating_add(limit) => Err(too_big),
            None => {
                self.scanned = buf.len();
                Ok(None)
            }
        }
    }

    fn inline(&mut self, buf: &[u8], limits: &Limits) -> Result<Step, ProtocolError> {
        let too_big = ProtocolError::TooBigInline;
        let Some(end) = self.find(b'\n', buf, limits.max_inline, too_big)? else {
            return Ok(Step::Incomplete { keep: buf.len() });
        };
        let line = buf[..end].strip_suffix(b"\r").unwrap_or(&buf[..end]);
        inline::split(line, &mut self.spans, &mut self.bigs)?;
        let consumed = end + 1;
        if self.spans.is_empty() {
            return Ok(Step::Empty { consumed });
        }
        Ok(Step::Request { consumed })
    }

    pub(super) fn fill_big(&mut self, input: &[u8]) -> usize {
        let Stage::Big(collecting) = &mut self.stage else {
            return 0;
        };
        let taken = collecting.absorb(input);
        if collecting.missing == 0 {
            let bytes = std::mem::take(&mut collecting.bytes);
            self.bigs_bytes += bytes.capacity();
            self.bigs.push((self.spans.len() as u32, bytes));
            self.spans.push((0, 0));
            self.args_left -= 1;
            self.expect(self.at, Stage::Header);
        }
        taken
    }

    pub(super) fn wants_big(&self) -> Option<usize> {
        match &self.stage {
            Stage::Big(collecting) => Some(collecting.missing),
            _ => None,
        }
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(super) fn take_bigs(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut self.bigs)
    }

    pub(super) fn held_bytes(&self) -> usize {
        let collecting = match &self.stage {
            Stage::Big(collecting) => collecting.bytes.capacity(),
            _ => 0,
        };
        size_of::<Self>()
            + self.spans.capacity() * size_of::<Span>()
            + self.bigs.capacity() * size_of::<(u32, Vec<u8>)>()
            + self.bigs_bytes
            + collecting
    }
}

impl Collecting {
    /// Takes as much of `input` as belongs to this argument. Reserves at most twice of what has
    /// arrived (but a first block in any case), and exactly the announced length towards the end.
    fn absorb(&mut self, input: &[u8]) -> usize {
        let taken = input.len().min(self.missing);
        let payload = &input[..taken.min(self.len - self.bytes.len())];
        let arrived = self.bytes.len() + payload.len();
        if arrived > self.bytes.capacity() {
            let target = arrived.saturating_mul(2).max(FIRST_RESERVE).min(self.len);
            self.bytes.reserve_exact(target - self.bytes.len());
        }
        self.bytes.extend_from_slice(payload);
        self.missing -= taken;
        taken
    }
}

/// Arguments announced by `*<text>`; none or a negative number of them is an empty request.
fn multibulk_count(text: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let count = parse_integer(text).ok_or(ProtocolError::InvalidMultibulkLength)?;
    let count = u64::try_from(count).unwrap_or(0);
    if count <= limits.max_args {
        return Ok(count as usize);
    }
    Err(if limits.unauthenticated && count <= MAX_ARGS {
        ProtocolError::UnauthenticatedMultibulk
    } else {
        ProtocolError::InvalidMultibulkLength
    })
}

/// Length announced by `line`, which should be `$<number>`. The CR that ended an empty line is
/// reported as the byte found, as Redis does.
fn bulk_length(line: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let (&kind, text) = line.split_first().unwrap_or((&b'\r', &[]));
    if kind != b'$' {
        return Err(ProtocolError::ExpectedBulk(kind));
    }
    let len = parse_integer(text)
        .and_then(|len| u64::try_from(len).ok())
        .ok_or(ProtocolError::InvalidBulkLength)?;
    // Above this, sums of a position and a length could overflow.
    if len <= limits.max_bulk && len <= u64::MAX >> 2 {
        return Ok(len as usize);
    }
    Err(if limits.unauthenticated && len <= MAX_BULK {
        ProtocolError::UnauthenticatedBulk
    } else {
        ProtocolError::InvalidBulkLength
    })
}
