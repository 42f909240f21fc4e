//! Parses received bytes into requests, at most a batch at a time, and prefetches what they access.
//!
//! Bytes are parsed where they were received. Only what cannot run yet is copied: the start of an
//! incomplete request, or requests of a connection that has to wait.

use super::Front;
use super::connection::{Connection, Lookahead, NO_BIG, Parsed, ParsedKey, What};
use crate::command::CommandTable;
use crate::command::connection::quiet;
use rufous_base::limits::BATCH_COMMANDS;
use rufous_base::{Args, ConnId};
use rufous_command::{DataCommands, Flags, Keys};
use rufous_kernel::Worker;
use rufous_resp::request::{Limits, Progress};

/// A batch ends at this number of keys to fetch; with more, the first of them would have left the
/// cache before their commands run.
const BATCH_KEYS: usize = 192;

/// A request with more arguments than this is timed alone.
pub(super) const MANY_ARGS: u32 = 512;

impl Front {
    /// Fills the lookahead from the reads of the turn and from connections that resume after a
    /// wait.
    pub(super) fn parse_batch(&mut self, bytes: &[u8], limit: usize) {
        self.lookahead.clear();
        while self.lookahead.wants_more(limit) {
            let Some(&read) = self.reads.get(self.next_read) else {
                break;
            };
            let fresh = self.read_at.is_none();
            let at = self.read_at.unwrap_or(read.start);
            let Some(connection) = self.connections.get(read.conn).filter(|c| !c.closing) else {
                self.read_at = None;
                self.next_read += 1;
                continue;
            };
            if fresh {
                connection.last_active_us = self.batch_started_us;
                if !connection.slots.is_empty() {
                    connection.pipelined_us = self.batch_started_us;
                }
                connection.unsent = 0;
            }
            let keep_aside = connection.suspended.is_some() || connection.holds_input();
            let mut parser = Parser {
                table: self.table,
                kernel: &self.kernel,
                limits: self.limits.of(connection),
                limit,
                lookahead: &mut self.lookahead,
            };
            if keep_aside {
                connection.hold(&bytes[at..read.end]);
                if connection.has_sent_enough() {
                    self.holds.push((read.conn, true));
                }
                if connection.suspended.is_some() || !parser.parse_held(connection) {
                    self.end_read();
                } else {
                    self.read_at = Some(read.end);
                }
                continue;
            }
            match parser.parse_received(connection, bytes, at, read.end) {
                Some(next) => self.read_at = Some(next),
                None => self.end_read(),
            }
        }
        self.parse_resumed(limit);
    }

    /// Drops a client that sends more bytes than may wait without ever completing a request.
    fn end_read(&mut self) {
        if let Some(read) = self.reads.get(self.next_read)
            && let Some(connection) = self.connections.get(read.conn)
            && connection.holds_input()
            && connection.input_bytes() > self.config.client_query_buffer_limit
        {
            self.connections.close_now(read.conn);
        }
        self.read_at = None;
        self.next_read += 1;
    }

    fn parse_resumed(&mut self, limit: usize) {
        while self.lookahead.wants_more(limit) {
            let Some(&id) = self.resumed.last() else {
                break;
            };
            let Some(connection) = self
                .connections
                .get(id)
                .filter(|c| !c.closing && c.suspended.is_none())
            else {
                self.resumed.pop();
                continue;
            };
            if !connection.deferred.is_empty() {
                // Its parsed requests run first, in a batch of their own.
                break;
            }
            let mut parser = Parser {
                table: self.table,
                kernel: &self.kernel,
                limits: self.limits.of(connection),
                limit,
                lookahead: &mut self.lookahead,
            };
            if !parser.parse_held(connection) {
                self.resumed.pop();
            }
        }
    }

    /// The next connection whose deferred requests are to run.
    pub(super) fn next_deferred(&mut self) -> Option<ConnId> {
        let id = *self.resumed.last()?;
        let connection = self.connections.get(id)?;
        let ready = connection.suspended.is_none() && !connection.closing;
        (ready && !connection.deferred.is_empty()).then_some(id)
    }

    /// Loads what the batch will access. The loads are independent, so the processor has many of
    /// them outstanding at once; when the commands access the lines, they are in its cache.
    pub(super) fn warm_batch(&mut self) {
        let shard = &self.kernel.shard;
        self.warm.clear();
        let here = self.kernel.id();
        let own = || self.lookahead.keys.iter().filter(|key| key.owner == here);
        for key in own() {
            self.warm
                .push(shard.warm_index(usize::from(key.db), key.hash));
        }
        for (key, &warm) in own().zip(&self.warm) {
            shard.warm_record(usize::from(key.db), warm);
        }
    }
}

impl Connection {
    /// Whether bytes are left from an earlier read.
    pub(super) fn holds_input(&self) -> bool {
        !self.held.is_empty() || !self.parser.is_idle() || !self.deferred.is_empty()
    }

    /// Keeps bytes for later; those of a large argument go directly to it.
    pub(super) fn hold(&mut self, mut bytes: &[u8]) {
        if self.parser.wants_big().is_some() {
            let taken = self.parser.fill_big(bytes);
            bytes = &bytes[taken..];
        }
        self.held.extend_from_slice(bytes);
    }
}

struct Parser<'a> {
    table: &'a CommandTable,
    kernel: &'a Worker<DataCommands>,
    limits: &'a Limits,
    limit: usize,
    lookahead: &'a mut Lookahead,
}

