//! Sharing lattice keyspaces with other nodes: the number that identifies replicas here, and the
//! messages to and from other nodes.
//!
//! A node of a cluster serves no lattice key before a mapping contains it and every worker of every
//! other member has sent its state to all workers here, without members that are away (`away`).
//! Messages to other nodes wait for this worker's log only.
//!
//! Only then do logs record that their data belongs to the node with this number. A node that ends
//! before that has received part of the others' state, in no order: a start drops it.
//!
//! Workers of a node adopt a number one after the other. A worker's message contains its number: a
//! worker that has not adopted that number yet keeps the message until it has, and one that has
//! adopted a later number drops it.
//!
//! `number` describes how a worker adopts a number; `figures` has the counters, and why lattice keys
//! are not served.

mod away;
mod figures;
mod number;

pub use away::{Awaited, Past};
pub use figures::{NodeFigures, Unserved};

use away::Away;

use crate::durable::Note;
use crate::replicate::batch::Batch;
use crate::replicate::gossip::{Gossip, Peer, Sent};
use crate::replicate::member;
use crate::replicate::replicas::Replicas;
use crate::worker::Message;
use crate::worker::out::Out;
use crate::worker::store::Store;
use rufous_base::Now;
use rufous_mapping::{Mapping, NodeNo};
use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

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
pub(super) enum Early {
    /// From a worker of this node.
    Here(Arc<[u8]>),
    /// From another node, for a worker of the node with this number.
    Told(u16, Arc<[u8]>),
    HasHeard(u16),
}

/// A message from a worker of another node.
#[derive(Debug)]
pub(in crate::worker) struct FromPeer {
    from: (NodeNo, u16),
    peer: Peer,
}

/// A message of another node for all workers of this one, with the number of this node that it was
/// sent to.
pub(super) type Told = (u16, Arc<[u8]>);

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
    away: Away,
    /// When the next node counts as away.
    away_us: Option<u64>,
    /// Nodes that were away when this worker began to serve without their state.
    excused: u64,
    early: Vec<Early>,
    held: VecDeque<(u64, Waits)>,
    out: Vec<Sent>,
    /// More work can be done at once.
    more: bool,
    refused: u64,
}

impl Nodes {
    pub(super) fn new(past: Past) -> Self {
        Self {
            away: Away::new(past),
            ..Self::default()
        }
    }

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

    /// Whether other nodes have, or may have, the same lattice keys.
    pub(super) fn has_others(&self) -> bool {
        let view = self.view.as_ref();
        view.is_none_or(|view| view.nodes.len() > 1)
    }

    pub(super) fn wake_us(&self) -> Option<u64> {
        let wake = self.gossip.as_ref().and_then(Gossip::wake_us);
        let more = self.more.then_some(0);
        let away = self.away_us.filter(|_| !self.has_heard);
        more.into_iter().chain(wake).chain(away).min()
    }

    /// The table of keyspaces is the configured one: from now on the worker may exchange lattice
    /// keyspaces with other nodes.
    pub(super) fn share(&mut self) {
        (self.shares, self.has_news) = (true, true);
    }

    /// A mapping has come into force; this node has or had the number `own`.
    pub(super) fn on_mapping(&mut self, mapping: &Mapping, own: NodeNo) {
        self.view = Some(View {
            epoch: mapping.epoch,
            own: own.0,
            nodes: mapping.members.keys().map(|no| no.0).collect(),
            next: mapping.next,
        });
        self.has_news = true;
    }

    /// Puts the newest mapping in force, once the table of keyspaces is known. True where messages
    /// that arrived before may be taken ([`Nodes::take_early`]).
    pub(super) fn take_part(
        &mut self,
        now: Now,
        replicas: &mut Replicas,
        store: &mut Store<'_>,
    ) -> bool {
        if !std::mem::take(&mut self.has_news) {
            return false;
        }
        let Some(view) = self.view.clone().filter(|_| self.shares) else {
            return false;
        };
        if !view.nodes.contains(&view.own) {
            // No other node waits for it any more.
            self.stop();
            return false;
        }
        if self.gossip.is_none() || self.number != Some(view.own) {
            self.be_node(now, view.own, replicas, store);
        }
        if let Some(gossip) = &mut self.gossip {
            self.more = true;
            replicas.act_by(view.epoch, &view.nodes, view.next);
            gossip.act_by(&view.nodes, view.next);
        }
        true
    }

