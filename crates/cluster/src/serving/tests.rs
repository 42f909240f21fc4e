//! One worker of a node: requests of two other nodes, replies that are written by hand, and gates
//! that pass when a test says so.

use super::lines::MADE_IN_TURN;
use super::*;
use rufous_wire::message::{EndWait, EndWaits, MAX_CHUNK, Reply};

const ONE: NodeNo = NodeNo(1);
const TWO: NodeNo = NodeNo(2);

#[derive(Default)]
struct Rig {
    machine: Serving,
    taken: Vec<(Asker, Request)>,
    refused: Vec<(NodeNo, &'static str)>,
    ended: Vec<(ConnId, How)>,
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self::default();
        rig.machine.on_session(ONE);
        rig.machine.on_session(TWO);
        rig
    }

    /// Requests `first..` of a worker there, of one round.
    fn requests(&mut self, no: NodeNo, worker: u32, (first, count): (u64, usize), round: u64) {
        let requests = Requests {
            first,
            requests: vec![Request::default(); count],
            round,
        };
        self.machine.on_requests(no, worker, requests);
        self.actions();
    }

    fn actions(&mut self) {
        while let Some(action) = self.machine.next_action() {
            match action {
                Action::Take(asker, request) => self.taken.push((asker, request)),
                Action::EndWait(conn, how) => self.ended.push((conn, how)),
                Action::Refuse(no, why) => self.refused.push((no, why)),
            }
        }
    }

    /// The oldest request that was taken.
    fn take(&mut self) -> Asker {
        self.taken.remove(0).0
    }

    fn reply(&mut self, asker: &Asker, bytes: &[u8]) {
        self.reply_until(Until::Passed, asker, bytes);
    }

    fn reply_until(&mut self, until: Until, asker: &Asker, bytes: &[u8]) {
        self.machine.on_reply(asker, output(bytes), until);
    }

    /// The next message for a node: the worker there, and each reply as number and text.
    fn sent(&mut self, no: NodeNo, passed: u64) -> Option<(u32, Vec<String>)> {
        self.sent_at(no, (passed, passed))
    }

    /// Likewise, where the log may have more than is committed.
    fn sent_at(&mut self, no: NodeNo, at: (u64, u64)) -> Option<(u32, Vec<String>)> {
        let (to, replies) = self.machine.next_replies(no, at)?;
        let text = |reply: Reply| {
            let text = String::from_utf8_lossy(&reply.bytes);
            let text = match (reply.not_here, reply.waits) {
                (true, _) => "not here",
                (_, true) => "waits",
                _ => &text,
            };
            format!("{} {text}", reply.number)
        };
        Some((to, replies.replies.into_iter().map(text).collect()))
    }
}

fn output(bytes: &[u8]) -> Output {
    let mut out = Output::default();
    out.bytes.extend_from_slice(bytes);
    out
}

#[test]
fn a_reply_that_needs_the_log_alone_does_not_wait_for_copies() {
    let mut rig = Rig::new();
    rig.requests(ONE, 3, (7, 2), 0);
    let (first, second) = (rig.take(), rig.take());
    assert!(rig.machine.on_routed(&first, true) && rig.machine.on_routed(&second, true));
    rig.reply_until(Until::Logged, &first, b"a");
    rig.reply_until(Until::Passed, &second, b"b");
    rig.machine.on_turn_end(5);
    assert_eq!(rig.sent_at(ONE, (2, 4)), None, "it is not in the log");
    let first = rig.sent_at(ONE, (2, 5));
    assert_eq!(first, Some((3, vec!["7 a".to_owned()])));
    assert_eq!(rig.sent_at(ONE, (2, 5)), None);
    assert_eq!(rig.sent_at(ONE, (5, 5)), Some((3, vec!["8 b".to_owned()])));
}

