//! The coordinator and the leader: which nodes are alive, the next epoch, and which nodes learn
//! of it. The leader and every node run the server's own control.

use super::lasting::heard_health;
use super::node::Power;
use super::operator::Operator;
use super::plan::{KEYS, Plan};
use super::world::{What, World};
use crate::engine::Fault;
use crate::engine::random::Random;
use crate::node::plan::Mode;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;
use rufous_cluster::control::{Action, Control, Kept, Outcome, Settings, Stored, View};
use rufous_kernel::worker::Past;
use rufous_mapping::planner::{Health, Held, Learned, Limits, Loss, Report};
use rufous_mapping::{Chain, Chains, Mapping, Member, NodeId, NodeNo};
use rufous_wire::mapping::{decode_health, encode, encode_announcement};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A node that was silent for so long is presumed dead.
const DETECTION_US: u64 = 2_000_000;

/// How often it runs.
const PERIOD_US: u64 = 100_000;

/// Nothing changes any more if nothing has changed for so long.
const REST_US: u64 = 4_000_000;

/// The leader, which is none of the nodes: it never fails.
pub(super) const LEADER: NodeId = NodeId([0xff; 20]);

pub(super) struct Coordinator {
    pub(super) mapping: Arc<Mapping>,
    /// The mapping as it is stored.
    stored: Vec<u8>,
    pub(super) leader: Control,
    learned: Learned,
    /// What nodes have of slots of whose chains no node acts.
    held: Held,
    /// Members, and when each was last heard from.
    heard: BTreeMap<NodeId, (Member, u64)>,
    /// What they have announced of their health.
    health: BTreeMap<NodeId, Health>,
    pub(super) away_until_us: u64,
    /// Nodes that lost their data at a start, and have a new identity: the operator
    /// removes the old one.
    pub(super) dead: BTreeSet<NodeId>,
    /// When it was last planned to change something.
    pub(super) changed_us: u64,
    pub(super) operator: Operator,
    pub(super) random: Random,
}

impl Coordinator {
    pub(super) fn new(plan: &Plan) -> Self {
        let copies = plan.copies;
        Self {
            mapping: Arc::new(Mapping::new(copies)),
            stored: Vec::new(),
            leader: control(LEADER, copies, (0, plan.absence_ms()), Kept::default()),
            learned: Learned::default(),
            held: Held::default(),
            heard: BTreeMap::new(),
            health: BTreeMap::new(),
            away_until_us: 0,
            dead: BTreeSet::new(),
            changed_us: 0,
            operator: Operator::default(),
            random: Random::new(plan.seed, "coordinator"),
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.mapping.epoch
    }

    pub(super) fn number_of(&self, id: NodeId) -> Option<NodeNo> {
        self.mapping.number_of(id)
    }

    /// It is no member, or one that drains and has given all away.
    pub(super) fn has_left(&self, id: NodeId) -> bool {
        let mapping = &self.mapping;
        let is_empty = |no| !mapping.ring.has(no) && !mapping.chains.need(no);
        self.number_of(id)
            .is_none_or(|no| mapping.members[&no].drains && is_empty(no))
    }

    fn stored(&self) -> Option<Stored<'_>> {
        let (has, mapping) = match self.operator.restored() {
            Some((restored, bytes)) => (restored, bytes),
            None => (&self.mapping, &self.stored),
        };
        let epoch = has.epoch;
        (epoch > 0).then_some(Stored { epoch, mapping })
    }

    /// The epoch that the leader knows.
    pub(super) fn leader_epoch(&self) -> u64 {
        self.leader.mapping().map_or(0, |mapping| mapping.epoch)
    }

