//! One worker of node 0 of three: its requests for the others, with messages that are taken from
//! its actions and replies that are written by hand.

mod left;
mod waits;

use super::*;
use crate::way::NoWay;
use crate::way::tests::three;
use rufous_base::Now;
use rufous_base::limits::{OUTPUT_HARD_LIMIT, SLOTS};
use rufous_kernel::batch::Door;
use rufous_mapping::{Chain, Chains, Mapping, Members};
use rufous_wire::message::Reply;
use std::cell::Cell;

const ONE: NodeNo = NodeNo(1);
const TWO: NodeNo = NodeNo(2);

struct Rig {
    machine: Forwarding,
    mapping: Mapping,
    /// A slot of each node.
    slots: [u16; 3],
    /// The nodes with a session.
    up: Vec<NodeNo>,
    now: Now,
    sent: Vec<(NodeNo, Requests)>,
    seen: Vec<String>,
    /// Ends of waits that were sent: the node, the number and how.
    ended: Vec<(NodeNo, u64, u32)>,
}

fn header(client: u32, seq: u32) -> Header {
    Header {
        conn: ConnId {
            slot: client,
            generation: 1,
        },
        client: client.into(),
        seq,
        command: 0,
        db: 0,
        resp3: false,
        no_touch: false,
        quiet: false,
        door: Door::Plain,
        key: 1,
        hash: 0,
        strict_in: None,
    }
}

