//! One message of each kind, with every field in use, and random ones.

use bytes::Bytes;
use rufous_wire::message::*;
use rufous_wire::proof::{MAC, NONCE};
use rufous_wire::{Class, Envelope};

pub(crate) fn envelope(body: Body) -> Envelope {
    Envelope {
        epoch: 300,
        from: 1,
        to: 2,
        body: Some(body),
    }
}

fn items() -> Vec<Item> {
    let item = |seq, effect: &'static [u8]| Item {
        seq,
        effect: Bytes::from_static(effect),
    };
    vec![item(7, b"set a 1"), item(9, b"\x00\xff")]
}

fn mapping(workers: u32) -> Mapping {
    let member = |no: u32| Member {
        no,
        id: vec![no as u8; ID],
        incarnation: 5,
        peer: format!("10.0.0.{no}:7379"),
        plain: format!("10.0.0.{no}:6379"),
        cluster: format!("10.0.0.{no}:6380"),
        zone: "east".to_owned(),
        weight: 100,
        drains: no == 2,
        after: None,
        behind: false,
        renewed: false,
        whole: false,
        workers: if no == 1 { workers / 2 } else { workers },
    };
    let owners = |until, nodes: &[u32]| Owners {
        until,
        nodes: nodes.to_vec(),
    };
    let chain = |until, members: &[u32], learner| Chain {
        until,
        members: members.to_vec(),
        learner,
        born: 1,
        since: 299,
        lost: 0,
        acted: None,
        former: Vec::new(),
        confirms: false,
    };
    let weight = |no| Weight {
        no,
        weight: 100,
        zone: "east".to_owned(),
    };
    Mapping {
        weights: vec![weight(1), weight(3)],
        epoch: 300,
        copies: 2,
        next: 4,
        members: vec![member(1), member(2), member(3)],
        ring: vec![owners(8000, &[1, 3]), owners(16384, &[3, 1])],
        chains: vec![chain(4000, &[1, 3], Some(2)), chain(16384, &[3], None)],
    }
}

/// A slot without a copy is born again, at a node that was its only one.
fn born() -> Mapping {
    let mut mapping = mapping(8);
    if let Some(chain) = mapping.chains.last_mut() {
        (chain.born, chain.acted, chain.confirms) = (chain.since, Some(chain.since), true);
    }
    if let Some(member) = mapping.members.last_mut() {
        (member.behind, member.renewed, member.whole) = (true, true, true);
    }
    mapping
}

/// One chain continued with loss, and has changed since.
fn lossy() -> Mapping {
    let mut mapping = mapping(8);
    if let Some(chain) = mapping.chains.first_mut() {
        chain.lost = chain.since - 1;
    }
    mapping
}

/// One chain has lost a node, and the other one all of its nodes.
fn waiting() -> Mapping {
    let mut mapping = mapping(8);
    if let Some(chain) = mapping.chains.first_mut() {
        (chain.members, chain.learner) = (vec![1], None);
        (chain.acted, chain.former) = (Some(chain.since - 1), vec![3]);
    }
    if let Some(chain) = mapping.chains.last_mut() {
        chain.acted = Some(1);
    }
    if let [one, other, third] = &mut mapping.members[..] {
        (one.after, other.after, third.behind) = (Some(4), Some(0), true);
        (other.behind, other.renewed) = (true, true);
    }
    mapping
}

