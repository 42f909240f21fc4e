//! Other nodes, as a worker sees them: the sessions with them, the requests that it has sent to them, and
//! those that it runs for them.

use super::PeerMessage;
use super::figures::{Figures, ForwardFigures, WaitFigures};
use super::jobs::{Done, Job, Jobs};
use super::links::Links;
use crate::front::{Message, blocked};
use rufous_base::limits::MADE_FOR_NODES;
use rufous_base::{Apart, Close, ConnId, ConnInfo, DialError, Effects, Now, Output, Read};
use rufous_cluster::forward::Forwarding;
use rufous_cluster::serving::{MayNot, Serving};
use rufous_cluster::splitting::Splitting;
use rufous_command::{DataCommands, Reply};
use rufous_kernel::worker::WaitEnd;
use rufous_kernel::{Header, Worker};
use rufous_mapping::NodeNo;
use rufous_wire::version::WAITS;
use rufous_wire::{Body, Class, message};

/// See the module's description.
#[derive(Default)]
pub(crate) struct Peers {
    /// The sessions, if the node is in a cluster.
    pub(crate) links: Option<Box<Links>>,
    pub(crate) forwarding: Forwarding,
    pub(crate) serving: Serving,
    pub(crate) jobs: Jobs,
    /// Requests for several nodes.
    pub(crate) splitting: Splitting,
}

impl Peers {
    pub(crate) fn links(&self) -> Option<&Links> {
        self.links.as_deref()
    }

    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        self.links.is_some()
    }

    /// Counters of traffic with other nodes. `waits`: for transactions over slots.
    pub(crate) fn figures(
        &self,
        waits: WaitFigures,
        kernel: &Worker<DataCommands>,
    ) -> Option<Figures> {
        let mut figures = self.links()?.figures();
        let (served, not_here) = self.serving.counts();
        figures.forward = ForwardFigures {
            split: self.splitting.begun(),
            served,
            served_blocked: self.serving.waits() as u64,
            not_here,
            ..self.forwarding.figures()
        };
        figures.chains = kernel.chain_figures().unwrap_or_default();
        figures.transactions = kernel.linear_figures();
        figures.waits = waits;
        figures.gossip = kernel.node_figures().unwrap_or_default();
        Some(figures)
    }
}

/// Connections and sessions.
impl Peers {
    /// A connection to a node is open, or one from a process that claims to be a node.
    pub(crate) fn on_opened(
        &mut self,
        now: Now,
        conn: ConnId,
        info: ConnInfo,
        fx: &mut Effects<Message>,
    ) {
        match &mut self.links {
            Some(links) => links.on_opened(now, conn, info, fx),
            None => fx.at_once.closes.push((conn, Close::Now)),
        }
    }

    /// A turn has received bytes. Returns whether some may be of other nodes.
    pub(crate) fn on_received(
        &mut self,
        now: Now,
        bytes: &[u8],
        reads: &[Read],
        fx: &mut Effects<Message>,
    ) -> bool {
        let links = self.links.as_mut().filter(|links| !links.is_empty());
        if let Some(links) = links {
            links.on_received(now, bytes, reads, fx);
            return true;
        }
        false
    }

    /// The sessions, if the connection belongs to one of them.
    pub(crate) fn of(&mut self, conn: ConnId) -> Option<&mut Links> {
        self.links.as_deref_mut().filter(|links| links.has(conn))
    }

    /// A message of the control thread.
    pub(crate) fn on_told(&mut self, now: Now, message: PeerMessage, fx: &mut Effects<Message>) {
        let Some(links) = &mut self.links else {
            return;
        };
        match message {
            PeerMessage::Mapping(mapping) => links.on_mapping(now, mapping, fx),
            PeerMessage::Report { to, learned } => {
                let report = links.envelope(Body::Learned(learned));
                links.send(now, to, Class::Control, report, fx);
            }
            _ => {}
        }
    }

    /// A node could not be reached. Returns whether the control thread has to learn of that.
    pub(crate) fn on_undialled(&mut self, now: Now, token: u64, error: &DialError) -> bool {
        let links = self.links.as_mut();
        links.is_some_and(|links| links.on_undialled(now, token, error))
    }

    /// A mapping is in force.
    pub(crate) fn on_mapping(&mut self) {
        if let Some(links) = &self.links {
            self.forwarding.on_mapping(&links.routing());
        }
        // A worker may hear of a session before it knows the member.
        self.note_abilities();
    }

    /// A session with a node has begun.
    pub(crate) fn on_up(&mut self, no: NodeNo) {
        self.serving.on_session(no);
        self.note_abilities();
    }

    /// A session with a node has ended.
    pub(crate) fn on_down(&mut self, now: Now, no: NodeNo) {
        self.serving.on_session(no);
        if let Some(links) = &self.links {
            self.forwarding.on_link_lost(now, no, &links.routing());
        }
    }

    /// Which of the connected nodes run blocking commands of others.
    fn note_abilities(&mut self) {
        let Some(links) = &self.links else {
            return;
        };
        for no in links.connected() {
            let runs = links.version(no).is_some_and(|version| version >= WAITS);
            self.forwarding.on_session(no, runs);
        }
    }

