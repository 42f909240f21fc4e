//! Sessions of several workers of two nodes, with connections that are queues of bytes: which
//! messages go where, which are lost with a session, and which wait.

mod strangers;
mod world;

use crate::peer::{Credit, Heard, PeerMessage, Session};
use rufous_base::slot::worker_of_slot;
use rufous_base::{Origin, Read};
use rufous_mapping::{Chain, Chains, Members, NodeNo};
use rufous_wire::message::{Ack, Alike, AlikeWrite, Ask, Copy, Grant};
use rufous_wire::version::{ALIKE, NEWEST};
use rufous_wire::{Body, Bytes, Class};
use std::collections::BTreeMap;
use std::sync::Arc;
use world::{A, B, World, info, mapping};

#[test]
fn what_any_worker_says_comes_to_the_worker_of_the_slot_once_and_in_order() {
    for accepts in 0..3 {
        let mut world = World::new([2, 3], accepts);
        for (side, workers, peer) in [(A, 2, "n1"), (B, 3, "n0")] {
            for worker in 0..workers {
                let up = format!("up {peer}");
                assert_eq!(world.heard(side, worker), ["mapping 2", &up]);
            }
        }
        let slots = [0_u16, 5461, 5462, 9000, 16383];
        for seq in 0..20 {
            for worker in 0..2 {
                for slot in slots {
                    world.ack(worker, slot, seq * 2 + worker as u64);
                }
                world.settle();
            }
        }
        for worker in 0..3 {
            let own = slots
                .iter()
                .filter(|slot| worker_of_slot(**slot, 3).index() == worker);
            let count = own.count();
            let expected = (0..40).flat_map(|seq| vec![format!("ack {seq} from n0"); count]);
            assert_eq!(world.heard(B, worker), expected.collect::<Vec<_>>());
        }
        for worker in 0..2 {
            assert!(world.heard(A, worker).is_empty());
        }
    }
}

#[test]
fn leases_are_asked_for_and_granted_by_the_worker_that_is_named() {
    let mut world = World::new([2, 3], 0);
    let said = [
        Body::Ask(Ask { asked_us: 5 }),
        Body::Grant(Grant { asked_us: 6 }),
    ];
    for body in &said {
        for worker in 0..3 {
            world.with(A, 1, |links, now, fx| {
                let mut envelope = links.envelope(body.clone());
                envelope.to = worker;
                links.send(now, NodeNo(1), Class::Control, envelope, fx);
            });
        }
    }
    world.settle();
    for worker in 0..3 {
        let heard = world.sides[B].heard[worker].iter();
        let messages = heard.filter_map(|heard| match heard {
            Heard::Message(_, envelope) => Some((envelope.from, envelope.body.as_ref())),
            _ => None,
        });
        let messages: Vec<_> = messages.collect();
        let expected = [(1, Some(&said[0])), (1, Some(&said[1]))];
        assert_eq!(messages, expected, "{worker}");
    }
}

/// A part of a copy, of the usual size.
fn copy() -> Body {
    Body::Copy(Copy {
        slot: 16383,
        since: 1,
        part: 0,
        chunk: vec![7; 1 << 20].into(),
    })
}

#[test]
fn more_than_a_window_goes_where_it_is_taken_at_another_worker() {
    let mut world = World::new([2, 3], 0);
    for _ in 0..20 {
        world.with(A, 0, |links, now, fx| {
            let envelope = links.envelope(copy());
            links.send(now, NodeNo(1), Class::Learning, envelope, fx);
        });
        world.settle();
    }
    // The last worker's slot; the connection is at the first.
    let heard = world.sides[B].heard[2].iter();
    let copies = heard.filter(|heard| matches!(heard, Heard::Message(..)));
    assert_eq!(copies.count(), 20);
    assert!(world.reasons(A).is_empty() && world.reasons(B).is_empty());
}

#[test]
fn a_large_message_is_given_to_the_driver_in_pieces() {
    let mut world = World::new([1, 1], 0);
    world.stalled = true;
    world.with(A, 0, |links, now, fx| {
        let envelope = links.envelope(copy());
        links.send(now, NodeNo(1), Class::Learning, envelope, fx);
    });
    let waiting = world.pipes[0].bytes[B].len();
    assert!((1..512 * 1024).contains(&waiting), "{waiting}");
    // The driver reports it as sent, a piece at a time.
    world.stalled = false;
    let conn = world.pipes[0].at[A].1;
    world.with(A, 0, |links, _, fx| links.on_drained(conn, fx));
    world.settle();
    let heard = world.sides[B].heard[0].iter();
    let copies = heard.filter(|heard| matches!(heard, Heard::Message(..)));
    assert_eq!(copies.count(), 1);
    assert!(world.reasons(B).is_empty());
}

