//! Which members hear which others goes in; the members that are replaced come out.

use super::reach::Reach;
use rufous_mapping::planner::Health;
use rufous_mapping::{Mapping, Member, NodeId, NodeNo};
use std::collections::BTreeMap;

const SECOND_US: u64 = 1_000_000;

fn member(no: u16, incarnation: u64) -> Member {
    Member {
        id: NodeId([no as u8; 20]),
        incarnation,
        peer: String::new(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        workers: 1,
        drains: false,
        folder: Default::default(),
    }
}

struct World {
    reach: Reach,
    mapping: Mapping,
    alive: BTreeMap<NodeId, Member>,
    /// Pairs of which the first does not hear the second.
    deaf: Vec<(u16, u16)>,
    now_us: u64,
}

impl World {
    fn new(nodes: u16) -> Self {
        let members = (0..nodes).map(|no| (NodeNo(no), member(no, 1)));
        let mut world = Self {
            reach: Reach::default(),
            alive: (0..nodes)
                .map(|no| (NodeId([no as u8; 20]), member(no, 1)))
                .collect(),
            mapping: Mapping {
                members: members.collect(),
                next: nodes,
                ..Mapping::new(2)
            },
            deaf: Vec::new(),
            now_us: 0,
        };
        world.after(0);
        world
    }

    /// Time passes; returns the members that are replaced then.
    fn after(&mut self, us: u64) -> Vec<u16> {
        self.now_us += us;
        let nodes: Vec<u16> = self.mapping.members.keys().map(|no| no.0).collect();
        let health = nodes.iter().map(|by| {
            let hears = nodes.iter().filter(|no| !self.deaf.contains(&(*by, **no)));
            let health = Health {
                hears: Some(hears.map(|no| NodeNo(*no)).collect()),
                ..Health::default()
            };
            (NodeId([*by as u8; 20]), health)
        });
        let health = health.collect();
        self.reach
            .look(&self.mapping, &self.alive, &health, self.now_us);
        self.reach.replaced().map(|no| no.0).collect()
    }

    fn part(&mut self, one: u16, other: u16) {
        self.deaf.extend([(one, other), (other, one)]);
    }
}

#[test]
fn of_two_that_are_parted_the_later_is_replaced() {
    let mut world = World::new(3);
    world.part(0, 1);
    assert_eq!(world.after(0), [0; 0], "it may be a moment");
    assert_eq!(world.after(SECOND_US), [1]);
}

#[test]
fn who_is_parted_from_more_is_replaced() {
    let mut world = World::new(4);
    world.part(0, 1);
    world.part(0, 2);
    world.part(0, 3);
    world.after(0);
    assert_eq!(world.after(SECOND_US), [0]);
}

/// It says still that it hears all.
#[test]
fn who_has_ended_is_replaced_and_not_who_misses_it() {
    let mut world = World::new(3);
    world.deaf = vec![(1, 0), (2, 0)];
    world.after(0);
    assert_eq!(world.after(SECOND_US), [0]);
}

#[test]
fn who_is_heard_again_comes_back_later_each_time() {
    let mut world = World::new(2);
    let mut lasted = Vec::new();
    for _ in 0..3 {
        world.part(0, 1);
        world.after(0);
        assert_eq!(world.after(SECOND_US), [1]);
        world.deaf.clear();
        let seconds = (0..100).find(|_| world.after(SECOND_US).is_empty());
        lasted.push(seconds.expect("it comes back"));
    }
    assert!(lasted.windows(2).all(|two| two[0] < two[1]), "{lasted:?}");
}

#[test]
fn who_has_just_joined_or_started_has_time_to_connect() {
    let mut world = World::new(2);
    for incarnation in [1, 2] {
        world
            .mapping
            .members
            .insert(NodeNo(2), member(2, incarnation));
        world.alive.insert(NodeId([2; 20]), member(2, incarnation));
        world.part(0, 2);
        world.part(1, 2);
        world.after(0);
        assert_eq!(
            world.after(2 * SECOND_US),
            [0; 0],
            "incarnation {incarnation}"
        );
        world.deaf.clear();
        assert_eq!(world.after(0), [0; 0]);
        // It ends, and starts again.
        world
            .alive
            .insert(NodeId([2; 20]), member(2, incarnation + 1));
        world.after(0);
    }
    world.mapping.members.insert(NodeNo(3), member(3, 1));
    world.alive.insert(NodeId([3; 20]), member(3, 1));
    for other in 0..3 {
        world.part(other, 3);
    }
    world.after(0);
    assert_eq!(world.after(10 * SECOND_US), [3]);
}
