//! Commands that wait for data, on workers driven by hand: messages between
//! two workers keep their order, all else is drawn by a seed. What is pushed
//! is taken exactly once, nobody waits where there is something, waiters of a
//! key are served in order, and who gave up takes nothing.

mod world;

use std::collections::BTreeSet;
use world::{Conn, POP, POUR, PUSH, SHIFT, World, number};

const FOREVER: &[u8] = &0u64.to_le_bytes();

#[test]
fn waiters_are_served_in_order_and_at_once() {
    for workers in [1, 2] {
        let mut world = World::new(workers, 4, 1);
        let owner = workers - 1;
        let key = world.key_of(owner, 0);
        for c in 0..3 {
            world.submit((0, c), POP, &[FOREVER, &key]);
            world.run_to_quiet();
        }
        let args: Vec<[u8; 8]> = (1..=4u64).map(u64::to_le_bytes).collect();
        world.submit((owner, 3), PUSH, &[&key, &args[0], &key, &args[1]]);
        assert_eq!(world.peek(&key), [], "nobody comes in between");
        world.run_to_quiet();
        let replies: Vec<_> = (0..3).map(|c| world.reply((0, c))).collect();
        assert_eq!(replies, [Some(1), Some(2), None]);
        world.submit((owner, 3), PUSH, &[&key, &args[2], &key, &args[3]]);
        world.run_to_quiet();
        assert_eq!(world.reply((0, 2)), Some(3));
        assert_eq!(world.peek(&key), [4]);
    }
}

/// What is pushed and a pop behind it come in one message.
#[test]
fn who_waited_is_answered_before_who_comes_behind() {
    let mut world = World::new(2, 3, 1);
    let key = world.key_of(1, 0);
    world.submit((0, 0), POP, &[FOREVER, &key]);
    world.run_to_quiet();
    let both = [7u64.to_le_bytes(), 8u64.to_le_bytes()].concat();
    world.submit((0, 1), PUSH, &[&key, &both]);
    world.submit((0, 2), POP, &[FOREVER, &key]);
    world.run_to_quiet();
    let replies = [0, 2].map(|c| world.reply((0, c)));
    assert_eq!(replies, [Some(7), Some(8)]);
    assert_eq!(world.answered, [(0, 0), (0, 1), (0, 2)]);
}

#[test]
fn keys_of_several_workers_serve_a_wait_once() {
    let mut world = World::new(3, 3, 2);
    let (x, y) = (world.key_of(1, 0), world.key_of(2, 0));
    world.submit((0, 0), POP, &[FOREVER, &x, &y]);
    world.run_to_quiet();
    let (one, two) = (7u64.to_le_bytes(), 8u64.to_le_bytes());
    world.submit((1, 0), PUSH, &[&x, &one]);
    world.submit((2, 0), PUSH, &[&y, &two]);
    world.run_to_quiet();
    assert_eq!(world.reply((0, 0)), Some(7));
    assert_eq!((world.peek(&x), world.peek(&y)), (vec![], vec![8]));
}

#[test]
fn what_a_served_client_leaves_serves_the_next() {
    for workers in [1, 3] {
        let mut world = World::new(workers, 3, 3);
        let (x, y) = (world.key_of(0, 0), world.key_of(workers - 1, 1));
        world.submit((0, 0), POP, &[FOREVER, &y]);
        world.run_to_quiet();
        world.submit((0, 1), SHIFT, &[FOREVER, &x, &y]);
        world.run_to_quiet();
        world.submit((0, 2), PUSH, &[&x, &9u64.to_le_bytes()]);
        world.run_to_quiet();
        assert_eq!(
            (world.reply((0, 0)), world.reply((0, 1))),
            (Some(9), Some(9))
        );
        assert_eq!((world.peek(&x), world.peek(&y)), (vec![], vec![]));
    }
}

#[test]
fn what_a_command_over_workers_brings_is_for_those_who_wait() {
    let mut world = World::new(2, 3, 4);
    let (x, y) = (world.key_of(0, 0), world.key_of(1, 0));
    world.submit((0, 0), POP, &[FOREVER, &y]);
    world.submit((1, 0), PUSH, &[&x, &5u64.to_le_bytes()]);
    world.run_to_quiet();
    world.submit((0, 1), POUR, &[&x, &y]);
    world.run_to_quiet();
    assert_eq!(world.reply((0, 0)), Some(5));
    assert_eq!(world.peek(&y), []);
}

#[test]
fn who_gave_up_takes_nothing() {
    for workers in [1, 3] {
        let mut world = World::new(workers, 3, 5);
        let key = world.key_of(workers - 1, 0);
        world.submit((0, 0), POP, &[&100u64.to_le_bytes(), &key]);
        world.submit((0, 1), POP, &[FOREVER, &key]);
        world.run_to_quiet();
        world.tick(99);
        world.run_to_quiet();
        assert!(world.conns[0][0].waits);
        world.tick(1);
        world.run_to_quiet();
        assert_eq!(world.conns[0][0].reply.as_deref(), Some(&b"nil"[..]));
        world.replace((0, 1));
        world.run_to_quiet();
        world.submit((0, 2), PUSH, &[&key, &1u64.to_le_bytes()]);
        world.run_to_quiet();
        assert_eq!(world.peek(&key), [1]);
    }
}

