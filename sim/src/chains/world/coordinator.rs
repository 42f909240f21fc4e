//! The coordinator: whom it hears of, what it plans, and who is told.

use super::super::SLOTS;
use super::super::node::Node;
use super::World;
use rufous_mapping::planner::{self, Limits, Seen};
use rufous_mapping::{Chain, Mapping, Member, NodeId, NodeNo};
use std::collections::BTreeMap;

/// Who was not heard of for so long is taken for gone.
const DETECTION_US: u64 = 2_000_000;

pub(super) struct Coordinator {
    pub(super) mapping: Mapping,
    pub(super) seen: Seen,
    /// When it last heard of each.
    heard: BTreeMap<NodeNo, u64>,
    pub(super) away_until: u64,
}

pub(super) fn id_of(no: NodeNo) -> NodeId {
    NodeId([no.0 as u8; 20])
}

fn member(node: &Node) -> Member {
    Member {
        id: id_of(node.no),
        incarnation: node.incarnation,
        peer: String::new(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        drains: false,
    }
}

impl Coordinator {
    pub(super) fn new(copies: usize, nodes: &BTreeMap<NodeNo, Node>) -> Self {
        let announced = nodes.values().filter(|node| node.announced);
        let alive = announced.map(|node| (id_of(node.no), member(node)));
        Self {
            mapping: Mapping::new(copies),
            seen: Seen {
                alive: alive.collect(),
                ..Seen::default()
            },
            heard: nodes.keys().map(|no| (*no, 0)).collect(),
            away_until: 0,
        }
    }

    /// It was a member once, and is not any more.
    pub(super) fn has_left(&self, no: NodeNo) -> bool {
        self.mapping.next > no.0 && !self.mapping.members.contains_key(&no)
    }

    fn hear(&mut self, node: &Node, now: u64) {
        if self.has_left(node.no) {
            return;
        }
        self.heard.insert(node.no, now);
        if node.announced {
            self.seen.alive.insert(id_of(node.no), member(node));
        }
        for (slot, no, since) in node.replica.synced() {
            self.seen.learned.add(slot..slot + 1, no, since);
        }
    }

    fn forget_who_is_gone(&mut self, now: u64) {
        let (heard, mapping) = (&self.heard, &self.mapping);
        self.seen.alive.retain(|id, _| {
            let no = NodeNo(u16::from(id.0[0]));
            let left = mapping.next > no.0 && !mapping.members.contains_key(&no);
            !left && now - heard[&no] < DETECTION_US
        });
        let away = heard.iter().map(|(no, at)| (*no, (now - at) / 1000));
        self.seen.away_ms = away.collect();
    }
}

impl World {
    /// The coordinator hears of nodes, plans, and tells them.
    pub(super) fn coordinate(&mut self) {
        if self.now < self.coordinator.away_until {
            return;
        }
        for node in self.nodes.values() {
            if node.coordinated && node.runs(self.now) {
                self.coordinator.hear(node, self.now);
            }
        }
        self.coordinator.forget_who_is_gone(self.now);
        if self.rng.below(20) == 0 {
            self.plan();
        }
        let mapping = &self.coordinator.mapping;
        for node in self.nodes.values_mut() {
            let tells = node.runs(self.now) && node.coordinated && self.rng.below(6) == 0;
            let known = mapping.members.get(&node.no);
            let current = known.is_none_or(|known| known.incarnation == node.incarnation);
            if tells && current && node.replica.epoch() < mapping.epoch {
                let local = node.clock(self.now);
                let chains = SLOTS.iter().map(|slot| (*slot, mapping.chains.of(*slot)));
                node.replica
                    .set_chains(mapping.epoch, chains, &mut node.store, local);
            }
        }
    }

    pub(super) fn plan(&mut self) {
        let Coordinator { mapping, seen, .. } = &mut self.coordinator;
        // Nobody tells of the other slots: they are learned at once.
        for (slots, chain) in mapping.chains.ranges() {
            let Some(learner) = chain.learner else {
                continue;
            };
            let mut start = slots.start;
            let looked_at = SLOTS.into_iter().filter(|slot| slots.contains(slot));
            for end in looked_at.chain([slots.end]) {
                seen.learned.add(start..end, learner, chain.since);
                start = end + 1;
            }
        }
        let limits = Limits {
            learning: 16384,
            ..Limits::default()
        };
        let Some(next) = planner::next(mapping, seen, &limits) else {
            return;
        };
        if let Err(wrong) = next.check().and(next.follows(mapping)) {
            panic!("the planner says what may not be: {wrong}");
        }
        seen.learned.clear();
        let before = std::mem::replace(mapping, next);
        self.look_at_changes(&before);
    }

    fn look_at_changes(&mut self, before: &Mapping) {
        let mapping = &self.coordinator.mapping;
        let chains = SLOTS.map(|slot| (*before.chains.of(slot), *mapping.chains.of(slot)));
        let drained = before.members.len() > mapping.members.len();
        let there = |no: NodeNo| self.coordinator.seen.alive.contains_key(&id_of(no));
        let replaced =
            |(was, is): &(Chain, Chain)| was.head() != is.head() && was.head().is_some_and(there);
        let replaced = chains.iter().any(replaced);
        let joined =
            |(was, is): &(Chain, Chain)| was.learner.is_some_and(|no| is.members.contains(&no));
        if chains.iter().any(joined) {
            self.reach("a learner has joined its chain");
        }
        if replaced {
            self.reach("a head was replaced while it was there");
        }
        if drained {
            self.reach("a node has drained");
        }
        self.note(|world| {
            let mapping = &world.coordinator.mapping;
            let show = |slot: u16| {
                let chain = mapping.chains.of(slot);
                format!(
                    "{slot}: {:?} learns {:?} since {}",
                    chain.members, chain.learner, chain.since
                )
            };
            format!("epoch {}: {}", mapping.epoch, SLOTS.map(show).join("; "))
        });
    }
}
