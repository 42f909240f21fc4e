//! Requests of other nodes: the receiving side.
//!
//! They run at the worker that has the session, which forwards those for keys of other workers as
//! it does for its own clients. Each has a connection id of its own ([`super::jobs`]), so that they
//! wait only for their keys. Replies are sent on the session, after the log as those to clients
//! are, in parts if they are long, and no faster than the session takes them.
//!
//! Invariants:
//! 1. A request runs only if this node serves all of its keys, by its own mapping. It is never
//!    forwarded a second time.
//! 2. After a request was refused, later ones of the same worker are refused too, until that worker
//!    has seen the refusal: it sends them again in their order.
//! 3. Nothing of an earlier session is answered on a later one.

use super::forward::is_wide;
use super::jobs::{Done, Job};
use super::way::Way;
use super::words;
use crate::command::Dispatch;
use crate::front::connection::{ParsedKey, What};
use crate::front::turn::Request;
use crate::front::{Front, Message, parse};
use rufous_base::{Args, Effects, Now, Output};
use rufous_cluster::forward::MAX_UNDER_WAY;
use rufous_command::{Failure, Flags, Reply};
use rufous_kernel::batch::Door;
use rufous_kernel::{Header, Submitted};
use rufous_mapping::NodeNo;
use rufous_wire::message::{self, MAX_CHUNK, MAX_REQUESTS, Replies, Requests};
use rufous_wire::{Body, Bytes, Class};
use std::collections::{BTreeMap, VecDeque};

/// Limit on the pending requests of one worker of another node. A correct sender stays below it.
const MAX_OF_WORKER: usize = 4 * MAX_UNDER_WAY;

/// Bytes of replies in one message, about.
const FULL: usize = 256 << 10;

/// Client numbers for requests of other nodes: above those of real clients.
const CLIENTS: u64 = 1 << 62;

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    no: NodeNo,
    /// See [`Served::sessions`].
    session: u64,
    worker: u32,
    number: u64,
    /// See [`Requests::round`].
    round: u64,
}

/// The pending requests of one worker of another node.
#[derive(Debug, Default)]
struct Stream {
    under_way: usize,
    /// The round in which a request was refused.
    turned_away: Option<u64>,
}

/// A reply that waits for the session.
#[derive(Debug)]
struct Ready {
    worker: u32,
    number: u64,
    /// The frame that has to be committed before it may be sent; not known before the end of its
    /// turn.
    gate: Option<u64>,
    what: Answer,
}

#[derive(Debug)]
enum Answer {
    NotHere,
    Whole(Output),
    /// The rest of a long one.
    Rest(Bytes),
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Counts the sessions with each node, as this worker is notified of them.
    sessions: BTreeMap<NodeNo, u64>,
    streams: BTreeMap<(NodeNo, u32), Stream>,
    ready: BTreeMap<NodeNo, VecDeque<Ready>>,
    /// Requests that came during `CLIENT PAUSE`, or behind such.
    held: VecDeque<(Asker, u64, message::Request)>,
    /// Requests that ran here, and those that were refused because their keys are not here.
    pub(super) served: u64,
    pub(super) not_here: u64,
}

impl Served {
    /// A session begins or ends: requests of an earlier one are dropped.
    pub(super) fn renew(&mut self, no: NodeNo) {
        *self.sessions.entry(no).or_default() += 1;
        self.streams.retain(|(of, _), _| *of != no);
        self.ready.remove(&no);
        self.held.retain(|(asker, ..)| asker.no != no);
    }

    fn is_current(&self, asker: &Asker) -> bool {
        self.sessions.get(&asker.no) == Some(&asker.session)
    }

    fn stream(&mut self, asker: &Asker) -> &mut Stream {
        self.streams.entry((asker.no, asker.worker)).or_default()
    }

    fn answer(&mut self, asker: &Asker, what: Answer) {
        if self.is_current(asker) {
            let ready = Ready {
                worker: asker.worker,
                number: asker.number,
                gate: None,
                what,
            };
            self.ready.entry(asker.no).or_default().push_back(ready);
        }
    }

    /// A turn ends: its replies wait for this gate.
    fn end_turn(&mut self, gate: u64) {
        for ready in self.ready.values_mut() {
            let new = ready.iter_mut().rev().take_while(|r| r.gate.is_none());
            new.for_each(|ready| ready.gate = Some(gate));
        }
    }

