//! Other nodes: who is one, and what they have to know of this worker before
//! they hear its changes. `gossip` brings both to them.

use super::{Replicas, To};
use crate::batch::{Begin, Writer};
use rufous_lattice::Stamp;
use rufous_store::shard::Shard;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Replicas {
    /// The other nodes by the mapping of this epoch; numbers from `next` on have
    /// not been given to any node by then.
    pub fn act_by(&mut self, epoch: u64, nodes: &BTreeSet<u16>, next: u16) {
        if epoch > self.heard.epoch() {
            self.heard.act_by(epoch, nodes, next);
            self.has_acted = true;
            self.start();
        }
    }

    /// This worker, in what is said to others.
    pub fn replica(&self) -> u16 {
        self.replica
    }

    /// Whether a replica is of a worker of this node.
    pub fn is_here(&self, replica: u16) -> bool {
        self.heard.is_here(replica)
    }

    /// These replicas were others before: what they have stays, and their stamps
    /// go on.
    pub fn go_on_from(&mut self, before: &Self) {
        let time = before.clock.last();
        self.observe(Stamp {
            time,
            ..Stamp::ZERO
        });
        (self.flushes, self.flushed_at) = (before.flushes, before.flushed_at);
        self.figures = before.figures;
    }

    /// What this worker had before it was dropped with all that it knew: what others tell
    /// it from now on may come of those who know less than it did.
    pub fn know_nothing_of(&mut self, shard: &Shard) {
        self.forgotten_before = shard.forgotten();
    }

    /// Whether every other worker of every node has said what it has, and what they
    /// had forgotten is forgotten here: before that nobody is to be served. This
    /// worker has said so by then, with a later date than any before it started: what
    /// it writes from then on is told behind that, and may depend on what waits for it.
    pub fn has_heard_nodes(&self) -> bool {
        let has_said = self.said.least > 0 || self.heard.nodes().is_empty();
        has_said && self.heard.least() > 0 && self.forgotten >= self.heard.forgotten()
    }

    /// Whether it is to be said that all others have been heard.
    pub(super) fn has_to_say_so(&self) -> bool {
        self.said.least == 0 && self.heard.least() > 0 && !self.heard.nodes().is_empty()
    }

    /// How far each other node is known to be: a time of stamps.
    pub fn nodes(&self) -> Vec<(u16, u64)> {
        self.heard.nodes()
    }

    /// The time of the last stamp that was given or seen here.
    pub fn latest(&self) -> u64 {
        self.clock.last()
    }

    /// From now on all of a key that has changed is told, or only what was done.
    pub fn tell_whole(&mut self, whole: bool) {
        self.whole = whole;
    }

    /// The first message to a node. It passes on what others had forgotten, and what
    /// this worker had before it started: who is told so does not lose it together
    /// with one node.
    pub fn first_message(&mut self, shard: &Shard, workers: usize) -> Arc<[u8]> {
        if shard.forgotten() > self.forgotten_before {
            self.heard.forget(shard.forgotten());
        }
        let begin = Begin {
            workers: workers as u64,
            forgotten: self.heard.forgotten(),
        };
        begin.encode(self.replica, self.clock.last())
    }

    /// Up to where other nodes had forgotten, and this one before it started.
    pub fn taken_over(&self) -> u64 {
        self.heard.forgotten()
    }

    /// For what a node is told again.
    pub fn again(&self) -> Writer {
        Writer::again(self.replica, self.clock.last())
    }

    /// A worker of another node begins. What it has forgotten all who were there
    /// had said to know; this worker is told all that is left of it before it
    /// hears of anything that was made after.
    pub(super) fn on_begin(&mut self, shard: &mut Shard, from: u16, begin: &Begin) {
        self.heard.begin(from, begin.forgotten);
        self.heard.forget(begin.forgotten);
        shard.set_horizon(begin.forgotten);
        self.observe(Stamp {
            time: begin.forgotten,
            ..Stamp::ZERO
        });
    }
}

impl To {
    /// Whether it is for other nodes.
    pub fn is_nodes(self) -> bool {
        matches!(self, To::Nodes { .. })
    }
}
