//! Sending changes to other nodes, and repairing what those missed.
//!
//! Each worker has a *stream* to each other node: its messages in order, in numbered pieces that are kept until they
//! are acknowledged. Sessions between nodes lose nothing while they last; after a disconnection a stream continues
//! with what the receiver lacks. At the other node one worker receives a stream (the sender's number modulo its
//! workers), and passes the messages to all workers there.
//!
//! The kept pieces are bounded. If there would be more, the stream is dropped and another one begins; the same
//! happens if the other node has started again, or another member was removed, as it may have sent changes to some
//! nodes only. A new stream begins with a comparison: the sender's checksums of all its state, per slot, with those
//! of the receiving worker. Slots that differ are sent again, whole. Only then does the sender report how far it is,
//! so that no state is forgotten that is still to be sent.
//!
//! Pure, as the whole crate: inputs are the begin and end of sessions, the time, and messages; outputs are messages.
//!
//! - [`Gossip`]: one worker's part; `outgoing`, `incoming`: the two ends of a stream
//! - `away`: nodes without a session, of which others are told what they had sent
//! - `sums`: walks over all keys, for checksums and for repair
//! - `bytes`: the encoding of messages between nodes

mod away;
mod bytes;
mod incoming;
#[cfg(test)]
mod lead_tests;
mod outgoing;
mod sums;
#[cfg(test)]
mod tests;

use super::member::replica_of;
use super::replicas::Replicas;
use away::Away;
use incoming::Incoming;
use outgoing::Outgoing;
use rufous_base::figures;
use rufous_base::{Now, WorkerId};
use rufous_store::effect::NotAnEffect;
use rufous_store::placement::Placement;
use rufous_store::planted::{self, Planted};
use rufous_store::shard::Shard;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use sums::{Differ, Pass};

/// Bytes that one worker keeps for one node.
const KEPT_BYTES: usize = 16 << 20;
/// The bytes of them that may be in transit: less than a session's window of their class, as a full window ends the
/// session.
const FLYING_BYTES: usize = 512 << 10;

/// Limits of a worker; tests use lower ones.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub kept_bytes: usize,
    pub flying_bytes: usize,
    /// Time between two comparisons if nothing is known to be missed; 0: never.
    pub compare_us: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            kept_bytes: KEPT_BYTES,
            flying_bytes: FLYING_BYTES,
            compare_us: 600_000_000,
        }
    }
}

/// Messages between workers of different nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Announces a stream of the sender; `next`: everything before it was acknowledged; `table`: the checksum of its
    /// lattice keyspaces. Repeated until it is answered, as the receiver may not be ready.
    Hello { stream: u64, next: u64, table: u64 },
    /// Everything in the receiver's stream before `next` was received. `is_new`: the stream was unknown.
    Taken {
        stream: u64,
        next: u64,
        is_new: bool,
    },
    /// A piece of a message; `more`: its next piece follows.
    Piece {
        stream: u64,
        number: u64,
        more: bool,
        bytes: Arc<[u8]>,
    },
    /// The checksums of the sender's state, one per slot.
    Sums { stream: u64, sums: Arc<[u64]> },
    /// The slots for which the receiver's checksums differ: one bit per slot.
    Differ { stream: u64, slots: Differ },
}

/// A message to a worker of another node: for the receiving end of a stream, `to` is taken modulo the number of
/// workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub node: u16,
    pub to: u16,
    pub peer: Peer,
}

