//! Links between nodes: each direction delivers in order to each worker, late, or
//! not at all while it is down. When it is up again, all workers of the receiver
//! are notified, each at its own time.

use rufous_base::rng::Rng;
use rufous_base::slot::worker_of_slot;
use rufous_chain::{Envelope, Peer};
use rufous_mapping::NodeNo;
use std::collections::{BTreeMap, VecDeque};

/// A message of one of the sender's workers, or that the link is up again.
type What = Option<(u16, Envelope)>;

pub(super) struct Network {
    rng: Rng,
    links: BTreeMap<(NodeNo, Peer), VecDeque<(u64, What)>>,
    /// How many each node has.
    workers: BTreeMap<NodeNo, u16>,
    /// Until when links are down.
    down: BTreeMap<(NodeNo, NodeNo), u64>,
}

impl Network {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            links: BTreeMap::new(),
            workers: BTreeMap::new(),
            down: BTreeMap::new(),
        }
    }

    pub(super) fn has_workers(&mut self, node: NodeNo, workers: u16) {
        self.workers.insert(node, workers);
    }

    /// The sender may not know yet that the receiver has other workers than it
    /// had: what is about a slot is for the one that has it now.
    pub(super) fn send(&mut self, from: Peer, to: Peer, envelope: Envelope, now: u64) {
        if self.is_up(from.node, to.node) {
            let workers = self.workers[&to.node];
            let worker = match envelope.message.chain() {
                Some((slot, _)) => worker_of_slot(slot, workers.into()).0,
                None => to.worker % workers,
            };
            let to = Peer { worker, ..to };
            self.push((from.node, to), Some((from.worker, envelope)), 50, now);
        }
    }

    pub(super) fn is_up(&self, from: NodeNo, to: NodeNo) -> bool {
        !self.down.contains_key(&(from, to))
    }

    /// One in so many is slow.
    fn push(&mut self, link: (NodeNo, Peer), what: What, one_in: u64, now: u64) {
        let slow = if self.rng.below(one_in) == 0 {
            300_000
        } else {
            20_000
        };
        let queue = self.links.entry(link).or_default();
        let at = now + self.rng.below(slow);
        let at = queue.back().map_or(at, |(last, _)| at.max(*last));
        queue.push_back((at, what));
    }

    pub(super) fn put_back(&mut self, from: NodeNo, to: Peer, what: What, now: u64) {
        let queue = self.links.entry((from, to)).or_default();
        queue.push_front((now, what));
    }

    /// What arrives by now; of each link in order.
    pub(super) fn due(&mut self, now: u64) -> Vec<(NodeNo, Peer, What)> {
        let up: Vec<_> = self
            .down
            .iter()
            .filter(|(_, until)| **until <= now)
            .collect();
        let up: Vec<(NodeNo, NodeNo)> = up.into_iter().map(|(link, _)| *link).collect();
        for (from, to) in up {
            self.down.remove(&(from, to));
            self.begin(from, to, now);
        }
        let mut due = Vec::new();
        for (&(from, to), queue) in &mut self.links {
            // One at a time, so that what is put back stays in order.
            if queue.front().is_some_and(|(at, _)| *at <= now)
                && let Some((_, what)) = queue.pop_front()
            {
                due.push((from, to, what));
            }
        }
        due
    }

    /// A session is for both directions: both start again. One end may notice long
    /// before the other, and then sends to an end that has not noticed yet.
    pub(super) fn begin(&mut self, a: NodeNo, b: NodeNo, now: u64) {
        for (from, node) in [(a, b), (b, a)] {
            self.clear(from, node);
            if self.is_up(from, node) {
                for worker in 0..self.workers[&node] {
                    self.push((from, Peer { node, worker }), None, 4, now);
                }
            }
        }
    }

    pub(super) fn cut(&mut self, a: NodeNo, b: NodeNo, both: bool, until: u64) {
        self.down.insert((a, b), until);
        self.clear(a, b);
        if both {
            self.down.insert((b, a), until);
            self.clear(b, a);
        }
    }

    fn clear(&mut self, a: NodeNo, b: NodeNo) {
        self.links
            .retain(|(from, to), _| *from != a || to.node != b);
    }

    /// A node has stopped: its links are down until it is there again.
    pub(super) fn forget(&mut self, node: NodeNo) {
        self.links
            .retain(|(from, to), _| *from != node && to.node != node);
    }

    pub(super) fn heal(&mut self, now: u64) {
        self.down.values_mut().for_each(|until| *until = now);
    }
}
