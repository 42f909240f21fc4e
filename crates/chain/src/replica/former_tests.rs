//! Nodes that have left the chains of others: what these wait for.

use super::tests::{SLOTS_USED, World};

impl World {
    fn all_served(&mut self, node: u16) -> bool {
        SLOTS_USED.iter().all(|slot| self.serves(node, *slot))
    }
}

/// The head leaves, and shares no slot with the other node any more.
fn left(workers: &[u16]) -> World {
    let mut world = World::new(workers);
    world.agree(&[0, 1], None);
    world.all_take_up();
    world.run(2_000);
    world.agree(&[1, 0], None);
    world.all_take_up();
    world.run(20);
    assert!(world.all_served(1), "they share slots");
    world.agree(&[1], None);
    world.all_take_up();
    world
}

#[test]
fn a_slot_does_not_wait_for_the_lease_of_a_node_that_has_left() {
    for workers in [&[1, 1][..], &[2, 3], &[3, 1]] {
        let mut world = left(workers);
        world.run(5);
        assert!(world.all_served(1), "{workers:?}");
    }
}

/// Its lease is as long when the next epoch comes.
#[test]
fn nor_in_the_epochs_after_that() {
    let mut world = left(&[1, 1, 1]);
    world.run(100);
    world.agree(&[1], Some(2));
    world.all_take_up();
    world.run(5);
    assert!(world.all_served(1));
}

/// What it grants once more lasts no longer than before.
#[test]
fn a_lease_that_was_granted_once_more_ends_when_it_would_have() {
    let mut world = World::new(&[1, 1]);
    world.agree(&[0, 1], None);
    world.all_take_up();
    world.run(2_100);
    let from = super::tests::peer(0, 0);
    let granted = |world: &World| {
        let (replica, _) = &world.replicas[&super::tests::peer(1, 0)];
        (0..1_000).find(|ms| !replica.leases.holds(from, world.now + ms * 1_000))
    };
    let before = granted(&world).expect("a lease ends");
    world.agree(&[1], None);
    world.all_take_up();
    world.run(100);
    let after = granted(&world).expect("a lease ends");
    assert!(after + 99 <= before, "{after}, {before}");
}
