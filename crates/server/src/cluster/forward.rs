//! Requests for other nodes: the sending side.
//!
//! A request for keys of another node is forwarded to it in one hop, in one message with the others
//! of the same turn. Its reply takes its place among those of its client, like one of another
//! worker.
//!
//! Invariants:
//! 1. Each request has a number that is never reused, not even after the session, so that no reply
//!    is taken for another's.
//! 2. A write is sent a second time only if the other node has replied that it did not execute it
//!    ([`super::again`]).
//! 3. Requests of one connection reach their keys in the order of arrival: one that is to be sent
//!    again holds up those behind it.
//! 4. The requests and bytes in flight to one node are bounded.

use super::jobs::is_job;
use super::wide::is_wide;
use super::words;
use crate::front::connection::Suspended;
use crate::front::{Front, Message};
use rufous_base::limits::OUTPUT_HARD_LIMIT;
use rufous_base::{Args, ConnId, Effects, Now, Output};
use rufous_cluster::figures::Forwarding;
use rufous_cluster::way::name_of;
use rufous_command::{Failure, Flags, Reply};
use rufous_kernel::{Header, Submitted};
use rufous_mapping::NodeNo;
use rufous_wire::message::{self, Replies, Requests};
use rufous_wire::{Body, Bytes, Class};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Limit on the requests of one worker in flight to one node.
pub(crate) const MAX_UNDER_WAY: usize = 4096;

/// Limit on their bytes. The last request may exceed it.
const MAX_BYTES: usize = 8 << 20;

/// Requests and bytes in one message, about.
const FULL: (usize, usize) = (1024, 256 << 10);

/// A request in flight.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) header: Header,
    pub(super) request: message::Request,
    pub(super) writes: bool,
    /// The request is about that node, not about keys.
    pub(super) node: Option<NodeNo>,
    /// Its place among all requests that this worker has forwarded.
    pub(super) order: u64,
    /// The round of its node when it was pushed.
    pub(super) round: u64,
    /// How often it was not executed.
    pub(super) tries: u32,
    /// When it is given up; 0: it has not had to be sent again.
    pub(super) until_us: u64,
    /// The part of its reply that has arrived.
    part: Vec<u8>,
}

/// The requests in flight to one node.
#[derive(Debug, Default)]
struct Toward {
    /// The number of the next request.
    next: u64,
    /// To be sent at the end of the turn; these have the last numbers.
    outbox: VecDeque<message::Request>,
    under_way: usize,
    bytes: usize,
    /// Rises when a request was not executed: see `Requests::round` in `crates/wire`.
    round: u64,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Forward {
    nodes: BTreeMap<NodeNo, Toward>,
    under_way: BTreeMap<(NodeNo, u64), Asked>,
    pub(super) again: super::again::Again,
    pub(crate) returned: super::returned::Returned,
    /// Rises when a route may have opened: a new mapping or session.
    pub(crate) news: u64,
    ordered: u64,
    wake_us: u64,
    pub(super) figures: Forwarding,
}

impl Forward {
    /// Whether so much is in flight to a node that further requests have to wait.
    pub(crate) fn is_crowded(&self, no: NodeNo) -> bool {
        let toward = self.nodes.get(&no);
        toward.is_some_and(|toward| toward.under_way >= MAX_UNDER_WAY || toward.bytes >= MAX_BYTES)
    }

    /// Whether there is room again, for more than one request.
    pub(crate) fn has_room(&self, no: NodeNo) -> bool {
        let toward = self.nodes.get(&no);
        toward.is_none_or(|toward| {
            toward.under_way <= MAX_UNDER_WAY / 2 && toward.bytes <= MAX_BYTES / 2
        })
    }

    /// A step is needed at that time.
    pub(crate) fn wake_by(&mut self, at_us: u64) {
        self.wake_us = match self.wake_us {
            0 => at_us,
            wake => wake.min(at_us),
        };
    }

    pub(crate) fn wake_us(&self) -> Option<u64> {
        (self.wake_us != 0).then_some(self.wake_us)
    }

    /// Called when that time may have come.
    pub(crate) fn tick(&mut self, now: Now) {
        if self.wake_us != 0 && now.mono_us >= self.wake_us {
            self.wake_us = 0;
            // Waiting requests set their time again.
            self.news += 1;
            self.again.look = true;
        }
    }

