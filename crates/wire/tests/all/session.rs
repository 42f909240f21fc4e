//! Two sessions by hand: who is let in, what is refused and why, and what goes
//! in which order.

use crate::common::{all, envelope};
use crate::end::{End, local, pair_of, raw, settle};
use rufous_wire::frame::{Frames, HEADER, MAX_FRAME};
use rufous_wire::message::*;
use rufous_wire::version::{NEWEST, OLDEST, since};
use rufous_wire::{Body, Class, Envelope, Event, Local, NotSent, Peers, Refused, Session};

fn pair() -> (End, End) {
    pair_of((1, 1), (1, 1))
}

#[test]
fn both_learn_who_the_other_is() {
    let (a, b) = pair();
    let Event::Up(peer) = &a.events[0] else {
        panic!("{:?}", a.events);
    };
    assert_eq!((peer.id, peer.incarnation), ([2; ID], 1));
    assert_eq!((peer.version, peer.epoch), (1, 300));
    assert_eq!((a.peers.len(), b.peers.len()), (1, 1));
}

/// What sessions say themselves, and nobody else may.
fn is_own(body: Option<&Body>) -> bool {
    body.is_some_and(|body| since(body) == 0)
        || matches!(body, Some(Body::Credit(_) | Body::Piece(_)))
}

/// An old node meets a new one: what there is in their version comes, whole and in any
/// pieces, and the rest is not sent.
#[test]
fn messages_of_each_kind_come_where_the_version_has_them() {
    for version in OLDEST..=NEWEST {
        for piece in [1, 7, 13, 1000] {
            let (mut a, mut b) = pair_of((OLDEST, NEWEST), (OLDEST, version));
            let mut sent = Vec::new();
            for (name, class, envelope) in all() {
                let body = envelope.body.as_ref();
                let done = a.session.send(class, &envelope);
                match body.map(since) {
                    _ if is_own(body) => {
                        assert!(matches!(done, Err(NotSent::Wrong(_))), "{name}");
                    }
                    Some(since) if since > version => {
                        assert_eq!(done, Err(NotSent::TooNew), "{name}");
                    }
                    _ => {
                        assert_eq!(done, Ok(()), "{name}");
                        sent.push(envelope);
                    }
                }
            }
            for piece in a.out().chunks(piece) {
                b.receive(piece);
            }
            let mut came = b.messages();
            assert_eq!(came.len(), sent.len());
            // Those of one class are in order; here it is enough that each is there.
            sent.retain(|envelope| {
                let at = came.iter().position(|came| *came == envelope);
                at.map(|at| came.remove(at)).is_none()
            });
            assert!(sent.is_empty() && came.is_empty());
            assert_eq!(b.refused(), None);
        }
    }
}

#[test]
fn who_does_not_belong_here_is_told_why() {
    let check = |theirs: Local, expected: Option<u8>, code: u32| {
        let (mut a, mut b) = (End::new(local(1), expected), End::new(theirs, None));
        settle(&mut a, &mut b);
        let refused = a.refused().expect("refused");
        assert_eq!(refused.code(), code, "{refused}");
        // The other side has the reason from us, unless it found one itself.
        let told = b.refused().expect("told");
        let text = refused.to_string();
        match told {
            Refused::ByPeer {
                code: said,
                text: words,
            } => {
                assert_eq!((*said, words), (code, &text));
            }
            own => assert_eq!(own.code(), code),
        }
        assert!(a.peers.is_empty() && a.messages().is_empty());
        assert!(a.session.is_closed() && b.session.is_closed());
    };
    let other = |change: fn(&mut Local)| {
        let mut other = local(2);
        change(&mut other);
        other
    };
    check(other(|o| o.cluster = "fish".to_owned()), None, 1);
    check(other(|o| (o.oldest, o.newest) = (2, 3)), None, 2);
    check(other(|o| o.id = [1; ID]), None, 3);
    check(other(|_| ()), Some(3), 6);
}

