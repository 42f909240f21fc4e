//! The worker's part in sharing lattice keyspaces with other nodes: the number that identifies
//! replicas here, and the messages to and from other nodes.
//!
//! A node of a cluster serves no lattice key before a mapping contains it and every worker of every
//! other member has sent its state to all workers here. Messages to other nodes wait for this
//! worker's log only.
//!
//! Only then do logs record that their data belongs to the node with this number. A node that ends
//! before that has received part of the others' state, in no order: a start drops it.
//!
//! Workers of a node adopt a number one after the other. A worker's message contains its number: a
//! worker that has not adopted that number yet keeps the message until it has, and one that has
//! adopted a later number drops it.
//!
//! `number` describes how a worker adopts a number; `figures` has the counters.

mod figures;
mod number;

pub use figures::NodeFigures;

use super::replicating::not_coordination_free;
use super::{Message, Worker};
use crate::durable::Note;
use crate::multi::NodeAction;
use crate::program::Program;
use crate::replicate::batch::Batch;
use crate::replicate::gossip::{Gossip, Peer, Sent};
use crate::replicate::member;
use rufous_base::{Now, WorkerId};
use rufous_mapping::{Mapping, NodeNo};
use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Keys per step of a walk.
const KEYS: usize = 1024;
/// The bytes that all workers of a node may have in transit to another one: half of the limit of a
/// session's output, at which the session is ended.
const FLYING_BYTES: usize = 1 << 20;

/// The mapping in force for a worker.
#[derive(Clone, Debug)]
struct View {
    epoch: u64,
    own: u16,
    nodes: BTreeSet<u16>,
    next: u16,
}

/// A message that waits for the log.
#[derive(Debug)]
enum Waits {
    /// For all other nodes.
    Told {
        bytes: Arc<[u8]>,
        is_report: bool,
    },
    Sent(Sent),
    /// For all workers of this node: this one has received the state of all other nodes.
    HasHeard(u16),
}

/// A message that arrived before this worker had adopted its node's number.
#[derive(Debug)]
enum Early {
    /// From a worker of this node.
    Here(Arc<[u8]>),
    /// From another node, for a worker of the node with this number.
    Told(u16, Arc<[u8]>),
    HasHeard(u16),
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// The table of keyspaces is the configured one.
    shares: bool,
    table: u64,
    view: Option<View>,
    /// The newest mapping is not in force yet.
    has_news: bool,
    up: BTreeSet<u16>,
    /// The number that identifies replicas here and their streams.
    number: Option<u16>,
    gossip: Option<Gossip>,
    /// The number of workers of this node known to have received all other nodes' state, and
    /// whether this one has reported that it has.
    heard: usize,
    has_heard: bool,
    serves: bool,
    early: Vec<Early>,
    held: VecDeque<(u64, Waits)>,
    out: Vec<Sent>,
    /// More work can be done at once.
    pub(super) more: bool,
    refused: u64,
}

impl Nodes {
    pub(super) fn set_table(&mut self, table: u64) {
        self.table = table;
        if let Some(gossip) = &mut self.gossip {
            gossip.set_table(table);
        }
    }

    /// Drops messages of an ended session.
    fn drop_sent(&mut self, node: u16) {
        let is_for = |waits: &Waits| matches!(waits, Waits::Sent(sent) if sent.node == node);
        self.held.retain(|(_, waits)| !is_for(waits));
        self.out.retain(|sent| sent.node != node);
    }

    /// Sends and serves nothing until the state of all other nodes was received again.
    fn stop(&mut self) {
        self.gossip = None;
        (self.heard, self.has_heard, self.serves) = (0, false, false);
    }

    /// Whether changes of replicas here can be sent.
    pub(super) fn is_named(&self) -> bool {
        self.gossip.is_some()
    }

    fn has_others(&self) -> bool {
        let view = self.view.as_ref();
        view.is_none_or(|view| view.nodes.len() > 1)
    }

    pub(super) fn wake_us(&self) -> Option<u64> {
        let wake = self.gossip.as_ref().and_then(Gossip::wake_us);
        let more = self.more.then_some(0);
        more.into_iter().chain(wake).min()
    }
}

impl<P: Program> Worker<P> {
    /// The table of keyspaces is the configured one: from now on the worker may exchange lattice
    /// keyspaces with other nodes.
    pub fn share_lattices(&mut self) {
        if let Some(nodes) = &mut self.lattice.nodes {
            (nodes.shares, nodes.has_news) = (true, true);
        }
    }

