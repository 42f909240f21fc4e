//! What the kernel receives from other nodes, and what it sends to them.

use super::{Front, Message};
use rufous_base::limits::STOP_PATIENCE_US;
use rufous_base::{Effects, Now, Until};
use rufous_mapping::{Mapping, NodeNo};
use rufous_wire::{Body, Class, Envelope};
use std::sync::Arc;

impl Front {
    /// A mapping takes effect.
    pub(crate) fn act_by(&mut self, now: Now, mapping: &Arc<Mapping>, fx: &mut Effects<Message>) {
        let own = self.links().and_then(|links| links.own());
        self.kernel.on_mapping(now, mapping, own);
        self.deliver_outcomes(fx);
    }

    /// A message of another node for the kernel.
    pub(crate) fn hear_of_chains(
        &mut self,
        now: Now,
        node: NodeNo,
        envelope: Envelope,
        fx: &mut Effects<Message>,
    ) {
        let Some(links) = self.links().filter(|links| !links.is_stopping()) else {
            return;
        };
        if let Some(Body::Learned(learned)) = envelope.body {
            if links.common().reports.hear(node, learned)
                && let Some(cluster) = &self.shared.cluster
            {
                cluster.reported.notify_one();
            }
            return;
        }
        match envelope.into_chain(node) {
            Some((from, said)) => {
                self.kernel.on_peer(now, from, said);
                self.deliver_outcomes(fx);
            }
            None => self.counters.peer_messages_unused += 1,
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

    /// Whether the node stops, and has waited as long as it may for other nodes.
    pub(crate) fn has_waited_to_stop(&self, now: Now) -> bool {
        self.stopping && now.mono_us >= self.stop_us + STOP_PATIENCE_US
    }

    /// Ends sessions with other nodes before the node stops: after all requests that wait for other
    /// nodes are answered, and before the log is closed, which would miss their changes. True when
    /// that is done.
    pub(super) fn leaves_peers(&mut self, now: Now, fx: &mut Effects<Message>) -> bool {
        let has_waited = self.has_waited_to_stop(now);
        let Some(links) = &mut self.links else {
            return true;
        };
        if self.kernel.awaits_chains() {
            if !has_waited {
                return false;
            }
            // The result of these is unknown.
            fx.abandon(Until::Passed);
        }
        if !links.is_stopping() {
            links.stop(fx);
            self.forwarding.on_links_stopped();
        }
        true
    }

    /// Sends the kernel's messages to other nodes.
    pub(crate) fn tell_peers(&mut self, now: Now, fx: &mut Effects<Message>) {
        let Some(links) = &mut self.links else {
            return;
        };
        for said in self.kernel.take_peer_messages() {
            let class = match (said.envelope.message.chain(), said.learning) {
                (None, _) => Class::Control,
                (Some(_), true) => Class::Learning,
                (Some(_), false) => Class::Chain,
            };
            let from = self.kernel.id().0;
            let envelope = Envelope::of_chain(from, said.to, said.envelope);
            links.send(now, said.to.node, class, envelope, fx);
        }
    }

    /// Whether so many bytes wait for other nodes that clients have to wait.
    pub(crate) fn peers_are_full(&self) -> bool {
        let Some(links) = &self.links else {
            return false;
        };
        let mut nodes = links.connected();
        nodes.any(|node| links.common().rooms.is_full(node))
    }
}