fn hello_of(incarnation: u64, start: u64) -> Vec<u8> {
    let hello = Hello {
        cluster: "birds".to_owned(),
        node: vec![2; ID],
        incarnation,
        start,
        oldest: 1,
        newest: 1,
        program: String::new(),
        nonce: Vec::new(),
    };
    raw(0, Class::Control, Body::Hello(hello))
}

#[test]
fn two_nodes_with_one_id_are_told_apart() {
    let peers = Peers::default();
    let enter = |incarnation, start| {
        let mut session = Session::new(local(1), None, 1);
        let mut events = Vec::new();
        session.receive(&hello_of(incarnation, start), &peers, &mut events);
        match events.pop() {
            Some(Event::Up(_)) => Ok(session),
            Some(Event::Closed(refused)) => Err(refused),
            event => panic!("{event:?}"),
        }
    };
    let first = enter(5, 50);
    // The same run again, while the end of the first session was not noticed.
    let again = enter(5, 50);
    assert_eq!(enter(5, 51).err(), Some(Refused::Duplicate));
    // It has started again; what is left of its earlier run comes too late.
    let newer = enter(6, 60);
    assert_eq!(enter(5, 50).err(), Some(Refused::Outdated));
    first.expect("let in").close(&peers);
    again.expect("let in").close(&peers);
    assert_eq!(peers.len(), 1);
    let mut newer = newer.expect("let in");
    newer.close(&peers);
    newer.close(&peers);
    assert!(peers.is_empty());
}

/// What one side sends after it has said who it is, and the code of the refusal.
fn refuses(bytes: &[u8], code: u32) {
    let (mut a, mut b) = pair();
    a.receive(bytes);
    let refused = a.refused().unwrap_or_else(|| panic!("code {code}"));
    assert_eq!(refused.code(), code, "{refused}");
    assert!(a.peers.is_empty());
    // Nothing that follows is heard.
    a.receive(&raw(1, Class::Control, Body::Heartbeat(Heartbeat {})));
    assert!(a.messages().is_empty());
    b.receive(&a.out());
    let told = b.refused().map(Refused::code);
    assert_eq!(told, Some(code));
}

#[test]
fn what_breaks_the_rules_is_refused() {
    let heartbeat = || raw(1, Class::Control, Body::Heartbeat(Heartbeat {}));
    // Garbage: a wrong checksum, a class, a flag, a kind that nobody knows.
    for at in [4, 8, 9, 10, 11, HEADER] {
        let mut bytes = heartbeat();
        bytes[at] ^= 0x40;
        refuses(&bytes, 8);
    }
    refuses(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 9);
    let ack = |slot| {
        Body::Ack(Ack {
            slot,
            since: 1,
            seq: 1,
        })
    };
    refuses(&raw(1, Class::Chain, ack(16384)), 8);
    // Too large, which is known before it has come.
    let len = (MAX_FRAME + 1) as u32;
    refuses(&len.to_le_bytes(), 9);
    // Misplaced: another class, another version, a second name, foreign credit.
    refuses(&raw(1, Class::Gossip, ack(1)), 11);
    refuses(&raw(2, Class::Chain, ack(1)), 11);
    refuses(&raw(0, Class::Chain, ack(1)), 11);
    refuses(&hello_of(1, 2), 11);
    let credit = Credit { class: 1, bytes: 1 };
    refuses(&raw(1, Class::Control, Body::Credit(credit)), 11);
}

#[test]
fn fields_are_counted_before_they_take_memory() {
    let (mut a, _) = pair();
    let items = vec![Item::default(); 70_000];
    let items = Items {
        slot: 1,
        since: 1,
        all: 0,
        items,
    };
    a.receive(&raw(1, Class::Chain, Body::Items(items)));
    let expected = Refused::Garbage("not a message, or too many fields");
    assert_eq!(a.refused(), Some(&expected));
}

