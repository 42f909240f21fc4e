//! The border between a worker's front and other nodes: the connections that belong to peers.

use super::figures::{Figures, ForwardFigures};
use super::gossip::why_unserved;
use super::links::Links;
use super::redirect::Door;
use super::{Heard, PeerMessage};
use crate::config::AppendFsync;
use crate::front::{Front, Message};
use rufous_base::{Close, ConnId, ConnInfo, DialError, Effects, Now, Read, WorkerId};
use rufous_cluster::reports::AboutCopies;
use rufous_kernel::worker::Past;
use rufous_mapping::NodeNo;
use rufous_wire::version::WAITS;
use rufous_wire::{Body, Class};

/// When workers look at what they have to report of a mapping that they have taken up.
const REPORT_US: u64 = 2_000;

/// Whether a connection is to a node, or from a process that claims to be one.
pub(crate) fn is_of_peers(info: &ConnInfo) -> bool {
    info.origin.is_of_nodes()
}

impl Front {
    /// The sessions with other nodes, if the node is in a cluster.
    pub fn links(&self) -> Option<&Links> {
        self.links.as_deref()
    }

    /// This worker's counters of traffic with other nodes.
    pub fn peer_figures(&self) -> Option<Figures> {
        let mut figures = self.links()?.figures();
        let (served, not_here) = self.serving.counts();
        figures.forward = ForwardFigures {
            split: self.splitting.begun(),
            served,
            served_blocked: self.serving.waits() as u64,
            not_here,
            ..self.forwarding.figures()
        };
        figures.chains = self.kernel.chain_figures().unwrap_or_default();
        figures.transactions = self.kernel.linear_figures();
        figures.waits = self.transactions.waits();
        figures.gossip = self.kernel.node_figures().unwrap_or_default();
        Some(figures)
    }

    pub(crate) fn on_peer_opened(
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

    pub(crate) fn on_peers_received(
        &mut self,
        now: Now,
        bytes: &[u8],
        reads: &[Read],
        fx: &mut Effects<Message>,
    ) {
        if let Some(links) = self.links.as_mut().filter(|links| !links.is_empty()) {
            links.on_received(now, bytes, reads, fx);
            // Requests forwarded after this go to the current sessions.
            self.hear_peers(now, fx);
        }
    }

    /// The sessions, if the connection belongs to one of them.
    pub(crate) fn links_of(&mut self, conn: ConnId) -> Option<&mut Links> {
        self.links.as_deref_mut().filter(|links| links.has(conn))
    }

    pub(crate) fn on_peer_message(
        &mut self,
        now: Now,
        from: WorkerId,
        message: PeerMessage,
        fx: &mut Effects<Message>,
    ) {
        if let Some(links) = &mut self.links {
            links.on_peer_message(now, from, message, fx);
            self.hear_peers(now, fx);
        }
    }

    /// A stopping node waits no more for replies of other nodes. Returns the number of requests.
    pub(crate) fn give_up_forwarding(&mut self, now: Now, fx: &mut Effects<Message>) -> usize {
        let links = self.links.as_ref();
        let given_up = links.map_or(0, |links| self.forwarding.on_given_up(&links.routing()));
        self.carry_out_forwarding(now, fx);
        given_up
    }

    /// The node stops: no requests are forwarded any more. Replies to those sent are waited for.
    pub(crate) fn end_forwarding(&mut self, now: Now, fx: &mut Effects<Message>) {
        self.forwarding.on_stop();
        self.carry_out_forwarding(now, fx);
    }

    /// A message of the control thread: a mapping, or that the node stops soon.
    pub(crate) fn on_told(&mut self, now: Now, message: Message, fx: &mut Effects<Message>) {
        if matches!(message, Message::Farewell) {
            return self.begin_farewell(now);
        }
        let Some(links) = &mut self.links else {
            return;
        };
        match message {
            Message::Peer(PeerMessage::Mapping(mapping)) => links.on_mapping(now, mapping, fx),
            Message::Peer(PeerMessage::Report { to, learned }) => {
                let report = links.envelope(Body::Learned(learned));
                links.send(now, to, Class::Control, report, fx);
            }
            _ => {}
        }
    }

    pub(crate) fn on_undialled(&mut self, now: Now, token: u64, error: &DialError) {
        let links = self.links.as_mut();
        let is_news = links.is_some_and(|links| links.on_undialled(now, token, error));
        if let Some(cluster) = self.shared.cluster.as_ref().filter(|_| is_news) {
            cluster.reported.notify_one();
        }
    }

    pub(crate) fn tick_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        let cluster = self.shared.cluster.as_ref();
        if let Some(links) = &mut self.links {
            links.tick(now, fx);
            let ails = self.kernel.log_ails(now);
            let health = &links.common().health;
            health.ails(self.kernel.id().0, ails);
            let unserved = self.kernel.lattice_unserved();
            health.waits(self.kernel.id().0, unserved.map(|of| why_unserved(&of)));
            let serves = self.kernel.serves_lattice();
            health.serves(self.kernel.id().0, serves);
            if !serves {
                self.kernel.hear_of_serving(&health.serving());
            }
            let copies = AboutCopies {
                incarnation: links.common().local.incarnation,
                logs: self.config.appendonly,
                accepts: cluster.is_some_and(|cluster| cluster.settings.accept_loss),
                may_lack: self.config.appendfsync != AppendFsync::Always
                    && cluster.is_some_and(|cluster| cluster.past == Past::Unknown),
                keeps_all: cluster.is_some_and(|cluster| cluster.past == Past::Whole),
            };
            let reports = &links.common().reports;
            let (epoch, held) = self.kernel.held();
            let is_news = reports.tell_held(self.kernel.id().0, copies, (epoch, &held));
            if let Some(cluster) = cluster.filter(|_| is_news) {
                cluster.reported.notify_one();
            }
            if !links.damage.is_due(now) {
                return;
            }
            let worker = self.kernel.id();
            let unserved = self.kernel.unserved_slots(now);
            let health = &links.common().health;
            health.unserved(worker.0, now.mono_us, unserved);
            self.kernel.on_ailing(health.ailing());
            let reports = &links.common().reports;
            reports.tell(worker.0, &self.kernel.learned());
            links.damage.on_look(worker, &self.kernel.broken_slots());
        }
    }

