//! Lattice keyspaces that other nodes have too: passes events on to `nodes`.

use super::nodes::{Early, FromPeer, NodeFigures, Nodes, Past, Told, Unserved};
use super::stamps::not_coordination_free;
use super::{Call, Lattices, Out, Store};
use crate::multi::NodeAction;
use crate::placement::Placement;
use crate::replicate::gossip::Sent;
use crate::replicate::member;
use crate::replicate::vector::Vector;
use crate::shard::Shard;
use crate::worker::Message;
use rufous_base::Now;
use rufous_mapping::{Mapping, NodeNo};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a worker lacks of what a session has seen elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// It does not serve lattice keys yet.
    Unserved,
    /// Changes of these nodes, each with whether it is there; `None`: of other workers of its own node. Without any it lacks nothing.
    Of(BTreeMap<Option<u16>, bool>),
}

impl Lack {
    pub const NOTHING: Self = Self::Of(BTreeMap::new());
}

impl Lattices {
    /// The node is in a cluster.
    pub(in crate::worker) fn on_join(&mut self, past: Past) {
        self.nodes = Some(Box::new(Nodes::new(past)));
        self.replicas.await_mapping();
    }

    /// These other members announce that they serve lattice keys.
    pub(in crate::worker) fn on_serving(&mut self, serving: &BTreeSet<NodeNo>) {
        if let Some(nodes) = &mut self.nodes {
            nodes.on_serving(serving);
        }
    }

    /// The table of keyspaces is the configured one.
    pub(in crate::worker) fn share(&mut self) {
        if let Some(nodes) = &mut self.nodes {
            nodes.share();
        }
    }

    /// A mapping has come into force; this node has or had the number `own`.
    pub(in crate::worker) fn on_mapping(
        &mut self,
        now: Now,
        (mapping, own): (&Mapping, NodeNo),
        store: &mut Store<'_>,
    ) {
        if let Some(nodes) = &mut self.nodes {
            nodes.on_mapping(mapping, own);
            self.take_part(now, store);
        }
    }

    /// Puts the newest mapping in force, once the table of keyspaces is known.
    pub(in crate::worker) fn take_part(&mut self, now: Now, store: &mut Store<'_>) {
        let Some(nodes) = &mut self.nodes else {
            return;
        };
        if !nodes.take_part(now, &mut self.replicas, store) {
            return;
        }
        for early in nodes.take_early() {
            match early {
                Early::Here(bytes) => self.on_replicate(now, bytes, store),
                Early::Told(number, bytes) => self.on_told(now, number, bytes, store),
                Early::HasHeard(number) => self.on_has_heard(number, store),
            }
        }
    }

    pub(in crate::worker) fn on_peer_up(&mut self, node: NodeNo) {
        if let Some(nodes) = &mut self.nodes {
            nodes.on_up(node);
        }
    }

    pub(in crate::worker) fn on_peer_down(&mut self, node: NodeNo) {
        if let Some(nodes) = &mut self.nodes {
            nodes.on_down(node);
        }
    }

