//! The border between a worker's front and other nodes: the connections that belong to peers.

use super::door::Door;
use super::figures::Figures;
use super::links::Links;
use super::{Heard, PeerMessage, gossip, letters, reporting};
use crate::front::{Front, Message};
use rufous_base::{ConnId, ConnInfo, DialError, Effects, Now, Read, WorkerId};
use rufous_mapping::{Mapping, NodeNo};
use rufous_wire::{Body, Envelope};
use std::sync::Arc;

/// When workers look at what they have to report of a mapping that they have taken up.
const REPORT_US: u64 = 2_000;

/// Whether a connection is to a node, or from a process that claims to be one.
pub(crate) fn is_of_peers(info: &ConnInfo) -> bool {
    info.origin.is_of_nodes()
}

impl Front {
    /// The sessions with other nodes, if the node is in a cluster.
    pub fn links(&self) -> Option<&Links> {
        self.peers.links()
    }

    /// This worker's counters of traffic with other nodes.
    pub fn peer_figures(&self) -> Option<Figures> {
        self.peers.figures(self.transactions.waits(), &self.kernel)
    }

    pub(crate) fn on_peers_received(
        &mut self,
        now: Now,
        bytes: &[u8],
        reads: &[Read],
        fx: &mut Effects<Message>,
    ) {
        if self.peers.on_received(now, bytes, reads, fx) {
            // Requests forwarded after this go to the current sessions.
            self.hear_peers(now, fx);
        }
    }

    pub(crate) fn on_peer_message(
        &mut self,
        now: Now,
        from: WorkerId,
        message: PeerMessage,
        fx: &mut Effects<Message>,
    ) {
        if let Some(links) = &mut self.peers.links {
            links.on_peer_message(now, from, message, fx);
            self.hear_peers(now, fx);
        }
    }

    /// A stopping node waits no more for replies of other nodes. Returns the number of requests.
    pub(crate) fn give_up_forwarding(&mut self, now: Now, fx: &mut Effects<Message>) -> usize {
        let given_up = self.peers.give_up();
        self.carry_out_forwarding(now, fx);
        given_up
    }

    /// The node stops: no requests are forwarded any more. Replies to those sent are waited for.
    pub(crate) fn end_forwarding(&mut self, now: Now, fx: &mut Effects<Message>) {
        self.peers.forwarding.on_stop();
        self.carry_out_forwarding(now, fx);
    }

    /// A message of the control thread: a mapping, or that the node stops soon.
    pub(crate) fn on_told(&mut self, now: Now, message: Message, fx: &mut Effects<Message>) {
        match message {
            Message::Farewell => self.begin_farewell(now),
            Message::Peer(message) => self.peers.on_told(now, message, fx),
            _ => {}
        }
    }

    pub(crate) fn on_undialled(&mut self, now: Now, token: u64, error: &DialError) {
        let is_news = self.peers.on_undialled(now, token, error);
        if let Some(cluster) = self.shared.cluster.as_ref().filter(|_| is_news) {
            cluster.reported.notify_one();
        }
    }

