//! The coordinator: which nodes it hears from, what it plans, and which nodes it notifies.

use super::super::SLOTS;
use super::super::node::Node;
use super::World;
use rufous_mapping::planner::{self, Asked, Copy, Limits, Report, Seen};
use rufous_mapping::{Chain, Chains, Folder, Mapping, Member, NodeId, NodeNo, Phase};
use rufous_wire::mapping::{decode, encode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node that was silent for so long is presumed dead.
const DETECTION_US: u64 = 2_000_000;

/// What a node has reported to hold.
struct HeldBy {
    incarnation: u64,
    /// Its folder has all that it ever had.
    keeps_all: bool,
    /// The epoch of the mapping by which it holds it.
    epoch: Option<u64>,
    /// Its copies by slot.
    slots: BTreeMap<u16, Option<Copy>>,
}

pub(super) struct Coordinator {
    pub(super) mapping: Arc<Mapping>,
    /// The mapping as nodes receive it: slots that are not looked at have no owner.
    told: Arc<Mapping>,
    pub(super) seen: Seen,
    /// What each node has last reported of slots of whose chains no node acts.
    held: BTreeMap<NodeNo, HeldBy>,
    /// Which of these reports count.
    asked: Asked,
    /// When it last received a message from each node.
    heard: BTreeMap<NodeNo, u64>,
    pub(super) away_until: u64,
    /// The operator accepts that writes are lost which no node has.
    pub(super) accepts: bool,
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
        workers: node.count(),
        drains: false,
        folder: Folder::After(node.after),
    }
}

/// The mapping, with the chains of the slots that are looked at.
fn looked_at(mapping: &Mapping) -> Mapping {
    let mut start = 0;
    let mut ranges = Vec::new();
    for slot in SLOTS {
        ranges.push((start..slot, Chain::default()));
        ranges.push((slot..slot + 1, *mapping.chains.of(slot)));
        start = slot + 1;
    }
    ranges.push((start..16384, Chain::default()));
    ranges.retain(|(slots, _)| !slots.is_empty());
    let chains = Chains::of_ranges(ranges).expect("all slots");
    Mapping {
        chains,
        ..mapping.clone()
    }
}

impl Coordinator {
    pub(super) fn new(copies: usize, nodes: &BTreeMap<NodeNo, Node>) -> Self {
        let announced = nodes.values().filter(|node| node.announced);
        let alive = announced.map(|node| (id_of(node.no), member(node)));
        Self {
            mapping: Arc::new(Mapping::new(copies)),
            told: Arc::new(Mapping::new(copies)),
            seen: Seen {
                alive: alive.collect(),
                ..Seen::default()
            },
            held: BTreeMap::new(),
            asked: Asked::default(),
            heard: nodes.keys().map(|no| (*no, 0)).collect(),
            away_until: 0,
            accepts: false,
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
        let workers = node.workers.iter();
        for (slot, no, since) in workers.flat_map(|worker| worker.replica.synced()) {
            self.seen.learned.add(slot..slot + 1, no, since);
        }
        let replicas = node.workers.iter().map(|worker| &worker.replica);
        let holds = replicas.filter(|replica| replica.held().next().is_some());
        let held = HeldBy {
            incarnation: node.incarnation,
            keeps_all: node.keeps_all,
            epoch: holds.clone().map(|replica| replica.epoch()).min(),
            slots: holds.flat_map(|replica| replica.held()).collect(),
        };
        // Nodes send no empty report, and the leader keeps the one before.
        let before = self.held.get(&node.no);
        let is_kept = before.is_some_and(|before| before.incarnation == held.incarnation);
        if !is_kept || !held.slots.is_empty() {
            self.held.insert(node.no, held);
        }
    }

    /// What nodes have of slots of whose chains no node acts. Of those that are not looked at all have
    /// the same.
    fn hear_held(&mut self) {
        self.seen.held.clear();
        let asked = self.asked.look(&self.mapping);
        for (no, held) in &self.held {
            let mut report = Report::new(held.incarnation, true, self.accepts);
            report.keeps_all = held.keeps_all;
            let counts = held.epoch.is_none_or(|epoch| epoch >= asked);
            for (range, chain) in self.mapping.chains.ranges() {
                if chain.phase == Phase::Acts {
                    continue;
                }
                let (since, seq) = (chain.since, 0);
                let mut start = range.start;
                for slot in SLOTS.into_iter().filter(|slot| range.contains(slot)) {
                    report.add(start..slot, Some(Copy { since, seq }));
                    if let Some(copy) = held.slots.get(&slot).filter(|_| counts) {
                        report.add(slot..slot + 1, *copy);
                    }
                    start = slot + 1;
                }
                report.add(start..range.end, Some(Copy { since, seq }));
            }
            self.seen.held.hear(*no, report);
        }
    }

    fn forget_who_is_gone(&mut self, now: u64) {
        let (heard, mapping, draining) = (&self.heard, &self.mapping, &self.seen.draining);
        self.seen.alive.retain(|id, _| {
            let no = NodeNo(u16::from(id.0[0]));
            let is_empty = || !mapping.ring.has(no) && !mapping.chains.name(no);
            let left = mapping.next > no.0 && !mapping.members.contains_key(&no)
                || draining.contains(&no) && is_empty();
            !left && now - heard[&no] < DETECTION_US
        });
        let away = heard.iter().map(|(no, at)| (*no, (now - at) / 1000));
        self.seen.away_ms = away.collect();
    }
}

impl World {
    /// The coordinator receives the nodes' states, plans, and publishes the mapping.
    pub(super) fn coordinate(&mut self) {
        if self.engine.now_us < self.coordinator.away_until {
            return;
        }
        for node in self.nodes.values() {
            if node.coordinated && node.runs(self.engine.now_us) {
                self.coordinator.hear(node, self.engine.now_us);
            }
        }
        self.coordinator.forget_who_is_gone(self.engine.now_us);
        if self.rng.below(20) == 0 {
            self.plan();
        }
        let mapping = &self.coordinator.told;
        for node in self.nodes.values_mut() {
            let local = node.clock(self.engine.now_us);
            if !node.coordinated || !node.runs(self.engine.now_us) {
                continue;
            }
            for worker in &mut node.workers {
                let hears =
                    worker.runs(self.engine.now_us) && self.engine.now_us >= worker.deaf_until;
                let tells = hears && self.rng.below(6) == 0;
                if tells && worker.replica.epoch() < mapping.epoch {
                    let taken = worker.replica.take_up(mapping, &mut worker.store, local);
                    if let Err(wrong) = taken {
                        panic!("{} refuses what was planned: {wrong}", node.no);
                    }
                }
            }
        }
    }