    pub(super) fn note_refused(&mut self, is_so: bool) {
        self.figures.refused += u64::from(is_so);
    }

    pub(super) fn note_split(&mut self) {
        self.figures.split += 1;
    }

    pub(crate) fn figures(&self) -> Forwarding {
        Forwarding {
            under_way: self.under_way.len() as u64,
            waiting: self.again.len() as u64,
            ..self.figures
        }
    }

    fn take(&mut self, no: NodeNo, number: u64) -> Option<Asked> {
        let asked = self.under_way.remove(&(no, number))?;
        if let Some(toward) = self.nodes.get_mut(&no) {
            toward.under_way -= 1;
            toward.bytes -= asked.request.words.len();
        }
        Some(asked)
    }

    /// All requests in flight to a node, in order, and whether each was sent: those in the outbox
    /// were not.
    pub(super) fn take_all(&mut self, no: NodeNo) -> Vec<(Asked, bool)> {
        let Some(toward) = self.nodes.get_mut(&no) else {
            return Vec::new();
        };
        let unsent = toward.next - toward.outbox.len() as u64;
        toward.outbox.clear();
        let all = self.under_way.range((no, 0)..=(no, u64::MAX));
        let numbers: Vec<u64> = all.map(|((_, number), _)| *number).collect();
        let taken = numbers
            .into_iter()
            .filter_map(|number| Some((self.take(no, number)?, number < unsent)));
        taken.collect()
    }

    /// The nodes with requests in flight.
    pub(super) fn nodes(&self) -> Vec<NodeNo> {
        self.nodes.keys().copied().collect()
    }

    /// Connections with a request in flight to a node that no longer has all of its keys.
    pub(super) fn misdirected(&self, is_right: impl Fn(NodeNo, &Asked) -> bool) -> Vec<ConnId> {
        let all = self.under_way.iter();
        let wrong = all.filter(|((no, _), asked)| !is_right(*no, asked));
        wrong.map(|(_, asked)| asked.header.conn).collect()
    }

    /// Adds a request for a node: it is sent at the end of the turn.
    pub(super) fn push(&mut self, no: NodeNo, mut asked: Asked) {
        let toward = self.nodes.entry(no).or_default();
        let size = asked.request.words.len();
        asked.round = toward.round;
        toward.outbox.push_back(asked.request.clone());
        toward.under_way += 1;
        toward.bytes += size;
        self.under_way.insert((no, toward.next), asked);
        toward.next += 1;
        self.figures.forwarded += 1;
    }

    /// The next message to a node.
    fn message(&mut self, no: NodeNo) -> Option<Requests> {
        let toward = self.nodes.get_mut(&no)?;
        if toward.outbox.is_empty() {
            return None;
        }
        let first = toward.next - toward.outbox.len() as u64;
        let mut size = 0;
        let fits = toward.outbox.iter().take_while(|request| {
            size += request.words.len();
            size <= FULL.1
        });
        // A large request goes in a message of its own.
        let fits = fits.take(FULL.0).count().max(1);
        let requests = toward.outbox.drain(..fits).collect();
        Some(Requests {
            first,
            requests,
            round: toward.round,
        })
    }
}

impl Front {
    /// Forwards a request to the node that has its keys.
    pub(crate) fn forward(&mut self, no: NodeNo, header: &Header, args: &Args<'_>) -> Submitted {
        let spec = self.table.spec(header.command);
        let has_one_key = spec.keys.single().is_some();
        let mut asked = self.asked(header, words::write(args));
        asked.node = is_wide(spec).then_some(no);
        self.forward.push(no, asked);
        match has_one_key {
            true => Submitted::Pending,
            // Later requests could overtake it at that node.
            false => Submitted::Barrier,
        }
    }

    /// A request to be forwarded.
    pub(super) fn asked(&mut self, header: &Header, words: Bytes) -> Asked {
        self.forward.ordered += 1;
        Asked {
            header: *header,
            request: message::Request {
                db: header.db.into(),
                resp3: header.resp3,
                quiet: header.quiet,
                no_touch: header.no_touch,
                words,
            },
            writes: self.table.spec(header.command).flags.has(Flags::WRITE),
            node: None,
            order: self.forward.ordered,
            round: 0,
            tries: 0,
            until_us: 0,
            part: Vec::new(),
        }
    }

