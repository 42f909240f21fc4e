//! Simulated clusters driven by the planner alone.

mod waiting;

use super::*;
use crate::chains::Chain;
use crate::member::NodeId;
use rufous_base::rng::Rng;
use std::collections::BTreeMap;

fn node(n: u8, incarnation: u64) -> Member {
    Member {
        id: NodeId([n; 20]),
        incarnation,
        peer: format!("10.0.0.{n}:7000"),
        plain: format!("10.0.0.{n}:6379"),
        cluster: format!("10.0.0.{n}:6380"),
        zone: String::new(),
        weight: 100,
        workers: 1 + (incarnation % 3) as u16,
        drains: false,
        folder: Default::default(),
    }
}

/// Live members report that they have all of the chains that wait.
pub(super) fn report(mapping: &Mapping, seen: &mut Seen) {
    for (no, member) in &mapping.members {
        let now = seen.alive.get(&member.id);
        if now.is_none_or(|now| now.incarnation != member.incarnation) {
            continue;
        }
        let mut report = Report::new(member.incarnation, true, false);
        let chains = mapping.chains.ranges();
        for (slots, chain) in chains.filter(|(_, chain)| chain.phase != Phase::Acts) {
            let (since, seq) = (chain.since, 7);
            let has_all = chain.holders().any(|holder| holder == *no);
            report.add(slots, has_all.then_some(Copy { since, seq }));
        }
        seen.held.hear(*no, report);
    }
}

/// A simulated cluster, driven by the planner alone.
struct World {
    mapping: Mapping,
    seen: Seen,
    limits: Limits,
    /// The nodes that have all acknowledged writes of a slot.
    has_all: Vec<BTreeSet<NodeNo>>,
}

impl World {
    fn new(copies: usize, nodes: u8) -> Self {
        let mut world = Self {
            mapping: Mapping::new(copies),
            seen: Seen::default(),
            limits: Limits::default(),
            has_all: vec![BTreeSet::new(); SLOTS],
        };
        (0..nodes).for_each(|n| world.start(n, 1));
        world
    }

    fn start(&mut self, n: u8, incarnation: u64) {
        let node = node(n, incarnation);
        self.seen.alive.insert(node.id, node);
    }

    fn number(&self, n: u8) -> Option<NodeNo> {
        self.mapping.number_of(NodeId([n; 20]))
    }

    fn stop(&mut self, n: u8) {
        self.seen.alive.remove(&NodeId([n; 20]));
    }

    /// Plans once; false if nothing has to change.
    fn step(&mut self) -> bool {
        let Some(next) = next(&self.mapping, &self.seen, &self.limits) else {
            return false;
        };
        assert_eq!(next.epoch, self.mapping.epoch + 1);
        let mut learning: BTreeMap<NodeNo, usize> = BTreeMap::new();
        for slot in 0..SLOTS as u16 {
            self.check(slot, self.mapping.chains.of(slot), next.chains.of(slot));
            if let Some(learner) = next.chains.of(slot).learner {
                *learning.entry(learner).or_default() += 1;
            }
        }
        assert!(
            learning
                .values()
                .all(|count| *count <= self.limits.learning)
        );
        for slot in 0..SLOTS as u16 {
            // Writes that a member acknowledges from now on are missing at the others.
            let has_all = &mut self.has_all[usize::from(slot)];
            *has_all = next.chains.of(slot).holders().collect();
        }
        self.mapping = next;
        true
    }

