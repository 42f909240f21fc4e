//! Requests for other nodes: what the front does for [`Forwarding`], which decides about them.
//!
//! The reply to a forwarded request takes its place among those of its client, like one of another
//! worker.

use super::jobs::{Job, is_job};
use super::split::{AllNodes, Parts};
use super::way::Way;
use super::words;
use crate::front::connection::Suspended;
use crate::front::request::Request;
use crate::front::{Front, Message};
use rufous_base::{Args, ConnId, Effects, Now, Output};
use rufous_cluster::forward::{Action, Forwarded, Goal, Patience};
use rufous_command::{Failure, Flags, Reply, Spec, blocking};
use rufous_kernel::{Header, Submitted};
use rufous_mapping::NodeNo;
use rufous_wire::{Body, Bytes, Class};

/// Whether a command is on all keys of one database, or of all databases.
pub(super) fn is_wide(spec: &Spec) -> bool {
    spec.flags.has(Flags::ALL_KEYS)
}

impl Front {
    /// Sends a request to all nodes that have its keys, if there are others.
    #[cold]
    pub(crate) fn submit_elsewhere(
        &mut self,
        now: Now,
        way: &Way,
        request: &Request<'_>,
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let spec = self.table.spec(header.command);
        let reads = spec.flags.has(Flags::READONLY);
        self.connections.note_deadline(now, header.conn, spec, args);
        if let Some(connection) = self.connection(header.conn) {
            connection.is_far = reads;
        }
        match way {
            way if self.apart(now).takes(request, way, args) => {
                let out = &mut fx.output;
                self.apart(now).submit(request, header, args, out)
            }
            Way::There(no) => self.forward(*no, header, args),
            Way::Apart(heads) => {
                let keys = request.keys;
                let parts = Parts::of_keys(spec, header, (heads, keys), args);
                self.submit_parts(now, header, parts, fx)
            }
            Way::All(others) => {
                let nodes = AllNodes {
                    own: self.links().and_then(|links| links.own()),
                    others,
                    has_lattice: self.kernel.placement().has_lattice(),
                };
                let random = || self.kernel.rng().next_u64();
                match Parts::of_all(spec, nodes, args, random) {
                    Ok(parts) => self.submit_parts(now, header, parts, fx),
                    Err(ended) => {
                        ended.reply(&mut Reply::new(&mut fx.output, header.resp3));
                        Submitted::Done
                    }
                }
            }
            Way::Here | Way::None(_) => {
                debug_assert!(false, "run here, or refused");
                Submitted::Done
            }
        }
    }

    /// Runs the parts of a request.
    fn submit_parts(
        &mut self,
        now: Now,
        header: &Header,
        parts: Parts,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let Parts { how, places, parts } = parts;
        let splitting = &mut self.peers.splitting;
        let begun = splitting.on_request(header, how, places, parts.len());
        for (part, words) in begun.zip(parts) {
            let job = Job::Part(part);
            let args = Args::new(&words.bytes, &words.spans, &mut []);
            let header = Header {
                conn: self.peers.jobs.begin(job, header.db, header.resp3),
                key: 1,
                hash: self.kernel.shard.key(args.get(1)).hash,
                strict_in: None,
                ..*header
            };
            match words.node {
                Some(no) => {
                    self.forward(no, &header, &args);
                }
                None => self.run_words(now, &header, args, fx),
            }
        }
        Submitted::Barrier
    }

    /// Forwards a request to the node that has its keys.
    pub(super) fn forward(&mut self, no: NodeNo, header: &Header, args: &Args<'_>) -> Submitted {
        let spec = self.table.spec(header.command);
        let goal = match is_wide(spec) {
            true => Goal::Node(no),
            false => self.locator().goal_of(header, args),
        };
        let request = self.forwarded(header, args, goal);
        self.peers.forwarding.on_request(no, request);
        match spec.keys.single() {
            Some(_) if !spec.flags.has(Flags::BLOCKING) => Submitted::Pending,
            // Later requests could overtake it at that node.
            _ => Submitted::Barrier,
        }
    }

    fn forwarded(&mut self, header: &Header, args: &Args<'_>, goal: Goal) -> Forwarded {
        let connection = self.connections.get(header.conn);
        let deadline_us = connection.and_then(|connection| connection.deadline_us);
        forwarded(
            self.table.spec(header.command),
            header,
            args,
            goal,
            deadline_us,
        )
    }

    /// A request of a client was given to this node's own workers, and its keys moved to another
    /// node before it ran: it waited for a slot, for data, or for a worker that already had the next
    /// epoch. It is forwarded to that node. Nothing is popped for a client that is gone.
    pub(crate) fn forward_late(
        &mut self,
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) {
        let spec = self.table.spec(header.command);
        if spec.flags.has(Flags::BLOCKING) && self.connection(header.conn).is_none() {
            return;
        }
        if let Some(why) = words::too_large_by_now(args) {
            return self.answer_failure(header, &why, fx);
        }
        let goal = self.locator().goal_of(header, args);
        let request = self.forwarded(header, args, goal);
        self.peers.forwarding.on_returned(request);
    }

    /// Carries out what the forwarding has decided.
    #[inline]
    pub(crate) fn carry_out_forwarding(&mut self, now: Now, fx: &mut Effects<Message>) {
        while let Some(action) = self.peers.forwarding.next_action() {
            match action {
                Action::Send(no, requests) => {
                    self.peers
                        .send(now, no, Class::Request, Body::Requests(requests), fx);
                }
                Action::EndWaits(no, ends) => {
                    self.peers
                        .send(now, no, Class::Request, Body::EndWaits(ends), fx);
                }
                Action::Waits(header) => {
                    if !self.connections.block(&header, fx) {
                        self.peers.forwarding.on_gone(header.conn);
                    }
                }
                Action::Reply(header, reply) => self.deliver(header.conn, header.seq, &reply, fx),
                Action::Fail(header, why) => self.answer_failure(&header, &why.into(), fx),
                Action::Run(header, words) => self.run_forwarded(now, &header, &words, fx),
                Action::HoldUp(conn) => self.hold_up(conn, fx),
                Action::Refuse(no, why) => self.peers.refuse(now, no, why, fx),
            }
        }
    }

    fn run_forwarded(
        &mut self,
        now: Now,
        header: &Header,
        words: &Bytes,
        fx: &mut Effects<Message>,
    ) {
        if let Some(spans) = words::read(words) {
            self.run_words(now, header, Args::new(words, &spans, &mut []), fx);
        }
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
            self.connections.suspend(conn, Suspended::Barrier, fx);
        }
    }
}

/// A request to another node. `deadline_us`: of its client, if it waits for data.
fn forwarded(
    spec: &Spec,
    header: &Header,
    args: &Args<'_>,
    goal: Goal,
    deadline_us: Option<u64>,
) -> Forwarded {
    let words = words::write(args);
    let timeout = spec.flags.has(Flags::BLOCKING).then(|| {
        let timeout = words::word_at(&words, blocking::timeout_at(spec, args));
        debug_assert!(timeout.is_some(), "it was written as a request");
        timeout
    });
    Forwarded {
        header: *header,
        words,
        goal,
        writes: spec.flags.has(Flags::WRITE),
        patience: timeout.flatten().map(|timeout| Patience {
            deadline_us,
            timeout,
        }),
    }
}