#[test]
fn a_stranger_is_heard_little() {
    let mut a = End::new(local(1), None);
    a.receive(&1025_u32.to_le_bytes());
    assert_eq!(a.refused(), Some(&Refused::TooLarge));
    let mut a = End::new(local(1), None);
    a.receive(&raw(0, Class::Control, Body::Heartbeat(Heartbeat {})));
    assert_eq!(a.refused().map(Refused::code), Some(11));
}

#[test]
fn words_of_a_peer_do_not_break_logs() {
    let mut a = End::new(local(1), None);
    let text = "over\r\n2026 all is well \u{1b}[2J\u{e9}".to_owned();
    let refuse = Refuse { reason: 77, text };
    a.receive(&raw(0, Class::Control, Body::Refuse(refuse)));
    let text = "over??2026 all is well ?[2J?".to_owned();
    let expected = Refused::ByPeer { code: 77, text };
    assert_eq!(a.refused(), Some(&expected));
    // Who was refused does not refuse in turn: what is left is the name.
    let mut frames = Frames::default();
    frames.push(&a.out());
    assert_eq!(frames.next(MAX_FRAME), Ok(None));
}

fn gossip(size: usize) -> Envelope {
    let batch = vec![b'g'; size].into();
    envelope(Body::Gossip(Gossip { batch }))
}

fn writes(effect: &'static [u8]) -> Envelope {
    let item = Item {
        seq: 1,
        effect: effect.into(),
    };
    envelope(Body::Items(Items {
        slot: 1,
        since: 1,
        all: 0,
        items: vec![item],
    }))
}

#[test]
fn gossip_that_nobody_takes_does_not_hold_up_chains() {
    let (mut a, mut b) = pair();
    let mut queued = 0;
    while a.session.send(Class::Gossip, &gossip(MAX_CHUNK)) == Ok(()) {
        queued += 1;
        settle(&mut a, &mut b);
        assert!(queued < 100, "what waits is bounded");
    }
    // Some wait at the receiver, and some here.
    let came = b.messages().len();
    assert!(0 < came && came < queued);
    let full = a.session.send(Class::Gossip, &gossip(MAX_CHUNK));
    assert_eq!(full, Err(NotSent::Full));
    assert_eq!(a.session.send(Class::Chain, &writes(b"x")), Ok(()));
    settle(&mut a, &mut b);
    assert_eq!(b.messages().last(), Some(&&writes(b"x")));
    // The receiver goes on, and all of it comes.
    let mut at = 0;
    while at < b.events.len() {
        if let Event::Message { class, size, .. } = b.events[at] {
            b.session.take(class, size);
        }
        at += 1;
        settle(&mut a, &mut b);
    }
    assert_eq!(b.messages().len(), queued + 1);
    assert_eq!(a.session.send(Class::Gossip, &gossip(1)), Ok(()));
}

#[test]
fn who_sends_beyond_the_window_is_refused() {
    let (mut a, _) = pair();
    let Some(Body::Gossip(batch)) = gossip(MAX_CHUNK).body else {
        unreachable!();
    };
    let frame = raw(1, Class::Gossip, Body::Gossip(batch));
    for _ in 0..3 {
        assert_eq!(a.refused(), None);
        a.receive(&frame);
    }
    assert_eq!(a.refused(), Some(&Refused::Credit));
}

#[test]
fn what_a_peer_would_refuse_is_not_sent() {
    let mut a = End::new(local(1), None);
    let beat = envelope(Body::Heartbeat(Heartbeat {}));
    assert_eq!(a.session.send(Class::Control, &beat), Err(NotSent::NotUp));
    let (mut a, _) = pair();
    let wrong = |sent| matches!(sent, Err(NotSent::Wrong(_)));
    assert!(wrong(a.session.send(Class::Chain, &beat)));
    assert!(wrong(a.session.send(Class::Control, &Envelope::default())));
    let large = gossip(MAX_CHUNK + 1);
    assert!(wrong(a.session.send(Class::Gossip, &large)));
    let words = vec![0; MAX_FRAME].into();
    let mut requests = Requests {
        first: 1,
        ..Requests::default()
    };
    requests.requests = vec![Request {
        words,
        ..Request::default()
    }];
    let sent = a
        .session
        .send(Class::Request, &envelope(Body::Requests(requests)));
    assert_eq!(sent, Err(NotSent::TooLarge));
    a.session.close(&a.peers);
    assert_eq!(a.session.send(Class::Control, &beat), Err(NotSent::NotUp));
    assert!(a.out().is_empty());
}

