//! Requests of other nodes: what the front does for [`Serving`], which has their sessions and replies.
//!
//! They run at the worker that has the session, which forwards those for keys of other workers as
//! it does for its own clients. Each has a connection id of its own ([`super::jobs`]), so that they
//! wait only for their keys.

use super::forward::is_wide;
use super::jobs::Job;
use super::way::Way;
use super::words;
use crate::command::Dispatch;
use crate::front::blocked::end_of;
use crate::front::lookahead::{ParsedKey, What};
use crate::front::request::Request;
use crate::front::{Front, Message, parse, refusals};
use rufous_base::{Args, Effects, Now, Output, Until};
use rufous_cluster::serving::{Action, Asker};
use rufous_command::{Failure, Flags, Reply};
use rufous_kernel::batch::Door;
use rufous_kernel::{Header, Submitted};
use rufous_mapping::NodeNo;
use rufous_wire::message;

/// Client numbers for requests of other nodes: above those of real clients.
const CLIENTS: u64 = 1 << 62;

impl Front {
    /// Carries out what the serving has decided.
    #[inline]
    pub(crate) fn carry_out_serving(&mut self, now: Now, fx: &mut Effects<Message>) {
        while let Some(action) = self.peers.serving.next_action() {
            match action {
                Action::Take(asker, request) => self.take_request(now, asker, request, fx),
                Action::EndWait(conn, how) => {
                    self.kernel.end_wait(conn, end_of(how));
                }
                Action::Refuse(no, why) => self.peers.refuse(now, no, why, fx),
            }
        }
    }

    /// Runs a request of another node, if it may run. `CLIENT PAUSE` applies to clients of all
    /// nodes.
    fn take_request(
        &mut self,
        now: Now,
        asker: Asker,
        request: message::Request,
        fx: &mut Effects<Message>,
    ) {
        let Some(spans) = words::read(&request.words) else {
            return self.peers.serving.on_malformed(&asker);
        };
        let args = Args::new(&request.words, &spans, &mut []);
        let what = parse::find_command(self.table, request.quiet, &args);
        let spec = match what {
            What::Command(id) => Some(self.table.spec(id)),
            _ => None,
        };
        let is_paused = self.pause.is_active()
            && spec.is_some_and(|spec| self.pause.holds_back(spec, spec.flags));
        if is_paused || self.peers.serving.is_held() {
            return self.peers.serving.on_paused(asker, request);
        }
        let mut found = Vec::new();
        if let Some(spec) = spec {
            spec.keys.find(&args, request.db as u8, &mut found);
        }
        let keyed = |found| parse::parsed_key(&self.kernel, &args, found).0;
        let keys: Vec<_> = found.into_iter().map(keyed).collect();
        let is_here = self.locator().way_to_keys(&keys, &args) == Way::Here;
        if !self.peers.serving.on_routed(&asker, is_here) {
            return;
        }
        match self.refused_of_peer(asker.node(), what, &args) {
            Some(failure) => {
                let mut out = Output::default();
                Reply::new(&mut out, request.resp3).error(&failure);
                self.peers.serving.on_reply(&asker, out, Until::Logged);
            }
            None => self.serve(now, asker, &request, (what, &keys), args, fx),
        }
    }

    /// Why a request of another node is refused, apart from its keys.
    fn refused_of_peer(&mut self, no: NodeNo, what: What, args: &Args<'_>) -> Option<Failure> {
        let What::Command(id) = what else {
            return Some(refusals::refusal(
                what,
                args,
                &[],
                self.table,
                &mut self.kernel,
            ));
        };
        let spec = self.table.spec(id);
        let is_on_keys = matches!(self.table.dispatch(id), Dispatch::Key | Dispatch::Keys);
        // A node of an earlier wire version does not know how to end waits.
        let blocks = spec.flags.has(Flags::BLOCKING) && !self.peers.forwarding.may_wait_at(no);
        let failure = if !is_on_keys && !is_wide(spec) || blocks {
            format!("ERR '{}' is not taken from other nodes", spec.name).into()
        } else if self.refuses_while_loading(spec) {
            self.shared.loading.failure()
        } else {
            self.locator().refused_on_lattice(id, args)?
        };
        self.kernel.stats_mut()[usize::from(id)].rejected += 1;
        Some(failure)
    }

    fn serve(
        &mut self,
        now: Now,
        asker: Asker,
        request: &message::Request,
        (what, keys): (What, &[ParsedKey]),
        args: Args<'_>,
        fx: &mut Effects<Message>,
    ) {
        let What::Command(command) = what else {
            return;
        };
        let until = self
            .locator()
            .until_of(command, keys.iter().map(|key| key.arg), &args);
        let job = Job::Peer(asker, until);
        let conn = self.peers.jobs.begin(job, request.db as u8, request.resp3);
        if self.table.spec(command).flags.has(Flags::BLOCKING) {
            self.peers.serving.on_blocking(&asker, conn);
        }
        let first = keys.first();
        let header = Header {
            conn,
            client: CLIENTS | u64::from(conn.generation),
            seq: 0,
            command,
            db: request.db as u8,
            resp3: request.resp3,
            no_touch: request.no_touch,
            quiet: request.quiet,
            door: Door::Forwarded,
            key: first.map_or(0, |key| key.arg as u8),
            hash: first.map_or(0, |key| key.hash),
            strict_in: None,
        };
        self.run_keyed(now, &header, keys, args, fx);
    }

    /// Runs a request whose reply goes to the job in its header.
    pub(super) fn run_words(
        &mut self,
        now: Now,
        header: &Header,
        args: Args<'_>,
        fx: &mut Effects<Message>,
    ) {
        let spec = self.table.spec(header.command);
        let failure = match self.refuses_while_loading(spec) {
            true => Some(self.shared.loading.failure()),
            false => self.locator().refused_on_lattice(header.command, &args),
        };
        if let Some(failure) = failure {
            return self.answer_failure(header, &failure, fx);
        }
        let mut found = Vec::new();
        spec.keys.find(&args, header.db, &mut found);
        let keyed = |found| parse::parsed_key(&self.kernel, &args, found).0;
        let keys: Vec<_> = found.into_iter().map(keyed).collect();
        self.run_keyed(now, header, &keys, args, fx);
    }

    fn run_keyed(
        &mut self,
        now: Now,
        header: &Header,
        keys: &[ParsedKey],
        args: Args<'_>,
        fx: &mut Effects<Message>,
    ) {
        let request = Request {
            conn: header.conn,
            what: What::Command(header.command),
            quiet: header.quiet,
            db: header.db,
            keys,
            strict_in: None,
        };
        let start = fx.output.mark();
        match self.submit(now, &request, header, args, fx) {
            Submitted::Done => {
                let mut out = Output::default();
                out.append_range(&fx.output, start, fx.output.mark());
                fx.output.truncate(start);
                self.deliver(header.conn, header.seq, &out, fx);
            }
            Submitted::NotHere => {
                fx.output.truncate(start);
                self.peers.jobs.turn_away(header.conn);
            }
            Submitted::Pending | Submitted::Barrier => {}
        }
    }

    /// Runs the requests held during a pause, if they may run.
    pub(super) fn serve_held(&mut self, now: Now, fx: &mut Effects<Message>) {
        if !self.pause.is_active() {
            self.peers.serving.on_unpaused();
            self.carry_out_serving(now, fx);
        }
    }
}