#[test]
fn a_reply_that_waits_keeps_none_that_waits_for_less() {
    let mut rig = Rig::new();
    rig.requests(ONE, 3, (7, 4), 0);
    let all = [rig.take(), rig.take(), rig.take(), rig.take()];
    assert!(all.iter().all(|asker| rig.machine.on_routed(asker, true)));
    rig.reply_until(Until::Passed, &all[0], b"a");
    rig.reply_until(Until::Logged, &all[1], b"b");
    rig.machine.on_turn_end(5);
    // The slot of one has moved, and the outcome of another is not known: neither tells of data.
    rig.machine.on_moved(&all[2]);
    rig.machine.on_lost(&all[3], output(b"c"));
    let told = Some((3, vec!["9 not here".to_owned(), "10 c".to_owned()]));
    assert_eq!(rig.sent_at(ONE, (0, 0)), told);
    assert_eq!(rig.sent_at(ONE, (0, 4)), None);
    let told = Some((3, vec!["8 b".to_owned()]));
    assert_eq!(rig.sent_at(ONE, (0, 5)), told);
    assert_eq!(rig.sent_at(ONE, (4, 5)), None);
    let told = Some((3, vec!["7 a".to_owned()]));
    assert_eq!(rig.sent_at(ONE, (5, 5)), told);
}

#[test]
fn replies_wait_for_the_gate_of_their_turn() {
    let mut rig = Rig::new();
    rig.requests(ONE, 3, (7, 2), 0);
    let (first, second) = (rig.take(), rig.take());
    assert!(rig.machine.on_routed(&first, true) && rig.machine.on_routed(&second, true));
    rig.reply(&first, b"a");
    assert_eq!(rig.sent(ONE, u64::MAX), None, "its turn is not over");
    rig.machine.on_turn_end(5);
    rig.reply(&second, b"b");
    rig.machine.on_turn_end(6);
    assert_eq!(rig.sent(ONE, 4), None);
    assert_eq!(rig.sent(ONE, 5), Some((3, vec!["7 a".into()])));
    assert_eq!(rig.sent(ONE, 6), Some((3, vec!["8 b".into()])));
    assert_eq!(rig.machine.nodes(), []);
    assert_eq!(rig.machine.counts(), (2, 0));
}

/// The sender sends them again in their order: none may run before the refused one.
#[test]
fn requests_behind_a_refused_one_are_refused_until_the_next_round() {
    let mut rig = Rig::new();
    rig.requests(ONE, 0, (1, 2), 0);
    rig.requests(ONE, 1, (1, 1), 0);
    rig.requests(ONE, 0, (3, 1), 1);
    let all: Vec<_> = (0..4).map(|_| rig.take()).collect();
    assert!(!rig.machine.on_routed(&all[0], false));
    assert!(!rig.machine.on_routed(&all[1], true), "of the same round");
    assert!(rig.machine.on_routed(&all[2], true), "of another worker");
    assert!(rig.machine.on_routed(&all[3], true), "of the next round");
    rig.machine.on_turn_end(0);
    let refused = vec!["1 not here".into(), "2 not here".into()];
    assert_eq!(rig.sent(ONE, 0), Some((0, refused)));
    assert_eq!(rig.machine.counts(), (2, 2));
}

#[test]
fn a_slot_that_moved_after_the_check_refuses_the_requests_behind() {
    let mut rig = Rig::new();
    rig.requests(ONE, 0, (1, 2), 4);
    let (first, second) = (rig.take(), rig.take());
    assert!(rig.machine.on_routed(&first, true));
    rig.machine.on_moved(&first);
    assert!(!rig.machine.on_routed(&second, true));
    rig.machine.on_turn_end(0);
    let refused = vec!["1 not here".into(), "2 not here".into()];
    assert_eq!(rig.sent(ONE, 0), Some((0, refused)));
}

#[test]
fn the_end_of_a_session_drops_everything_of_it() {
    let mut rig = Rig::new();
    rig.requests(ONE, 0, (1, 4), 0);
    rig.requests(TWO, 0, (1, 1), 0);
    let all: Vec<_> = rig.taken.drain(..).collect();
    assert!(rig.machine.on_routed(&all[0].0, true));
    rig.reply(&all[0].0, b"a");
    rig.machine.on_paused(all[1].0, Request::default());
    rig.machine.on_session(ONE);
    // These were still running.
    rig.reply(&all[2].0, b"c");
    rig.machine.on_moved(&all[3].0);
    rig.reply(&all[4].0, b"of another node");
    rig.machine.on_unpaused();
    rig.machine.on_turn_end(0);
    rig.actions();
    assert!(rig.taken.is_empty() && !rig.machine.is_held());
    assert_eq!(rig.sent(ONE, 0), None);
    assert_eq!(
        rig.sent(TWO, 0),
        Some((0, vec!["1 of another node".into()]))
    );
    // A request of the new session runs, whatever became of the old ones.
    rig.requests(ONE, 0, (9, 1), 0);
    let asker = rig.take();
    assert!(rig.machine.on_routed(&asker, true));
}