    /// Passes received messages to the layers above.
    #[inline]
    pub(crate) fn hear_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        while let Some(links) = &mut self.links {
            let heard = links.take_heard();
            if heard.is_empty() {
                return;
            }
            let mut is_open = false;
            for heard in heard {
                if heard.is_for_kernel() {
                    self.hear(now, heard, fx);
                    is_open = true;
                    continue;
                }
                if std::mem::take(&mut is_open) {
                    self.settle_heard(now, fx);
                }
                self.hear(now, heard, fx);
                self.carry_out_forwarding(now, fx);
            }
            if is_open {
                self.settle_heard(now, fx);
            }
        }
    }

    fn hear(&mut self, now: Now, heard: Heard, fx: &mut Effects<Message>) {
        match heard {
            Heard::Mapping(mapping) => {
                self.act_by(now, &mapping, fx);
                // Nodes may wait for what this one reports of it.
                let soon = self.cron.wake_us().min(now.mono_us + REPORT_US);
                self.cron.set_wake_us(soon);
                if let Some(links) = &self.links {
                    self.forwarding.on_mapping(&links.routing());
                }
                // A worker may hear of a session before it knows the member.
                self.note_abilities();
                self.hold_up_under_way(fx);
            }
            Heard::Up(no) => {
                self.kernel.on_peer_up(now, no);
                self.serving.on_session(no);
                self.carry_out_serving(now, fx);
                self.note_abilities();
            }
            Heard::Down(no) => {
                self.kernel.on_peer_down(no);
                self.serving.on_session(no);
                self.carry_out_serving(now, fx);
                if let Some(links) = &self.links {
                    self.forwarding.on_link_lost(now, no, &links.routing());
                }
            }
            Heard::Message(no, envelope) => {
                let (epoch, from) = (envelope.epoch, envelope.from);
                match envelope.body {
                    Some(Body::Requests(requests)) => {
                        self.serving.on_requests(no, from, requests);
                        self.carry_out_serving(now, fx);
                    }
                    Some(Body::EndWaits(ends)) => {
                        self.serving.on_end_waits(no, from, ends);
                        self.carry_out_serving(now, fx);
                    }
                    Some(Body::Replies(replies)) => {
                        if let Some(links) = &self.links {
                            let replies = (epoch, replies);
                            let routing = links.routing();
                            self.forwarding.on_replies(now, no, replies, &routing);
                        }
                    }
                    Some(Body::Gossip(gossip)) => {
                        self.hear_gossip(now, no, (from, &gossip.batch), fx);
                    }
                    _ => self.hear_of_chains(now, no, *envelope),
                }
            }
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

    /// Slots may have moved to other nodes: requests pending at this node's workers may come back
    /// ([`Front::forward_late`]). So that none is overtaken, their connections run no new ones.
    fn hold_up_under_way(&mut self, fx: &mut Effects<Message>) {
        let all = self.connections.iter();
        let waits = all.filter(|connection| {
            connection.door() == Door::Plain && !connection.replies.is_empty()
        });
        let waits: Vec<ConnId> = waits.map(|connection| connection.id).collect();
        for conn in waits {
            self.hold_up(conn, fx);
        }
    }

    /// Sends a message on the session with a node.
    pub(super) fn send_to(
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

    /// Applies what a step has left for other nodes, and sends messages to them.
    #[inline]
    pub(crate) fn settle_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        if self.links.is_some() {
            self.forwarding.on_time(now);
            self.apart(now).give_up(fx);
            self.hear_peers(now, fx);
            self.step_chains(now, fx);
            if let Some(links) = &self.links {
                self.forwarding.on_step(now, &links.routing());
            }
            self.carry_out_forwarding(now, fx);
            self.serve_held(now, fx);
        }
    }

    /// Sends what the turn has collected.
    #[inline]
    pub(crate) fn send_to_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        if self.links.is_some() {
            self.tell_peers(now, fx);
            self.send_gossip(now, fx);
            self.forwarding.on_turn_end();
            self.carry_out_forwarding(now, fx);
            self.send_replies(now, fx);
        }
    }
}
