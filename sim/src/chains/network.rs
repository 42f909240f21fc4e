//! Links between nodes: each direction delivers in order, late, or not at all
//! while it is down. When it is up again, the receiver is told.

use rufous_base::rng::Rng;
use rufous_chain::Envelope;
use rufous_mapping::NodeNo;
use std::collections::{BTreeMap, VecDeque};

/// A message, or that the link is up again.
type What = Option<Envelope>;

pub(super) struct Network {
    rng: Rng,
    links: BTreeMap<(NodeNo, NodeNo), VecDeque<(u64, What)>>,
    /// Until when links are down.
    down: BTreeMap<(NodeNo, NodeNo), u64>,
}

impl Network {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            links: BTreeMap::new(),
            down: BTreeMap::new(),
        }
    }

    pub(super) fn send(&mut self, from: NodeNo, to: NodeNo, envelope: Envelope, now: u64) {
        if !self.down.contains_key(&(from, to)) {
            self.push((from, to), Some(envelope), now);
        }
    }

    fn push(&mut self, link: (NodeNo, NodeNo), what: What, now: u64) {
        let slow = if self.rng.below(50) == 0 {
            300_000
        } else {
            20_000
        };
        let queue = self.links.entry(link).or_default();
        let at = now + self.rng.below(slow);
        let at = queue.back().map_or(at, |(last, _)| at.max(*last));
        queue.push_back((at, what));
    }

    pub(super) fn put_back(&mut self, from: NodeNo, to: NodeNo, what: What, now: u64) {
        let queue = self.links.entry((from, to)).or_default();
        queue.push_front((now, what));
    }

    /// What arrives by now; of each link in order.
    pub(super) fn due(&mut self, now: u64) -> Vec<(NodeNo, NodeNo, What)> {
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

    /// A session is for both directions: both begin anew.
    pub(super) fn begin(&mut self, a: NodeNo, b: NodeNo, now: u64) {
        for link in [(a, b), (b, a)] {
            self.links.remove(&link);
            if !self.down.contains_key(&link) {
                self.push(link, None, now);
            }
        }
    }

    pub(super) fn cut(&mut self, a: NodeNo, b: NodeNo, both: bool, until: u64) {
        self.down.insert((a, b), until);
        self.links.remove(&(a, b));
        if both {
            self.down.insert((b, a), until);
            self.links.remove(&(b, a));
        }
    }

    /// A node has stopped: its links are down until it is there again.
    pub(super) fn forget(&mut self, node: NodeNo) {
        self.links
            .retain(|(from, to), _| *from != node && *to != node);
    }

    pub(super) fn heal(&mut self, now: u64) {
        self.down.values_mut().for_each(|until| *until = now);
    }
}