#[test]
fn who_takes_nothing_is_given_up_and_found_again() {
    let mut world = World::new([2, 3], 1);
    world.settle();
    world.stalled = true;
    let mut sent = 0;
    while world.reasons(A).is_empty() {
        sent += 1;
        assert!(sent < 20, "it is bounded");
        world.with(A, 1, |links, now, fx| {
            let envelope = links.envelope(copy());
            links.send(now, NodeNo(1), Class::Learning, envelope, fx);
        });
        world.settle();
    }
    assert_eq!(world.reasons(A), [(15, 1)]);
    for worker in 0..2 {
        assert_eq!(world.heard(A, worker), ["mapping 2", "up n1", "down n1"]);
    }
    world.stalled = false;
    world.settle();
    world.pass_ms(1_000);
    for worker in 0..2 {
        assert_eq!(world.heard(A, worker), ["up n1"]);
    }
    let last = world.heard(B, 0);
    assert_eq!(last, ["mapping 2", "up n0", "down n0", "up n0"]);
}

#[test]
fn what_was_said_to_an_earlier_session_is_lost_with_it() {
    let mut world = World::new([2, 3], 2);
    // Worker 0 sends on the session that it knows; it has not been told of its end.
    world.ack(0, 0, 1);
    let pipe = &world.pipes[0];
    let (worker, conn) = pipe.at[A];
    assert_eq!(worker, 1, "the number of B is 1");
    world.close(A, worker, conn);
    world.settle();
    world.pass_ms(200);
    assert_eq!(
        world.heard(B, 0),
        ["mapping 2", "up n0", "down n0", "up n0"]
    );
    let lost: u64 = world.sides[A]
        .workers
        .iter()
        .map(|links| links.figures().lost)
        .sum();
    assert_eq!(lost, 1);
    // A message of the old session that arrives after the new one began.
    let stale = PeerMessage::Send {
        to: NodeNo(1),
        session: Session(1),
        class: Class::Chain,
        envelope: Box::new(world.sides[A].workers[0].envelope(Body::Ack(Ack {
            slot: 0,
            since: 1,
            seq: 9,
        }))),
    };
    world.sides[A].messages.push_back((0, 1, stale));
    world.settle();
    assert!(world.heard(B, 0).is_empty());
    // A message received on the old session that reaches its worker late.
    let (there, theirs) = world.pipes[1].at[B];
    assert_eq!(there, 2);
    let credit = Credit {
        conn: theirs,
        class: Class::Chain,
        size: 1,
    };
    let late = PeerMessage::Take {
        from: NodeNo(0),
        session: Session(1),
        credit,
        envelope: Box::new(world.sides[A].workers[0].envelope(Body::Ack(Ack {
            slot: 0,
            since: 1,
            seq: 8,
        }))),
    };
    let late = (there, 0, late);
    world.sides[B].messages.push_back(late);
    world.settle();
    assert!(world.heard(B, 0).is_empty());
    world.ack(0, 0, 2);
    world.settle();
    assert_eq!(world.heard(B, 0), ["ack 2 from n0"]);
}

#[test]
fn who_is_to_be_dialled_does_not_dial() {
    let mut world = World::new([1, 1], 0);
    let conn = world.sides[A].conn();
    let hello = world.hello(B);
    let reads = [Read {
        conn,
        start: 0,
        end: hello.len(),
    }];
    world.with(A, 0, |links, now, fx| {
        links.on_opened(now, conn, info(Origin::Peer), fx);
        links.on_received(now, &hello, &reads, fx);
    });
    assert_eq!(world.reasons(A), [(11, 1)]);
    assert_eq!(
        world.heard(A, 0),
        ["mapping 2", "up n1"],
        "the session stays"
    );
}