    /// Whether so many bytes wait for other nodes that clients have to wait.
    pub(crate) fn are_full(&self) -> bool {
        let Some(links) = &self.links else {
            return false;
        };
        let mut nodes = links.connected();
        nodes.any(|node| links.common().rooms.is_full(node))
    }

    /// Sends a message on the session with a node.
    pub(crate) fn send(
        &mut self,
        now: Now,
        no: NodeNo,
        class: Class,
        body: Body,
        fx: &mut Effects<Message>,
    ) {
        if let Some(links) = &mut self.links {
            let envelope = links.envelope(body);
            links.send(now, no, class, envelope, fx);
        }
    }

    /// Ends the session with a node.
    pub(crate) fn refuse(
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

    /// The node stops: ends the sessions.
    pub(crate) fn stop(&mut self, fx: &mut Effects<Message>) {
        if let Some(links) = self.links.as_mut().filter(|links| !links.is_stopping()) {
            links.stop(fx);
            self.forwarding.on_links_stopped();
        }
    }

    /// Whether no other node is connected.
    pub(crate) fn is_alone(&self) -> bool {
        self.links()
            .is_some_and(|links| links.connected().next().is_none())
    }

    /// Messages of other nodes are for the layers above.
    pub(crate) fn hears(&self) -> bool {
        self.links().is_some_and(|links| !links.is_stopping())
    }
}

/// Requests.
impl Peers {
    /// Replies to forwarded requests, of a node in this epoch.
    pub(crate) fn on_replies(
        &mut self,
        now: Now,
        no: NodeNo,
        (epoch, replies): (u64, message::Replies),
    ) {
        if let Some(links) = &self.links {
            let routing = links.routing();
            self.forwarding
                .on_replies(now, no, (epoch, replies), &routing);
        }
    }

    /// A step has run requests and received messages.
    pub(crate) fn on_step(&mut self, now: Now) {
        if let Some(links) = &self.links {
            self.forwarding.on_step(now, &links.routing());
        }
    }

    /// A stopping node waits no more for replies of other nodes. Returns the number of requests.
    pub(crate) fn give_up(&mut self) -> usize {
        let links = self.links.as_ref();
        links.map_or(0, |links| self.forwarding.on_given_up(&links.routing()))
    }

    /// A request of another node found no data. Returns the end of its wait, if it may not wait.
    pub(crate) fn on_waits(&mut self, conn: ConnId) -> Option<WaitEnd> {
        let Some(asker) = self.jobs.asker(conn) else {
            return Some(WaitEnd::TimedOut);
        };
        self.serving.on_waits(&asker).map(|may_not| match may_not {
            MayNot::Ended(how) => blocked::end_of(how),
            MayNot::TooMany => blocked::too_many(),
        })
    }

    /// A turn ends: sends the replies that sessions have room for and that are committed: `at` is what
    /// the log and the copies have passed. Returns whether more can be sent at once.
    pub(crate) fn send_replies(
        &mut self,
        now: Now,
        at: (u64, u64),
        fx: &mut Effects<Message>,
    ) -> bool {
        self.serving.on_turn_end(fx.gate.unwrap_or(0));
        let Some(links) = &mut self.links else {
            return false;
        };
        let mut goes_on = false;
        for no in self.serving.nodes() {
            while links.has_room(no, Class::Reply)
                && let Some((to, replies)) = self.serving.next_replies(no, at)
            {
                let mut envelope = links.envelope(Body::Replies(replies));
                envelope.to = to;
                links.send(now, no, Class::Reply, envelope, fx);
            }
            goes_on |= self.serving.goes_on(no) && links.has_room(no, Class::Reply);
        }
        goes_on
    }

    /// Takes replies to requests without a connection to their senders. Returns those to clients: all
    /// parts of their requests are answered.
    pub(crate) fn take_done(&mut self) -> Vec<(Header, Output)> {
        let mut whole = Vec::new();
        for (job, done) in self.jobs.take_done() {
            match (job, done) {
                (Job::Peer(asker, _), Done::NotHere) => self.serving.on_moved(&asker),
                (Job::Peer(asker, until), Done::Reply(mut reply)) => {
                    refuse_long(&mut reply);
                    self.serving.on_reply(&asker, reply, until);
                }
                (Job::Peer(asker, _), Done::Lost(reply)) => self.serving.on_lost(&asker, reply),
                (Job::Part(part), Done::Reply(reply) | Done::Lost(reply)) => {
                    whole.extend(self.splitting.on_part(part, reply));
                }
                (Job::Part(_), Done::NotHere) => {
                    debug_assert!(
                        false,
                        "parts are of this node's clients: they are forwarded"
                    );
                }
            }
        }
        whole
    }
}

/// Puts an error in place of a reply that repeats elements for longer than another node keeps a
/// reply.
fn refuse_long(reply: &mut Output) {
    let repeated = reply.shared.iter().map(|(_, apart)| match apart {
        Apart::Made(source) if source.repeats() => source.remaining(),
        Apart::Made(_) | Apart::Value(_) => 0,
    });
    let bytes = repeated.fold(0, u64::saturating_add);
    if bytes > MADE_FOR_NODES {
        let why = format!(
            "ERR The reply would have about {bytes} bytes, and from another node elements may repeat for \
             {MADE_FOR_NODES}; ask for fewer, or at the node that has the key"
        );
        reply.clear();
        Reply::new(reply, false).error(&why.into());
    }
}