impl Parser<'_> {
    /// Parses `bytes[at..end]` in place. Returns the offset to continue from if the batch was full
    /// before the end.
    fn parse_received(
        &mut self,
        connection: &mut Connection,
        bytes: &[u8],
        mut at: usize,
        end: usize,
    ) -> Option<usize> {
        while at < end {
            if !self.lookahead.wants_more(self.limit) {
                return Some(at);
            }
            let first_span = self.lookahead.spans.len();
            match connection
                .parser
                .parse(&bytes[at..end], &mut self.lookahead.spans, self.limits)
            {
                Ok(Progress::Request { consumed }) => {
                    self.push(connection, &bytes[at..end], at, false, first_span);
                    at += consumed;
                }
                Ok(Progress::Empty { consumed }) => at += consumed,
                Ok(Progress::Incomplete { keep }) => {
                    connection.held.extend_from_slice(&bytes[at..at + keep]);
                    connection.held_at = 0;
                    return None;
                }
                Err(error) => {
                    self.push_malformed(connection, error.to_string());
                    return None;
                }
            }
        }
        None
    }

    /// Parses what the connection holds. True if the batch was full before the end.
    fn parse_held(&mut self, connection: &mut Connection) -> bool {
        loop {
            if !self.lookahead.wants_more(self.limit) {
                return true;
            }
            let at = connection.held_at;
            let first_span = self.lookahead.spans.len();
            if connection.parser.wants_big().is_some() {
                return false;
            }
            if connection.parser.is_idle() && at == connection.held.len() {
                return false;
            }
            let held = std::mem::take(&mut connection.held);
            let parsed =
                connection
                    .parser
                    .parse(&held[at..], &mut self.lookahead.spans, self.limits);
            if let Ok(Progress::Request { .. }) = parsed {
                self.push(connection, &held[at..], at, true, first_span);
            }
            connection.held = held;
            match parsed {
                Ok(Progress::Request { consumed } | Progress::Empty { consumed }) => {
                    connection.held_at += consumed;
                }
                Ok(Progress::Incomplete { keep }) => {
                    connection.held.truncate(at + keep);
                    return false;
                }
                Err(error) => {
                    self.push_malformed(connection, error.to_string());
                    return false;
                }
            }
        }
    }

    fn push_malformed(&mut self, connection: &Connection, text: String) {
        let error = self.lookahead.errors.len() as u32;
        self.lookahead.errors.push(text);
        self.lookahead.parsed.push(Parsed {
            conn: connection.id,
            base: 0,
            held: false,
            db: 0,
            spans: (0, 0),
            what: What::Malformed(error),
            quiet: false,
            big: NO_BIG,
            keys: (0, 0),
        });
    }

    #[inline]
    fn push(
        &mut self,
        connection: &mut Connection,
        buf: &[u8],
        base: usize,
        held: bool,
        first_span: usize,
    ) {
        let mut bigs = connection.parser.take_big();
        let ahead = &mut *self.lookahead;
        let first_key = ahead.keys.len() as u32;
        let mut first_span = first_span;
        let args = Args::new(buf, &ahead.spans[first_span..], &mut bigs);
        let quiet = quiet::precedes(&args);
        if quiet {
            // The rest is the request: routes, queues and logs see nothing else.
            first_span += 1;
            bigs.iter_mut().for_each(|(index, _)| *index -= 1);
        }
        let spans = (first_span as u32, ahead.spans.len() as u32);
        let args = Args::new(buf, &ahead.spans[first_span..], &mut bigs);
        let what = find_command(self.table, quiet, &args);
        if let What::Command(id) = what {
            let spec = self.table.spec(id);
            match spec.keys.single() {
                Some(arg) => {
                    let key = parsed_key(self.kernel, &args, connection.db, u32::from(arg));
                    ahead.keys.push(key);
                }
                None if matches!(spec.keys, Keys::None) => {}
                None => {
                    ahead.found.clear();
                    spec.keys.find(&args, connection.db, &mut ahead.found);
                    for &(db, arg) in &ahead.found {
                        ahead.keys.push(parsed_key(self.kernel, &args, db, arg));
                    }
                }
            }
            let count = spans.1 - spans.0;
            ahead.alone = ahead.alone || spec.flags.has(Flags::SLOW) || count > MANY_ARGS;
        }
        let big = if bigs.is_empty() {
            NO_BIG
        } else {
            ahead.big.push(bigs);
            ahead.alone = true;
            ahead.big.len() as u32 - 1
        };
        ahead.parsed.push(Parsed {
            conn: connection.id,
            base,
            held,
            db: connection.db,
            spans,
            what,
            quiet,
            big,
            keys: (first_key, ahead.keys.len() as u32),
        });
    }
}

/// Hash and owner of the key at `arg`.
#[inline]
pub(crate) fn parsed_key(
    kernel: &Worker<DataCommands>,
    args: &Args<'_>,
    db: u8,
    arg: u32,
) -> ParsedKey {
    let key = kernel.shard.key(args.get(arg as usize));
    ParsedKey {
        db,
        arg,
        hash: key.hash,
        owner: kernel.placement().owner(key.bytes),
    }
}

/// The command that a request names.
#[inline]
pub(crate) fn find_command(table: &CommandTable, quiet: bool, args: &Args<'_>) -> What {
    let Some(mut id) = table.find(args.get(0)) else {
        return What::Unknown;
    };
    if table.spec(id).flags.has(Flags::CONTAINER) && args.len() > 1 {
        match table.find_sub(id, args.get(1)) {
            Some(sub) => id = sub,
            None => return What::UnknownSub(id),
        }
    }
    if !table.spec(id).accepts(args.len()) {
        return What::WrongArity(id);
    }
    if quiet && !quiet::allows(table, id) {
        return What::NotQuiet(id);
    }
    What::Command(id)
}

impl Lookahead {
    /// Whether the batch has room for another request.
    #[inline]
    fn wants_more(&self, limit: usize) -> bool {
        self.parsed.len() < limit.min(BATCH_COMMANDS) && self.keys.len() < BATCH_KEYS && !self.alone
    }
}