figures! {
    /// Counters.
    pub struct Figures {
        sent_pieces("cluster_gossip_batches", "rufous_gossip_batches_total"):
            "Messages of lattice keyspaces sent to other nodes, repetitions included.";
        sent_bytes("cluster_gossip_bytes", "rufous_gossip_bytes_total"): "Bytes of these messages.";
        resent_pieces("cluster_gossip_resent", "rufous_gossip_resent_total"):
            "Messages of lattice keyspaces sent again after a broken session.";
        kept_bytes("cluster_gossip_kept_bytes", "rufous_gossip_kept_bytes"):
            "Bytes kept until other nodes acknowledge them.";
        overflows("cluster_gossip_given_up", "rufous_gossip_given_up_total"):
            "Streams to other nodes abandoned because too many unacknowledged messages were kept.";
        comparisons("cluster_gossip_digests", "rufous_gossip_digests_total"):
            "Comparisons of digests with other nodes.";
        repaired_slots("cluster_gossip_slots_repaired", "rufous_gossip_slots_repaired_total"):
            "Slots sent again as a whole.";
        leading("cluster_gossip_leading", "rufous_gossip_leading_total"):
            "Messages of lattice keyspaces held back because their stamps lead the wall clock of this node.";
        behind("cluster_gossip_behind"):
            "Nodes to which this worker does not report yet how far it is.";
    }
}

/// The stream that waits for checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// The stream to a node.
    To(u16),
    /// The stream from a worker of a node.
    From(u16, u16),
}

/// See the module's description.
#[derive(Debug)]
pub struct Gossip {
    node: u16,
    worker: WorkerId,
    limits: Limits,
    table: u64,
    outgoing: BTreeMap<u16, Outgoing>,
    incoming: BTreeMap<(u16, u16), Incoming>,
    up: BTreeSet<u16>,
    away: Away,
    /// Nodes that may not return under these numbers.
    dropped: BTreeSet<u16>,
    /// Checksums of all local state being computed, and the streams that wait for them.
    pass: Option<(Pass, Vec<Asker>)>,
    askers: Vec<Asker>,
    sent: Vec<Sent>,
    figures: Figures,
}

impl Gossip {
    /// The gossip of a worker of the node with this number.
    pub fn new(node: u16, worker: WorkerId, limits: Limits) -> Self {
        Self {
            node,
            worker,
            limits,
            table: 0,
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            up: BTreeSet::new(),
            away: Away::default(),
            dropped: BTreeSet::new(),
            pass: None,
            askers: Vec::new(),
            sent: Vec::new(),
            figures: Figures::default(),
        }
    }

    /// Sets the checksum of the lattice keyspaces. Messages from nodes with another one are ignored.
    pub fn set_table(&mut self, table: u64) {
        if self.table != table {
            self.table = table;
            self.incoming.clear();
            self.outgoing.values_mut().for_each(Outgoing::begin_anew);
        }
    }

    /// Sets the nodes of a later mapping; see [`Replicas::act_by`].
    pub fn act_by(&mut self, nodes: &BTreeSet<u16>, next: u16) {
        let known: BTreeSet<u16> = self.outgoing.keys().copied().collect();
        let heard = self.incoming.keys().map(|(node, _)| *node);
        let gone: BTreeSet<u16> = known
            .iter()
            .copied()
            .chain(heard)
            .filter(|node| *node < next && !nodes.contains(node))
            .collect();
        self.outgoing.retain(|node, _| !gone.contains(node));
        self.incoming.retain(|(node, _), _| !gone.contains(node));
        let anew = !gone.is_empty();
        self.dropped.extend(gone);
        for &node in nodes.iter().filter(|node| **node != self.node) {
            let is_up = self.up.contains(&node);
            let fresh = || Outgoing::new(is_up);
            let outgoing = self.outgoing.entry(node).or_insert_with(fresh);
            if anew && known.contains(&node) {
                outgoing.begin_anew();
            }
        }
    }

    /// A session begins: nothing of an earlier one arrives any more.
    pub fn up(&mut self, node: u16) {
        self.down(node);
        self.up.insert(node);
        if let Some(outgoing) = self.outgoing.get_mut(&node) {
            outgoing.set_up(true);
        }
    }