#[test]
fn a_later_session_with_a_node_takes_the_place_of_the_earlier() {
    let mut world = World::new([1, 3], 0);
    world.now.mono_us += 1_000;
    // A has dialled again; B has not noticed yet that the first connection is closed.
    world.accepts = 2;
    let (worker, conn) = world.pipes[0].at[A];
    world.pipes[0].open[A] = false;
    world.with(A, worker, |links, now, fx| links.on_closed(now, conn, fx));
    let gone = std::mem::replace(&mut world.pipes[0].open[A], true);
    assert!(!gone);
    world.pass_ms(100);
    for worker in 0..3 {
        assert_eq!(
            world.heard(B, worker),
            ["mapping 2", "up n0", "down n0", "up n0"],
            "{worker}"
        );
    }
    assert_eq!(world.reasons(B), [(14, 1)]);
    world.ack(0, 0, 5);
    world.settle();
    assert_eq!(world.heard(B, 0), ["ack 5 from n0"]);
}

/// Where the process goes on, the next session may begin soon.
#[test]
fn a_node_whose_process_has_ended_is_unheard_at_once() {
    for (side, ended) in [(A, None), (A, Some(B)), (B, None), (B, Some(A))] {
        let mut world = World::new([1, 1], 0);
        world.pass_ms(200);
        let other = NodeNo(1 - side as u16);
        let hears = |world: &World| {
            let health = world.sides[side].workers[0].common.health.known();
            health.hears.is_some_and(|nodes| nodes.contains(&other))
        };
        assert!(hears(&world));
        world.ended = ended;
        let (worker, conn) = world.pipes[0].at[side];
        world.pipes[0].open = [false; 2];
        world.with(side, worker, |links, now, fx| {
            links.on_closed(now, conn, fx)
        });
        world.pass_ms(100);
        assert_eq!(hears(&world), ended.is_none(), "{side} {ended:?}");
        assert_eq!(world.figures(side).gone, u64::from(ended.is_some()));
        let ends = |world: &World| world.sides[side].workers[0].common.health.ended();
        let start = ended.map(|_| (other, 1));
        assert_eq!(ends(&world), start.into_iter().collect());
        // It runs again.
        world.ended = None;
        let (worker, conn) = world.pipes[0].at[1 - side];
        world.with(1 - side, worker, |links, now, fx| {
            links.on_closed(now, conn, fx)
        });
        world.pass_ms(10_000);
        assert!(hears(&world) && ends(&world).is_empty());
    }
}

#[test]
fn who_is_silent_is_given_up_and_who_talks_is_not() {
    let mut world = World::new([1, 1], 0);
    world.pass_ms(20_000);
    assert!(world.reasons(A).is_empty() && world.reasons(B).is_empty());
    assert_eq!(world.pipes.len(), 1);
    world.stalled = true;
    world.pass_ms(10_000);
    // B receives nothing from A; A receives from B all the while.
    assert_eq!(world.reasons(B)[..1], [(13, 1)]);
}

#[test]
fn a_silent_node_that_was_replaced_is_given_up_earlier() {
    for (head, is_over) in [(0, false), (1, true)] {
        let mut world = World::new([1, 1], 0);
        world.pass_ms(100);
        let chain = Chain {
            members: Members::of(&[NodeNo(head)]).expect("one"),
            ..Chain::default()
        };
        let mut later = mapping(&[1, 2]);
        later.epoch += 1;
        later.chains = Chains::of_ranges([(0..16384, chain)]).expect("all slots");
        world.with(B, 0, |links, now, fx| {
            links.on_mapping(now, Arc::new(later), fx)
        });
        world.settle();
        world.pass_ms(5_000);
        assert!(world.reasons(B).is_empty(), "one that talks stays");
        world.stalled = true;
        world.pass_ms(2_200);
        assert_eq!(
            !world.reasons(B).is_empty(),
            is_over,
            "n0 has slots: {head}"
        );
    }
}

/// The version that a side uses, and its estimate of how far the other's clock is ahead.
fn peer(world: &World, side: usize) -> (u16, Option<i64>) {
    let figures = world.figures(side);
    let [peer] = &figures.peers[..] else {
        panic!("{figures:?}");
    };
    assert_eq!(figures.by_node().len(), 1);
    (peer.version, peer.clock.map(|offset| offset.us))
}