    /// What the leader decides now.
    fn decide(&mut self, now: u64) -> Vec<Action> {
        self.heard.retain(|_, (_, at)| now - *at < DETECTION_US);
        let heard = self.heard.iter();
        // Taken apart from what the leader changes.
        let stored = self.stored().map(|of| (of.epoch, of.mapping.to_vec()));
        let view = View {
            is_current: true,
            is_member: true,
            leader: Some(LEADER),
            stored: stored.as_ref().map(|(epoch, mapping)| Stored {
                epoch: *epoch,
                mapping,
            }),
            forgets: self.operator.forgets.clone(),
            alive: heard.map(|(id, (m, _))| (*id, m.clone())).collect(),
            health: self.health.clone(),
            removed: self.dead.clone(),
            learned: self.learned.clone(),
            held: self.held.clone(),
            ..View::default()
        };
        self.leader.decide(now, &view)
    }

    pub(super) fn describe(&self) -> String {
        let mut text = format!("  epoch {}, ", self.mapping.epoch);
        text.push_str(&format!("away since {:?}\n", self.leader.away()));
        for (slots, chain) in self.mapping.chains.ranges().take(40) {
            text.push_str(&format!("    {slots:?}: {chain:?}\n"));
        }
        text
    }
}

/// Control as nodes have it, for a cluster in which epochs follow one another fast.
pub(super) fn control(
    me: NodeId,
    copies: usize,
    (workers, absence_ms): (usize, Option<u64>),
    kept: Kept,
) -> Control {
    let limits = Limits {
        learning: 16384,
        absence_ms,
        ..Limits::default()
    };
    Control::new(Settings {
        me,
        incarnation: 1,
        copies,
        workers,
        apart_us: 0,
        limits,
        kept,
    })
}

/// The chains of these slots; the others have no owner, so that tests run faster.
fn only(slots: &[u16], chains: &Chains) -> Chains {
    let mut ranges = Vec::new();
    let mut start = 0;
    for slot in slots {
        if start < *slot {
            ranges.push((start..*slot, Chain::default()));
        }
        ranges.push((*slot..slot + 1, *chains.of(*slot)));
        start = slot + 1;
    }
    if usize::from(start) < SLOTS {
        ranges.push((start..SLOTS as u16, Chain::default()));
    }
    // invariant: the slots are in order, and what is between is filled.
    Chains::of_ranges(ranges).expect("ranges of all slots")
}

impl World {
    pub(super) fn on_coordinate(&mut self) {
        self.push(self.engine.now_us + PERIOD_US, None, What::Coordinate);
        self.leave_drained();
        self.start_again_behind();
        self.forget_gone();
        self.look_for_rest();
        if self.engine.now_us < self.coordinator.away_until_us {
            return;
        }
        for node in 0..self.nodes.len() {
            if self.reaches_coordinator(node) {
                self.hear(node);
            }
        }
        // Not before the first nodes are there.
        let is_first = self.coordinator.epoch() == 0;
        let waits = is_first && self.coordinator.heard.len() < self.plan.first;
        if !waits && self.coordinator.random.chance(0.6) {
            self.plan_next();
        }
        for node in 0..self.nodes.len() {
            if self.reaches_coordinator(node) {
                self.tell(node);
            }
        }
    }

    fn reaches_coordinator(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        let now = self.engine.now_us;
        node.power == Power::Up && node.alone_until_us <= now && node.paused_until_us <= now
    }

