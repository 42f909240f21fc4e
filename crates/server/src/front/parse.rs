//! Parses bytes of a connection into requests.
//!
//! Bytes are parsed where they were received. Only what cannot run yet is copied: the start of an
//! incomplete request, or requests of a connection that has to wait.

use super::connection::Connection;
use super::lookahead::{Lookahead, NO_BIG, Parsed, ParsedKey, What};
use crate::command::CommandTable;
use crate::command::connection::quiet;
use rufous_base::Args;
use rufous_command::{DataCommands, Flags, Keys};
use rufous_kernel::Worker;
use rufous_resp::request::{Limits, Progress};

/// A request with more arguments than this is timed alone.
pub(super) const MANY_ARGS: u32 = 512;

/// Parses requests of one connection.
pub(super) struct Parser<'a> {
    pub(super) table: &'a CommandTable,
    pub(super) kernel: &'a Worker<DataCommands>,
    pub(super) limits: &'a Limits,
    /// Requests of a batch.
    pub(super) limit: usize,
    pub(super) lookahead: &'a mut Lookahead,
}

impl Parser<'_> {
    /// Parses `bytes[at..end]` in place. Returns the offset to continue from if the batch was full
    /// before the end.
    pub(super) fn parse_received(
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
            match connection.held.parser.parse(
                &bytes[at..end],
                &mut self.lookahead.spans,
                self.limits,
            ) {
                Ok(Progress::Request { consumed }) => {
                    self.push(connection, &bytes[at..end], at, false, first_span);
                    at += consumed;
                }
                Ok(Progress::Empty { consumed }) => at += consumed,
                Ok(Progress::Incomplete { keep }) => {
                    connection
                        .held
                        .bytes
                        .extend_from_slice(&bytes[at..at + keep]);
                    connection.held.at = 0;
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
    pub(super) fn parse_held(&mut self, connection: &mut Connection) -> bool {
        loop {
            if !self.lookahead.wants_more(self.limit) {
                return true;
            }
            let at = connection.held.at;
            let first_span = self.lookahead.spans.len();
            if connection.held.parser.wants_big().is_some() {
                return false;
            }
            if connection.held.parser.is_idle() && at == connection.held.bytes.len() {
                return false;
            }
            let held = std::mem::take(&mut connection.held.bytes);
            let parsed =
                connection
                    .held
                    .parser
                    .parse(&held[at..], &mut self.lookahead.spans, self.limits);
            if let Ok(Progress::Request { .. }) = parsed {
                self.push(connection, &held[at..], at, true, first_span);
            }
            connection.held.bytes = held;
            match parsed {
                Ok(Progress::Request { consumed } | Progress::Empty { consumed }) => {
                    connection.held.at += consumed;
                }
                Ok(Progress::Incomplete { keep }) => {
                    connection.held.bytes.truncate(at + keep);
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
            strict_in: None,
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
        let mut bigs = connection.held.parser.take_big();
        let ahead = &mut *self.lookahead;
        let first_key = ahead.keys.len() as u32;
        let mut first_span = first_span;
        let mut args = Args::new(buf, &ahead.spans[first_span..], &mut bigs);
        let quiet = quiet::precedes(args.get(0), args.len());
        if quiet {
            // The rest is the request: routes, queues and logs see nothing else.
            first_span += 1;
            bigs.iter_mut().for_each(|(index, _)| *index -= 1);
            args = Args::new(buf, &ahead.spans[first_span..], &mut bigs);
        }
        let spans = (first_span as u32, ahead.spans.len() as u32);
        let what = find_command(self.table, quiet, &args);
        let mut strict_in = None;
        if let What::Command(id) = what {
            let spec = self.table.spec(id);
            match spec.keys.single() {
                Some(arg) => {
                    let (key, is_lattice) =
                        parsed_key(self.kernel, &args, (connection.db, u32::from(arg)));
                    ahead.keys.push(key);
                    strict_in = (!is_lattice).then(|| self.kernel.table_mark());
                }
                None if matches!(spec.keys, Keys::None) => {}
                None => {
                    ahead.found.clear();
                    spec.keys.find(&args, connection.db, &mut ahead.found);
                    let mut is_any_lattice = !matches!(spec.keys, Keys::Range { .. });
                    for &found in &ahead.found {
                        let (key, is_lattice) = parsed_key(self.kernel, &args, found);
                        ahead.keys.push(key);
                        is_any_lattice |= is_lattice;
                    }
                    strict_in = (!is_any_lattice).then(|| self.kernel.table_mark());
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
            strict_in,
        });
    }
}

/// Hash and owner of the key at an argument, and whether it is in a lattice keyspace.
#[inline]
pub(crate) fn parsed_key(
    kernel: &Worker<DataCommands>,
    args: &Args<'_>,
    (db, arg): (u8, u32),
) -> (ParsedKey, bool) {
    let key = kernel.shard.key(args.get(arg as usize));
    let (owner, is_lattice) = kernel.placement().located(key.bytes);
    let parsed = ParsedKey {
        db,
        arg,
        hash: key.hash,
        owner,
    };
    (parsed, is_lattice)
}

/// The command that a request names.
#[inline]
pub(crate) fn find_command(table: &CommandTable, quiet: bool, args: &Args<'_>) -> What {
    let Some(mut id) = table.find(args.get(0)) else {
        return What::Unknown;
    };
    let mut spec = table.spec(id);
    if spec.flags.has(Flags::CONTAINER) && args.len() > 1 {
        match table.find_sub(id, args.get(1)) {
            Some(sub) => (id, spec) = (sub, table.spec(sub)),
            None => return What::UnknownSub(id),
        }
    }
    if !spec.accepts(args.len()) {
        return What::WrongArity(id);
    }
    if quiet && !quiet::allows(table, id) {
        return What::NotQuiet(id);
    }
    What::Command(id)
}