    fn check(&self, slot: u16, before: &Chain, after: &Chain) {
        if before == after {
            return;
        }
        if after.is_same(before) {
            assert!(!before.is_halted(), "slot {slot}");
            return;
        }
        assert!(after.since == self.mapping.epoch + 1, "slot {slot}");
        assert!(!after.members.is_empty(), "slot {slot} has nobody");
        let mut once = after.members.to_vec();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), after.members.len(), "{after:?}");
        assert!(after.learner.is_none_or(|no| !after.members.contains(&no)));
        if before.members.is_empty() {
            return;
        }
        let has_all = &self.has_all[usize::from(slot)];
        for no in &after.members {
            assert!(
                has_all.contains(no),
                "{no} is taken in: {before:?} {after:?}"
            );
        }
    }

    /// Live members report what they have of halted chains.
    fn report(&mut self) {
        for (no, member) in &self.mapping.members {
            let now = self.seen.alive.get(&member.id);
            if now.is_none_or(|now| now.incarnation != member.incarnation) {
                continue;
            }
            let mut report = Report::new(member.incarnation, true, false);
            for slot in 0..SLOTS as u16 {
                let chain = self.mapping.chains.of(slot);
                let copy = Copy {
                    since: chain.since,
                    seq: 7,
                };
                let has_all = self.has_all[usize::from(slot)].contains(no);
                if chain.phase != Phase::Acts {
                    report.add(slot..slot + 1, has_all.then_some(copy));
                }
            }
            self.seen.held.hear(*no, report);
        }
    }

    /// The learners of some slots are complete.
    fn learn(&mut self, which: impl FnMut(u16) -> bool) {
        self.report();
        self.learn_only_learners_of(which);
        for slot in 0..SLOTS as u16 {
            let chain = *self.mapping.chains.of(slot);
            // No client waits for a write here.
            if let Some(last) = chain.members.last() {
                self.seen.learned.add(slot..slot + 1, *last, chain.since);
            }
        }
    }

    fn learn_only_learners(&mut self) {
        self.learn_only_learners_of(|_| true);
    }

    fn learn_only_learners_of(&mut self, mut which: impl FnMut(u16) -> bool) {
        for slot in 0..SLOTS as u16 {
            let chain = *self.mapping.chains.of(slot);
            if let Some(learner) = chain.learner
                && which(slot)
            {
                self.seen.learned.add(slot..slot + 1, learner, chain.since);
                self.has_all[usize::from(slot)].insert(learner);
            }
        }
    }

    fn settle(&mut self) {
        for _ in 0..1000 {
            self.learn(|_| true);
            if !self.step() {
                return;
            }
        }
        panic!("never at rest");
    }

    /// Chains with a live node have as many members as possible, and no member that is away.
    fn check_those_that_are_there(&self) {
        let is_there = |no: &NodeNo| {
            let member = &self.mapping.members[no];
            let now = self.seen.alive.get(&member.id);
            now.is_some_and(|now| now.incarnation == member.incarnation)
        };
        let ring = &self.mapping.ring;
        let there = ring.members().keys().filter(|no| is_there(no)).count();
        for slot in 0..SLOTS as u16 {
            let chain = self.mapping.chains.of(slot);
            let members = chain.members;
            if chain.is_halted() {
                assert!(!members.iter().all(is_there), "slot {slot} need not wait");
                continue;
            }
            if there > 0 && members.iter().any(is_there) {
                assert!(members.iter().all(is_there), "slot {slot}: {members:?}");
                assert_eq!(members.len(), ring.copies().min(there), "slot {slot}");
            }
        }
    }

    /// All nodes are alive: every slot is where the ring places it.
    fn check_rest(&self) {
        for slot in 0..SLOTS as u16 {
            let chain = self.mapping.chains.of(slot);
            assert_eq!(
                *chain.members,
                *self.mapping.ring.owners(slot),
                "slot {slot}"
            );
            assert_eq!((chain.learner, chain.phase), (None, Phase::Acts));
        }
    }
}

#[test]
fn nodes_join_one_after_the_other_and_leave_again() {
    let mut world = World::new(2, 1);
    for n in 1..4 {
        world.settle();
        world.check_rest();
        world.start(n, 1);
    }
    world.settle();
    world.check_rest();
    assert_eq!(world.mapping.members.len(), 4);
    let leaver = world.number(1).expect("a member");
    world.seen.draining.insert(leaver);
    world.settle();
    assert!(!world.mapping.chains.name(leaver) && !world.mapping.ring.has(leaver));
    // It passes on requests of its clients until it stops.
    assert!(world.mapping.members.contains_key(&leaver));
    world.stop(1);
    world.settle();
    world.check_rest();
    assert!(!world.mapping.members.contains_key(&leaver));
}

#[test]
fn who_is_away_is_replaced_and_comes_back() {
    let mut world = World::new(2, 4);
    world.settle();
    world.stop(2);
    assert!(world.step());
    let gone = world.number(2).expect("a member");
    let all = |world: &World, f: &dyn Fn(&Chain) -> bool| {
        (0..SLOTS as u16).all(|slot| f(world.mapping.chains.of(slot)))
    };
    assert!(
        all(&world, &|chain| !chain.members.contains(&gone)),
        "at once"
    );
    world.settle();
    assert!(
        all(&world, &|chain| chain.members.len() == 2),
        "copies are made"
    );
    world.start(2, 2);
    world.settle();
    world.check_rest();
    assert_eq!(world.mapping.members[&gone].incarnation, 2);
}

#[test]
fn a_chain_waits_for_its_last_member() {
    let mut world = World::new(1, 2);
    world.settle();
    let gone = world.number(1).expect("a member");
    world.stop(1);
    world.seen.away_ms.insert(gone, 1_000_000);
    world.settle();
    let own = (0..SLOTS as u16).filter(|slot| world.mapping.ring.owners(*slot) == [gone]);
    for slot in own.collect::<Vec<_>>() {
        assert_eq!(*world.mapping.chains.of(slot).members, [gone]);
    }
    world.start(1, 2);
    world.settle();
    world.check_rest();
}