#[test]
fn requests_before_a_session_are_dropped() {
    let mut rig = Rig::new();
    rig.requests(NodeNo(3), 0, (1, 1), 0);
    assert!(rig.taken.is_empty() && rig.refused.is_empty());
}

#[test]
fn requests_of_a_pause_are_taken_in_order_when_it_ends() {
    let mut rig = Rig::new();
    rig.requests(ONE, 0, (1, 1), 0);
    rig.requests(TWO, 0, (1, 1), 0);
    for (asker, request) in std::mem::take(&mut rig.taken) {
        rig.machine.on_paused(asker, request);
    }
    assert!(rig.machine.is_held());
    rig.machine.on_unpaused();
    rig.actions();
    assert!(!rig.machine.is_held());
    let nodes: Vec<_> = rig.taken.iter().map(|(asker, _)| asker.no).collect();
    assert_eq!(nodes, [ONE, TWO]);
}

#[test]
fn a_worker_with_too_many_requests_loses_its_session() {
    let mut rig = Rig::new();
    rig.requests(ONE, 0, (1, MAX_OF_WORKER), 0);
    rig.requests(ONE, 1, (1, 1), 0);
    assert_eq!(rig.refused, []);
    // A reply that was sent makes room for one.
    let asker = rig.take();
    rig.reply(&asker, b"a");
    rig.machine.on_turn_end(0);
    assert!(rig.sent(ONE, 0).is_some());
    rig.requests(ONE, 0, (1, 1), 0);
    assert_eq!(rig.refused, []);
    rig.requests(ONE, 0, (1, 1), 0);
    assert_eq!(rig.refused, [(ONE, TOO_MANY)]);
}

#[test]
fn nothing_behind_a_malformed_request_is_taken() {
    let mut rig = Rig::new();
    let requests = Requests {
        first: 1,
        requests: vec![Request::default(); 3],
        round: 0,
    };
    rig.machine.on_requests(ONE, 0, requests);
    let Some(Action::Take(asker, _)) = rig.machine.next_action() else {
        panic!("a request to take");
    };
    rig.machine.on_malformed(&asker);
    rig.actions();
    assert!(rig.taken.is_empty());
    assert_eq!(rig.refused, [(ONE, MALFORMED)]);
}

#[test]
fn lost_replies_end_the_sessions_that_wait_for_them() {
    let mut rig = Rig::new();
    rig.requests(TWO, 0, (1, 1), 0);
    let asker = rig.take();
    rig.reply(&asker, b"a");
    rig.machine.on_replies_lost();
    rig.actions();
    assert_eq!(rig.refused.len(), 1);
    assert_eq!(rig.refused[0].0, TWO);
}

#[test]
fn a_session_with_refusals_alone_goes_on_where_replies_are_lost() {
    let mut rig = Rig::new();
    rig.requests(ONE, 0, (1, 1), 0);
    let asker = rig.take();
    assert!(rig.machine.on_routed(&asker, true));
    rig.machine.on_moved(&asker);
    rig.machine.on_replies_lost();
    rig.actions();
    assert_eq!(rig.refused, []);
    let told = Some((0, vec!["1 not here".to_owned()]));
    assert_eq!(rig.sent_at(ONE, (0, 0)), told);
}