    fn hear(&mut self, node: usize) {
        let found = &self.nodes[node];
        let coordinator = &mut self.coordinator;
        if found.drains && coordinator.has_left(found.id) {
            return;
        }
        let heard = (found.member(), self.engine.now_us);
        coordinator.heard.insert(found.id, heard);
        let cluster = found
            .shared
            .as_ref()
            .and_then(|shared| shared.cluster.as_ref());
        let mut stood_still = false;
        if let Some(cluster) = cluster {
            let board = &cluster.common.health;
            if self.fault != Fault::WorkersNotSeen {
                board.look(found.clock(self.engine.now_us));
            }
            stood_still = board.stood_still() > 0;
            let health = heard_health(self.fault, board.known());
            let about = encode_announcement(&found.member(), &health);
            coordinator.health.insert(found.id, decode_health(&about));
        }
        for seat in &found.seats {
            for (slot, no, since) in seat.front.kernel.learned() {
                coordinator.learned.add(slot..slot + 1, no, since);
            }
        }
        if let Some(no) = coordinator.number_of(found.id) {
            let logs = self.plan.mode != Mode::Off;
            let mut report = Report::new(found.incarnation, logs, false);
            let past = cluster.map_or(Past::Unknown, |cluster| cluster.past);
            report.may_lack = self.plan.mode != Mode::Always && past == Past::Unknown;
            report.keeps_all = past == Past::Whole;
            let held = found.seats.iter().map(|seat| seat.front.kernel.held());
            for (epoch, slots) in held.filter(|(_, slots)| !slots.is_empty()) {
                report.epoch = Some(report.epoch.map_or(epoch, |before| before.min(epoch)));
                for (slot, copy) in slots {
                    report.add(slot..slot + 1, copy);
                }
            }
            // The server sends no empty report.
            if !report.slots.is_empty() {
                coordinator.held.hear(no, report);
            }
        }
        if stood_still {
            self.reach("a worker stood still");
        }
    }

    fn plan_next(&mut self) {
        let now = self.engine.now_us;
        let coordinator = &mut self.coordinator;
        for action in coordinator.decide(now) {
            match action {
                Action::Propose {
                    next, continues, ..
                } => {
                    if continues.at.keys().any(|(loss, _)| *loss == Loss::Unsynced) {
                        self.reach("slots continued that may lack the ends of their logs");
                    }
                    return self.propose(next);
                }
                Action::Unfit { now, .. } => {
                    if !now.is_empty() {
                        self.reach("a live member was replaced");
                    }
                    self.note("coord", format_args!("unfit: {now:?}"));
                    return self.plan_next();
                }
                Action::Outstayed { no, .. } => {
                    self.reach("a member was away for too long");
                    self.note("coord", format_args!("{no} was away for too long"));
                }
                Action::Forgotten { id, kept } => return self.on_forgotten(id, kept),
                Action::Refused { epoch, why } => {
                    return self.fail(format!("the leader refuses epoch {epoch}: {why}"));
                }
                _ => {}
            }
        }
    }

    fn propose(&mut self, mut next: Mapping) {
        let coordinator = &mut self.coordinator;
        if !self.plan.slots.is_empty() {
            next.chains = only(&self.plan.slots, &next.chains);
            let before = &coordinator.mapping;
            let same = (&next.members, &next.ring, &next.chains);
            if same == (&before.members, &before.ring, &before.chains) {
                return;
            }
        }
        let restored = coordinator.operator.restored();
        let has = restored.map_or(&coordinator.mapping, |(has, _)| has);
        if let Err(wrong) = next.check().and(next.follows(has)) {
            return self.fail(format!("the planner says what may not be: {wrong}"));
        }
        coordinator.learned.clear();
        coordinator.changed_us = self.engine.now_us;
        coordinator.stored = encode(&next);
        coordinator
            .leader
            .on_proposed(self.engine.now_us, Outcome::Taken);
        let before = std::mem::replace(&mut coordinator.mapping, Arc::new(next));
        coordinator.operator.on_taken(Arc::clone(&before));
        self.look_at_changes(&before);
    }

    fn look_at_changes(&mut self, before: &Mapping) {
        let mapping = Arc::clone(&self.coordinator.mapping);
        let heard = &self.coordinator.heard;
        let there = |no: NodeNo| {
            let member = before.members.get(&no);
            member.is_some_and(|member| heard.contains_key(&member.id))
        };
        let mut slots = mapping.chains.ranges().map(|(slots, _)| slots.start);
        let replaced = slots.any(|slot| {
            let (was, is) = (before.chains.of(slot), mapping.chains.of(slot));
            was.head() != is.head() && was.head().is_some_and(there)
        });
        if replaced {
            self.reach("a head was replaced while it was there");
        }
        if mapping.next > before.next && before.epoch > 0 {
            self.reach("a node has joined");
        }
        let slots: BTreeSet<u16> = KEYS.iter().map(|key| slot_of(key.as_bytes())).collect();
        let show = |slot: u16| {
            let c = mapping.chains.of(slot);
            let numbers: Vec<u16> = c.members.iter().map(|no| no.0).collect();
            let learner = c.learner.map(|no| no.0);
            format!("{slot}: {numbers:?}+{learner:?} since {}", c.since)
        };
        let text = slots.into_iter().map(show).collect::<Vec<_>>().join(", ");
        self.note("coord", format_args!("epoch {}: {text}", mapping.epoch));
    }