    pub(super) fn plan(&mut self) {
        self.coordinator.hear_held();
        let Coordinator {
            mapping,
            told,
            seen,
            ..
        } = &mut self.coordinator;
        // No node reports on the other slots: they are learned, and left, at once.
        for (slots, chain) in mapping.chains.ranges() {
            for no in chain.learner.iter().chain(chain.members.last()) {
                let mut start = slots.start;
                let looked_at = SLOTS.into_iter().filter(|slot| slots.contains(slot));
                for end in looked_at.chain([slots.end]) {
                    seen.learned.add(start..end, *no, chain.since);
                    start = end + 1;
                }
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
        // As nodes receive it.
        let next = decode(&encode(&next)).expect("valid");
        seen.learned.clear();
        *told = Arc::new(looked_at(&next));
        let before = std::mem::replace(mapping, Arc::new(next));
        self.look_at_changes(&before);
    }

    fn look_at_changes(&mut self, before: &Mapping) {
        let mapping = &self.coordinator.mapping;
        let chains = SLOTS.map(|slot| (*before.chains.of(slot), *mapping.chains.of(slot)));
        let drained = before.members.len() > mapping.members.len();
        let there = |no: NodeNo| self.coordinator.seen.alive.contains_key(&id_of(no));
        let replaced = |(was, is): &(Chain, Chain)| {
            let head = was.head().filter(|head| there(*head));
            head.filter(|head| is.head() != Some(*head))
        };
        let left = |(slot, (was, is)): (u16, &(Chain, Chain))| {
            let mut there = was.members.iter().copied().filter(|no| there(*no));
            Some((slot, there.find(|no| !is.names(*no))?))
        };
        let left: Vec<_> = SLOTS.into_iter().zip(&chains).filter_map(left).collect();
        let replaced = chains.iter().any(|chains| replaced(chains).is_some());
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
        self.deafen_one(&left);
        let mapping = &self.coordinator.mapping;
        let show = |slot: u16| {
            let chain = mapping.chains.of(slot);
            format!(
                "{slot}: {:?} learns {:?} since {}",
                chain.members, chain.learner, chain.since
            )
        };
        let (epoch, chains) = (mapping.epoch, SLOTS.map(show).join("; "));
        self.note(format_args!("epoch {epoch}: {chains}"));
    }
}