#[test]
fn a_head_leaves_when_it_has_said_that_it_waits_for_nothing() {
    let mut world = World::new(1, 1);
    world.settle();
    world.start(2, 1);
    // The new node learns the slots, and becomes their head: the old one is behind it.
    let waits = |world: &World| {
        let chain = |slot| *world.mapping.chains.of(slot);
        let two = (0..SLOTS as u16)
            .map(chain)
            .find(|chain| chain.members.len() == 2 && chain.head() == world.number(2));
        two.is_some()
    };
    for _ in 0..100 {
        if waits(&world) {
            break;
        }
        world.learn_only_learners();
        world.step();
    }
    assert!(waits(&world));
    // However often the planner runs.
    for _ in 0..50 {
        world.learn_only_learners();
        world.step();
        assert!(waits(&world));
    }
    world.settle();
    assert!(!waits(&world));
}

#[test]
fn a_node_learns_some_slots_at_a_time() {
    let mut world = World::new(1, 1);
    world.limits.learning = 100;
    world.settle();
    world.start(1, 1);
    assert!(world.step());
    let learning = |world: &World| {
        let chains = (0..SLOTS as u16).map(|slot| world.mapping.chains.of(slot));
        chains.filter(|chain| chain.learner.is_some()).count()
    };
    // It first connects to the others.
    assert_eq!((world.mapping.members.len(), learning(&world)), (2, 0));
    assert!(world.step());
    assert_eq!(learning(&world), 100);
    world.settle();
    world.check_rest();
}

/// Nodes join, fail, restart and leave for good at any time. Some node always has the acknowledged
/// writes, unless all members of a chain are lost at once; and the cluster becomes stable.
#[test]
fn nothing_is_lost_whatever_comes_and_goes() {
    for seed in 0..8 {
        let mut rng = Rng::new(seed);
        let mut world = World::new(1 + rng.below(3) as usize, 3);
        let mut incarnation = 1;
        for _ in 0..60 {
            let n = rng.below(7) as u8;
            incarnation += 1;
            match rng.below(8) {
                0 => world.stop(n),
                1 | 2 => world.start(n, incarnation),
                3 if world.mapping.ring.len() > 2 => {
                    world.seen.draining.extend(world.number(n));
                }
                4 => {
                    let no = world.number(n).unwrap_or_default();
                    world.seen.away_ms.insert(no, rng.below(10_000));
                }
                5 | 6 => world.learn(|slot| (u64::from(slot) + seed) % 3 != 0),
                _ => (),
            }
            world.step();
        }
        let waited = world.limits.reunion_ms;
        let all = world.mapping.members.keys().map(|no| (*no, waited));
        world.seen.away_ms = all.collect();
        world.settle();
        world.check_those_that_are_there();
        let members: Vec<NodeId> = world.mapping.members.values().map(|m| m.id).collect();
        for id in members {
            if !world.seen.alive.contains_key(&id) {
                incarnation += 1;
                world.start(id.0[0], incarnation);
            }
        }
        world.settle();
        world.check_rest();
    }
}

#[test]
fn an_unfit_member_is_replaced_and_taken_back() {
    let mut world = World::new(2, 3);
    world.settle();
    let sick = world.number(1).expect("a member");
    let has = |world: &World| {
        let chains = (0..SLOTS as u16).map(|slot| *world.mapping.chains.of(slot));
        chains.filter(|chain| chain.names(sick)).count()
    };
    assert!(has(&world) > 0);
    world.seen.unfit.insert(sick);
    world.settle();
    assert_eq!(has(&world), 0, "others have its slots");
    world.seen.unfit.clear();
    world.settle();
    world.check_rest();
    assert!(has(&world) > 0);
}

/// It is the only member that has the data.
#[test]
fn the_last_member_stays_however_unfit() {
    let mut world = World::new(1, 2);
    world.settle();
    let before = world.mapping.chains.clone();
    world.seen.unfit = world.mapping.members.keys().copied().collect();
    world.settle();
    assert_eq!(world.mapping.chains, before);
}

#[test]
fn a_newcomer_learns_only_where_members_hear_it() {
    let mut world = World::new(2, 2);
    world.settle();
    world.start(2, 1);
    assert!(world.step(), "it joins");
    let new = world.number(2).expect("a member");
    let first = world.number(0).expect("a member");
    for no in world.mapping.members.keys().filter(|no| **no != new) {
        world.seen.apart.insert(((*no).min(new), (*no).max(new)));
    }
    world.settle();
    let names = |world: &World| {
        world
            .mapping
            .chains
            .ranges()
            .any(|(_, chain)| chain.names(new))
    };
    assert!(!names(&world), "nothing waits for it");
    // All but one hear it: it learns nothing of chains with that one.
    world.seen.apart = BTreeSet::from([(first.min(new), first.max(new))]);
    world.settle();
    for (_, chain) in world.mapping.chains.ranges() {
        assert!(!(chain.names(new) && chain.names(first)), "{chain:?}");
    }
    world.seen.apart.clear();
    world.settle();
    world.check_rest();
    assert!(names(&world));
}
