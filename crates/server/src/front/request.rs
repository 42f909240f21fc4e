//! One request: whether it runs now and here, and where its reply goes.

use super::connection::{Connection, Suspended};
use super::local::Local;
use super::lookahead::{ParsedKey, What};
use super::session::Session;
use super::transaction::apart;
use super::{Front, Message, http, monitor, refusals, secret};
use crate::cluster::way::{self, Locator, Routed, Way, Within};
use crate::command::Dispatch;
use rufous_base::{Args, ConnId, Effects, Now, Output, Until};
use rufous_command::{Failure, Flags, Keys, Reply, Spec};
use rufous_kernel::{Header, Submitted};
use std::borrow::Cow;

const NO_AUTH: Failure = Failure(Cow::Borrowed("NOAUTH Authentication required."));

/// Whether a command waits for the replies to earlier requests of its connection.
#[inline]
fn is_behind(spec: &Spec, connection: &Connection) -> bool {
    !connection.replies.is_empty() && spec.flags.has(Flags::AFTER_OTHERS)
}

/// Likewise, or may wait for them.
#[inline]
fn may_be_behind(spec: &Spec, connection: &Connection) -> bool {
    apart::may_overtake(spec, connection) || is_behind(spec, connection)
}

impl Front {
    pub(super) fn run_request(
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
        connection.replies.on_request();
        let stranger = !connection.authenticated && !spec.flags.has(Flags::NO_AUTH);
        if stranger || loading {
            let loading = self.shared.loading.failure();
            let failure = if stranger { NO_AUTH } else { loading };
            return self.reject(&request, id, &failure, fx);
        }
        let guesses = !connection.authenticated && secret::has_password(spec.flags, &args);
        let may_wait = guesses
            || way != Way::Here
            || self.pause.is_active()
            || may_be_behind(spec, connection);
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
        let mut header = connection.header(id, request.quiet, request.keys.first());
        header.strict_in = request.strict_in;
        let within = Within::of(queues, has_begun);
        let routed = Routed::new(&request, spec, &args, &way, within);
        if let Some(failure) = self.refused_on_keys(&routed) {
            return self.reject(&request, id, &failure, fx);
        }
        if queues {
            let reply = &mut Reply::new(&mut fx.output, header.resp3);
            self.queue(now, header, spec, args, reply);
            return self.finish_request(request.conn, mark, Submitted::Done, fx);
        }
        if self.connections.splits() {
            self.note_until(&request, spec, has_begun, &args);
        }
        // A transaction is shown after its commands.
        if !spec.flags.has(Flags::EXEC) {
            self.show(now, request.conn, spec, &args);
        }
        let submitted = match way {
            way if has_begun => self.submit_begun(now, (&request, &way), &header, args, fx),
            Way::Here => self.submit(now, &request, &header, args, fx),
            way => self.submit_elsewhere(now, &way, &request, &header, &args, fx),
        };
        self.finish_request(request.conn, mark, submitted, fx);
    }

    /// Shows a request that is about to run to monitors.
    #[inline(always)]
    pub(super) fn show(&mut self, now: Now, conn: ConnId, spec: &Spec, args: &Args<'_>) {
        if self.shared.has_monitors() {
            self.show_to_monitors(now, conn, spec, args);
        }
    }

