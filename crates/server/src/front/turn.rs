//! Running parsed requests: records are fetched into the cache for a whole
//! batch, then its commands run in order.

use super::held::Deferred;
use super::lookahead::{Lookahead, NO_BIG, Parsed, What};
use super::request::Request;
use super::{Front, Message, parse};
use rufous_base::{Args, ConnId, Effects, Now};
use rufous_kernel::Batch;

/// A command with a longer reply than this ends its step, so that it is timed.
const LONG_REPLY: usize = 64 * 1024;

impl Front {
    /// Processes the bytes that the turn received.
    pub(super) fn advance(&mut self, now: Now, bytes: &[u8], fx: &mut Effects<Message>) {
        if self.intake.needs_batch() {
            self.run_deferred(now, fx);
            self.intake
                .parse_batch(now, bytes, &mut self.connections, &self.kernel);
        }
        self.run_batch(now, bytes, fx);
    }

    fn run_batch(&mut self, now: Now, bytes: &[u8], fx: &mut Effects<Message>) {
        let mut ahead = std::mem::take(&mut self.intake.ahead);
        let mut until = ahead.until();
        while ahead.next < until {
            let (conn, first) = (ahead.parsed[ahead.next].conn, ahead.next);
            let start = fx.output.mark();
            while ahead.next < until && ahead.parsed[ahead.next].conn == conn {
                let parsed = ahead.parsed[ahead.next];
                ahead.next += 1;
                let before = fx.output.mark().0;
                self.run_parsed(now, bytes, &mut ahead, parsed, fx);
                if fx.output.mark().0.saturating_sub(before) > LONG_REPLY {
                    self.note_long(bytes, &ahead, parsed);
                    until = ahead.next;
                }
            }
            if ahead.next - first > 1
                && let Some(connection) = self.connections.get(conn)
            {
                connection.pipelined_us = now.mono_us;
            }
            self.connections.write(conn, start, fx);
        }
        if ahead.next == ahead.parsed.len() {
            ahead.release_held(&mut self.connections);
        }
        self.intake.ahead = ahead;
    }

    /// Logs a command with a long reply, if it was slow. The earlier commands of the same step had
    /// short replies, so nearly all of the step's time was its own.
    fn note_long(&mut self, bytes: &[u8], ahead: &Lookahead, parsed: Parsed) {
        let connection = self.connections.get(parsed.conn);
        if let Some(connection) = connection
            && let Some(args) = ahead.received(bytes, &parsed)
        {
            self.timing
                .prepare(self.table, parsed.what, &args, connection);
        }
    }

    fn run_parsed(
        &mut self,
        now: Now,
        bytes: &[u8],
        ahead: &mut Lookahead,
        parsed: Parsed,
        fx: &mut Effects<Message>,
    ) {
        if parsed.held {
            return self.run_held_part(now, ahead, parsed, fx);
        }
        let buf = bytes.get(parsed.base..).unwrap_or_default();
        self.run_part(now, buf, ahead, parsed, fx);
    }

    /// Runs a request of which its connection has the bytes.
    #[inline(never)]
    fn run_held_part(
        &mut self,
        now: Now,
        ahead: &mut Lookahead,
        parsed: Parsed,
        fx: &mut Effects<Message>,
    ) {
        let Some(connection) = self.connections.get(parsed.conn) else {
            return;
        };
        let held = std::mem::take(&mut connection.held.bytes);
        let buf = held.get(parsed.base..).unwrap_or_default();
        self.run_part(now, buf, ahead, parsed, fx);
        if let Some(connection) = self.connections.get(parsed.conn) {
            connection.held.bytes = held;
        }
    }

    #[inline]
    fn run_part(
        &mut self,
        now: Now,
        buf: &[u8],
        ahead: &mut Lookahead,
        parsed: Parsed,
        fx: &mut Effects<Message>,
    ) {
        let Some(connection) = self.connections.get(parsed.conn) else {
            return;
        };
        if connection.closing {
            return;
        }
        let is_timed = self.intake.times(ahead);
        let spans = &ahead.spans[parsed.spans.0 as usize..parsed.spans.1 as usize];
        let big = match parsed.big {
            NO_BIG => &mut [][..],
            index => &mut ahead.big[index as usize][..],
        };
        let args = Args::new(buf, spans, big);
        // Also if the connection need not wait any more: its deferred requests run first.
        if connection.suspended.is_some() || connection.held.has_deferred() {
            let header = connection.header(0, parsed.quiet, None);
            let errors = &ahead.errors;
            return connection.held.defer(parsed.what, header, args, errors);
        }
        if is_timed {
            self.timing
                .prepare(self.table, parsed.what, &args, connection);
        }
        let keys = &ahead.keys[parsed.keys.0 as usize..parsed.keys.1 as usize];
        let request = Request {
            conn: parsed.conn,
            what: parsed.what,
            quiet: parsed.quiet,
            db: parsed.db,
            keys,
            strict_in: parsed.strict_in,
        };
        self.run_request(now, request, args, &ahead.errors, fx);
    }

    /// Runs requests that were parsed before their connection had to wait.
    fn run_deferred(&mut self, now: Now, fx: &mut Effects<Message>) {
        while let Some(id) = self.intake.next_deferred(&mut self.connections) {
            let start = fx.output.mark();
            while let Some(connection) = self.connections.get(id)
                && connection.suspended.is_none()
                && !connection.closing
                && let Some(deferred) = connection.held.next_deferred()
            {
                match deferred {
                    Deferred::Malformed(text) => {
                        let request = Request {
                            conn: id,
                            what: What::Malformed(0),
                            quiet: false,
                            db: 0,
                            keys: &[],
                            strict_in: None,
                        };
                        self.run_request(now, request, Args::new(&[], &[], &mut []), &[text], fx);
                    }
                    Deferred::Request(mut batch) => {
                        self.run_deferred_request(now, id, &mut batch, fx)
                    }
                }
            }
            self.connections.write(id, start, fx);
        }
    }

    fn run_deferred_request(
        &mut self,
        now: Now,
        conn: ConnId,
        batch: &mut Batch,
        fx: &mut Effects<Message>,
    ) {
        let (header, args, _) = batch.parts(0);
        let what = parse::find_command(self.table, header.quiet, &args);
        let mut keys = Vec::new();
        if let What::Command(id) = what {
            let mut found = Vec::new();
            self.table.spec(id).keys.find(&args, header.db, &mut found);
            let keyed = |found| parse::parsed_key(&self.kernel, &args, found).0;
            keys.extend(found.into_iter().map(keyed));
        }
        self.run_request(
            now,
            Request {
                conn,
                what,
                quiet: header.quiet,
                db: header.db,
                keys: &keys,
                strict_in: None,
            },
            args,
            &[],
            fx,
        );
    }
}