    /// The next message for a node: the worker there, and replies to it. `passed`: the last
    /// committed frame.
    fn message(&mut self, no: NodeNo, passed: u64) -> Option<(u32, Replies)> {
        let may_go = |ready: &Ready| ready.gate.is_some_and(|gate| gate <= passed);
        let ready = self.ready.get_mut(&no)?;
        let to = ready.front().filter(|first| may_go(first))?.worker;
        let (mut replies, mut bytes, mut done) = (Vec::new(), 0, 0);
        while let Some(first) = ready.front_mut()
            && first.worker == to
            && may_go(first)
            && bytes < FULL
            && replies.len() < MAX_REQUESTS
        {
            let (reply, rest) = first.take();
            bytes += reply.bytes.len();
            replies.push(reply);
            match rest {
                // It is long enough for a message of its own.
                Some(rest) => {
                    first.what = Answer::Rest(rest);
                    break;
                }
                None => {
                    ready.pop_front();
                    done += 1;
                }
            }
        }
        if ready.is_empty() {
            self.ready.remove(&no);
        }
        if let Some(stream) = self.streams.get_mut(&(no, to)) {
            stream.under_way = stream.under_way.saturating_sub(done);
        }
        Some((to, Replies { replies }))
    }
}

impl Ready {
    /// The next part of the reply, and the rest.
    fn take(&mut self) -> (message::Reply, Option<Bytes>) {
        let what = std::mem::replace(&mut self.what, Answer::NotHere);
        let (mut bytes, not_here) = match what {
            Answer::NotHere => (Bytes::new(), true),
            Answer::Whole(output) if output.shared.is_empty() => (output.bytes.into(), false),
            Answer::Whole(output) => (output.to_vec().into(), false),
            Answer::Rest(bytes) => (bytes, false),
        };
        let rest = (bytes.len() > MAX_CHUNK).then(|| bytes.split_off(MAX_CHUNK));
        let reply = message::Reply {
            number: self.number,
            more: rest.is_some(),
            bytes,
            not_here,
        };
        (reply, rest)
    }
}

impl Front {
    /// Requests of a worker of another node.
    pub(super) fn on_requests(
        &mut self,
        now: Now,
        no: NodeNo,
        (worker, requests): (u32, Requests),
        fx: &mut Effects<Message>,
    ) {
        let session = self.served.sessions.get(&no).copied().unwrap_or_default();
        // In this order: the last number may be the largest possible.
        for (request, number) in requests.requests.into_iter().zip(requests.first..) {
            let asker = Asker {
                no,
                session,
                worker,
                number,
                round: requests.round,
            };
            if !self.served.is_current(&asker) {
                return;
            }
            let stream = self.served.stream(&asker);
            stream.under_way += 1;
            if stream.under_way > MAX_OF_WORKER {
                return self.refuse_peer(now, no, "more requests than may be under way", fx);
            }
            if let Err(why) = self.serve_or_hold(now, (asker, requests.round), request, fx) {
                return self.refuse_peer(now, no, why, fx);
            }
        }
    }