    #[cold]
    fn show_to_monitors(&mut self, now: Now, conn: ConnId, spec: &Spec, args: &Args<'_>) {
        if monitor::shows(spec)
            && let Some(connection) = self.connections.get(conn)
        {
            let line = monitor::line(now, connection, spec, args);
            monitor::feed(line, &self.connections, &mut self.out);
        }
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
        let failure = refusals::refusal(request.what, args, errors, self.table, &mut self.kernel);
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
            let header = connection.header(0, request.quiet, None);
            connection.held.defer_first(header, args);
            self.connections.suspend(request.conn, why, fx);
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
                let owner_now =
                    |key: &ParsedKey| key.owner_now(&self.kernel, &args, request.strict_in);
                let owner = first.map_or(self.kernel.id(), owner_now);
                self.kernel
                    .submit_one(now, header, owner, args, &mut fx.output)
            }
            Dispatch::Keys => {
                if self.apart(now).takes(request, &Way::Here, &args) {
                    let out = &mut fx.output;
                    return self.apart(now).submit(request, header, &args, out);
                }
                let spec = self.table.spec(header.command);
                self.connections
                    .note_deadline(now, header.conn, spec, &args);
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

    /// Whether a request has to be refused because the data is not loaded yet. A client that was
    /// served by the first worker that is ready could meet one that is not by its next connection.
    #[inline]
    pub(crate) fn refuses_while_loading(&self, spec: &Spec) -> bool {
        let loads = self.durability.is_loading() || self.declared.is_awaited();
        (loads || self.shared.loading.is_loading()) && !spec.flags.has(Flags::LOADING)
    }

    fn refuse(&mut self, request: &Request<'_>, failure: &Failure, fx: &mut Effects<Message>) {
        let spec = match request.what {
            What::Command(id) | What::WrongArity(id) | What::NotQuiet(id) => {
                Some(self.table.spec(id))
            }
            What::Unknown | What::UnknownSub(_) | What::Malformed(_) => None,
        };
        let aborted = self.refused_in_transaction(request.conn, spec, failure);
        let failure = aborted.as_ref().unwrap_or(failure);
        let Some(connection) = self.connections.get(request.conn) else {
            return;
        };
        connection.replies.on_request();
        Reply::new(&mut fx.output, connection.resp3).error(failure);
        if let What::Malformed(_) = request.what {
            self.connections.close_after_reply(request.conn);
        }
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
        self.connections
            .on_submitted(conn, submitted, self.table, mark, fx);
    }

    /// Why a request has to wait, if it has to.
    fn why_waits(
        &mut self,
        now: Now,
        request: &Request<'_>,
        way: &Way,
        args: &Args<'_>,
        guesses: bool,
    ) -> Option<Suspended> {
        let What::Command(id) = request.what else {
            return None;
        };
        let spec = self.table.spec(id);
        if guesses && let Some(why) = self.holds_guess(now, request.conn) {
            return Some(why);
        }
        let connection = self.connections.get(request.conn)?;
        if self.pause.holds(connection, spec) {
            return Some(Suspended::Paused);
        }
        if is_behind(spec, connection) {
            return Some(Suspended::Barrier);
        }
        let held = way::why_waits(now, way, connection, &mut self.peers.forwarding);
        held.or_else(|| {
            let waits = self.apart(now).waits(request, way, args);
            waits.then_some(Suspended::Barrier)
        })
    }

    /// The location of the keys of a request.
    #[inline]
    fn way_of(&mut self, request: &Request<'_>, args: &Args<'_>) -> Way {
        if self.peers.links.is_none() {
            return Way::Here;
        }
        let door = self.connection(request.conn).map(|c| c.door());
        self.locator().way_of(door, request, args)
    }

    /// Why a request cannot be executed here, if it cannot: its keys are another node's, or are
    /// lattice keys, which do not support it.
    #[inline]
    fn refused_on_keys(&mut self, routed: &Routed<'_, '_>) -> Option<Failure> {
        if self.peers.links.is_some() {
            let door = self.connection(routed.request.conn).map(|c| c.door());
            let links = self.peers.links.as_deref();
            let locator = Locator::new(&self.kernel, self.table, links);
            let refused = locator.refused_elsewhere(door, routed, &mut self.peers.forwarding);
            if refused.is_some() {
                return refused;
            }
        }
        match routed.request.what {
            What::Command(id) if !self.kernel.knows_strict(routed.request.strict_in) => {
                self.locator().refused_on_lattice(id, routed.args)
            }
            _ => None,
        }
    }

    /// Notes what the reply to a request waits for, where some wait for copies and others for the log. `is_more`: the
    /// request runs in a transaction that answers each command at once.
    fn note_until(&mut self, request: &Request<'_>, spec: &Spec, is_more: bool, args: &Args<'_>) {
        if is_more || self.find_until(request, spec, args) == Until::Passed {
            self.connections.wait_for_copies(request.conn);
        }
    }

    fn find_until(&mut self, request: &Request<'_>, spec: &Spec, args: &Args<'_>) -> Until {
        let locator = Locator::new(&self.kernel, self.table, self.peers.links());
        if !spec.flags.has(Flags::EXEC) {
            return locator.until(request, args);
        }
        let connection = self.connections.get(request.conn);
        let queued = connection.and_then(|c| c.transaction.queued.as_deref_mut());
        queued.map_or(Until::Logged, |queued| locator.until_of_queued(queued))
    }

    /// Whether a password waits before it is checked.
    fn holds_guess(&mut self, now: Now, conn: ConnId) -> Option<Suspended> {
        let connection = self.connections.get(conn)?;
        let why = connection.holds_guess(now, &mut self.shared.guesses());
        self.counters.auth_delayed += u64::from(why.is_some());
        why
    }

    /// Drops a connection that speaks HTTP.
    #[cold]
    fn turns_away_http(&mut self, now: Now, conn: ConnId, args: &Args<'_>) -> bool {
        if !http::is_http(args.get(0)) {
            return false;
        }
        if self.http.on_closed(now) {
            let peer = self.connection(conn).map(|c| c.info.peer.clone());
            tracing::warn!(
                peer = peer.as_deref().unwrap_or_default(),
                "closed a connection that speaks HTTP: possible cross-protocol attack through a browser"
            );
        }
        self.connections.close_now(conn);
        true
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
    /// The table of keyspaces by which all its keys were strict when it was parsed, if they were.
    pub(crate) strict_in: Option<u16>,
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