/// A wait that ends while word of it is on its way.
#[test]
fn a_client_that_left_early_is_forgotten() {
    let mut world = World::new(3, 2, 6);
    let (x, y) = (world.key_of(1, 0), world.key_of(2, 0));
    world.submit((0, 0), POP, &[FOREVER, &x]);
    world.submit((0, 1), POP, &[FOREVER, &x, &y]);
    world.finish_step(0);
    world.replace((0, 0));
    world.replace((0, 1));
    world.run_to_quiet();
    assert_eq!(world.workers[1].shard.observers().awaited_keys(), 0);
}

/// Its request found nothing behind a hold, and data comes behind the same hold.
#[test]
fn a_client_that_left_behind_a_hold_is_given_nothing() {
    let mut world = World::new(2, 3, 7);
    let (x, y) = (world.key_of(0, 0), world.key_of(1, 0));
    world.submit((0, 0), POUR, &[&x, &y]);
    world.finish_step(0);
    world.submit((0, 1), POP, &[FOREVER, &x]);
    world.submit((0, 2), PUSH, &[&x, &7_u64.to_le_bytes()]);
    world.replace((0, 1));
    world.run_to_quiet();
    assert_eq!(world.peek(&x), [7]);
}

#[test]
fn by_lot_nothing_is_lost_and_nobody_sleeps_on() {
    for seed in 0..400 {
        let workers = 1 + seed as usize % 4;
        let mut world = World::new(workers, 5, seed);
        // While what is at a key is shifted to another worker, others may take it.
        world.in_turn = seed % 8 < 4;
        let keys: Vec<Vec<u8>> = (0..4).map(|i| format!("list{i}").into_bytes()).collect();
        let (mut pushed, mut taken) = (0u64, BTreeSet::new());
        let mut lost = 0;
        for _ in 0..300 {
            if world.draw(3) > 0 && world.deliver() {
                continue;
            }
            if world.draw(12) == 0 {
                let us = 1 + world.draw(400) as u64;
                world.tick(us);
            }
            let at = (world.draw(workers), world.draw(5));
            if world.conns[at.0][at.1].busy {
                if world.draw(20) == 0 {
                    let command = world.conns[at.0][at.1].command;
                    lost += usize::from(command == POP);
                    world.replace(at);
                }
                continue;
            }
            note(&mut taken, &world.conns[at.0][at.1]);
            world.conns[at.0][at.1].reply = None;
            submit_by_lot(&mut world, at, &keys, &mut pushed);
            if world.draw(2) == 0 {
                world.finish_step(at.0);
            }
        }
        world.run_to_quiet();
        world
            .conns
            .iter()
            .flatten()
            .for_each(|c| note(&mut taken, c));
        let left: Vec<u64> = keys.iter().flat_map(|key| world.peek(key)).collect();
        let all: BTreeSet<u64> = left.iter().copied().collect();
        assert_eq!(all.len(), left.len(), "seed {seed}: pushed twice");
        assert!(
            all.is_disjoint(&taken),
            "seed {seed}: taken, and still there"
        );
        let there = all.len() + taken.len();
        assert!(
            there as u64 <= pushed && there + lost >= pushed as usize,
            "seed {seed}: {pushed} pushed, {there} there, at most {lost} sent to clients that had left"
        );
    }
}

/// Pushes, pops, shifts or pours, on keys by lot.
fn submit_by_lot(world: &mut World, at: (usize, usize), keys: &[Vec<u8>], pushed: &mut u64) {
    let (a, b) = (world.draw(4), world.draw(4));
    let timeout = match world.draw(2) {
        0 => 0,
        _ => 1 + world.draw(1_000) as u64,
    };
    let timeout = timeout.to_le_bytes();
    let mut next = || {
        *pushed += 1;
        pushed.to_le_bytes()
    };
    match world.draw(8) {
        0 | 1 => world.submit(at, PUSH, &[&keys[a], &next()]),
        2 => world.submit(at, PUSH, &[&keys[a], &next(), &keys[b], &next()]),
        3 | 4 => world.submit(at, POP, &[&timeout, &keys[a]]),
        5 => world.submit(at, POP, &[&timeout, &keys[a], &keys[b], &keys[3 - a]]),
        6 if !world.in_turn => {
            world.submit(at, SHIFT, &[&timeout, &keys[a], &keys[b]]);
        }
        _ => world.submit(at, POUR, &[&keys[a], &keys[b]]),
    }
}

/// Takes down what a connection has taken for good.
fn note(taken: &mut BTreeSet<u64>, conn: &Conn) {
    if conn.command == POP
        && let Some(reply) = conn.reply.as_deref().filter(|r| r.len() == 8)
    {
        assert!(taken.insert(number(reply)), "taken twice");
    }
}