    /// A mapping has come into force; this node has or had the number `own`.
    pub(super) fn share_by(&mut self, now: Now, mapping: &Mapping, own: NodeNo) {
        if let Some(nodes) = &mut self.lattice.nodes {
            nodes.view = Some(View {
                epoch: mapping.epoch,
                own: own.0,
                nodes: mapping.members.keys().map(|no| no.0).collect(),
                next: mapping.next,
            });
            nodes.has_news = true;
            self.take_part(now);
        }
    }

    /// Puts the newest mapping in force, once the table of keyspaces is known.
    pub(super) fn take_part(&mut self, now: Now) {
        let Some(nodes) = self.lattice.nodes.as_mut().filter(|of| of.has_news) else {
            return;
        };
        nodes.has_news = false;
        let Some(view) = nodes.view.clone().filter(|_| nodes.shares) else {
            return;
        };
        if !view.nodes.contains(&view.own) {
            // No other node waits for it any more.
            nodes.stop();
            return;
        }
        if nodes.gossip.is_none() || nodes.number != Some(view.own) {
            self.be_node(now, view.own);
        }
        let lattice = &mut self.lattice;
        if let Some(nodes) = &mut lattice.nodes
            && let Some(gossip) = &mut nodes.gossip
        {
            nodes.more = true;
            let replicas = &mut lattice.replicas;
            replicas.act_by(view.epoch, &view.nodes, view.next);
            gossip.act_by(&view.nodes, view.next);
        }
        self.take_early_of_nodes(now);
    }

    /// A session with a node begins.
    pub(super) fn share_with(&mut self, node: NodeNo) {
        if let Some(nodes) = &mut self.lattice.nodes {
            nodes.drop_sent(node.0);
            nodes.up.insert(node.0);
            nodes.more = true;
            if let Some(gossip) = &mut nodes.gossip {
                gossip.up(node.0);
            }
        }
    }

    /// A session with a node has ended.
    pub fn on_peer_down(&mut self, node: NodeNo) {
        if let Some(nodes) = &mut self.lattice.nodes {
            nodes.drop_sent(node.0);
            nodes.up.remove(&node.0);
            if let Some(gossip) = &mut nodes.gossip {
                gossip.down(node.0);
            }
        }
    }