#[test]
fn a_long_reply_goes_in_parts() {
    let mut rig = Rig::new();
    rig.requests(ONE, 0, (1, 2), 0);
    let (first, second) = (rig.take(), rig.take());
    rig.reply(&first, &vec![b'x'; MAX_CHUNK + 1]);
    rig.reply(&second, b"b");
    rig.machine.on_turn_end(0);
    let (_, message) = rig.machine.next_replies(ONE, (0, 0)).expect("a part");
    let [part] = &message.replies[..] else {
        panic!("one part");
    };
    assert!(part.more && part.bytes.len() == MAX_CHUNK);
    let rest = vec!["1 x".into(), "2 b".into()];
    assert_eq!(rig.sent(ONE, 0), Some((0, rest)));
}

/// So many bytes, made while they are sent.
#[derive(Clone, Debug)]
struct Dots(usize);

impl rufous_base::Source for Dots {
    fn write(&mut self, room: usize, out: &mut Vec<u8>) -> bool {
        let count = self.0.min(room);
        out.resize(out.len() + count, b'.');
        self.0 -= count;
        self.0 > 0
    }

    fn remaining(&self) -> u64 {
        self.0 as u64
    }

    fn held(&self) -> usize {
        0
    }

    fn copy(&self) -> Box<dyn rufous_base::Source> {
        Box::new(self.clone())
    }
}

#[test]
fn a_reply_that_is_made_while_it_is_sent_takes_a_part_of_each_turn() {
    let mut rig = Rig::new();
    rig.requests(ONE, 0, (1, 3), 0);
    for made in [3 * MADE_IN_TURN, 2] {
        let asker = rig.take();
        assert!(rig.machine.on_routed(&asker, true));
        let mut out = Output::default();
        out.bytes.extend_from_slice(b"*1");
        out.make(Box::new(Dots(made)));
        out.bytes.extend_from_slice(b"ok");
        rig.machine.on_reply(&asker, out, Until::Passed);
    }
    let asker = rig.take();
    assert!(rig.machine.on_routed(&asker, true));
    rig.reply(&asker, b"c");
    let (mut parts, mut turns) = (Vec::new(), 0);
    while !rig.machine.nodes().is_empty() {
        rig.machine.on_turn_end(0);
        let mut made = 0;
        while let Some((_, replies)) = rig.machine.next_replies(ONE, (0, 0)) {
            made += replies.replies.iter().map(|r| r.bytes.len()).sum::<usize>();
            parts.extend(replies.replies);
        }
        assert!(made <= MADE_IN_TURN + 10, "{made} in a turn");
        assert!(rig.machine.nodes().is_empty() || rig.machine.goes_on(ONE));
        turns += 1;
    }
    assert_eq!(turns, 5);
    let whole = |number: u64| {
        let of_it = parts.iter().filter(|part| part.number == number);
        assert_eq!(of_it.clone().filter(|part| !part.more).count(), 1);
        of_it.map(|part| part.bytes.len()).sum::<usize>()
    };
    assert_eq!([1, 2, 3].map(whole), [3 * MADE_IN_TURN + 4, 2 + 4, 1]);
}

fn conn(slot: u32) -> ConnId {
    ConnId {
        slot,
        generation: 1,
    }
}

fn end(rig: &mut Rig, worker: u32, number: u64, how: How) {
    let how = how as u32;
    let ends = vec![EndWait { number, how }];
    rig.machine.on_end_waits(ONE, worker, EndWaits { ends });
    rig.actions();
}

/// A request of a blocking command of that worker runs, with that connection id.
fn blocking(rig: &mut Rig, worker: u32, number: u64) -> Asker {
    rig.requests(ONE, worker, (number, 1), 0);
    let asker = rig.take();
    assert!(rig.machine.on_routed(&asker, true));
    rig.machine.on_blocking(&asker, conn(number as u32));
    asker
}

#[test]
fn a_wait_is_reported_before_its_reply_and_takes_no_room() {
    let mut rig = Rig::new();
    for number in 0..2 * MAX_OF_WORKER as u64 {
        let asker = blocking(&mut rig, 3, number);
        assert_eq!(rig.machine.on_waits(&asker), None);
        rig.machine.on_turn_end(number);
        let reported = vec![format!("{number} waits")];
        assert_eq!(rig.sent(ONE, number), Some((3, reported)));
        if number == 7 {
            rig.reply(&asker, b"*2");
            rig.machine.on_turn_end(number);
            assert_eq!(rig.sent(ONE, number), Some((3, vec!["7 *2".into()])));
        }
    }
    assert_eq!(rig.refused, [], "others may be pending");
    assert_eq!(rig.machine.waits(), 2 * MAX_OF_WORKER - 1);
    rig.requests(ONE, 3, (90_000, MAX_OF_WORKER), 0);
    assert_eq!(rig.refused, [], "and the reply has given up no place twice");
    rig.requests(ONE, 3, (99_999, 1), 0);
    assert_eq!(rig.refused, [(ONE, TOO_MANY)]);
}

