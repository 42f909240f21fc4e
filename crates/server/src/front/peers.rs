//! What the kernel receives from other nodes, and what it sends to them.

use super::{Front, Message};
use crate::cluster::links::Links;
use rufous_base::{Effects, Now, Until};
use rufous_cluster::alike;
use rufous_kernel::worker::{Letter, Place, Posted};
use rufous_mapping::{Mapping, NodeNo};
use rufous_wire::message as wire;
use rufous_wire::{Body, Class, Envelope};
use std::sync::Arc;

impl Front {
    /// A mapping takes effect.
    pub(crate) fn act_by(&mut self, now: Now, mapping: &Arc<Mapping>, fx: &mut Effects<Message>) {
        let own = self.links().and_then(|links| links.own());
        self.kernel.on_mapping(now, mapping, own);
        self.deliver_outcomes(fx);
    }

    /// A message of another node for the kernel. [`Front::settle_heard`] follows the last one of several.
    pub(crate) fn hear_of_chains(&mut self, now: Now, node: NodeNo, envelope: Envelope) {
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
        if let Some(Body::Letter(letter)) = &envelope.body {
            return self.hear_letter(node, letter);
        }
        match envelope {
            Envelope {
                body: Some(Body::Alike(alike)),
                ..
            } => {
                for items in alike.each() {
                    let body = Some(Body::Items(items));
                    self.hear_of_chain(now, node, Envelope { body, ..envelope });
                }
            }
            envelope => self.hear_of_chain(now, node, envelope),
        }
    }

    /// Lets the kernel go on after messages of other nodes.
    pub(crate) fn settle_heard(&mut self, now: Now, fx: &mut Effects<Message>) {
        self.kernel.settle_peers(now);
        self.deliver_outcomes(fx);
        self.settle_kernel(now, fx);
        self.carry_out_forwarding(now, fx);
    }

    fn hear_of_chain(&mut self, now: Now, node: NodeNo, envelope: Envelope) {
        match envelope.into_chain(node) {
            Some((from, said)) => self.kernel.on_peer(now, from, said),
            None => self.counters.peer_messages_unused += 1,
        }
    }

    /// A message of a transaction over slots.
    fn hear_letter(&mut self, node: NodeNo, letter: &wire::Letter) {
        let place = |slot: u32, since| match slot.checked_sub(1) {
            Some(slot) => Place::Slot {
                slot: slot as u16,
                since,
            },
            None => Place::Origin,
        };
        let from = place(letter.from_slot, letter.from_since);
        let to = place(letter.to_slot, letter.to_since);
        match Letter::read(from, to, &letter.message) {
            Some(letter) => self.kernel.on_letter(node, letter),
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
        let is_alone = |links: &Links| links.connected().next().is_none();
        self.stop
            .has_waited(now, self.links().is_some_and(is_alone))
    }

    /// A stopping node has waited long enough for other nodes: gives up what waits for them.
    pub(crate) fn give_up_others(&mut self, now: Now, fx: &mut Effects<Message>) {
        let cluster = self.shared.cluster.as_ref();
        if self.stop.has_begun() && cluster.is_some_and(|cluster| cluster.has_left()) {
            self.stop.on_left(now);
        }
        if !self.has_waited_to_stop(now) {
            return;
        }
        let replies = self.give_up_forwarding(now, fx);
        let acknowledgements = self.kernel.give_up_others(now);
        self.settle_kernel(now, fx);
        if replies > 0 || acknowledgements > 0 {
            let worker = self.id().0;
            tracing::warn!(
                worker,
                replies,
                acknowledgements,
                "stopping without what other nodes owe: the outcome of these requests is unknown"
            );
        }
    }

    /// Ends sessions with other nodes before the node stops: after all requests that wait for other
    /// nodes are answered, and before the log is closed, which would miss their changes. True when
    /// that is done. A session of one worker has the acknowledgements for all: none ends before no
    /// worker waits.
    pub(super) fn leaves_peers(&mut self, now: Now, fx: &mut Effects<Message>) -> bool {
        let has_waited = self.has_waited_to_stop(now);
        if self.links.is_none() {
            return true;
        }
        if self.kernel.awaits_chains() {
            if !has_waited {
                return false;
            }
            // The result of these is unknown.
            fx.abandon(Until::Passed);
        }
        if self.stop.on_parted() {
            self.shared.part_from_peers();
            // Others may wait for this one alone.
            let others = self.out.place().others();
            let wakes = others.map(|worker| (worker, Message::Tell(Box::new(|_, _| {}))));
            fx.messages.extend(wakes);
        }
        if !self.shared.all_parted() && !has_waited {
            return false;
        }
        if let Some(links) = self.links.as_mut().filter(|links| !links.is_stopping()) {
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
        for Posted { to, letter } in self.kernel.take_letters() {
            let place = |place| match place {
                Place::Slot { slot, since } => (u32::from(slot) + 1, since),
                Place::Origin => (0, 0),
            };
            let (from, to_place) = (place(letter.from), place(letter.to));
            let body = Body::Letter(wire::Letter {
                from_slot: from.0,
                from_since: from.1,
                to_slot: to_place.0,
                to_since: to_place.1,
                message: letter.write().into(),
            });
            let envelope = Envelope {
                from: self.kernel.id().0.into(),
                to: to.worker.into(),
                ..links.envelope(body)
            };
            links.send(now, to.node, Class::Chain, envelope, fx);
        }
        let from = self.kernel.id().0;
        let said: Vec<_> = self
            .kernel
            .take_peer_messages()
            .into_iter()
            .map(|said| {
                let class = match (said.envelope.message.chain(), said.learning) {
                    (None, _) => Class::Control,
                    (Some(_), true) => Class::Learning,
                    (Some(_), false) => Class::Chain,
                };
                let envelope = Envelope::of_chain(from, said.to, said.envelope);
                (said.to.node, class, envelope)
            })
            .collect();
        let count = said.len();
        let joined = alike::join(said);
        self.kernel.on_joined(count - joined.len());
        for (node, class, envelope) in joined {
            links.send(now, node, class, envelope, fx);
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