    /// Decodes a message of another node. Nothing where this node cannot take it yet; an error where
    /// there must be no session with that node.
    pub(in crate::worker) fn read_peer(
        &self,
        from: (NodeNo, u16),
        bytes: &[u8],
    ) -> Result<Option<FromPeer>, &'static str> {
        match &self.nodes {
            Some(nodes) => nodes.read(from, bytes),
            None => Ok(None),
        }
    }

    /// Handles a message from a worker of another node; or returns why there must be no session
    /// with it.
    pub(in crate::worker) fn on_peer(
        &mut self,
        now: Now,
        peer: FromPeer,
        store: &mut Store<'_>,
        out: &mut Out,
    ) -> Result<(), &'static str> {
        let Some(nodes) = &mut self.nodes else {
            return Ok(());
        };
        let told = nodes.on_peer(now, peer)?;
        self.tell_all(now, told, store, out);
        Ok(())
    }

    /// Passes messages of other nodes on to all workers of this one.
    pub(super) fn tell_all(
        &mut self,
        now: Now,
        told: Vec<Told>,
        store: &mut Store<'_>,
        out: &mut Out,
    ) {
        for (number, bytes) in told {
            for to in store.others() {
                out.call(Call::Send(to, Message::Told(number, Arc::clone(&bytes))));
            }
            self.on_told(now, number, bytes, store);
        }
    }

    /// Handles a message that another node sent to this one by its number.
    pub(in crate::worker) fn on_told(
        &mut self,
        now: Now,
        number: u16,
        bytes: Arc<[u8]>,
        store: &mut Store<'_>,
    ) {
        if let Some(nodes) = &mut self.nodes
            && let Some(bytes) = nodes.on_told(number, bytes)
        {
            let parts = (&mut *store.shard, store.placement);
            if self.replicas.receive(now, parts, bytes).is_err() {
                nodes.on_refused();
            }
            store.shard.tell_horizon();
        }
    }

    /// A worker of this node has received the state of all other nodes.
    pub(in crate::worker) fn on_has_heard(&mut self, number: u16, store: &mut Store<'_>) {
        if let Some(nodes) = &mut self.nodes {
            nodes.on_has_heard(number, store);
        }
    }

    /// The number of the node that the files were written by.
    pub(in crate::worker) fn on_node_of_files(&mut self, number: u16, store: &mut Store<'_>) {
        // If a log says that its node has served, all workers had received the state of other
        // nodes; if it says that its node was in no cluster, it may have written as that node.
        let least = store.shard.marks().node().unwrap_or(number).min(number);
        store.shard.set_node(least);
    }

    /// The node serves. One that is in no cluster writes as the first node of one.
    pub(in crate::worker) fn on_serve(&mut self, store: &mut Store<'_>) {
        let is_other = store.shard.marks().node().is_some_and(|number| number > 0);
        if self.nodes.is_none() && is_other {
            store.shard.set_node(0);
        }
    }

    /// Changes for all other nodes, which wait until the log has everything up to `position`.
    pub(in crate::worker) fn on_changes(
        &mut self,
        position: u64,
        bytes: Arc<[u8]>,
        is_report: bool,
    ) {
        if let Some(nodes) = &mut self.nodes {
            nodes.on_changes(position, bytes, is_report);
        }
    }

    /// Messages for workers of other nodes.
    pub(in crate::worker) fn take_gossip(&mut self) -> Vec<Sent> {
        let nodes = self.nodes.as_mut();
        nodes.map_or_else(Vec::new, |nodes| nodes.take_sent())
    }

    /// Whether the node has a number, if it needs one to send changes.
    pub(in crate::worker) fn is_named(&self) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.is_named())
    }

    /// Whether lattice keys have to wait until other nodes have sent their state.
    #[inline]
    pub(in crate::worker) fn awaits_nodes(&self) -> bool {
        self.nodes.as_ref().is_some_and(|nodes| !nodes.serves())
    }

    /// What a session may have seen here. `None`: that is not known yet, and asked for.
    pub(in crate::worker) fn seen(&mut self, shard: &mut Shard) -> Option<Vector> {
        if !self.table.has_lattice() {
            return Some(Vector::default());
        }
        let nodes = self.nodes.as_deref();
        let is_up = |node| nodes.is_some_and(|nodes| nodes.is_up(node));
        self.replicas.seen(shard.changeset(), &is_up)
    }

    /// What this worker lacks of what a session has seen.
    pub(in crate::worker) fn lacks(&self, seen: &Vector, placement: &Placement) -> Lack {
        if !self.table.has_lattice() {
            return Lack::NOTHING;
        }
        if self.awaits_nodes() {
            return Lack::Unserved;
        }
        let lacking = self.replicas.lacks(seen, placement).into_iter();
        let name = |replica| match &self.nodes {
            Some(nodes) if !self.replicas.is_here(replica) => {
                let node = member::node_of(replica);
                (Some(node), nodes.is_up(node))
            }
            _ => (None, true),
        };
        Lack::Of(lacking.map(name).collect())
    }

    /// A number that is another one when what this worker lacks, or whether it can tell what was seen here, may be another.
    pub(in crate::worker) fn news(&self) -> u64 {
        let nodes = self.nodes.as_deref();
        let is_up = |node| nodes.is_some_and(|nodes| nodes.is_up(node));
        let own = self.table.version() << 1 | u64::from(self.awaits_nodes());
        self.replicas.news(&is_up).wrapping_add(own)
    }

    /// Whether other nodes have, or may have, the same lattice keys.
    pub(in crate::worker) fn has_others(&self) -> bool {
        self.nodes.as_ref().is_some_and(|nodes| nodes.has_others())
    }

    pub(in crate::worker) fn node_figures(&self) -> Option<NodeFigures> {
        let nodes = self.nodes.as_ref()?;
        Some(NodeFigures {
            waiting: u64::from(self.unserved().is_some()),
            ..nodes.figures(&self.replicas)
        })
    }

    /// Why no lattice key is served, if there are lattice keyspaces and none is.
    pub(in crate::worker) fn unserved(&self) -> Option<Unserved> {
        let nodes = self.nodes.as_ref().filter(|_| self.table.has_lattice())?;
        nodes.unserved(&self.replicas)
    }

    /// Why replicas do not allow a command on whole databases.
    pub(in crate::worker) fn refuses_action(&self, action: NodeAction) -> Option<String> {
        let (why, instead) = match action {
            NodeAction::SwapDb(..) => (
                "updates of the databases' keys are on their way between replicas",
                "drop the lattice keyspaces first, of all prefixes, or copy the keys",
            ),
            NodeAction::FlushAll | NodeAction::FlushDb(_) if self.has_others() => (
                "other nodes go on with the keys that it would remove",
                "delete its keys by their names",
            ),
            _ => return None,
        };
        let mut lattices = self.table.iter().filter(|k| k.is_lattice());
        let first = lattices.next()?;
        Some(not_coordination_free(why, &first.name, instead))
    }
}