#[test]
fn no_more_wait_than_this_node_has_room_for() {
    let mut rig = Rig::new();
    for number in 0..waits::MAX_WAITS as u64 {
        let asker = blocking(&mut rig, 0, number);
        assert_eq!(rig.machine.on_waits(&asker), None);
        rig.machine.on_turn_end(0);
        rig.sent(ONE, 0);
    }
    let late = blocking(&mut rig, 0, 100_000);
    assert_eq!(rig.machine.on_waits(&late), Some(MayNot::TooMany));
    let other = blocking(&mut rig, 1, 100_000);
    assert_eq!(rig.machine.on_waits(&other), None);
}

#[test]
fn a_wait_is_ended_by_its_node_and_by_the_end_of_its_session() {
    let mut rig = Rig::new();
    let all: Vec<_> = (1..=4)
        .map(|number| blocking(&mut rig, 2, number))
        .collect();
    end(&mut rig, 2, 1, How::Stops);
    assert_eq!(rig.ended, [], "it does not wait yet");
    let ended = Some(MayNot::Ended(How::Stops));
    assert_eq!(rig.machine.on_waits(&all[0]), ended);
    for asker in &all[1..3] {
        assert_eq!(rig.machine.on_waits(asker), None);
    }
    // Of another worker, and of a request that was answered.
    end(&mut rig, 1, 2, How::TimedOut);
    end(&mut rig, 2, 9, How::TimedOut);
    assert_eq!(rig.ended, []);
    end(&mut rig, 2, 2, How::Unblocked);
    assert_eq!(rig.ended, [(conn(2), How::Unblocked)]);
    rig.reply(&all[1], b"-UNBLOCKED");
    end(&mut rig, 2, 2, How::Unblocked);
    assert_eq!(rig.ended.len(), 1, "it is answered");
    rig.machine.on_session(ONE);
    rig.actions();
    assert_eq!(rig.ended[1..], [(conn(3), How::TimedOut)]);
    assert_eq!(rig.machine.waits(), 0);
    // It runs still, for a node that does not hear of it.
    let ended = Some(MayNot::Ended(How::TimedOut));
    assert_eq!(rig.machine.on_waits(&all[3]), ended);
    rig.reply(&all[2], b"*-1");
    rig.machine.on_turn_end(0);
    assert_eq!(rig.sent(ONE, 0), None);
}

#[test]
fn a_wait_that_was_ended_while_clients_are_paused_does_not_run() {
    let mut rig = Rig::new();
    rig.requests(ONE, 0, (1, 2), 0);
    for _ in 0..2 {
        let (asker, request) = rig.taken.remove(0);
        rig.machine.on_paused(asker, request);
    }
    end(&mut rig, 0, 1, How::TimedOut);
    rig.machine.on_unpaused();
    rig.actions();
    assert_eq!(rig.taken.len(), 1);
    let asker = rig.take();
    assert!(rig.machine.on_routed(&asker, true), "no other is refused");
    rig.machine.on_turn_end(0);
    assert_eq!(rig.sent(ONE, 0), Some((0, vec!["1 not here".into()])));
}

#[test]
fn a_wait_whose_slot_has_moved_was_not_executed() {
    let mut rig = Rig::new();
    let asker = blocking(&mut rig, 0, 1);
    assert_eq!(rig.machine.on_waits(&asker), None);
    rig.machine.on_moved(&asker);
    rig.machine.on_turn_end(0);
    let sent = vec!["1 waits".into(), "1 not here".into()];
    assert_eq!(rig.sent(ONE, 0), Some((0, sent)));
    assert_eq!((rig.machine.waits(), rig.machine.nodes()), (0, vec![]));
}
