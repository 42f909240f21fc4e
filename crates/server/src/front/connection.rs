//! The state of one client connection.

use super::bounds;
use super::guesses::Turn;
use super::transaction::Transaction;
use rufous_base::limits::OUTPUT_HIGH_WATER;
use rufous_base::{Backlog, BigArg, ConnId, ConnInfo, Output, Span, Until, WorkerId};
use rufous_command::Table;
use rufous_kernel::Batch;
use rufous_mapping::NodeNo;
use rufous_resp::request::RequestParser;
use std::collections::VecDeque;

/// Why a connection's requests are suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspended {
    /// Until every pending request has been answered: the last one could be overtaken.
    Barrier,
    /// Until fewer requests are pending at other workers.
    TooManyInFlight,
    /// `CLIENT PAUSE`.
    Paused,
    /// Until almost all replies written in this turn are sent.
    Unsent,
    /// Until fewer requests are pending at a node.
    Crowded(NodeNo),
    /// Until a route to the keys of its next request may exist: routing has changed since `news`,
    /// or `until_us` has passed.
    NoWay { news: u64, until_us: u64 },
    /// Until its password is checked: see [`super::guesses`].
    Guess { until_us: u64 },
}

/// Which replies the client wants (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    #[default]
    On,
    Off,
    /// Leave out the reply to the next request.
    SkipNext,
    /// Leave out the reply to this request, then answer again.
    Skipping,
}

/// A reply in the order of requests, while an earlier one is pending.
#[derive(Debug)]
pub enum Slot {
    /// Pending.
    Waiting {
        discard: bool,
        /// The reply may be long: see [`super::bounds`].
        long: bool,
    },
    /// Ready: the next `len` bytes of [`Connection::late`].
    Late {
        start: (usize, usize),
        end: (usize, usize),
    },
    /// Ready out of order, from another worker.
    Early(Box<Output>),
}

/// A request that was parsed but may not run yet.
#[derive(Debug)]
pub enum Deferred {
    Request(Box<Batch>),
    Malformed(String),
}

/// One client connection, at the worker that accepted it.
#[derive(Debug)]
pub struct Connection {
    pub id: ConnId,
    /// The number that `CLIENT ID` returns.
    pub client_id: u64,
    pub info: ConnInfo,
    pub created_us: u64,
    pub last_active_us: u64,
    pub name: Vec<u8>,
    pub lib_name: Vec<u8>,
    pub lib_version: Vec<u8>,
    pub db: u8,
    pub resp3: bool,
    pub authenticated: bool,
    /// Consecutive wrong passwords.
    pub auth_failures: u32,
    /// Whether its next password may be checked; `None`: that was not asked yet.
    pub(crate) guess: Option<Turn>,
    pub reply_mode: ReplyMode,
    pub no_evict: bool,
    pub no_touch: bool,
    /// At the redirecting port: it is served as at the plain one.
    pub crosses_slots: bool,
    /// An error within `EXEC` or `COMMIT` undoes all of it.
    pub undoes: bool,
    pub monitor: bool,
    /// The reply that ends the connection has been written.
    pub closing: bool,
    /// Reply bytes written, or received from other workers, since the driver last sent any.
    pub(super) unsent: usize,
    /// Of replies from other workers that may be long: about the longest of the last few.
    pub(super) long_reply: usize,
    /// What the driver was told last.
    pub(super) backlog: Backlog,
    pub last_command: Option<u16>,
    pub transaction: Transaction,
    pub commands: u64,
    /// When it last had more than one request pending; 0: never.
    pub(super) pipelined_us: u64,

    pub parser: RequestParser,
    /// Bytes of a request that is incomplete, or that may not run yet.
    pub held: Vec<u8>,
    /// How much of `held` has been parsed.
    pub held_at: usize,
    /// Requests that were parsed but may not run yet.
    pub deferred: VecDeque<Deferred>,
    pub suspended: Option<Suspended>,
    /// How long its next request waits for a route to its keys.
    pub(crate) way_until_us: Option<u64>,
    /// The number of the request that waits for data.
    pub(super) blocked: Option<u32>,
    /// When its last blocking command times out; `None`: never.
    pub(crate) deadline_us: Option<u64>,
    /// The client has stopped sending.
    pub(super) ended: bool,

    /// Its next reply comes from another node, which sends large values as bytes and not by
    /// reference.
    pub(crate) is_far: bool,

    /// Replies not yet sent, in request order; empty if all are sent.
    pub slots: VecDeque<Slot>,
    /// The number of the first slot's request.
    pub first_seq: u32,
    /// Replies that wait for earlier ones.
    pub late: Output,
    /// What the replies not yet written have to wait for after they are written.
    until: Until,
}