    /// These other nodes announce that they serve lattice keys.
    pub(super) fn on_serving(&mut self, serving: &BTreeSet<NodeNo>) {
        self.more |= self.away.on_serving(serving.iter().map(|no| no.0));
    }

    /// A session with a node begins.
    pub(super) fn on_up(&mut self, node: NodeNo) {
        self.drop_sent(node.0);
        self.up.insert(node.0);
        self.more = true;
        if let Some(gossip) = &mut self.gossip {
            gossip.up(node.0);
        }
    }

    /// A session with a node has ended.
    pub(super) fn on_down(&mut self, node: NodeNo) {
        self.drop_sent(node.0);
        self.up.remove(&node.0);
        if let Some(gossip) = &mut self.gossip {
            gossip.down(node.0);
        }
    }

    /// Decodes a message of another node. Nothing where this node cannot take it yet; an error where
    /// there must be no session with that node.
    pub(super) fn read(
        &self,
        from: (NodeNo, u16),
        bytes: &[u8],
    ) -> Result<Option<FromPeer>, &'static str> {
        let peer = Peer::decode(bytes).map_err(|_| "gossip that is none")?;
        if !self.shares {
            return Ok(None);
        }
        if matches!(peer, Peer::Hello { table, .. } if table != self.table) {
            return Err("other lattice keyspaces than the configuration here has");
        }
        Ok(self.gossip.is_some().then_some(FromPeer { from, peer }))
    }

    /// Handles a message from a worker of another node. Returns the messages in it for all workers
    /// of this node, with the number of this node that they were sent to; or why there must be no
    /// session with that node.
    pub(super) fn on_peer(
        &mut self,
        now: Now,
        FromPeer { from, peer }: FromPeer,
    ) -> Result<Vec<Told>, &'static str> {
        let (Some(gossip), Some(number)) = (&mut self.gossip, self.number) else {
            return Ok(Vec::new());
        };
        self.away.on_heard(from.0.0);
        let all = gossip.take(now, (from.0.0, from.1), peer);
        let all = all.map_err(|_| "gossip that makes no sense")?;
        self.more = true;
        Ok(all.into_iter().map(|bytes| (number, bytes)).collect())
    }

    /// Returns messages of other nodes for all workers of this node that were not taken when they
    /// arrived, as their stamps led the wall clock.
    pub(super) fn take_held(&mut self, now: Now) -> Vec<Told> {
        let (Some(gossip), Some(number)) = (&mut self.gossip, self.number) else {
            return Vec::new();
        };
        let all = gossip.take_held(now).into_iter();
        all.map(|bytes| (number, bytes)).collect()
    }

    /// Returns a message that another node sent to this one by its number, if it can be applied
    /// now.
    pub(super) fn on_told(&mut self, number: u16, bytes: Arc<[u8]>) -> Option<Arc<[u8]>> {
        match self.compare(number) {
            Ordering::Less => self.early.push(Early::Told(number, bytes)),
            Ordering::Greater => {}
            Ordering::Equal => {
                // Another worker of this node receives that node's stream.
                if !self.has_heard
                    && let Ok(batch) = Batch::decode(&bytes)
                {
                    self.away.on_heard(member::node_of(batch.from));
                }
                return Some(bytes);
            }
        }
        None
    }

    fn compare(&self, number: u16) -> Ordering {
        let own = self.number;
        own.map_or(Ordering::Less, |own| own.cmp(&number))
    }

    /// A message of another node could not be applied.
    pub(super) fn on_refused(&mut self) {
        self.refused += 1;
    }

    /// Returns a message of a worker of this node if it can be applied now.
    pub(super) fn on_here(&mut self, bytes: Arc<[u8]>, replicas: &Replicas) -> Option<Arc<[u8]>> {
        let from = Batch::decode(&bytes).ok()?.from;
        if replicas.is_here(from) {
            return Some(bytes);
        }
        if self.number.is_none_or(|own| own < member::node_of(from)) {
            self.early.push(Early::Here(bytes));
        }
        None
    }

    /// Messages that arrived before this worker had adopted its node's number.
    pub(super) fn take_early(&mut self) -> Vec<Early> {
        std::mem::take(&mut self.early)
    }

    /// A worker of this node, which may be this one, has received the state of all other nodes.
    pub(super) fn on_has_heard(&mut self, number: u16, store: &mut Store<'_>) {
        match self.compare(number) {
            Ordering::Less => self.early.push(Early::HasHeard(number)),
            Ordering::Greater => {}
            Ordering::Equal => {
                self.heard += 1;
                if self.heard == store.workers() {
                    // Requests may wait for it; their writes follow it.
                    (self.serves, self.more) = (true, true);
                    store.shard.set_node(number);
                }
            }
        }
    }

    /// Keeps changes for all other nodes until the log has the data in them.
    pub(super) fn on_changes(&mut self, position: u64, bytes: Arc<[u8]>, is_report: bool) {
        let told = Waits::Told { bytes, is_report };
        self.held.push_back((position, told));
    }

    /// Continues the streams to other nodes. `position` commits everything that happened so far.
    pub(super) fn on_turn(
        &mut self,
        now: Now,
        position: u64,
        replicas: &mut Replicas,
        store: &mut Store<'_>,
    ) {
        let Some(gossip) = &mut self.gossip else {
            return;
        };
        self.more = gossip.poll(now, (&mut *store.shard, store.placement), replicas);
        let sent = gossip.take_sent().into_iter();
        let sent = sent.map(|sent| (position, Waits::Sent(sent)));
        self.held.extend(sent);
        if !self.has_heard {
            self.excuse(now, replicas);
        }
        if let Some(number) = self.number.filter(|_| !self.has_heard)
            && replicas.has_heard_nodes()
        {
            self.has_heard = true;
            let without = replicas.nodes().into_iter().filter(|(_, upto)| *upto == 0);
            self.excused = without.count() as u64;
            self.held.push_back((position, Waits::HasHeard(number)));
        }
    }

    /// Does not wait for nodes that are away.
    fn excuse(&mut self, now: Now, replicas: &mut Replicas) {
        if let Some(view) = &self.view {
            let mut others = view.nodes.clone();
            others.remove(&view.own);
            let complete = replicas.nodes().into_iter().filter(|(_, upto)| *upto > 0);
            let complete = complete.map(|(node, _)| node).collect();
            let away = self.away.on_turn(now.mono_us, &others, &self.up, &complete);
            self.away_us = self.away.wake_us(now.mono_us);
            replicas.excuse(away);
        }
    }

    /// The log has everything up to `logged`: sends the messages that waited for that.
    pub(super) fn on_logged(&mut self, logged: u64, store: &mut Store<'_>, out: &mut Out) {
        while let Some((_, waits)) = self.held.pop_front_if(|(at, _)| *at <= logged) {
            match waits {
                Waits::Sent(sent) => self.out.push(sent),
                Waits::Told { bytes, is_report } => {
                    if let Some(gossip) = &mut self.gossip {
                        gossip.tell(&bytes, is_report);
                        self.more = true;
                    }
                }
                Waits::HasHeard(number) => {
                    for to in store.others() {
                        let note = Box::new(Note::HasHeard(number));
                        out.mail.send_early(to, Message::Note(note));
                    }
                    self.on_has_heard(number, store);
                }
            }
        }
    }

    /// Messages for workers of other nodes.
    pub(super) fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.out)
    }

    /// Whether a session with a node is open.
    pub(super) fn is_up(&self, node: u16) -> bool {
        self.up.contains(&node)
    }

    /// Whether lattice keys are served: other nodes have sent their state.
    #[inline]
    pub(super) fn serves(&self) -> bool {
        self.serves
    }
}