    /// Handles a message on lattice keyspaces from a worker of another node; or returns why there
    /// must be no session with it.
    pub fn on_gossip(
        &mut self,
        now: Now,
        (node, worker): (NodeNo, u16),
        bytes: &[u8],
    ) -> Result<(), &'static str> {
        let peer = Peer::decode(bytes).map_err(|_| "gossip that is none")?;
        let serving = self.is_serving();
        let Some(nodes) = self.lattice.nodes.as_mut().filter(|of| of.shares) else {
            return Ok(());
        };
        if matches!(peer, Peer::Hello { table, .. } if table != nodes.table) {
            return Err("other lattice keyspaces than the configuration here has");
        }
        let (Some(gossip), Some(number)) = (&mut nodes.gossip, nodes.number) else {
            return Ok(());
        };
        if !serving {
            return Ok(());
        }
        let all = gossip.take((node.0, worker), peer);
        let all = all.map_err(|_| "gossip that makes no sense")?;
        nodes.more = true;
        for bytes in all {
            for other in 0..self.placement.workers() {
                let (to, bytes) = (WorkerId(other as u16), Arc::clone(&bytes));
                if to != self.id {
                    self.send(to, Message::Told(number, bytes));
                }
            }
            self.on_told(now, number, bytes);
        }
        Ok(())
    }

    /// Handles a message that another node sent to this one by its number.
    pub(super) fn on_told(&mut self, now: Now, number: u16, bytes: Arc<[u8]>) {
        let Some(nodes) = &mut self.lattice.nodes else {
            return;
        };
        match nodes.number.map_or(Ordering::Less, |own| own.cmp(&number)) {
            Ordering::Less => nodes.early.push(Early::Told(number, bytes)),
            Ordering::Greater => {}
            Ordering::Equal => {
                let parts = (&mut self.shard, &self.placement);
                let done = self.lattice.replicas.receive(now, parts, bytes);
                nodes.refused += u64::from(done.is_err());
                self.shard.tell_horizon();
            }
        }
    }

    /// Returns a message of a worker of this node if it can be applied now.
    pub(super) fn of_this_number(&mut self, bytes: Arc<[u8]>) -> Option<Arc<[u8]>> {
        let Some(nodes) = &mut self.lattice.nodes else {
            return Some(bytes);
        };
        let from = Batch::decode(&bytes).ok()?.from;
        if self.lattice.replicas.is_here(from) {
            return Some(bytes);
        }
        if nodes.number.is_none_or(|own| own < member::node_of(from)) {
            nodes.early.push(Early::Here(bytes));
        }
        None
    }

    fn take_early_of_nodes(&mut self, now: Now) {
        let nodes = self.lattice.nodes.as_mut();
        let early = nodes.map(|nodes| std::mem::take(&mut nodes.early));
        for early in early.into_iter().flatten() {
            match early {
                Early::Here(bytes) => self.on_replicate(now, bytes),
                Early::Told(number, bytes) => self.on_told(now, number, bytes),
                Early::HasHeard(number) => self.on_has_heard(number),
            }
        }
    }

    /// Keeps a message for all other nodes until the log has the data in it.
    pub(super) fn tell_nodes(&mut self, bytes: Arc<[u8]>, is_report: bool) {
        let position = self.position();
        if let Some(nodes) = &mut self.lattice.nodes {
            let told = Waits::Told { bytes, is_report };
            nodes.held.push_back((position, told));
        }
    }

    /// Continues the streams to other nodes.
    pub(super) fn poll_nodes(&mut self, now: Now) {
        let position = self.position();
        let lattice = &mut self.lattice;
        let Some(nodes) = &mut lattice.nodes else {
            return;
        };
        let Some(gossip) = &mut nodes.gossip else {
            return;
        };
        let parts = (&mut self.shard, &self.placement);
        nodes.more = gossip.poll(now, parts, &mut lattice.replicas);
        let sent = gossip.take_sent().into_iter();
        nodes
            .held
            .extend(sent.map(|sent| (position, Waits::Sent(sent))));
        if let Some(number) = nodes.number.filter(|_| !nodes.has_heard)
            && lattice.replicas.has_heard_nodes()
        {
            nodes.has_heard = true;
            nodes.held.push_back((position, Waits::HasHeard(number)));
        }
    }

    /// Sends the messages whose data is logged to other nodes.
    pub(super) fn release_to_nodes(&mut self) {
        let logged = self.logged();
        let Some(nodes) = &mut self.lattice.nodes else {
            return;
        };
        let mut heard = None;
        while nodes.held.front().is_some_and(|(at, _)| *at <= logged) {
            match nodes.held.pop_front() {
                Some((_, Waits::Sent(sent))) => nodes.out.push(sent),
                Some((_, Waits::Told { bytes, is_report })) => {
                    if let Some(gossip) = &mut nodes.gossip {
                        gossip.tell(&bytes, is_report);
                        nodes.more = true;
                    }
                }
                Some((_, Waits::HasHeard(number))) => heard = Some(number),
                None => {}
            }
        }
        if let Some(number) = heard {
            let others = (0..self.placement.workers()).map(|other| WorkerId(other as u16));
            for to in others.filter(|to| *to != self.id) {
                let note = Box::new(Note::HasHeard(number));
                self.out.mail.send_early(to, Message::Note(note));
            }
            self.on_has_heard(number);
        }
    }

    /// Messages for workers of other nodes.
    pub fn take_gossip(&mut self) -> Vec<Sent> {
        match &mut self.lattice.nodes {
            Some(nodes) => std::mem::take(&mut nodes.out),
            None => Vec::new(),
        }
    }

    /// Whether lattice keys have to wait until other nodes have sent their state.
    pub(super) fn awaits_nodes(&self) -> bool {
        let nodes = self.lattice.nodes.as_ref();
        nodes.is_some_and(|nodes| !nodes.serves)
    }

    /// Whether other nodes have, or may have, the same lattice keys.
    pub fn shares_lattices(&self) -> bool {
        let nodes = self.lattice.nodes.as_ref();
        nodes.is_some_and(|nodes| nodes.has_others())
    }

    /// Why a command on whole databases cannot be executed.
    pub fn refuses_action(&self, action: NodeAction) -> Option<String> {
        let is_alone = self.chains.as_ref().is_none_or(|chains| chains.is_alone);
        if matches!(action, NodeAction::SwapDb(..)) && !is_alone {
            return Some(
                "changes keys of all slots at once, and slots have copies at other nodes".into(),
            );
        }
        let (why, instead) = match action {
            NodeAction::SwapDb(..) => (
                "updates of the databases' keys are on their way between replicas",
                "drop the lattice keyspaces first, of all prefixes, or copy the keys",
            ),
            NodeAction::FlushAll | NodeAction::FlushDb(_) if self.shares_lattices() => (
                "other nodes go on with the keys that it would remove",
                "delete its keys by their names",
            ),
            _ => return None,
        };
        let mut lattices = self.lattice.table.iter().filter(|k| k.is_lattice());
        let first = lattices.next()?;
        Some(not_coordination_free(why, &first.name, instead))
    }
}