    pub fn down(&mut self, node: u16) {
        self.up.remove(&node);
        if let Some(outgoing) = self.outgoing.get_mut(&node) {
            outgoing.set_up(false);
        }
        let from = self.incoming.iter_mut();
        from.filter(|((of, _), _)| *of == node)
            .for_each(|(_, incoming)| incoming.sums = None);
        self.sent.retain(|sent| sent.node != node);
    }

    /// Sends a message of this worker to all other nodes.
    pub fn tell(&mut self, bytes: &Arc<[u8]>, is_report: bool) {
        let skipped = !is_report && planted::is(Planted::NodeNotTold);
        for outgoing in self.outgoing.values_mut().skip(usize::from(skipped)) {
            outgoing.tell(bytes, is_report, &self.limits, &mut self.figures);
        }
    }

    /// Takes a message from a worker of another node. The returned messages are for all workers of this node, in
    /// order.
    pub fn take(
        &mut self,
        now: Now,
        (node, worker): (u16, u16),
        peer: Peer,
    ) -> Result<Vec<Arc<[u8]>>, NotAnEffect> {
        match peer {
            Peer::Hello { .. } | Peer::Piece { .. } | Peer::Sums { .. } => {
                let is_other = |table: u64| table != self.table;
                let is_other = matches!(peer, Peer::Hello { table, .. } if is_other(table));
                if is_other || self.dropped.contains(&node) {
                    return Ok(Vec::new());
                }
                let incoming = self.incoming.entry((node, worker)).or_default();
                let was_held = incoming.is_held();
                let done = incoming.take(now, (node, worker), peer)?;
                self.figures.leading += u64::from(!was_held && incoming.is_held());
                if incoming.sums.is_some() {
                    self.ask(Asker::From(node, worker));
                }
                return Ok(done);
            }
            Peer::Taken {
                stream,
                next,
                is_new,
            } => {
                if let Some(outgoing) = self.outgoing.get_mut(&node) {
                    outgoing.on_taken(stream, next, is_new, &mut self.figures);
                }
            }
            Peer::Differ { stream, slots } => {
                if let Some(outgoing) = self.outgoing.get_mut(&node) {
                    outgoing.on_differ(stream, slots, &mut self.figures);
                }
            }
        }
        Ok(Vec::new())
    }

    fn ask(&mut self, asker: Asker) {
        if !self.askers.contains(&asker) {
            self.askers.push(asker);
        }
    }

    /// Whether messages of other nodes wait for [`Gossip::take_held`].
    pub fn holds(&self) -> bool {
        self.incoming.values().any(Incoming::is_held)
    }

    /// Messages from other nodes that were not taken before, as their stamps led the wall clock: for all workers of this
    /// node, in order.
    pub fn take_held(&mut self, now: Now) -> Vec<Arc<[u8]>> {
        let held = self.incoming.iter_mut();
        let held = held.filter(|(_, incoming)| incoming.is_held());
        // What is not a message ends the session when it arrives, and is dropped here.
        held.flat_map(|(from, incoming)| incoming.admit(now, *from).unwrap_or_default())
            .collect()
    }

    /// Advances all streams by a bounded step. Returns true if there is more to do at once.
    pub fn poll(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        replicas: &mut Replicas,
    ) -> bool {
        for ((node, worker), incoming) in &mut self.incoming {
            let (node, to) = (*node, *worker);
            if let Some(peer) = incoming.take_answer() {
                self.sent.push(Sent { node, to, peer });
            }
        }
        let mut more = false;
        let nodes: Vec<u16> = self.outgoing.keys().copied().collect();
        for from in replicas.overflowed() {
            let mut all = self.incoming.iter_mut();
            let is_its =
                |(node, worker): (u16, u16)| replica_of(node, WorkerId(worker)) == Some(from);
            if let Some((_, incoming)) = all.find(|(of, _)| is_its(**of)) {
                incoming.restart();
            }
        }
        let away = nodes.iter().filter(|node| !self.up.contains(node));
        // Nothing else is sent on than changes with cuts.
        let is_watched = away.clone().next().is_some() && placement.any_lattice(|of| of.cut);
        let away = away.filter(|_| is_watched && !planted::is(Planted::RelayNotSent));
        for node in self.away.look(now, away.copied()) {
            for bytes in replicas.relay(node) {
                let streams = self.outgoing.values_mut();
                streams.for_each(|outgoing| outgoing.tell_on(&bytes));
            }
        }
        for node in nodes {
            more |= self.go_on(now, node, (&mut *shard, placement), replicas);
        }
        if !self.outgoing.values().any(Outgoing::is_repairing) {
            replicas.on_all_repaired();
        }
        more | self.sum_up(now, shard, placement)
    }