#[test]
fn who_is_refused_by_the_owner_of_a_session_is_told_why() {
    let (mut a, mut b) = (End::new(local(1), None), End::new(local(2), None));
    let (to_b, to_a) = (a.out(), b.out());
    a.receive(&to_a);
    b.receive(&to_b);
    assert!(a.session.is_up() && b.session.is_up());
    a.session.refuse(&Refused::NoMember, &a.peers);
    assert!(a.session.is_closed() && a.peers.is_empty());
    let to_b = a.out();
    b.receive(&to_b);
    assert!(
        matches!(b.refused(), Some(Refused::ByPeer { code: 12, .. })),
        "{:?}",
        b.refused()
    );
    // It is over: nothing more is said or heard.
    a.session.refuse(&Refused::Silent, &a.peers);
    assert_eq!(a.out(), b"");
    assert_eq!(b.out(), b"", "who was refused refuses nobody");
}

/// One that does not fit into a frame, and more than the window lets go at once.
#[test]
fn what_is_long_comes_in_pieces_and_lets_others_pass() {
    let (mut a, mut b) = pair();
    let effect: Vec<u8> = (0..MAX_FRAME + 4321).map(|n| n as u8).collect();
    let long = writes(effect.leak());
    for class in [Class::Chain, Class::Learning] {
        assert_eq!(a.session.send(class, &long), Ok(()));
        assert_eq!(a.session.send(class, &writes(b"x")), Err(NotSent::Full));
    }
    let (mut out, beat) = (Vec::new(), envelope(Body::Heartbeat(Heartbeat {})));
    a.session.transmit(&mut out, 1 << 20);
    assert_eq!(a.session.send(Class::Control, &beat), Ok(()));
    a.session.transmit(&mut out, 1 << 20);
    b.receive(&out);
    assert_eq!(b.messages(), [&beat]);
    settle(&mut a, &mut b);
    assert_eq!(b.messages(), [&beat, &long, &long]);
    for class in [Class::Chain, Class::Learning] {
        assert_eq!(a.session.send(class, &writes(b"x")), Ok(()));
    }
    settle(&mut a, &mut b);
    assert_eq!(b.messages().len(), 5);
}

#[test]
fn pieces_that_make_no_message_are_refused() {
    let refuses = |frames: &[(Class, Body)], code| {
        let (mut a, _) = pair();
        for (class, body) in frames {
            a.receive(&raw(1, *class, body.clone()));
        }
        assert_eq!(a.refused().map(Refused::code), Some(code), "{frames:?}");
    };
    let piece = |bytes: &[u8], last| {
        let bytes = bytes.to_vec().into();
        Body::Piece(Piece { bytes, last })
    };
    let whole = |body: Body| prost::Message::encode_to_vec(&envelope(body));
    let beat = whole(Body::Heartbeat(Heartbeat {}));
    let nested = whole(piece(b"x", true));
    refuses(&[(Class::Chain, piece(b"nothing", true))], 8);
    refuses(&[(Class::Chain, piece(&[0; 9], true))], 8);
    refuses(&[(Class::Chain, piece(&beat, true))], 11);
    refuses(&[(Class::Chain, piece(&nested, true))], 11);
    refuses(&[(Class::Control, piece(b"x", true))], 11);
    refuses(&[(Class::Request, piece(b"x", true))], 11);
    // Something else of the class between two.
    let begun = (Class::Learning, piece(b"x", false));
    let other = writes(b"x").body.expect("a body");
    refuses(&[begun, (Class::Learning, other)], 11);
}