type Kind = (&'static str, Class, Body);

/// All kinds, by name.
pub(crate) fn all() -> Vec<(&'static str, Class, Envelope)> {
    let kinds = control().into_iter().chain(of_slots()).chain(gossip());
    let kinds = kinds
        .chain(forwarded())
        .chain(clocks())
        .chain(letters())
        .chain(proofs());
    kinds
        .map(|(name, class, body)| (name, class, envelope(body)))
        .collect()
}

fn control() -> Vec<Kind> {
    let hello = Hello {
        cluster: "birds".to_owned(),
        node: (0..ID as u8).collect(),
        incarnation: 5,
        start: 0x0123_4567_89ab_cdef,
        oldest: 1,
        newest: 1,
        program: String::new(),
        nonce: Vec::new(),
    };
    let named = Hello {
        program: "0.1.0".to_owned(),
        ..hello.clone()
    };
    let asking = Hello {
        nonce: (0..NONCE as u8).collect(),
        ..named.clone()
    };
    let refuse = Refuse {
        reason: 1,
        text: "it belongs to another cluster".to_owned(),
    };
    let (class, bytes) = (3, 524_288);
    let asked_us = 1 << 40;
    let bodies = [
        ("hello", Body::Hello(hello)),
        ("hello-program", Body::Hello(named)),
        ("hello-nonce", Body::Hello(asking)),
        ("refuse", Body::Refuse(refuse)),
        ("credit", Body::Credit(Credit { class, bytes })),
        ("heartbeat", Body::Heartbeat(Heartbeat {})),
        ("mapping", Body::Mapping(mapping(0))),
        ("mapping-workers", Body::Mapping(mapping(8))),
        ("mapping-waiting", Body::Mapping(waiting())),
        ("mapping-born", Body::Mapping(born())),
        ("mapping-lossy", Body::Mapping(lossy())),
        ("ask", Body::Ask(Ask { asked_us })),
        ("grant", Body::Grant(Grant { asked_us })),
        ("learned", Body::Learned(learned())),
        ("learned-held", Body::Learned(held())),
        ("learned-held-by", Body::Learned(held_by())),
    ];
    bodies
        .map(|(name, body)| (name, Class::Control, body))
        .into()
}

fn proofs() -> Vec<Kind> {
    let nonce = (0..NONCE as u8).collect();
    let mac = || (0..MAC as u8).rev().collect();
    let sealed = Sealed {
        hello: Bytes::from_static(b"a name"),
        mac: mac(),
    };
    vec![
        (
            "challenge",
            Class::Control,
            Body::Challenge(Challenge { nonce }),
        ),
        ("proof", Class::Control, Body::Proof(Proof { mac: mac() })),
        ("sealed", Class::Control, Body::Sealed(sealed)),
    ]
}

fn learned() -> Learned {
    let slots = |first, until, learner| LearnedSlots {
        first,
        until,
        learner,
        since: 300,
    };
    Learned {
        all: vec![slots(0, 1, 0), slots(8000, 16_384, 65_535)],
        ..Learned::default()
    }
}

fn held_by() -> Learned {
    Learned {
        epoch: 301,
        ..held()
    }
}

fn held() -> Learned {
    let slots = |first, until, whole, since, seq| HeldSlots {
        first,
        until,
        whole,
        since,
        seq,
    };
    Learned {
        all: Vec::new(),
        held: vec![
            slots(0, 1, true, 300, 1 << 40),
            slots(8000, 16_384, false, 0, 0),
        ],
        incarnation: 7,
        logs: true,
        accepts: true,
        may_lack: true,
        keeps_all: true,
        epoch: 0,
    }
}

fn alike() -> Alike {
    let write = |slot: u32, before: &'static [u8], after: &'static [u8]| AlikeWrite {
        slot,
        since: 300,
        all: 8,
        seq: 1 << 40,
        before: Bytes::from_static(before),
        after: Bytes::from_static(after),
    };
    Alike {
        common: Bytes::from_static(b"common"),
        writes: vec![write(0, b"a", b"b"), write(16_383, b"", b"c")],
    }
}

fn letters() -> Vec<Kind> {
    let letter = Letter {
        from_slot: 0,
        from_since: 0,
        to_slot: 16_384,
        to_since: 300,
        message: vec![1, 2, 3].into(),
    };
    let between = Letter {
        from_slot: 8,
        from_since: 1 << 40,
        ..letter.clone()
    };
    vec![
        ("letter", Class::Chain, Body::Letter(letter)),
        ("letter-between", Class::Chain, Body::Letter(between)),
        ("alike", Class::Chain, Body::Alike(alike())),
    ]
}

fn clocks() -> Vec<Kind> {
    let (asked_us, unix_us) = (1 << 40, 1_700_000_000_000_000);
    let ask = AskClock { asked_us };
    let clock = Clock { asked_us, unix_us };
    vec![
        ("ask-clock", Class::Control, Body::AskClock(ask)),
        ("clock", Class::Control, Body::Clock(clock)),
    ]
}

fn forwarded() -> Vec<Kind> {
    let request = |db, resp3, words: &'static [u8]| Request {
        db,
        resp3,
        quiet: !resp3,
        no_touch: resp3,
        words: Bytes::from_static(words),
    };
    let requests = |round| Requests {
        first: 70_000,
        requests: vec![
            request(0, false, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"),
            request(15, true, b"*1\r\n$4\r\nPING\r\n"),
        ],
        round,
    };
    let reply = |number, bytes: &'static [u8], more| Reply {
        number,
        bytes: Bytes::from_static(bytes),
        more,
        ..Reply::default()
    };
    let replies = Replies {
        replies: vec![
            reply(70_001, b"+PONG\r\n", false),
            reply(70_000, b"$4\r\nab", true),
            reply(70_000, b"cd\r\n", false),
        ],
    };
    let not_here = Replies {
        replies: vec![Reply {
            number: 70_000,
            not_here: true,
            ..Reply::default()
        }],
    };
    let waits = Replies {
        replies: vec![Reply {
            number: 70_001,
            waits: true,
            ..Reply::default()
        }],
    };
    let ends = [(70_001, How::TimedOut), (70_002, How::Stops)];
    let ends = ends.map(|(number, how)| EndWait {
        number,
        how: how as u32,
    });
    let ends = EndWaits { ends: ends.into() };
    vec![
        ("requests", Class::Request, Body::Requests(requests(0))),
        (
            "requests-again",
            Class::Request,
            Body::Requests(requests(300)),
        ),
        ("replies", Class::Reply, Body::Replies(replies)),
        ("replies-not-here", Class::Reply, Body::Replies(not_here)),
        ("replies-waits", Class::Reply, Body::Replies(waits)),
        ("end-waits", Class::Request, Body::EndWaits(ends)),
    ]
}

