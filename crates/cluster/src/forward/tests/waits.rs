//! Requests of blocking commands, which wait at node 1.

use super::*;
use rufous_wire::message::How;

/// Longer than the pause before a request is sent again.
const PAUSE_US: u64 = 100_000;

/// A request with a timeout, which is over at that time.
fn blocking(rig: &Rig, client: u32, deadline_us: Option<u64>) -> Forwarded {
    let words = format!("{client} $1\r\n9\r\n.");
    let start = words.len() - "$1\r\n9\r\n.".len();
    Forwarded {
        words: words.clone().into_bytes().into(),
        patience: Some(Patience {
            deadline_us,
            timeout: start..words.len() - 1,
        }),
        ..rig.request(client, 0, true)
    }
}

/// A client whose request is number 0 at node 1.
fn waiting(deadline_us: Option<u64>) -> Rig {
    let mut rig = Rig::new();
    for no in [ONE, TWO] {
        rig.call(|machine, _, _| machine.on_session(no, true));
    }
    ask(&mut rig, 1, deadline_us);
    rig
}

fn ask(rig: &mut Rig, client: u32, deadline_us: Option<u64>) {
    let request = blocking(rig, client, deadline_us);
    rig.call(|machine, _, _| machine.on_request(ONE, request));
    rig.turn();
    rig.sent();
}

fn waits(rig: &mut Rig, number: u64) {
    let reply = Reply {
        number,
        waits: true,
        ..Reply::default()
    };
    rig.replies(ONE, 1, vec![reply]);
}

fn gone(rig: &mut Rig, client: u32) {
    let conn = header(client, 0).conn;
    rig.call(|machine, _, _| machine.on_gone(conn));
    rig.turn();
}

fn end(rig: &mut Rig, client: u32, how: How) -> bool {
    let (conn, mut ended) = (header(client, 0).conn, false);
    rig.call(|machine, now, _| ended = machine.on_end(now, conn, how));
    rig.turn();
    ended
}

/// Requests that were not executed are sent again.
fn again(rig: &mut Rig) {
    rig.wait(PAUSE_US);
    rig.turn();
}

fn ended(rig: &mut Rig) -> Vec<(NodeNo, u64, u32)> {
    std::mem::take(&mut rig.ended)
}

#[test]
fn clients_that_wait_take_no_room_from_others() {
    let mut rig = waiting(None);
    assert_eq!(rig.machine.figures().under_way, 1);
    waits(&mut rig, 0);
    assert_eq!(rig.seen(), ["1.0 waits"]);
    for client in 2..=MAX_UNDER_WAY as u32 + 1 {
        assert!(!rig.machine.is_crowded(ONE));
        ask(&mut rig, client, None);
    }
    assert!(rig.machine.is_crowded(ONE));
    for number in 1..=MAX_UNDER_WAY as u64 {
        waits(&mut rig, number);
    }
    assert!(!rig.machine.is_crowded(ONE) && rig.machine.has_room(ONE));
    let figures = rig.machine.figures();
    assert_eq!((figures.under_way, figures.blocked), (0, 4097));
    rig.seen();
    // Replies do not come in order.
    rig.reply(ONE, 4000, "+x");
    assert_eq!(rig.seen(), ["4001.0 +x"]);
    assert_eq!(rig.machine.figures().blocked, 4096);
}

#[test]
fn only_a_request_of_a_blocking_command_may_wait() {
    let mut rig = waiting(None);
    rig.push(2, 0, true);
    rig.turn();
    waits(&mut rig, 1);
    assert_eq!(rig.seen(), ["n1 refused: a reply to what was not asked"]);
    waits(&mut rig, 7);
    assert_eq!(rig.seen(), ["n1 refused: a reply to what was not asked"]);
}

#[test]
fn a_node_is_told_of_a_client_that_is_gone_once_and_behind_its_request() {
    let mut rig = waiting(None);
    let (early, how) = (blocking(&rig, 2, None), How::TimedOut as u32);
    rig.call(|machine, _, _| machine.on_request(ONE, early));
    let conn = header(2, 0).conn;
    rig.call(|machine, _, _| machine.on_gone(conn));
    assert_eq!(ended(&mut rig), [], "its request is not sent yet");
    rig.turn();
    assert_eq!(rig.sent().len(), 1);
    assert_eq!(ended(&mut rig), [(ONE, 1, how)]);
    // The node has begun to wait before it was told.
    waits(&mut rig, 1);
    assert_eq!(rig.seen(), [""; 0]);
    waits(&mut rig, 0);
    gone(&mut rig, 1);
    assert_eq!(ended(&mut rig), [(ONE, 0, how)]);
    gone(&mut rig, 1);
    gone(&mut rig, 9);
    assert_eq!(ended(&mut rig), []);
    rig.reply(ONE, 1, "*-1");
    rig.reply(ONE, 0, "*-1");
    assert_eq!(rig.machine.figures().blocked, 0);
}

#[test]
fn what_was_not_executed_for_a_client_that_is_gone_is_not_sent_again() {
    let mut rig = waiting(None);
    ask(&mut rig, 2, None);
    waits(&mut rig, 0);
    rig.seen();
    gone(&mut rig, 1);
    rig.not_here(ONE, 0, 1);
    rig.not_here(ONE, 1, 1);
    assert_eq!(rig.seen(), ["2 held up"]);
    gone(&mut rig, 2);
    rig.wait(FORWARD_PATIENCE_US);
    rig.turn();
    assert_eq!((rig.sent(), rig.seen()), (vec![], vec![]));
    assert_eq!(rig.machine.figures().waiting, 0);
    // Nor is it in doubt: there is no client to tell.
    ask(&mut rig, 3, None);
    waits(&mut rig, 2);
    gone(&mut rig, 3);
    rig.seen();
    rig.lose(ONE);
    assert_eq!(rig.seen(), [""; 0]);
    assert_eq!(rig.machine.figures().in_doubt, 0);
}