impl Connection {
    pub fn new(id: ConnId, client_id: u64, info: ConnInfo, now_us: u64) -> Self {
        Self {
            id,
            client_id,
            info,
            created_us: now_us,
            last_active_us: now_us,
            name: Vec::new(),
            lib_name: Vec::new(),
            lib_version: Vec::new(),
            db: 0,
            resp3: false,
            authenticated: false,
            auth_failures: 0,
            guess: None,
            reply_mode: ReplyMode::On,
            no_evict: false,
            no_touch: false,
            crosses_slots: false,
            undoes: false,
            monitor: false,
            closing: false,
            unsent: 0,
            long_reply: OUTPUT_HIGH_WATER / 2,
            backlog: Backlog::default(),
            last_command: None,
            transaction: Transaction::default(),
            commands: 0,
            pipelined_us: 0,
            parser: RequestParser::new(),
            held: Vec::new(),
            held_at: 0,
            deferred: VecDeque::new(),
            suspended: None,
            way_until_us: None,
            blocked: None,
            deadline_us: None,
            ended: false,
            is_far: false,
            slots: VecDeque::new(),
            first_seq: 0,
            late: Output::default(),
            until: Until::Logged,
        }
    }

    /// The number that the next request gets.
    pub fn next_seq(&self) -> u32 {
        self.first_seq.wrapping_add(self.slots.len() as u32)
    }

    /// Whether nothing of its requests is pending: no reply, no request, no part of one, and no
    /// transaction.
    pub(super) fn is_at_rest(&self) -> bool {
        self.slots.is_empty()
            && self.suspended.is_none()
            && !self.holds_input()
            && !self.is_blocked()
            && !self.transaction.is_open()
    }

    /// Heap bytes held for requests that are incomplete or may not run.
    pub fn input_bytes(&self) -> usize {
        self.held.capacity() + self.parser.held_bytes()
    }

    /// Takes the reply to request `seq` from another worker, and writes all replies that are now in
    /// order to `out`.
    pub fn complete(
        &mut self,
        seq: u32,
        from: &Output,
        start: (usize, usize),
        end: (usize, usize),
        out: &mut Output,
    ) {
        let place = seq.wrapping_sub(self.first_seq) as usize;
        let Some(slot) = self.slots.get_mut(place) else {
            debug_assert!(false, "a reply to a request that is not under way");
            return;
        };
        let Slot::Waiting { discard, long } = *slot else {
            debug_assert!(false, "a second reply to one request");
            return;
        };
        let length = bounds::written_between(from, start, end);
        if long {
            self.long_reply = length.max(self.long_reply / 4 * 3);
        }
        let end = if discard { start } else { end };
        if !discard {
            self.unsent = self.unsent.saturating_add(length);
        }
        if place > 0 {
            let mut early = Box::<Output>::default();
            early.append_range(from, start, end);
            *slot = Slot::Early(early);
            return;
        }
        out.append_range(from, start, end);
        self.pop_slot();
        self.flush_ready(out);
    }

    fn flush_ready(&mut self, out: &mut Output) {
        loop {
            match self.slots.front() {
                Some(Slot::Late { start, end }) => out.append_range(&self.late, *start, *end),
                Some(Slot::Early(early)) => out.append_range(early, (0, 0), early.mark()),
                Some(Slot::Waiting { .. }) | None => break,
            }
            self.pop_slot();
        }
        if self.slots.is_empty() {
            self.late.clear();
            self.late.bytes.shrink_to(64 * 1024);
        }
    }

    fn pop_slot(&mut self) {
        self.slots.pop_front();
        self.first_seq = self.first_seq.wrapping_add(1);
    }

    /// A request is about to run whose reply waits for other nodes' copies as well as for the log.
    pub(super) fn wait_for_copies(&mut self) {
        self.until = Until::Passed;
    }

    /// Whether any of the replies not yet written waits for copies.
    pub(super) fn waits_for_copies(&self) -> bool {
        self.until == Until::Passed
    }

    /// What the replies just written wait for. `splits`: some replies wait for the log alone.
    #[inline]
    pub(super) fn take_until(&mut self, splits: bool) -> Until {
        if !splits {
            return Until::Passed;
        }
        let until = self.until;
        if self.slots.is_empty() {
            self.until = Until::Logged;
        }
        until
    }

    /// Whether it waits for data.
    pub fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// A command is about to run, or to be queued.
    #[inline]
    pub(super) fn note_command(&mut self, id: u16, queues: bool) {
        self.commands += u64::from(!queues);
        self.last_command = Some(id);
    }

    /// The command last run, as `CLIENT LIST` shows it.
    pub fn last_command_name(&self, table: &Table) -> &'static str {
        self.last_command.map_or("NULL", |id| table.spec(id).name)
    }
}

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
}