    pub(crate) fn tick_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        let cluster = self.shared.cluster.as_deref();
        if let (Some(links), Some(cluster)) = (&mut self.peers.links, cluster) {
            links.tick(now, fx);
            reporting::tell(now, links, &mut self.kernel, cluster, &self.config);
        }
    }

    /// Passes received messages to the layers above.
    #[inline]
    pub(crate) fn hear_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        while let Some(links) = &mut self.peers.links {
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
                self.peers.on_mapping();
                self.hold_up_under_way(fx);
            }
            Heard::Up(no) => {
                self.kernel.on_peer_up(now, no);
                self.peers.on_up(no);
                self.carry_out_serving(now, fx);
            }
            Heard::Down(no) => {
                self.kernel.on_peer_down(no);
                self.peers.on_down(now, no);
                self.carry_out_serving(now, fx);
            }
            Heard::Message(no, envelope) => {
                let (epoch, from) = (envelope.epoch, envelope.from);
                match envelope.body {
                    Some(Body::Requests(requests)) => {
                        self.peers.serving.on_requests(no, from, requests);
                        self.carry_out_serving(now, fx);
                    }
                    Some(Body::EndWaits(ends)) => {
                        self.peers.serving.on_end_waits(no, from, ends);
                        self.carry_out_serving(now, fx);
                    }
                    Some(Body::Replies(replies)) => {
                        self.peers.on_replies(now, no, (epoch, replies));
                    }
                    Some(Body::Gossip(gossip)) => {
                        self.hear_gossip(now, no, (from, &gossip.batch), fx);
                    }
                    _ => self.hear_of_chains(now, no, *envelope),
                }
            }
        }
    }

    /// Gossip of a worker of another node.
    fn hear_gossip(
        &mut self,
        now: Now,
        node: NodeNo,
        batch: (u32, &[u8]),
        fx: &mut Effects<Message>,
    ) {
        if self.peers.hears()
            && let Err(why) = gossip::hear(now, node, batch, &mut self.kernel)
        {
            self.peers.refuse(now, node, why, fx);
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

    /// Applies what a step has left for other nodes, and sends messages to them.
    #[inline]
    pub(crate) fn settle_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        if self.peers.are_there() {
            self.peers.forwarding.on_time(now);
            self.apart(now).give_up(fx);
            self.hear_peers(now, fx);
            self.step_chains(now, fx);
            self.peers.on_step(now);
            self.carry_out_forwarding(now, fx);
            self.serve_held(now, fx);
        }
    }

    /// Sends what the turn has collected.
    #[inline]
    pub(crate) fn send_to_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        if let Some(links) = &mut self.peers.links {
            letters::send(now, links, &mut self.kernel, fx);
            gossip::send(now, links, &mut self.kernel, fx);
            self.peers.forwarding.on_turn_end();
            self.carry_out_forwarding(now, fx);
            let at = (self.kernel.passed(), self.kernel.logged());
            if self.peers.send_replies(now, at, fx) {
                self.cron.set_wake_us(now.mono_us);
                fx.wake_at_us = Some(now.mono_us);
            }
        }
    }

    /// A mapping takes effect.
    pub(crate) fn act_by(&mut self, now: Now, mapping: &Arc<Mapping>, fx: &mut Effects<Message>) {
        let own = self.links().and_then(|links| links.own());
        self.kernel.on_mapping(now, mapping, own);
        self.deliver_outcomes(fx);
    }

    /// A message of another node for the kernel. [`Front::settle_heard`] follows the last one of several.
    pub(crate) fn hear_of_chains(&mut self, now: Now, node: NodeNo, envelope: Envelope) {
        if !self.peers.hears() {
            return;
        }
        match &envelope.body {
            Some(Body::Learned(_)) => self.hear_of_copies(node, envelope),
            Some(Body::Letter(letter)) => match letters::read(letter) {
                Some(letter) => self.kernel.on_letter(node, letter),
                None => self.counters.peer_messages_unused += 1,
            },
            _ => {
                let unused = letters::hear(now, node, envelope, &mut self.kernel);
                self.counters.peer_messages_unused += unused;
            }
        }
    }

    /// Lets the kernel go on after messages of other nodes.
    pub(crate) fn settle_heard(&mut self, now: Now, fx: &mut Effects<Message>) {
        self.kernel.settle_peers(now);
        self.deliver_outcomes(fx);
        self.settle_kernel(now, fx);
        self.carry_out_forwarding(now, fx);
    }

    /// A learner of another node has reported to this one, which plans.
    fn hear_of_copies(&mut self, node: NodeNo, envelope: Envelope) {
        if let Some(Body::Learned(learned)) = envelope.body
            && let Some(links) = self.links()
            && links.common().reports.hear(node, learned)
            && let Some(cluster) = &self.shared.cluster
        {
            cluster.reported.notify_one();
        }
    }

    /// Runs what is due, and continues work that takes several steps.
    pub(crate) fn step_chains(&mut self, now: Now, fx: &mut Effects<Message>) {
        let Some(cluster) = self.shared.cluster.clone() else {
            return;
        };
        let has_room = |node| cluster.common.rooms.has_room(node);
        self.kernel.step_chains(now, has_room);
        self.deliver_outcomes(fx);
    }
}