    /// Sends the requests collected for a node.
    fn send_requests(&mut self, now: Now, no: NodeNo, fx: &mut Effects<Message>) {
        let Some(links) = &mut self.links else {
            return;
        };
        while let Some(requests) = self.forward.message(no) {
            let envelope = links.envelope(Body::Requests(requests));
            links.send(now, no, Class::Request, envelope, fx);
        }
    }

    /// Sends the requests that the turn has collected.
    pub(crate) fn send_all_requests(&mut self, now: Now, fx: &mut Effects<Message>) {
        for no in self.forward.nodes() {
            self.send_requests(now, no, fx);
        }
    }

    /// Replies to requests of this worker.
    pub(super) fn on_replies(
        &mut self,
        now: Now,
        no: NodeNo,
        (epoch, replies): (u64, Replies),
        fx: &mut Effects<Message>,
    ) {
        for reply in replies.replies {
            if !self.on_reply(now, no, epoch, reply, fx) {
                // A peer that sends this is faulty; nothing else from it can be trusted.
                return self.refuse_peer(now, no, "a reply to what was not asked", fx);
            }
        }
    }

    fn on_reply(
        &mut self,
        now: Now,
        no: NodeNo,
        epoch: u64,
        reply: message::Reply,
        fx: &mut Effects<Message>,
    ) -> bool {
        let name = (no, reply.number);
        if reply.more {
            let Some(asked) = self.forward.under_way.get_mut(&name) else {
                return false;
            };
            let all = asked.part.len() + reply.bytes.len();
            if all <= OUTPUT_HARD_LIMIT {
                asked.part.extend_from_slice(&reply.bytes);
            }
            return all <= OUTPUT_HARD_LIMIT;
        }
        let Some(asked) = self.forward.take(no, reply.number) else {
            return false;
        };
        if reply.not_here {
            self.on_not_here(now, no, epoch, asked, fx);
            return true;
        }
        let mut out = Output::default();
        if asked.part.is_empty() {
            out.bytes.extend_from_slice(&reply.bytes);
        } else {
            let mut whole = asked.part;
            whole.extend_from_slice(&reply.bytes);
            // By reference: it is large.
            out.share(Arc::new(whole));
        }
        self.deliver(asked.header.conn, asked.header.seq, &out, fx);
        true
    }

    /// A request was not executed. None sent after it will be, either, until the node sees a later
    /// round.
    fn on_not_here(
        &mut self,
        now: Now,
        no: NodeNo,
        epoch: u64,
        mut asked: Asked,
        fx: &mut Effects<Message>,
    ) {
        let round = self.forward.nodes.get(&no).map(|toward| toward.round);
        if round == Some(asked.round) {
            self.send_requests(now, no, fx);
            if let Some(toward) = self.forward.nodes.get_mut(&no) {
                toward.round += 1;
            }
        }
        asked.tries += 1;
        self.send_later(now, asked, epoch, fx);
    }

    /// Replies that a request is in doubt.
    pub(super) fn answer_in_doubt(
        &mut self,
        no: NodeNo,
        header: &Header,
        fx: &mut Effects<Message>,
    ) {
        self.forward.figures.in_doubt += 1;
        let name = self.links().map_or_else(
            || no.to_string(),
            |links| name_of(links.routing().mapping, no),
        );
        let why = format!(
            "UNKNOWNRESULT The connection to node {name}, which has the key, ended before its \
             reply came: it is not known whether this was done"
        );
        self.answer_failure(header, &why.into(), fx);
    }

    pub(super) fn answer_failure(
        &mut self,
        header: &Header,
        why: &Failure,
        fx: &mut Effects<Message>,
    ) {
        let mut out = Output::default();
        Reply::new(&mut out, header.resp3).error(why);
        self.deliver(header.conn, header.seq, &out, fx);
    }

    /// A connection whose request has to be sent again runs no new request until the reply.
    pub(super) fn hold_up(&mut self, conn: ConnId, fx: &mut Effects<Message>) {
        if !is_job(conn) && self.connection(conn).is_some() {
            self.suspend(conn, Suspended::Barrier, fx);
        }
    }
}

/// Only the links end sessions.
impl Front {
    pub(super) fn refuse_peer(
        &mut self,
        now: Now,
        no: NodeNo,
        why: &'static str,
        fx: &mut Effects<Message>,
    ) {
        if let Some(links) = &mut self.links {
            links.refuse_node(now, no, why, fx);
        }
    }
}