fn of_slots() -> Vec<Kind> {
    let (slot, since, all, seq) = (16383, 299, 6, 9);
    let chunk = Bytes::from_static(b"a part of a slot");
    let written = Items {
        slot,
        since,
        all,
        items: items(),
    };
    let piece = Piece {
        bytes: Bytes::from_static(b"a part of a message"),
        last: true,
    };
    let state = State {
        slot,
        since,
        seq,
        items: items(),
    };
    let copy = |part, chunk| {
        Body::Copy(Copy {
            slot,
            since,
            part,
            chunk,
        })
    };
    let copied = |parts| {
        Body::Copied(Copied {
            slot,
            since,
            parts,
            all,
            seq,
        })
    };
    let (chain, learning) = (Class::Chain, Class::Learning);
    vec![
        ("piece", chain, Body::Piece(piece)),
        ("items", chain, Body::Items(written)),
        ("ack", chain, Body::Ack(Ack { slot, since, seq })),
        ("state", chain, Body::State(state)),
        ("behind", chain, Body::Behind(Behind { slot, since })),
        ("learn", learning, Body::Learn(Learn { slot, since })),
        ("copy", learning, copy(0, chunk.clone())),
        ("copy-part", learning, copy(300, chunk)),
        ("copied", learning, copied(0)),
        ("copied-parts", learning, copied(301)),
    ]
}

fn gossip() -> Vec<Kind> {
    let batch = Bytes::from_static(b"what changed");
    let (first, hashes) = (16381, vec![1, u64::MAX, 3]);
    vec![
        ("gossip", Class::Gossip, Body::Gossip(Gossip { batch })),
        (
            "digest",
            Class::Gossip,
            Body::Digest(Digest { first, hashes }),
        ),
    ]
}
