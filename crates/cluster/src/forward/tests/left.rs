//! Node 1 has left the chains of the keys, and may not reply.

use super::*;

const LEFT_US: u64 = 2_000_000;

/// A read is number 0 at node 1, a write number 1; both keys have moved to node 2.
fn left() -> Rig {
    let mut rig = Rig::new();
    rig.push(1, 0, false);
    rig.push(2, 0, true);
    rig.turn();
    rig.sent();
    rig.move_all(TWO);
    rig.turn();
    assert_eq!(rig.seen(), ["1 held up", "2 held up"]);
    rig
}

#[test]
fn its_requests_are_given_up_in_time_and_its_replies_are_dropped_then() {
    let mut rig = left();
    assert_eq!(rig.machine.wake_us(), Some(LEFT_US));
    rig.wait(LEFT_US - 1);
    rig.turn();
    assert_eq!((rig.sent(), rig.seen()), (vec![], vec![]));
    rig.wait(1);
    rig.turn();
    assert_eq!(rig.sent(), ["n2 #0 r0 1.0"]);
    assert_eq!(rig.seen(), ["1 held up", "2.0 fails UNKNOWNRESULT"]);
    assert_eq!(rig.machine.figures().in_doubt, 1);
    let part = Reply {
        more: true,
        ..Reply::default()
    };
    rig.replies(ONE, 1, vec![part]);
    rig.reply(ONE, 0, "+late");
    rig.not_here(ONE, 1, 2);
    assert_eq!(rig.seen(), Vec::<String>::new());
    rig.reply(TWO, 0, "+a");
    assert_eq!(rig.seen(), ["1.0 +a"]);
    // Only once.
    rig.reply(ONE, 0, "+late");
    assert_eq!(rig.seen(), ["n1 refused: a reply to what was not asked"]);
}

#[test]
fn a_reply_in_time_counts() {
    let mut rig = left();
    rig.wait(LEFT_US - 1);
    rig.reply(ONE, 1, "+done");
    rig.not_here(ONE, 0, 1);
    rig.turn();
    rig.wait(LEFT_US);
    rig.turn();
    assert_eq!(rig.sent(), ["n2 #0 r0 1.0"]);
    assert!(rig.seen().contains(&"2.0 +done".to_owned()));
}

#[test]
fn a_node_that_has_the_keys_again_has_not_left() {
    let mut rig = left();
    rig.move_all(ONE);
    rig.turn();
    rig.wait(2 * LEFT_US);
    rig.turn();
    assert_eq!((rig.sent(), rig.seen()), (vec![], vec![]));
    rig.move_all(TWO);
    rig.turn();
    rig.wait(LEFT_US - 1);
    rig.turn();
    assert_eq!(rig.sent(), Vec::<String>::new(), "the time has begun again");
}

#[test]
fn a_moved_slot_holds_up_its_connections_and_may_move_here() {
    let mut rig = Rig::new();
    rig.push(1, 0, true);
    rig.push(1, 1, true);
    rig.push(2, 0, false);
    rig.turn();
    rig.move_all(NodeNo(0));
    assert_eq!(rig.seen(), ["1 held up", "2 held up"], "each once");
    rig.not_here(ONE, 0, rig.mapping.epoch);
    assert_eq!(rig.seen(), ["1 held up"]);
    rig.wait(FORWARD_PAUSE_US * 2);
    rig.turn();
    assert_eq!(rig.seen(), ["1.0 runs 1.0"]);
    // Before it ran the slot moved on. The attempts so far still count.
    rig.move_all(TWO);
    rig.reply(ONE, 1, "+b");
    rig.reply(ONE, 2, "+c");
    let back = rig.request(1, 0, true);
    rig.call(|machine, _, _| machine.on_returned(back));
    rig.seen();
    rig.sent();
    rig.wait(FORWARD_PATIENCE_US);
    rig.turn();
    assert_eq!(rig.seen(), ["1 held up", "1.0 fails TRYAGAIN"]);
}