#[test]
fn a_wait_moves_with_its_slot_and_keeps_its_time() {
    let mut rig = waiting(Some(60_000_000));
    waits(&mut rig, 0);
    rig.seen();
    // Far longer than a request that is passed on to and fro.
    rig.wait(3 * FORWARD_PATIENCE_US);
    rig.move_all(TWO);
    rig.seen();
    rig.not_here(ONE, 0, 2);
    again(&mut rig);
    let rest = 60_000 - (3 * FORWARD_PATIENCE_US + PAUSE_US) / 1000;
    let word = format!("{}.{:03}", rest / 1000, rest % 1000);
    let words = format!("n2 #0 r0 1 ${}\r\n{word}\r\n.", word.len());
    assert_eq!(rig.sent(), [words]);
    assert_eq!(rig.seen(), ["1 held up"]);
    // And to this node, when its time is nearly over.
    let reply = Reply {
        number: 0,
        waits: true,
        ..Reply::default()
    };
    rig.replies(TWO, 2, vec![reply]);
    rig.wait(60_000_000);
    rig.move_all(NodeNo(0));
    rig.seen();
    rig.not_here(TWO, 0, 3);
    again(&mut rig);
    assert_eq!(rig.seen(), ["1 held up", "1.0 runs 1 $5\r\n0.001\r\n."]);
    // What has waited here is no attempt that was in vain.
    rig.call(|machine, _, _| machine.on_waits_here(&header(1, 0)));
    rig.wait(3 * FORWARD_PATIENCE_US);
    rig.move_all(TWO);
    let back = blocking(&rig, 1, None);
    rig.call(|machine, _, _| machine.on_returned(back));
    rig.turn();
    assert_eq!(
        rig.sent(),
        ["n2 #1 r1 1 $1\r\n9\r\n."],
        "it has no deadline"
    );
}

#[test]
fn a_wait_is_not_sent_to_a_node_that_would_not_end_it() {
    let mut rig = waiting(None);
    rig.call(|machine, _, _| machine.on_session(TWO, false));
    assert!(rig.machine.may_wait_at(ONE) && !rig.machine.may_wait_at(TWO));
    waits(&mut rig, 0);
    rig.move_all(TWO);
    rig.not_here(ONE, 0, 2);
    rig.seen();
    again(&mut rig);
    assert_eq!(rig.seen(), ["1.0 fails CROSSNODE"]);
    assert_eq!(rig.sent(), [""; 0]);
}

#[test]
fn a_lost_session_leaves_a_wait_in_doubt() {
    let mut rig = waiting(None);
    waits(&mut rig, 0);
    rig.seen();
    rig.lose(ONE);
    assert_eq!(rig.seen(), ["1.0 fails UNKNOWNRESULT"]);
    assert_eq!(rig.machine.figures().blocked, 0);
    assert!(!end(&mut rig, 1, How::Unblocked), "it has ended");
}

#[test]
fn a_wait_is_ended_once_and_only_if_there_is_one() {
    let mut rig = waiting(None);
    assert!(!end(&mut rig, 1, How::Unblocked), "it may have found data");
    waits(&mut rig, 0);
    assert!(end(&mut rig, 1, How::Unblocked));
    assert!(!end(&mut rig, 1, How::TimedOut));
    assert_eq!(ended(&mut rig), [(ONE, 0, How::Unblocked as u32)]);
    // Its slot has left before the node heard of that.
    rig.seen();
    rig.not_here(ONE, 0, 1);
    assert_eq!(rig.seen(), ["1.0 fails UNBLOCKED"]);
    ask(&mut rig, 2, None);
    waits(&mut rig, 1);
    assert!(end(&mut rig, 2, How::TimedOut));
    rig.move_all(TWO);
    rig.not_here(ONE, 1, 2);
    again(&mut rig);
    // The new node has the reply of a timeout.
    assert_eq!(rig.sent(), ["n2 #0 r0 2 $5\r\n0.001\r\n."]);
}

#[test]
fn a_wait_that_is_on_its_way_to_another_node_can_be_ended() {
    for (how, seen) in [
        (How::Unblocked, vec!["1.0 fails UNBLOCKED"]),
        (How::TimedOut, vec![]),
    ] {
        let mut rig = waiting(None);
        waits(&mut rig, 0);
        rig.not_here(ONE, 0, 1);
        rig.seen();
        assert!(end(&mut rig, 1, how));
        assert_eq!(rig.seen(), seen);
        rig.move_all(TWO);
        again(&mut rig);
        assert_eq!(rig.sent().len(), 1 - seen.len());
    }
}

#[test]
fn a_node_that_stops_soon_ends_all_waits_elsewhere() {
    let mut rig = waiting(None);
    ask(&mut rig, 2, None);
    waits(&mut rig, 0);
    rig.call(|machine, _, _| machine.on_stops_soon());
    rig.turn();
    let how = How::Stops as u32;
    assert_eq!(ended(&mut rig), [(ONE, 0, how)]);
    waits(&mut rig, 1);
    for _ in 0..2 {
        rig.call(|machine, _, _| machine.on_stops_soon());
        rig.turn();
    }
    assert_eq!(ended(&mut rig), [(ONE, 1, how)], "each is told once");
}
