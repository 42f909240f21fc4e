//! The other nodes of the cluster, and what each has to know about this worker before it receives its changes.
//! `gossip` delivers both.

use super::{Replicas, To};
use crate::batch::{Begin, Writer};
use rufous_base::WorkerId;
use rufous_lattice::Stamp;
use rufous_store::planted::{self, Planted};
use rufous_store::shard::Shard;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a start waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// The states of other nodes, or those of these workers of this one.
    States(Vec<WorkerId>),
    /// Its own report that it has received all.
    OwnReport,
    /// That it has forgotten the tombstones that others had forgotten.
    Tombstones,
}

impl Replicas {
    /// The node is in a cluster: nothing is forgotten before the first mapping says which nodes have to know of it.
    pub fn await_mapping(&mut self) {
        // Node 0 goes on with the replicas of a node without a cluster: these have its number.
        self.in_cluster = !planted::is(Planted::JoinUnnoticed);
        self.heard.await_mapping();
    }

    /// Sets the other nodes of this epoch's mapping; no node has had a number from `next` on yet.
    pub fn act_by(&mut self, epoch: u64, nodes: &BTreeSet<u16>, next: u16) {
        if epoch > self.heard.epoch() {
            self.heard.act_by(epoch, nodes, next);
            self.has_acted = true;
            self.start();
        }
    }

    /// The number of this worker's replica in messages.
    pub fn replica(&self) -> u16 {
        self.replica
    }

    /// Whether a replica belongs to a worker of this node.
    pub fn is_here(&self, replica: u16) -> bool {
        self.heard.is_here(replica)
    }

    /// Takes over the clock of these replicas' earlier numbers: their data stays, and their stamps continue.
    pub fn go_on_from(&mut self, before: &Self) {
        let time = before.clock.last();
        self.observe(Stamp {
            time,
            ..Stamp::ZERO
        });
        (self.flushes, self.flushed_at) = (before.flushes, before.flushed_at);
        self.figures = before.figures;
    }

    /// Prepares a worker that was dropped and has lost its state: other nodes may send it states made without what it
    /// had received before.
    pub fn know_nothing_of(&mut self, shard: &Shard) {
        self.forgotten_before = shard.horizons().forgotten();
    }

    /// What a start still waits for. Before every other worker of every node that is not excused has sent its state, and
    /// what they had forgotten is forgotten here, no client may be served. By then this worker has reported that, with a
    /// later date than any before its start: its writes from then on are sent after that report, and may depend on what
    /// waits for it.
    pub fn awaits(&self) -> Option<Awaits> {
        if self.heard.least_needed() == 0 {
            return Some(Awaits::States(self.heard.unheard_here().collect()));
        }
        if self.said.needed == 0 && self.heard.has_nodes() {
            return Some(Awaits::OwnReport);
        }
        (self.forgotten < self.heard.forgotten()).then_some(Awaits::Tombstones)
    }

    /// See [`Replicas::awaits`].
    pub fn has_heard_nodes(&self) -> bool {
        self.awaits().is_none()
    }

    /// Sets the nodes that are away, and that a start does not wait for. Its files have what it had sent to them and
    /// received from them, and the date of its last report. What they have beside that is merged when they are back.
    pub fn excuse(&mut self, nodes: BTreeSet<u16>) {
        self.heard.excuse(nodes);
        if self.has_to_say_so() {
            self.start();
        }
    }

    /// Whether to report that the state of all others was received.
    pub(super) fn has_to_say_so(&self) -> bool {
        self.said.needed == 0 && self.heard.least_needed() > 0 && self.heard.has_nodes()
    }

    /// For each other node, the time of stamps up to which its changes were received.
    pub fn nodes(&self) -> Vec<(u16, u64)> {
        self.heard.nodes()
    }

    /// The time of the last stamp that was issued or observed here.
    pub fn latest(&self) -> u64 {
        self.clock.last()
    }

    /// A stream to a node begins, which lacks state: the next change of each key is sent as a whole state.
    pub fn on_stream(&mut self) {
        self.whole.begin();
    }

    /// No node with a stream lacks state: changes are sent as operations.
    pub fn on_all_repaired(&mut self) {
        self.whole.end();
    }

    /// The first message to a node. It includes what other nodes had forgotten, and what this node had before it
    /// started, so that this is not lost if one node fails.
    pub fn first_message(&mut self, shard: &Shard, workers: usize) -> Arc<[u8]> {
        if shard.horizons().forgotten() > self.forgotten_before {
            self.heard.forget(shard.horizons().forgotten());
        }
        let begin = Begin {
            workers: workers as u64,
            forgotten: self.heard.forgotten(),
        };
        begin.encode(self.replica, self.clock.last())
    }

    /// The time up to which other nodes had forgotten, and this one before it started.
    pub fn taken_over(&self) -> u64 {
        self.heard.forgotten()
    }

    /// A batch writer for the repair of a node.
    pub fn again(&self) -> Writer {
        Writer::again(self.replica, self.clock.last())
    }

    /// A worker of another node starts a stream. All workers present had confirmed what it has forgotten; if this
    /// worker was not, it receives all that is left of that before any later changes.
    pub(super) fn on_begin(&mut self, shard: &mut Shard, from: u16, begin: &Begin) {
        self.heard.begin(from, begin.forgotten);
        self.heard.forget(begin.forgotten);
        shard.horizons_mut().raise(begin.forgotten);
        self.observe(Stamp {
            time: begin.forgotten,
            ..Stamp::ZERO
        });
    }
}

impl To {
    /// Whether the receivers are other nodes.
    pub fn is_nodes(self) -> bool {
        matches!(self, To::Nodes { .. })
    }
}