    fn go_on(
        &mut self,
        now: Now,
        node: u16,
        (shard, placement): (&mut Shard, &Placement),
        replicas: &mut Replicas,
    ) -> bool {
        let (limits, to) = (self.limits, self.worker.0);
        let Some(outgoing) = self.outgoing.get_mut(&node) else {
            return false;
        };
        if outgoing.wants_stream() {
            let stream = replicas.stamp(now).time;
            let first = replicas.first_message(shard, placement.workers());
            outgoing.begin(stream, (&first, replicas.taken_over()), now);
            replicas.on_stream();
            self.away.tell_again();
        } else if outgoing.has_to_say(replicas.taken_over()) {
            let first = replicas.first_message(shard, placement.workers());
            outgoing.say_forgotten(&first, replicas.taken_over());
        }
        let more = outgoing.repair(now, (shard, placement), replicas, &limits);
        let push = |peer| self.sent.push(Sent { node, to, peer });
        outgoing.send(now, (self.table, &limits), &mut self.figures, push);
        if outgoing.asks_for_sums(now, &limits) {
            self.ask(Asker::To(node));
        }
        more
    }

    /// Continues the checksums; streams that ask meanwhile get the next ones.
    fn sum_up(&mut self, now: Now, shard: &mut Shard, placement: &Placement) -> bool {
        if self.pass.is_none() && !self.askers.is_empty() {
            self.pass = Some((Pass::default(), std::mem::take(&mut self.askers)));
        }
        let Some((pass, _)) = &mut self.pass else {
            return false;
        };
        if pass.step(now, shard, placement) {
            return true;
        }
        if let Some((pass, askers)) = self.pass.take() {
            let sums = pass.into_sums();
            askers
                .into_iter()
                .for_each(|asker| self.tell_sums(asker, &sums));
        }
        !self.askers.is_empty()
    }

    fn tell_sums(&mut self, asker: Asker, sums: &Arc<[u64]>) {
        let (node, to, peer) = match asker {
            Asker::To(node) => {
                let outgoing = self.outgoing.get_mut(&node);
                let Some(stream) = outgoing.and_then(Outgoing::compare) else {
                    return;
                };
                self.figures.comparisons += 1;
                let sums = Arc::clone(sums);
                (node, self.worker.0, Peer::Sums { stream, sums })
            }
            Asker::From(node, worker) => {
                let incoming = self.incoming.get_mut(&(node, worker));
                let Some((stream, theirs)) = incoming.and_then(|of| of.sums.take()) else {
                    return;
                };
                let slots = Differ::of(sums, &theirs);
                (node, worker, Peer::Differ { stream, slots })
            }
        };
        self.sent.push(Sent { node, to, peer });
    }

    /// The messages to be sent, in order. Without a session they may be lost.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// When the next periodic comparison of streams is due.
    pub fn wake_us(&self) -> Option<u64> {
        let all = self.outgoing.values();
        all.filter_map(|outgoing| outgoing.wake_us(&self.limits))
            .chain(self.away.wake_us())
            .min()
    }

    pub fn figures(&self) -> Figures {
        let all = self.outgoing.values();
        Figures {
            kept_bytes: all.clone().map(|of| of.kept_bytes() as u64).sum(),
            behind: all.filter(|of| of.is_late()).count() as u64,
            ..self.figures
        }
    }
}
