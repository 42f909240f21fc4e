//! Changes on their way to other nodes, and what repairs what was missed.
//!
//! Each worker has a *stream* to each other node: what it tells, in order, each
//! piece with a number, kept until it is acknowledged. Sessions between nodes lose
//! nothing while they last; after a break a stream goes on where the other side
//! is. At the other node one worker takes a stream (the sender's number modulo its
//! workers), and hands what comes to all workers there.
//!
//! What is kept is bounded. Beyond that the stream is given up, and another one
//! begins; so it is where the other node has started again, or another member
//! has gone, as it may have said to some what others have not heard. A stream that
//! begins compares: the sender's sums of all that it knows, for each slot, with
//! those of the worker that takes it. Slots that differ are told again, whole. Only
//! then does the sender say how far it is, so that nobody forgets anything
//! that is still to come.
//!
//! Pure, as everything here: sessions that begin and end, the time, and messages
//! come in; messages go out.
//!
//! - [`Gossip`]: one worker's part; `outgoing`, `incoming`: the ends of a stream
//! - `sums`: walks over all keys, for sums and to tell them again
//! - `bytes`: messages, as other nodes get them

mod bytes;
mod incoming;
mod outgoing;
mod sums;
#[cfg(test)]
mod tests;

use super::replicas::Replicas;
use incoming::Incoming;
use outgoing::Outgoing;
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
/// Bytes of them that may be on their way: less than a session's window of their
/// class, which ends the session when it is full.
const FLYING_BYTES: usize = 512 << 10;

/// What a worker may use; for tests it may be less.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub kept_bytes: usize,
    pub flying_bytes: usize,
    /// Between two comparisons where nothing is known to be missed; 0: never.
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

/// What workers of different nodes say to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A stream of the sender's; `next`: what is before it was acknowledged;
    /// `table`: what its lattice keyspaces are known by. Said again until it is
    /// answered: the receiver may not be ready.
    Hello { stream: u64, next: u64, table: u64 },
    /// All of the receiver's stream before `next` has come. `is_new`: nothing was
    /// known of it.
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
    /// What the sender of a stream knows: a sum for each slot.
    Sums { stream: u64, sums: Arc<[u64]> },
    /// Slots of which the receiver's sums are others: a bit for each.
    Differ { stream: u64, slots: Differ },
}

/// A message for a worker of another node: for a stream's end `to` is taken modulo
/// its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub node: u16,
    pub to: u16,
    pub peer: Peer,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Pieces and bytes that left, each time they did.
    pub sent_pieces: u64,
    pub sent_bytes: u64,
    /// Of these, after a break.
    pub resent_pieces: u64,
    /// Kept until they are acknowledged.
    pub kept_bytes: u64,
    /// Streams that were given up, as too much would have been kept.
    pub overflows: u64,
    /// Sums that were sent, and slots that were told again.
    pub comparisons: u64,
    pub repaired_slots: u64,
    /// Nodes that are not told yet how far this worker is.
    pub behind: u64,
}

impl Figures {
    /// Of several workers.
    pub fn add(&mut self, other: &Figures) {
        self.sent_pieces += other.sent_pieces;
        self.sent_bytes += other.sent_bytes;
        self.resent_pieces += other.resent_pieces;
        self.kept_bytes += other.kept_bytes;
        self.overflows += other.overflows;
        self.comparisons += other.comparisons;
        self.repaired_slots += other.repaired_slots;
        self.behind += other.behind;
    }
}

/// Who waits for sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// A stream to a node.
    To(u16),
    /// One from a worker of a node.
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
    /// They may not come back under these numbers.
    dropped: BTreeSet<u16>,
    /// Sums of all that is here, being made, and for whom.
    pass: Option<(Pass, Vec<Asker>)>,
    askers: Vec<Asker>,
    sent: Vec<Sent>,
    figures: Figures,
}

impl Gossip {
    /// Of a worker of the node with this number.
    pub fn new(node: u16, worker: WorkerId, limits: Limits) -> Self {
        Self {
            node,
            worker,
            limits,
            table: 0,
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            up: BTreeSet::new(),
            dropped: BTreeSet::new(),
            pass: None,
            askers: Vec::new(),
            sent: Vec::new(),
            figures: Figures::default(),
        }
    }

    /// Lattice keyspaces are those that this stands for. What comes of nodes with
    /// others is not taken.
    pub fn set_table(&mut self, table: u64) {
        if self.table != table {
            self.table = table;
            self.incoming.clear();
            self.outgoing.values_mut().for_each(Outgoing::begin_anew);
        }
    }

    /// The nodes by a later mapping; see [`Replicas::act_by`].
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

    /// A session begins: nothing of an earlier one comes any more.
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

    /// A message of this worker's for all other nodes.
    pub fn tell(&mut self, bytes: &Arc<[u8]>, is_report: bool) {
        let skipped = !is_report && planted::is(Planted::NodeNotTold);
        for outgoing in self.outgoing.values_mut().skip(usize::from(skipped)) {
            outgoing.tell(bytes, is_report, &self.limits, &mut self.figures);
        }
    }

    /// Takes what a worker of a node says. What comes out is for all workers of
    /// this node, in order.
    pub fn take(
        &mut self,
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
                let done = incoming.take((node, worker), peer)?;
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

    /// Goes on with all streams by a bounded step. True where there is more to do
    /// at once.
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
        for node in nodes {
            more |= self.go_on(now, node, (&mut *shard, placement), replicas);
        }
        let any_late = self.outgoing.values().any(Outgoing::is_late);
        replicas.tell_whole(any_late);
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

    /// Goes on with sums; those who ask while some are made get the next.
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

    /// What is to be sent, in order. Where there is no session it may be lost.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// When streams want to be compared again without a reason.
    pub fn wake_us(&self) -> Option<u64> {
        let all = self.outgoing.values();
        all.filter_map(|outgoing| outgoing.wake_us(&self.limits))
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
