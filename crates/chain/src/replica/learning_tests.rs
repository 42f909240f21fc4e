//! What a learner sends before it is told to copy the slot again.

use super::Replica;
use super::tests::{SLOTS_USED, World, peer};
use crate::message::{Envelope, Message};
use crate::replica::Store;

fn synced(world: &World, slot: u16) -> bool {
    let mut synced = world.replicas[&peer(0, 0)].0.synced();
    synced.any(|(number, ..)| number == slot)
}

/// It is about to drop what these messages tell of: a chain with it as a member would have no copy.
#[test]
fn a_learner_that_has_to_learn_anew_is_not_reported_by_what_it_said_before() {
    let slot = SLOTS_USED[0];
    let mut world = World::new(&[1, 1]);
    world.agree(&[0], Some(1));
    world.all_take_up();
    world.run(20);
    world.write(0, slot, 7);
    world.run(20);
    assert!(synced(&world, slot));
    let (epoch, since) = (1, 1);
    let state = |seq| Message::State {
        slot,
        since,
        seq,
        items: Vec::new(),
    };
    let ack = Message::Ack {
        slot,
        since,
        seq: 1,
    };
    for message in [state(0), state(1), ack] {
        let now = world.now;
        let (replica, store) = world.replicas.get_mut(&peer(0, 0)).expect("there");
        replica.receive(peer(1, 0), Envelope { epoch, message }, store, now);
    }
    assert!(!synced(&world, slot), "it drops its copy");
    world.run(20);
    assert!(synced(&world, slot));
    assert_eq!(world.replicas[&peer(1, 0)].0.last_write(slot), 1);
}

/// Clients that write faster than the copy is made would keep it from ever being complete.
#[test]
fn writes_wait_for_a_copy_that_lacks_much() {
    let slot = SLOTS_USED[0];
    let mut world = World::new(&[1, 1]);
    world.agree(&[0], Some(1));
    world.all_take_up();
    world.run(20);
    let (now, since) = (world.now, 1);
    let (replica, store) = world.replicas.get_mut(&peer(0, 0)).expect("there");
    let message = Message::Learn { slot, since };
    replica.receive(peer(1, 0), Envelope { epoch: 1, message }, store, now);
    let mut write = |replica: &mut Replica, count: u64| {
        let effect = vec![0; 1 << 18];
        store.apply(slot, &effect);
        replica.append(slot, effect.into(), store);
        assert_eq!(replica.last_write(slot), count);
    };
    for count in 1..=4 {
        write(replica, count);
        assert_eq!(replica.acknowledged(slot), Some(count));
    }
    write(replica, 5);
    assert_eq!(replica.acknowledged(slot), Some(4), "much is owed");
    for _ in 1..5 {
        replica.work(store, 1, |_| true);
        assert_eq!(replica.acknowledged(slot), Some(4), "some is owed");
    }
    replica.work(store, 1, |_| true);
    assert_eq!(replica.acknowledged(slot), Some(5), "as much was sent");
    world.run(40);
    assert!(synced(&world, slot));
}