#[test]
fn both_ends_know_how_far_their_clocks_are_apart() {
    let mut world = World::new([2, 3], 1);
    world.ahead_us[B] = 90_000_000;
    assert_eq!(peer(&world, A), (NEWEST, None));
    world.pass_ms(50);
    assert_eq!(peer(&world, A), (NEWEST, Some(90_000_000)));
    assert_eq!(peer(&world, B), (NEWEST, Some(-90_000_000)));
    // One clock is set: the other node is asked again, and the node itself knows at once.
    world.ahead_us[B] = 0;
    world.pass_ms(50);
    assert_eq!(peer(&world, B), (NEWEST, Some(0)));
    world.pass_ms(5_000);
    assert_eq!(peer(&world, A), (NEWEST, Some(0)));
    // No other worker receives it.
    for worker in 0..2 {
        assert_eq!(world.heard(A, worker), ["mapping 2", "up n1"]);
    }
    assert!(world.reasons(A).is_empty() && world.reasons(B).is_empty());
}

#[test]
fn a_node_of_the_version_before_is_not_asked_what_it_does_not_know() {
    for newest in [[1, 2], [2, 1], [1, 1]] {
        let mut world = World::of_versions([2, 1], 0, newest);
        world.pass_ms(20_000);
        for side in [A, B] {
            assert_eq!(peer(&world, side), (1, None), "{newest:?}");
            assert!(world.reasons(side).is_empty());
        }
        world.ack(1, 0, 7);
        world.settle();
        assert_eq!(world.heard(B, 0), ["mapping 2", "up n0", "ack 7 from n0"]);
        assert_eq!(world.pipes.len(), 1, "by the first session");
    }
}

/// Their sender may know another number of workers, and their receiver may be of an earlier version.
#[test]
fn writes_in_one_message_come_to_the_workers_of_their_slots() {
    let slots = [0_u16, 1, 5461, 9000, 16383];
    let write = |slot: &u16| AlikeWrite {
        slot: u32::from(*slot),
        since: 1,
        all: 0,
        seq: 7,
        before: Bytes::from_static(b"a"),
        after: Bytes::from_static(b"c"),
    };
    for newest in [[NEWEST, NEWEST], [NEWEST, ALIKE - 1], [ALIKE - 1, NEWEST]] {
        for worker in 0..2 {
            let mut world = World::of_versions([2, 3], 0, newest);
            for (count, to) in [(slots.len(), 2), (2, 0)] {
                let alike = Body::Alike(Alike {
                    common: Bytes::from_static(b"b"),
                    writes: slots.iter().take(count).map(write).collect(),
                });
                world.with(A, worker, |links, now, fx| {
                    let mut envelope = links.envelope(alike);
                    envelope.to = to;
                    links.send(now, NodeNo(1), Class::Chain, envelope, fx);
                });
                world.settle();
                let mut got = BTreeMap::new();
                for worker in 0..3 {
                    for heard in std::mem::take(&mut world.sides[B].heard[worker]) {
                        let Heard::Message(_, envelope) = heard else {
                            continue;
                        };
                        let all = match envelope.body.expect("a body") {
                            Body::Alike(alike) => alike.each().collect(),
                            Body::Items(items) => vec![items],
                            body => panic!("{body:?}"),
                        };
                        for items in all {
                            let slot = items.slot as u16;
                            assert_eq!(worker_of_slot(slot, 3).index(), worker);
                            got.insert(slot, items.items[0].effect.to_vec());
                        }
                    }
                }
                let expected = slots.iter().take(count);
                let expected = expected.map(|slot| (*slot, b"abc".to_vec())).collect();
                assert_eq!(got, expected, "{newest:?}");
            }
            assert!(world.reasons(A).is_empty() && world.reasons(B).is_empty());
        }
    }
}

#[test]
fn who_is_no_member_any_more_is_let_go() {
    let mut world = World::new([2, 2], 0);
    let mut later = mapping(&[1, 2]);
    later.epoch += 1;
    later.members.remove(&NodeNo(1));
    let later = Arc::new(later);
    for worker in 0..2 {
        let mapping = Arc::clone(&later);
        world.with(A, worker, |links, now, fx| {
            links.on_mapping(now, mapping, fx)
        });
    }
    world.settle();
    world.pass_ms(10_000);
    assert_eq!(world.reasons(A), [(12, 1)]);
    assert_eq!(
        world.heard(A, 0),
        ["mapping 2", "up n1", "mapping 3", "down n1"]
    );
    assert_eq!(world.pipes.len(), 1, "nobody dials it");
    // It does not send what was left.
    assert!(world.pipes[0].open.iter().all(|open| !open));
}