    /// `CLIENT PAUSE` applies to clients of all nodes.
    fn serve_or_hold(
        &mut self,
        now: Now,
        (asker, round): (Asker, u64),
        request: message::Request,
        fx: &mut Effects<Message>,
    ) -> Result<(), &'static str> {
        let spans = words::read(&request.words).ok_or("a request that is none")?;
        let args = Args::new(&request.words, &spans, &mut []);
        let what = parse::find_command(self.table, request.quiet, &args);
        let is_held = match what {
            What::Command(id) => {
                let spec = self.table.spec(id);
                self.pause.is_active() && self.pause.holds_back(spec, spec.flags)
            }
            _ => false,
        };
        if is_held || !self.served.held.is_empty() {
            self.served.held.push_back((asker, round, request));
            return Ok(());
        }
        let db = request.db as u8;
        let mut keys = Vec::new();
        if let What::Command(id) = what {
            let mut found = Vec::new();
            self.table.spec(id).keys.find(&args, db, &mut found);
            let keyed = |(db, arg)| parse::parsed_key(&self.kernel, &args, db, arg);
            keys.extend(found.into_iter().map(keyed));
        }
        if !self.answers_for(&asker, round, &keys, &args) {
            self.served.not_here += 1;
            self.served.answer(&asker, Answer::NotHere);
            return Ok(());
        }
        self.served.served += 1;
        match self.refused_of_peer(what, &args) {
            Some(failure) => {
                let mut out = Output::default();
                Reply::new(&mut out, request.resp3).error(&failure);
                self.served.answer(&asker, Answer::Whole(out));
            }
            None => self.serve(now, asker, &request, (what, &keys), args, fx),
        }
        Ok(())
    }

    /// Whether this node serves all keys of the request, and no earlier request was refused.
    fn answers_for(
        &mut self,
        asker: &Asker,
        round: u64,
        keys: &[ParsedKey],
        args: &Args<'_>,
    ) -> bool {
        let is_here = self.way_to_keys(keys, args) == Way::Here;
        let stream = self.served.stream(asker);
        if !is_here {
            stream.turned_away = stream.turned_away.max(Some(round));
        }
        stream.turned_away.is_none_or(|refused| refused < round)
    }

    /// Why a request of another node is refused, apart from its keys.
    fn refused_of_peer(&mut self, what: What, args: &Args<'_>) -> Option<Failure> {
        let What::Command(id) = what else {
            return Some(self.refusal(what, args, &[]));
        };
        let spec = self.table.spec(id);
        let is_on_keys = matches!(self.table.dispatch(id), Dispatch::Key | Dispatch::Keys);
        let failure = if !is_on_keys && !is_wide(spec) || spec.flags.has(Flags::BLOCKING) {
            format!("ERR '{}' is not taken from other nodes", spec.name).into()
        } else if self.refuses_while_loading(spec) {
            self.loading_failure()
        } else {
            self.refused_on_lattice(spec, args)?
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
        let conn = self
            .jobs
            .begin(Job::Peer(asker), request.db as u8, request.resp3);
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
            true => Some(self.loading_failure()),
            false => self.refused_on_lattice(spec, &args),
        };
        if let Some(failure) = failure {
            return self.answer_failure(header, &failure, fx);
        }
        let mut found = Vec::new();
        spec.keys.find(&args, header.db, &mut found);
        let keyed = |(db, arg)| parse::parsed_key(&self.kernel, &args, db, arg);
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
                self.jobs.turn_away(header.conn);
            }
            Submitted::Pending | Submitted::Barrier => {}
        }
    }

    /// Takes replies to requests without a connection to their senders.
    pub(crate) fn take_jobs(&mut self, fx: &mut Effects<Message>) {
        for (job, done) in self.jobs.take_done() {
            match (job, done) {
                // Its slot has moved since it was checked.
                (Job::Peer(asker), Done::NotHere) => {
                    let stream = self.served.stream(&asker);
                    stream.turned_away = stream.turned_away.max(Some(asker.round));
                    self.served.not_here += 1;
                    self.served.answer(&asker, Answer::NotHere);
                }
                (Job::Peer(asker), Done::Reply(reply)) => {
                    self.served.answer(&asker, Answer::Whole(reply));
                }
                (Job::Part(part), Done::Reply(reply)) => self.on_part(part, reply, fx),
                (Job::Part(_), Done::NotHere) => {
                    debug_assert!(
                        false,
                        "parts are of this node's clients: they are forwarded"
                    );
                }
            }
        }
    }

    /// Runs the requests held during a pause, if they may run.
    pub(crate) fn serve_held(&mut self, now: Now, fx: &mut Effects<Message>) {
        if self.served.held.is_empty() || self.pause.is_active() {
            return;
        }
        for (asker, round, request) in std::mem::take(&mut self.served.held) {
            if self.served.is_current(&asker)
                && let Err(why) = self.serve_or_hold(now, (asker, round), request, fx)
            {
                self.refuse_peer(now, asker.no, why, fx);
            }
        }
    }

    /// Ends a turn: sends the replies that sessions have room for and that are committed.
    pub(crate) fn send_replies(&mut self, now: Now, fx: &mut Effects<Message>) {
        let passed = self.kernel.passed();
        self.served.end_turn(fx.gate.unwrap_or(0));
        let Some(links) = &mut self.links else {
            return;
        };
        let nodes: Vec<NodeNo> = self.served.ready.keys().copied().collect();
        for no in nodes {
            while links.has_room(no, Class::Reply)
                && let Some((to, replies)) = self.served.message(no, passed)
            {
                let mut envelope = links.envelope(Body::Replies(replies));
                envelope.to = to;
                links.send(now, no, Class::Reply, envelope, fx);
            }
        }
    }

    /// Drops replies that wait for sessions: they may not be in the log, and their turn is over.
    /// Their senders take these requests to be in doubt.
    pub(crate) fn lose_replies_to_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        let nodes: Vec<NodeNo> = self.served.ready.keys().copied().collect();
        for no in nodes {
            self.refuse_peer(now, no, "replies that were lost here", fx);
        }
    }
}
