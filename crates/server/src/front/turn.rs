//! Running parsed requests: records are fetched into the cache for a whole
//! batch, then its commands run in order.

use super::connection::{
    Deferred, Lookahead, NO_BIG, Parsed, ParsedKey, ReplyMode, Slot, Suspended, What,
};
use super::local::Local;
use super::session::Session;
use super::transaction::apart;
use super::{Front, Message, bounds, monitor, parse, secret};
use crate::cluster::way::{Way, Within};
use crate::command::Dispatch;
use rufous_base::{Args, ConnId, Effects, Now, Output};
use rufous_command::{Failure, Flags, Keys, Reply};
use rufous_kernel::{Batch, Header, Submitted};

/// A command with a longer reply than this ends its step, so that it is timed.
const LONG_REPLY: usize = 64 * 1024;

impl Front {
    /// Processes the bytes that the turn received.
    pub(super) fn advance(&mut self, now: Now, bytes: &[u8], fx: &mut Effects<Message>) {
        if self.lookahead.next >= self.lookahead.parsed.len() {
            self.run_deferred(now, fx);
            self.parse_batch(bytes, self.batch_limit);
            self.warm_batch();
        }
        self.run_batch(now, bytes, fx);
    }

    fn run_batch(&mut self, now: Now, bytes: &[u8], fx: &mut Effects<Message>) {
        let mut ahead = std::mem::take(&mut self.lookahead);
        let mut until = match ahead.alone && ahead.next + 1 < ahead.parsed.len() {
            // The last command runs in a step of its own, and so is timed on its own.
            true => ahead.parsed.len() - 1,
            false => ahead.parsed.len(),
        };
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
            self.write(conn, start, fx);
        }
        if ahead.next == ahead.parsed.len() {
            self.release_held(&ahead);
        }
        self.lookahead = ahead;
    }

    /// Logs a command with a long reply, if it was slow. The earlier commands of the same step had
    /// short replies, so nearly all of the step's time was its own.
    fn note_long(&mut self, bytes: &[u8], ahead: &Lookahead, parsed: Parsed) {
        // Arguments that the command has taken over, or held ones, are not available any more.
        if parsed.held || parsed.big != NO_BIG {
            return;
        }
        let Some(connection) = self.connections.get(parsed.conn) else {
            return;
        };
        let buf = bytes.get(parsed.base..).unwrap_or_default();
        let spans = &ahead.spans[parsed.spans.0 as usize..parsed.spans.1 as usize];
        let args = Args::new(buf, spans, &mut []);
        self.slow
            .prepare(self.table, parsed.what, &args, connection);
    }

    fn run_parsed(
        &mut self,
        now: Now,
        bytes: &[u8],
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
        let held = if parsed.held {
            std::mem::take(&mut connection.held)
        } else {
            Vec::new()
        };
        let buf = if parsed.held {
            &held[parsed.base..]
        } else {
            bytes.get(parsed.base..).unwrap_or_default()
        };
        let spans = &ahead.spans[parsed.spans.0 as usize..parsed.spans.1 as usize];
        let big = match parsed.big {
            NO_BIG => &mut [][..],
            index => &mut ahead.big[index as usize][..],
        };
        let args = Args::new(buf, spans, big);
        // Also if the connection need not wait any more: its deferred requests run first.
        if connection.suspended.is_some() || !connection.deferred.is_empty() {
            connection.defer(parsed.what, parsed.quiet, args, &ahead.errors);
        } else {
            let timed = ahead.alone || self.batch_limit == 1;
            if timed && ahead.next == ahead.parsed.len() {
                self.slow
                    .prepare(self.table, parsed.what, &args, connection);
            }
            let keys = &ahead.keys[parsed.keys.0 as usize..parsed.keys.1 as usize];
            let request = Request {
                conn: parsed.conn,
                what: parsed.what,
                quiet: parsed.quiet,
                db: parsed.db,
                keys,
            };
            self.run_request(now, request, args, &ahead.errors, fx);
        }
        if parsed.held
            && let Some(connection) = self.connections.get(parsed.conn)
        {
            connection.held = held;
        }
    }

    /// Frees held bytes whose requests have run.
    fn release_held(&mut self, ahead: &Lookahead) {
        let mut last = None;
        for parsed in ahead.parsed.iter().filter(|p| p.held) {
            if last == Some(parsed.conn) {
                continue;
            }
            last = Some(parsed.conn);
            if let Some(connection) = self.connections.get(parsed.conn) {
                connection.release_held();
            }
        }
    }

    /// Runs requests that were parsed before their connection had to wait.
    fn run_deferred(&mut self, now: Now, fx: &mut Effects<Message>) {
        while let Some(id) = self.next_deferred() {
            let start = fx.output.mark();
            while let Some(connection) = self.connections.get(id)
                && connection.suspended.is_none()
                && !connection.closing
                && let Some(deferred) = connection.deferred.pop_front()
            {
                match deferred {
                    Deferred::Malformed(text) => {
                        let request = Request {
                            conn: id,
                            what: What::Malformed(0),
                            quiet: false,
                            db: 0,
                            keys: &[],
                        };
                        self.run_request(now, request, Args::new(&[], &[], &mut []), &[text], fx);
                    }
                    Deferred::Request(mut batch) => {
                        self.run_deferred_request(now, id, &mut batch, fx)
                    }
                }
            }
            self.write(id, start, fx);
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
            let keyed = |(db, arg)| parse::parsed_key(&self.kernel, &args, db, arg);
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
            },
            args,
            &[],
            fx,
        );
    }

    fn run_request(
        &mut self,
        now: Now,
        request: Request<'_>,
        args: Args<'_>,
        errors: &[String],
        fx: &mut Effects<Message>,
    ) {
        let mark = fx.output.mark();
        let What::Command(id) = request.what else {
            return self.refuse_unknown(now, &request, &args, errors, fx);
        };
        let spec = self.table.spec(id);
        let loading = self.refuses_while_loading(spec);
        let way = self.way_of(&request, &args);
        let Some(connection) = self.connections.get(request.conn) else {
            return;
        };
        connection.begin_request();
        let stranger = !connection.authenticated && !spec.flags.has(Flags::NO_AUTH);
        if stranger || loading {
            let failure = match stranger {
                true => Failure::from("NOAUTH Authentication required."),
                false => self.loading_failure(),
            };
            return self.reject(&request, id, &failure, fx);
        }
        let guesses = !connection.authenticated && secret::has_password(spec.flags, &args);
        let may_wait = guesses
            || way != Way::Here
            || self.pause.is_active()
            || apart::may_overtake(spec, connection);
        let connection = match may_wait {
            false => connection,
            true => {
                if let Some(why) = self.why_waits(now, &request, &way, &args, guesses) {
                    return self.defer_for(why, &request, args, fx);
                }
                let Some(connection) = self.connections.get(request.conn) else {
                    return;
                };
                connection
            }
        };
        let (queues, has_begun) = (connection.queues(spec), connection.transaction.is_begun());
        connection.note_command(id, queues);
        let header = connection.header(id, request.quiet, request.keys.first());
        let within = Within::of(queues, has_begun);
        let refused = self.refused_on_keys(&request, &way, within, spec, &args);
        if let Some(failure) = refused {
            return self.reject(&request, id, &failure, fx);
        }
        if queues {
            let reply = &mut Reply::new(&mut fx.output, header.resp3);
            self.queue(now, header, spec, args, reply);
            return self.finish_request(request.conn, mark, Submitted::Done, fx);
        }
        self.note_until(&request, spec, has_begun, &args);
        // A transaction is shown after its commands.
        if self.shared.has_monitors() && monitor::shows(spec) && !spec.flags.has(Flags::EXEC) {
            self.feed_monitors(now, request.conn, spec, &args);
        }
        let submitted = match way {
            way if has_begun => self.submit_begun(now, (&request, &way), &header, args, fx),
            Way::Here => self.submit(now, &request, &header, args, fx),
            way => self.submit_elsewhere(now, &way, &request, &header, &args, fx),
        };
        self.finish_request(request.conn, mark, submitted, fx);
    }

    /// Answers a request for an unknown command.
    fn refuse_unknown(
        &mut self,
        now: Now,
        request: &Request<'_>,
        args: &Args<'_>,
        errors: &[String],
        fx: &mut Effects<Message>,
    ) {
        if request.what == What::Unknown && self.turns_away_http(now, request.conn, args) {
            return;
        }
        let mark = fx.output.mark();
        let failure = self.refusal(request.what, args, errors);
        self.refuse(request, &failure, fx);
        self.finish_request(request.conn, mark, Submitted::Done, fx);
    }

    /// Answers a request that may not run.
    fn reject(
        &mut self,
        request: &Request<'_>,
        command: u16,
        failure: &Failure,
        fx: &mut Effects<Message>,
    ) {
        let mark = fx.output.mark();
        self.kernel.stats_mut()[usize::from(command)].rejected += 1;
        self.refuse(request, failure, fx);
        self.finish_request(request.conn, mark, Submitted::Done, fx);
    }

    /// Defers a request that has to wait, and those behind it.
    fn defer_for(
        &mut self,
        why: Suspended,
        request: &Request<'_>,
        args: Args<'_>,
        fx: &mut Effects<Message>,
    ) {
        if let Some(connection) = self.connections.get(request.conn) {
            connection.defer_first(request.quiet, args);
            self.suspend(request.conn, why, fx);
        }
    }

    /// Submits a request to the kernel or to the node that has its keys.
    #[inline]
    pub(crate) fn submit(
        &mut self,
        now: Now,
        request: &Request<'_>,
        header: &Header,
        mut args: Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        match self.table.dispatch(header.command) {
            Dispatch::Key => {
                // A command with one key has it in `keys`, or was refused for its arity.
                let first = request.keys.first();
                let owner = first.map_or(self.kernel.id(), |key| self.owner_of(key, &args));
                self.kernel
                    .submit_one(now, header, owner, args, &mut fx.output)
            }
            Dispatch::Keys => {
                if self.apart(now).takes(request, &Way::Here, &args) {
                    let out = &mut fx.output;
                    return self.apart(now).submit(request, header, &args, out);
                }
                let spec = self.table.spec(header.command);
                self.note_deadline(now, header.conn, spec, &args);
                let keys = request.keys_in(header.db, spec.keys, &args);
                self.kernel
                    .submit_many(now, header, &keys, args, &mut fx.output)
            }
            Dispatch::Node(action) => match action(&args, header.db) {
                Ok(action) => self
                    .kernel
                    .submit_node(now, header, action, args, &mut fx.output),
                Err(failure) => {
                    Reply::new(&mut fx.output, header.resp3).error(&failure);
                    Submitted::Done
                }
            },
            Dispatch::Session(run) => {
                let args = args.reborrow();
                match self.run_session(now, header, None, run, args, &mut fx.output) {
                    true => Submitted::Barrier,
                    false => Submitted::Done,
                }
            }
        }
    }

    /// Runs a command on the connection or the server. True if its reply comes later: to the
    /// transaction `exec`, if it is part of one.
    pub(super) fn run_session(
        &mut self,
        now: Now,
        header: &Header,
        exec: Option<u64>,
        run: crate::command::SessionRun,
        args: Args<'_>,
        out: &mut Output,
    ) -> bool {
        let mark = out.mark();
        let mut reply = Reply::new(out, header.resp3);
        let mut session = Session {
            local: Local { front: self },
            conn: header.conn,
            now,
            pending: false,
            exec,
        };
        let result = run(&mut session, args, &mut reply);
        let pending = session.pending;
        if let Err(failure) = &result {
            reply.out.truncate(mark);
            reply.error(failure);
        }
        self.kernel.note(header.command, result.is_ok());
        self.connections.renew_backlog(header.conn);
        pending
    }

    /// Puts the reply, written since `mark` or still pending, in its place.
    fn finish_request(
        &mut self,
        conn: ConnId,
        mark: (usize, usize),
        submitted: Submitted,
        fx: &mut Effects<Message>,
    ) {
        self.counters.note_reply(&fx.output, mark, fx.output.mark());
        let Some(connection) = self.connections.get(conn) else {
            return;
        };
        let discard = match connection.reply_mode {
            ReplyMode::On | ReplyMode::SkipNext => false,
            ReplyMode::Off => true,
            ReplyMode::Skipping => {
                connection.reply_mode = ReplyMode::On;
                true
            }
        };
        match submitted {
            Submitted::Done | Submitted::NotHere => {
                if discard {
                    return fx.output.truncate(mark);
                }
                let written = bounds::written_since(&fx.output, mark);
                if !connection.slots.is_empty() && written > 0 {
                    connection.put_late(mark, &mut fx.output);
                }
                self.bound_replies(conn, written, fx);
            }
            Submitted::Pending | Submitted::Barrier => {
                let table = self.table;
                let command = connection.last_command.map(|id| table.spec(id));
                let is_far = std::mem::take(&mut connection.is_far);
                let long = is_far || command.is_some_and(bounds::may_answer_long);
                connection.slots.push_back(Slot::Waiting { discard, long });
                if submitted == Submitted::Barrier {
                    self.suspend(conn, Suspended::Barrier, fx);
                } else if connection.slots.len() >= connection.window(long) {
                    self.suspend(conn, Suspended::TooManyInFlight, fx);
                }
            }
        }
    }

    pub(crate) fn suspend(&mut self, conn: ConnId, why: Suspended, fx: &mut Effects<Message>) {
        let Some(connection) = self.connections.get(conn) else {
            return;
        };
        if connection.suspended.is_none() {
            self.counters.suspended += 1;
            fx.holds.push((conn, true));
        }
        connection.suspended = Some(why);
    }
}

/// A request about to run.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) conn: ConnId,
    pub(crate) what: What,
    pub(crate) quiet: bool,
    /// The database that was selected when it was parsed.
    pub(crate) db: u8,
    pub(crate) keys: &'a [ParsedKey],
}

impl Request<'_> {
    /// Its keys, with the database selected now.
    pub(crate) fn keys_in(&self, db: u8, keys: Keys, args: &Args<'_>) -> Vec<(u8, u32)> {
        if db == self.db {
            return self.keys.iter().map(|k| (k.db, k.arg)).collect();
        }
        let mut found = Vec::new();
        keys.find(args, db, &mut found);
        found
    }
}