    /// The node's control sees the stored mapping; its workers receive it sooner or later.
    fn tell(&mut self, node: usize) {
        if self.coordinator.epoch() == 0 {
            return;
        }
        let known = &self.coordinator;
        let health = known.health.iter();
        let health = health.filter(|(id, _)| known.heard.contains_key(id));
        let view = View {
            is_current: true,
            is_member: true,
            leader: Some(LEADER),
            stored: known.stored(),
            health: health.map(|(id, of)| (*id, of.clone())).collect(),
            ..View::default()
        };
        let now_us = self.nodes[node].clock(self.engine.now_us);
        let found = &mut self.nodes[node];
        let actions = found.control.decide(now_us, &view);
        let cluster = found.shared.as_ref().and_then(|of| of.cluster.as_ref());
        if let Some(cluster) = cluster {
            let serving = found.control.serving(&view);
            cluster.common.health.set_serving(serving);
        }
        let mut behind: BTreeMap<usize, Arc<Mapping>> = BTreeMap::new();
        for action in actions {
            match action {
                Action::Tell { worker, mapping } => {
                    behind.insert(worker, mapping);
                }
                Action::Adopted { mapping, .. } if self.plan.restores() => {
                    self.nodes[node].kept.mapping = Some(mapping);
                }
                Action::WentBack { .. } => self.nodes[node].kept.is_behind = true,
                Action::CaughtUp { .. } => self.nodes[node].kept.is_behind = false,
                Action::Refused { epoch, why } => {
                    self.fail(format!("node {node} refuses epoch {epoch}: {why}"));
                }
                _ => {}
            }
        }
        for worker in 0..self.nodes[node].workers {
            let chance = self.coordinator.random.chance(0.4);
            if let Some(mapping) = behind.remove(&worker).filter(|_| chance) {
                self.nodes[node].control.on_told(worker, mapping.epoch);
                let at = self.engine.now_us + self.coordinator.random.skewed(10, 50_000);
                self.push_of(node, at, What::Tell { worker, mapping });
            }
        }
    }

    /// Nodes stop that have given all away.
    fn leave_drained(&mut self) {
        for node in 0..self.nodes.len() {
            let found = &self.nodes[node];
            let is_done = found.drains && self.coordinator.has_left(found.id);
            if is_done && found.power == Power::Up {
                self.reach("a node has drained");
                self.stop(node);
            }
        }
    }

    /// Nothing is left to be planned, and all know.
    pub(super) fn is_at_rest(&self) -> bool {
        let coordinator = &self.coordinator;
        let knows = |worker: &u64| *worker == coordinator.epoch();
        let mut nodes = self.nodes.iter();
        self.engine.now_us >= coordinator.changed_us + REST_US
            && coordinator.operator.is_done()
            && nodes.all(|node| match node.power {
                Power::Up => !node.drains && node.control.told().iter().all(knows),
                Power::Gone | Power::New => true,
                Power::Down | Power::Stopping(_) => false,
            })
            && coordinator.mapping.chains.ranges().all(|(slots, chain)| {
                let is_nobodys = chain.members.is_empty() && !self.plan.slots.is_empty();
                let settled = chain.learner.is_none()
                    && *chain.members == *coordinator.mapping.ring.owners(slots.start);
                is_nobodys || settled
            })
    }
}