impl Rig {
    fn new() -> Self {
        let (mapping, slots) = three();
        Self {
            machine: Forwarding::default(),
            mapping,
            slots,
            up: vec![ONE, TWO],
            now: Now::default(),
            sent: Vec::new(),
            seen: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Calls handlers, then notes their actions.
    fn call(
        &mut self,
        handler: impl FnOnce(&mut Forwarding, Now, &Routing<'_, &dyn Fn(NodeNo) -> bool>),
    ) {
        let up = self.up.clone();
        let routing = Routing {
            mapping: Some(&self.mapping),
            own: Some(NodeNo(0)),
            reaches: &(|no| up.contains(&no)) as &dyn Fn(NodeNo) -> bool,
        };
        handler(&mut self.machine, self.now, &routing);
        while let Some(action) = self.machine.next_action() {
            let name = |header: &Header| format!("{}.{}", header.conn.slot, header.seq);
            let text = |words: &[u8]| String::from_utf8_lossy(words).into_owned();
            match action {
                Action::Send(no, requests) => self.sent.push((no, requests)),
                Action::Reply(header, out) => {
                    let reply = text(&out.to_vec());
                    self.seen.push(format!("{} {reply}", name(&header)));
                }
                Action::Fail(header, why) => {
                    let code = why.split(' ').next().unwrap_or_default();
                    self.seen.push(format!("{} fails {code}", name(&header)));
                }
                Action::Run(header, words) => {
                    self.seen
                        .push(format!("{} runs {}", name(&header), text(&words)));
                }
                Action::HoldUp(conn) => self.seen.push(format!("{} held up", conn.slot)),
                Action::Waits(header) => self.seen.push(format!("{} waits", name(&header))),
                Action::EndWaits(no, message) => {
                    let ends = message.ends.iter().map(|end| (end.number, end.how));
                    self.ended
                        .extend(ends.map(|(number, how)| (no, number, how)));
                }
                Action::Refuse(no, why) => self.seen.push(format!("{no} refused: {why}")),
            }
        }
    }

    fn request(&self, client: u32, seq: u32, writes: bool) -> Forwarded {
        Forwarded {
            header: header(client, seq),
            words: format!("{client}.{seq}").into_bytes().into(),
            goal: Goal::Slots(vec![Some(self.slots[1])]),
            writes,
            patience: None,
        }
    }

    /// A request for node 1, pushed and not yet sent.
    fn push(&mut self, client: u32, seq: u32, writes: bool) {
        let request = self.request(client, seq, writes);
        self.call(|machine, _, _| machine.on_request(ONE, request));
    }

    fn turn(&mut self) {
        self.call(|machine, now, routing| {
            machine.on_time(now);
            machine.on_step(now, routing);
            machine.on_turn_end();
        });
    }

    fn reply(&mut self, no: NodeNo, number: u64, bytes: &str) {
        let reply = Reply {
            number,
            bytes: bytes.as_bytes().to_vec().into(),
            ..Reply::default()
        };
        self.replies(no, 1, vec![reply]);
    }

    fn not_here(&mut self, no: NodeNo, number: u64, epoch: u64) {
        let reply = Reply {
            number,
            not_here: true,
            ..Reply::default()
        };
        self.replies(no, epoch, vec![reply]);
    }

    fn replies(&mut self, no: NodeNo, epoch: u64, replies: Vec<Reply>) {
        let replies = Replies { replies };
        self.call(|machine, now, routing| machine.on_replies(now, no, (epoch, replies), routing));
    }

    fn lose(&mut self, no: NodeNo) {
        self.up.retain(|up| *up != no);
        self.call(|machine, now, routing| machine.on_link_lost(now, no, routing));
    }

    fn connect(&mut self, no: NodeNo) {
        self.up.push(no);
        self.call(|machine, _, _| machine.on_link_up());
    }

    /// All slots move to one node, in the next epoch.
    fn move_all(&mut self, to: NodeNo) {
        let chain = Chain {
            members: Members::of(&[to]).expect("a chain"),
            ..Chain::default()
        };
        let all = Chains::of_ranges([(0..SLOTS as u16, chain)]);
        self.mapping.chains = all.expect("all slots");
        self.mapping.epoch += 1;
        self.call(|machine, _, routing| machine.on_mapping(routing));
    }

    fn wait(&mut self, us: u64) {
        self.now.mono_us += us;
    }

    /// What has happened since the last call.
    fn seen(&mut self) -> Vec<String> {
        std::mem::take(&mut self.seen)
    }

    /// The words of the requests sent since the last call, with their node, number and round.
    fn sent(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for (no, message) in self.sent.drain(..) {
            for (number, request) in (message.first..).zip(message.requests) {
                let words = String::from_utf8_lossy(&request.words).into_owned();
                all.push(format!("{no} #{number} r{} {words}", message.round));
            }
        }
        all
    }
}

#[test]
fn requests_of_a_turn_go_in_one_message_and_replies_find_their_requests() {
    let mut rig = Rig::new();
    rig.push(1, 0, true);
    rig.push(2, 0, false);
    rig.push(1, 1, true);
    assert!(rig.sent.is_empty());
    rig.turn();
    assert_eq!(rig.sent.len(), 1);
    assert_eq!(rig.sent(), ["n1 #0 r0 1.0", "n1 #1 r0 2.0", "n1 #2 r0 1.1"]);
    rig.reply(ONE, 1, "+b");
    rig.reply(ONE, 0, "+a");
    assert_eq!(rig.seen(), ["2.0 +b", "1.0 +a"]);
    assert_eq!(rig.machine.figures().under_way, 1);
    // Only once, and only by the node that was asked.
    rig.reply(ONE, 0, "+a");
    rig.reply(TWO, 2, "+a");
    let of_none = "a reply to what was not asked";
    assert_eq!(
        rig.seen(),
        [
            format!("n1 refused: {of_none}"),
            format!("n2 refused: {of_none}")
        ]
    );
}

#[test]
fn a_long_reply_comes_in_parts() {
    let mut rig = Rig::new();
    rig.push(1, 0, false);
    rig.turn();
    let part = |bytes: Vec<u8>, more| Reply {
        number: 0,
        more,
        bytes: bytes.into(),
        ..Reply::default()
    };
    rig.replies(
        ONE,
        1,
        vec![part(b"+a".to_vec(), true), part(b"b".to_vec(), true)],
    );
    assert!(rig.seen().is_empty());
    rig.replies(ONE, 1, vec![part(b"c".to_vec(), false)]);
    assert_eq!(rig.seen(), ["1.0 +abc"]);
    rig.push(1, 1, false);
    rig.turn();
    let mut long = part(vec![0; OUTPUT_HARD_LIMIT + 1], true);
    long.number = 1;
    rig.replies(ONE, 1, vec![long]);
    assert!(rig.seen()[0].starts_with("n1 refused"));
}

/// The value may be another one by then, of the same length.
#[test]
fn the_part_of_a_reply_that_arrived_before_the_session_ended_is_dropped() {
    let mut rig = Rig::new();
    rig.push(1, 0, false);
    rig.turn();
    let part = |number, bytes: &[u8], more| Reply {
        number,
        bytes: bytes.to_vec().into(),
        more,
        ..Reply::default()
    };
    rig.replies(ONE, 1, vec![part(0, b"first ", true)]);
    rig.lose(ONE);
    rig.connect(ONE);
    rig.turn();
    rig.seen();
    assert_eq!(rig.sent().len(), 2);
    rig.replies(ONE, 1, vec![part(1, b"sec", true), part(1, b"ond", false)]);
    assert_eq!(rig.seen(), ["1.0 second"]);
}

#[test]
fn only_a_write_that_was_sent_is_in_doubt_when_its_session_ends() {
    let mut rig = Rig::new();
    rig.push(1, 0, true);
    rig.push(2, 0, false);
    rig.turn();
    rig.push(3, 0, true);
    rig.sent.clear();
    rig.lose(ONE);
    assert_eq!(
        rig.seen(),
        ["1.0 fails UNKNOWNRESULT", "2 held up", "3 held up"]
    );
    rig.turn();
    assert!(rig.sent().is_empty(), "there is no session");
    rig.connect(ONE);
    rig.turn();
    // With new numbers: a late reply to an old one finds no request.
    assert_eq!(rig.sent(), ["n1 #3 r0 2.0", "n1 #4 r0 3.0"]);
    let figures = rig.machine.figures();
    assert_eq!(
        (figures.in_doubt, figures.retried, figures.under_way),
        (1, 2, 2)
    );
}

#[test]
fn without_a_session_a_request_is_given_up_in_time() {
    let mut rig = Rig::new();
    rig.push(1, 0, false);
    rig.push(1, 1, false);
    rig.turn();
    rig.lose(ONE);
    rig.turn();
    rig.seen();
    rig.wait(1);
    rig.turn();
    assert_eq!(rig.machine.wake_us(), Some(FORWARD_PATIENCE_US));
    rig.wait(FORWARD_PATIENCE_US - 2);
    rig.turn();
    assert!(rig.seen().is_empty());
    rig.wait(1);
    rig.turn();
    assert_eq!(
        rig.seen(),
        ["1.0 fails CLUSTERDOWN", "1.1 fails CLUSTERDOWN"]
    );
    assert_eq!(rig.machine.figures().waiting, 0);
}

#[test]
fn a_refused_request_and_those_behind_it_are_sent_again_in_order() {
    let mut rig = Rig::new();
    rig.push(1, 0, true);
    rig.push(1, 1, true);
    rig.turn();
    rig.sent();
    rig.push(2, 0, true);
    // By a mapping that this node does not have yet. What waits in the outbox goes first: it
    // belongs to the round that is over.
    let later = rig.mapping.epoch + 1;
    rig.not_here(ONE, 0, later);
    assert_eq!(rig.sent(), ["n1 #2 r0 2.0"]);
    rig.not_here(ONE, 1, later);
    rig.not_here(ONE, 2, later);
    assert_eq!(rig.seen(), ["1 held up", "1 held up", "2 held up"]);
    rig.turn();
    assert!(rig.sent().is_empty(), "not before that mapping");
    rig.move_all(TWO);
    rig.turn();
    assert_eq!(rig.sent(), ["n2 #0 r0 1.0", "n2 #1 r0 1.1", "n2 #2 r0 2.0"]);
    rig.push(3, 0, false);
    rig.turn();
    assert_eq!(rig.sent(), ["n1 #3 r1 3.0"], "a round of its own");
}

#[test]
fn a_node_that_is_behind_is_asked_again_after_longer_and_longer_pauses() {
    let mut rig = Rig::new();
    rig.push(1, 0, true);
    rig.turn();
    let mut pauses = Vec::new();
    for tries in 0.. {
        let sent = rig.sent();
        if sent.is_empty() {
            break;
        }
        assert_eq!(sent, [format!("n1 #{tries} r{tries} 1.0")]);
        rig.not_here(ONE, tries, rig.mapping.epoch);
        rig.turn();
        let pause = rig.machine.wake_us().expect("it waits") - rig.now.mono_us;
        pauses.push(pause / FORWARD_PAUSE_US);
        rig.wait(pause);
        rig.turn();
    }
    assert_eq!(pauses[..7], [2, 4, 8, 16, 32, 64, 128]);
    assert_eq!(rig.seen().last().expect("an answer"), "1.0 fails TRYAGAIN");
    assert_eq!(rig.now.mono_us, FORWARD_PATIENCE_US);
}

#[test]
fn a_key_that_moves_on_and_on_is_given_up_after_some_attempts() {
    let mut rig = Rig::new();
    rig.push(1, 0, true);
    rig.turn();
    let mut attempts = 0;
    for at in [ONE, TWO].into_iter().cycle() {
        let sent = std::mem::take(&mut rig.sent);
        let Some((no, requests)) = sent.first() else {
            break;
        };
        assert_eq!(*no, at);
        attempts += 1;
        rig.not_here(at, requests.first, rig.mapping.epoch + 1);
        rig.move_all(if at == ONE { TWO } else { ONE });
        rig.turn();
    }
    assert_eq!(attempts, FORWARD_TRIES + 1);
    assert_eq!(rig.seen().last().expect("an answer"), "1.0 fails TRYAGAIN");
    assert_eq!(rig.now.mono_us, 0, "without any pause");
}

#[test]
fn keys_of_one_request_that_are_apart_by_now_are_to_be_tried_again() {
    let mut rig = Rig::new();
    let mut request = rig.request(1, 0, false);
    request.goal = Goal::Slots(vec![Some(rig.slots[1]), Some(rig.slots[2])]);
    rig.call(|machine, _, _| machine.on_returned(request));
    rig.turn();
    assert_eq!(rig.seen(), ["1 held up", "1.0 fails TRYAGAIN"]);
    let mut about = rig.request(2, 0, false);
    about.goal = Goal::Node(TWO);
    rig.call(|machine, _, _| machine.on_request(TWO, about));
    rig.turn();
    rig.move_all(ONE);
    assert!(
        rig.seen().is_empty(),
        "about that node, whatever slots it has"
    );
    let goal = Goal::Node(NodeNo(7));
    rig.call(|_, _, routing| {
        assert_eq!(goal.way(routing), Way::None(NoWay::Away(NodeNo(7))));
    });
}

#[test]
fn a_node_with_much_in_flight_takes_no_more_until_there_is_room() {
    let mut rig = Rig::new();
    for seq in 0..MAX_UNDER_WAY as u32 {
        assert!(!rig.machine.is_crowded(ONE));
        rig.push(1, seq, true);
    }
    rig.turn();
    assert!(rig.machine.is_crowded(ONE) && !rig.machine.is_crowded(TWO));
    let answered = Cell::new(0);
    while !rig.machine.has_room(ONE) {
        rig.reply(ONE, answered.get(), "+");
        answered.set(answered.get() + 1);
    }
    assert_eq!(answered.get() as usize, MAX_UNDER_WAY / 2);
    rig.push(2, 0, false);
    let mut large = rig.request(2, 1, false);
    large.words = vec![b'x'; MAX_BYTES].into();
    rig.call(|machine, _, _| machine.on_request(TWO, large));
    assert!(rig.machine.is_crowded(TWO));
}

#[test]
fn a_node_that_stops_answers_everything() {
    let mut rig = Rig::new();
    rig.push(1, 0, true);
    rig.push(2, 0, false);
    rig.turn();
    rig.push(3, 0, true);
    rig.not_here(ONE, 1, rig.mapping.epoch);
    rig.seen();
    rig.call(|machine, _, _| machine.on_stop());
    assert_eq!(rig.seen(), ["2.0 fails CLUSTERDOWN"], "it waited");
    // A reply that is on its way is taken.
    rig.reply(ONE, 0, "done");
    assert_eq!(rig.seen(), ["1.0 done"]);
    rig.call(|machine, _, routing| {
        assert_eq!(machine.on_given_up(routing), 1);
    });
    assert_eq!(rig.seen(), ["3.0 fails UNKNOWNRESULT"]);
    rig.reply(ONE, 2, "too late");
    assert!(rig.seen().is_empty(), "the session goes on");
    rig.reply(ONE, 3, "to no request");
    assert_eq!(rig.seen(), ["n1 refused: a reply to what was not asked"]);
    rig.call(|machine, _, _| machine.on_links_stopped());
    rig.push(4, 0, false);
    rig.turn();
    rig.lose(ONE);
    assert_eq!(rig.seen(), ["4.0 fails CLUSTERDOWN"]);
    rig.turn();
    assert_eq!(
        rig.machine.figures().waiting + rig.machine.figures().under_way,
        0
    );
}
