//! Requests of a batch that are parsed and have not run.

use super::connections::Connections;
use rufous_base::limits::BATCH_COMMANDS;
use rufous_base::{Args, BigArg, ConnId, Span, WorkerId};
use rufous_command::DataCommands;
use rufous_kernel::Worker;

/// A batch ends at this number of keys to fetch; with more, the first of them would have left the
/// cache before their commands run.
const BATCH_KEYS: usize = 192;

/// A request that was parsed from what a turn received.
#[derive(Clone, Copy, Debug)]
pub struct Parsed {
    pub conn: ConnId,
    /// Offset of the parsed slice, in the turn's buffer or in `Connection::held`.
    pub base: usize,
    pub held: bool,
    /// The database selected when it was parsed.
    pub db: u8,
    pub spans: (u32, u32),
    pub what: What,
    /// It was preceded by `QUIET`, which is not among its arguments.
    pub quiet: bool,
    /// Index in [`Lookahead::big`], or `NO_BIG`.
    pub big: u32,
    /// Range in [`Lookahead::keys`].
    pub keys: (u32, u32),
    /// The table of keyspaces by which all its keys are strict: see [`rufous_kernel::Header`].
    pub strict_in: Option<u16>,
}

/// The target of a parsed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Command(u16),
    /// Unknown command.
    Unknown,
    /// A container command with an unknown subcommand.
    UnknownSub(u16),
    WrongArity(u16),
    /// `QUIET` before a command that changes no data.
    NotQuiet(u16),
    /// Not RESP; index in [`Lookahead::errors`].
    Malformed(u32),
}

pub const NO_BIG: u32 = u32::MAX;

/// A key of a parsed request.
#[derive(Clone, Copy, Debug)]
pub struct ParsedKey {
    pub db: u8,
    pub arg: u32,
    pub hash: u32,
    pub owner: WorkerId,
}

impl ParsedKey {
    /// The worker that runs a command on the key. `strict_in`: that of the request.
    #[inline]
    pub(super) fn owner_now(
        &self,
        kernel: &Worker<DataCommands>,
        args: &Args<'_>,
        strict_in: Option<u16>,
    ) -> WorkerId {
        // The table may have changed since it was parsed.
        if kernel.keyspaces().is_empty() || kernel.knows_strict(strict_in) {
            self.owner
        } else {
            kernel.placement().owner(args.get(self.arg as usize))
        }
    }
}

/// Requests parsed ahead of execution; kept from turn to turn so that nothing is allocated.
#[derive(Debug, Default)]
pub struct Lookahead {
    pub parsed: Vec<Parsed>,
    /// The first of `parsed` that has not run.
    pub next: usize,
    pub spans: Vec<Span>,
    pub keys: Vec<ParsedKey>,
    pub found: Vec<(u8, u32)>,
    pub big: Vec<Vec<BigArg>>,
    pub errors: Vec<String>,
    /// The last request may take long: it ends the batch, so that it is timed on its own.
    pub alone: bool,
}

impl Lookahead {
    pub fn clear(&mut self) {
        self.parsed.clear();
        self.next = 0;
        self.spans.clear();
        self.keys.clear();
        self.big.clear();
        self.errors.clear();
        self.alone = false;
    }

    /// Whether the batch has room for another request.
    #[inline]
    pub(super) fn wants_more(&self, limit: usize) -> bool {
        self.parsed.len() < limit.min(BATCH_COMMANDS) && self.keys.len() < BATCH_KEYS && !self.alone
    }

    /// The end of the requests that run in this step. The last one is timed on its own where it may
    /// take long, in a step of its own.
    pub(super) fn until(&self) -> usize {
        let all = self.parsed.len();
        if self.alone && self.next + 1 < all {
            all - 1
        } else {
            all
        }
    }

    /// Frees held bytes of connections whose requests have all run.
    pub(super) fn release_held(&self, connections: &mut Connections) {
        let mut last = None;
        for parsed in self.parsed.iter().filter(|p| p.held) {
            if last == Some(parsed.conn) {
                continue;
            }
            last = Some(parsed.conn);
            if let Some(connection) = connections.get(parsed.conn) {
                connection.held.release();
            }
        }
    }

    /// The arguments of a request that were received in this turn; `None` if it has taken them over, or
    /// they are held by its connection.
    pub(super) fn received<'a>(&'a self, bytes: &'a [u8], parsed: &Parsed) -> Option<Args<'a>> {
        if parsed.held || parsed.big != NO_BIG {
            return None;
        }
        let buf = bytes.get(parsed.base..).unwrap_or_default();
        let spans = self
            .spans
            .get(parsed.spans.0 as usize..parsed.spans.1 as usize)?;
        Some(Args::new(buf, spans, &mut []))
    }
}
