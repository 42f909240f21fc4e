//! What a message may not say: each rule, broken once.

use bytes::Bytes;
use rufous_chain::Peer;
use rufous_mapping::NodeNo;
use rufous_wire::message::*;
use rufous_wire::{Body, Class, Envelope};

fn golden(name: &str) -> Envelope {
    let all = crate::common::all();
    let found = all.into_iter().find(|(other, ..)| *other == name);
    found.map(|(.., envelope)| envelope).expect("a kind")
}

/// Breaks a message of a kind, and expects this to be said of it.
fn check(name: &str, expected: &str, change: fn(&mut Envelope)) {
    let mut envelope = golden(name);
    assert_eq!(envelope.check(), Ok(()), "{name}");
    change(&mut envelope);
    assert_eq!(envelope.check(), Err(expected), "{name}");
}

fn golden_mapping() -> Mapping {
    match golden("mapping-workers").body {
        Some(Body::Mapping(mapping)) => mapping,
        body => panic!("{body:?}"),
    }
}

fn mapping(expected: &str, change: fn(&mut Mapping)) {
    let mut mapping = golden_mapping();
    change(&mut mapping);
    let envelope = crate::common::envelope(Body::Mapping(mapping));
    assert_eq!(envelope.check(), Err(expected));
}

#[test]
fn numbers_are_in_their_ranges() {
    check("ask", "there is no such worker", |e| e.from = 256);
    check("ask", "there is no such worker", |e| e.to = 256);
    check("ask", "a message of an unknown kind", |e| e.body = None);
    for name in ["items", "ack", "state", "behind", "learn", "copy", "copied"] {
        check(name, "there is no such slot", |e| match &mut e.body {
            Some(Body::Items(Items { slot, .. }))
            | Some(Body::Ack(Ack { slot, .. }))
            | Some(Body::State(State { slot, .. }))
            | Some(Body::Behind(Behind { slot, .. }))
            | Some(Body::Learn(Learn { slot, .. }))
            | Some(Body::Copy(Copy { slot, .. }))
            | Some(Body::Copied(Copied { slot, .. })) => *slot = 16384,
            body => panic!("{body:?}"),
        });
    }
    check("clock", "a time that cannot be", |e| {
        if let Some(Body::Clock(clock)) = &mut e.body {
            clock.unix_us = MAX_UNIX_US + 1;
        }
    });
    check("letter", "there is no such slot", |e| {
        if let Some(Body::Letter(letter)) = &mut e.body {
            letter.to_slot += 1;
        }
    });
    check("letter", "an epoch without a slot", |e| {
        if let Some(Body::Letter(letter)) = &mut e.body {
            letter.from_since = 1;
        }
    });
    check("letter", "a message without a slot", |e| {
        if let Some(Body::Letter(letter)) = &mut e.body {
            (letter.to_slot, letter.to_since) = (0, 0);
        }
    });
    check("letter", "a message of nothing", |e| {
        if let Some(Body::Letter(letter)) = &mut e.body {
            letter.message.clear();
        }
    });
    check("alike", "there is no such slot", |e| {
        if let Some(Body::Alike(alike)) = &mut e.body {
            alike.writes[1].slot += 1;
        }
    });
    check("alike", "no writes, or too many", |e| {
        if let Some(Body::Alike(alike)) = &mut e.body {
            alike.writes.clear();
        }
    });
    check("alike", "too many bytes of writes at once", |e| {
        if let Some(Body::Alike(alike)) = &mut e.body {
            alike.common = vec![0; MAX_ALIKE_BYTES / 2].into();
        }
    });
    check("digest", "hashes of too many slots", |e| {
        if let Some(Body::Digest(digest)) = &mut e.body {
            digest.hashes.push(4);
        }
    });
}

#[test]
fn sizes_are_in_their_limits() {
    check("refuse", "too long a name", |e| {
        if let Some(Body::Refuse(refuse)) = &mut e.body {
            refuse.text = "x".repeat(MAX_NAME + 1);
        }
    });
    check("hello", "too long a name", |e| {
        if let Some(Body::Hello(hello)) = &mut e.body {
            hello.cluster = "x".repeat(MAX_NAME + 1);
        }
    });
    check("hello-program", "too long a name", |e| {
        if let Some(Body::Hello(hello)) = &mut e.body {
            hello.program = "x".repeat(MAX_NAME + 1);
        }
    });
    check("hello-nonce", "a challenge of the wrong length", |e| {
        if let Some(Body::Hello(hello)) = &mut e.body {
            hello.nonce.pop();
        }
    });
    let length = "a challenge or a code of the wrong length";
    check("challenge", length, |e| {
        if let Some(Body::Challenge(challenge)) = &mut e.body {
            challenge.nonce.push(0);
        }
    });
    check("proof", length, |e| {
        if let Some(Body::Proof(proof)) = &mut e.body {
            proof.mac.pop();
        }
    });
    check("sealed", length, |e| {
        if let Some(Body::Sealed(sealed)) = &mut e.body {
            sealed.mac.pop();
        }
    });
    check("piece", "a piece of nothing", |e| {
        if let Some(Body::Piece(piece)) = &mut e.body {
            piece.bytes = Bytes::new();
        }
    });
    check("gossip", "too large a batch", |e| {
        if let Some(Body::Gossip(gossip)) = &mut e.body {
            gossip.batch = vec![0; MAX_CHUNK + 1].into();
        }
    });
    check("hello", "a node's id of the wrong length", |e| {
        if let Some(Body::Hello(hello)) = &mut e.body {
            hello.node.pop();
        }
    });
    for versions in [(0, 1), (2, 1), (1, 65536)] {
        let mut hello = golden("hello");
        if let Some(Body::Hello(hello)) = &mut hello.body {
            (hello.oldest, hello.newest) = versions;
        }
        assert_eq!(hello.check(), Err("versions that cannot be"));
    }
}

#[test]
fn writes_of_a_slot_are_in_order() {
    for name in ["items", "state"] {
        check(
            name,
            "writes of a slot that are not in order",
            |e| match &mut e.body {
                Some(Body::Items(Items { items, .. }) | Body::State(State { items, .. })) => {
                    items[1].seq = items[0].seq;
                }
                body => panic!("{body:?}"),
            },
        );
    }
}

#[test]
fn writes_in_one_message_are_bounded() {
    for (count, expected) in [
        (MAX_ITEMS, Ok(())),
        (MAX_ITEMS + 1, Err("too many writes at once")),
    ] {
        let item = |seq| Item {
            seq,
            effect: Bytes::new(),
        };
        let items = (0..count as u64).map(item).collect();
        let items = Items {
            slot: 1,
            since: 1,
            all: 0,
            items,
        };
        assert_eq!(
            crate::common::envelope(Body::Items(items)).check(),
            expected
        );
    }
}

#[test]
fn a_mapping_is_whole() {
    mapping("a member is named twice", |m| {
        m.members[0].no = m.members[1].no;
    });
    mapping("a member is twice in the ring", |m| {
        m.weights[0].no = m.weights[1].no;
    });
    mapping("a node's id of the wrong length", |m| {
        m.members[0].id.push(0);
    });
    mapping("too many owners in the ring", |m| {
        m.ring[0].nodes = vec![1; 6];
    });
    mapping("too long a chain", |m| m.chains[0].members = vec![1; 7]);
    let beyond = "a number beyond 65535";
    mapping(beyond, |m| m.members[1].weight = 65536);
    mapping(beyond, |m| m.members[1].no = 65537);
    mapping(beyond, |m| m.members[1].workers = 65537);
    mapping(beyond, |m| m.weights[0].weight = 65536);
    mapping(beyond, |m| m.next = 65536);
    mapping(beyond, |m| m.copies = 65538);
    mapping(beyond, |m| m.ring[1].until = 65536 + 16384);
    mapping(beyond, |m| m.chains[1].until = 65536 + 16384);
    mapping(beyond, |m| m.chains[0].learner = Some(65538));
    // The mapping's own rules: one of each part.
    mapping(
        "ranges of the ring are not all slots, one after the other",
        |m| {
            m.ring.truncate(1);
        },
    );
    mapping(
        "ranges of chains are not all slots, one after the other",
        |m| {
            m.chains.clear();
        },
    );
    let workers = "a member has an invalid number of workers";
    mapping(workers, |m| m.members[2].workers = 257);
    mapping("a chain continued with loss later than it exists", |m| {
        m.chains[0].lost = m.chains[0].since + 1;
    });
    mapping("a chain names a node that is no member", |m| {
        m.chains[0].learner = Some(9);
    });
}

#[test]
fn mappings_and_messages_of_chains_come_back_as_they_were() {
    let wire = golden_mapping();
    let mapping = rufous_mapping::Mapping::try_from(&wire).expect("sound");
    assert_eq!(Mapping::from(&mapping), wire);
    let bytes = rufous_wire::mapping::encode(&mapping);
    assert_eq!(rufous_wire::mapping::decode(&bytes), Ok(mapping));
    for len in 0..bytes.len() {
        assert!(rufous_wire::mapping::decode(&bytes[..len]).is_err());
    }
    // Of a program that did not say it yet.
    let Some(Body::Mapping(old)) = golden("mapping").body else {
        panic!("a mapping");
    };
    let old = rufous_mapping::Mapping::try_from(&old).expect("sound");
    assert!(old.members.values().all(|member| member.workers == 1));
    for name in ["mapping-waiting", "mapping-born", "mapping-lossy"] {
        let Some(Body::Mapping(wire)) = golden(name).body else {
            panic!("a mapping");
        };
        let mapping = rufous_mapping::Mapping::try_from(&wire).expect("sound");
        assert_eq!(Mapping::from(&mapping), wire, "{name}");
    }
    let mut of_chains = 0;
    for (name, class, envelope) in crate::common::all() {
        let (node, worker) = (NodeNo(5), envelope.from as u16);
        if let Some((peer, said)) = envelope.clone().into_chain(node) {
            assert_eq!(peer, Peer { node, worker });
            let to = Peer { node, worker: 2 };
            assert_eq!(Envelope::of_chain(worker, to, said), envelope, "{name}");
        }
        let body = envelope.body.expect("a body");
        match rufous_chain::Message::try_from(body.clone()) {
            Ok(message) => {
                of_chains += 1;
                assert_eq!(Body::from(message), body, "{name}");
            }
            Err(given_back) => {
                assert_eq!(given_back, body);
                let is_piece = matches!(body, Body::Piece(_) | Body::Letter(_) | Body::Alike(_));
                let is_of_chains = matches!(class, Class::Chain | Class::Learning);
                assert!(!is_of_chains || is_piece, "{name}");
            }
        }
    }
    assert_eq!(of_chains, 11);
}

#[test]
fn what_a_node_says_of_itself_comes_back_and_is_checked() {
    let mapping = rufous_mapping::Mapping::try_from(&golden_mapping()).expect("sound");
    let (_, member) = mapping.members.first_key_value().expect("a member");
    let bytes = rufous_wire::mapping::encode_member(member);
    assert_eq!(
        rufous_wire::mapping::decode_member(&bytes).as_ref(),
        Ok(member)
    );
    let mut wrong = member.clone();
    wrong.weight = 0;
    let bytes = rufous_wire::mapping::encode_member(&wrong);
    assert!(rufous_wire::mapping::decode_member(&bytes).is_err());
    wrong = member.clone();
    wrong.peer = "p".repeat(257);
    let bytes = rufous_wire::mapping::encode_member(&wrong);
    assert!(rufous_wire::mapping::decode_member(&bytes).is_err());
    assert!(rufous_wire::mapping::decode_member(&[0xff; 9]).is_err());
}

#[test]
fn requests_and_replies_are_bounded_and_in_order() {
    let request = Request {
        words: vec![b'x'].into(),
        ..Request::default()
    };
    let requests = |count: usize, change: fn(&mut Requests)| {
        let mut requests = Requests {
            first: 1,
            requests: vec![request.clone(); count],
            round: 0,
        };
        change(&mut requests);
        crate::common::envelope(Body::Requests(requests)).check()
    };
    assert_eq!(requests(1, |_| {}), Ok(()));
    assert_eq!(requests(MAX_REQUESTS, |_| {}), Ok(()));
    let few = Err("no requests, or too many");
    assert_eq!(requests(0, |_| {}), few);
    assert_eq!(requests(MAX_REQUESTS + 1, |_| {}), few);
    let wordless = requests(2, |r| r.requests[1].words.clear());
    assert_eq!(wordless, Err("a request without words"));
    let nowhere = requests(2, |r| r.requests[1].db = 16);
    assert_eq!(nowhere, Err("no such database"));
    let last = requests(2, |r| r.first = u64::MAX - 1);
    assert_eq!(last, Err("requests without numbers"));
    let replies = |parts: &[(u64, bool)]| {
        let reply = |(number, more): &(u64, bool)| Reply {
            number: *number,
            more: *more,
            ..Reply::default()
        };
        let replies = parts.iter().map(reply).collect();
        crate::common::envelope(Body::Replies(Replies { replies })).check()
    };
    assert_eq!(replies(&[(1, false), (2, true), (2, true)]), Ok(()));
    let within = Err("a reply within another one");
    assert_eq!(replies(&[(1, true), (2, false)]), within);
    assert_eq!(replies(&[]), Err("no replies, or too many"));
    let many = vec![(1, false); MAX_REQUESTS + 1];
    assert_eq!(replies(&many), Err("no replies, or too many"));
    let not_here = |bytes: &'static [u8], more| {
        let reply = Reply {
            number: 1,
            bytes: Bytes::from_static(bytes),
            more,
            not_here: true,
            ..Reply::default()
        };
        let replies = vec![reply];
        crate::common::envelope(Body::Replies(Replies { replies })).check()
    };
    assert_eq!(not_here(b"", false), Ok(()));
    let done = Err("a reply to what was not done");
    assert_eq!(not_here(b"+OK\r\n", false), done);
    assert_eq!(not_here(b"", true), done);
}

#[test]
fn a_request_that_waits_has_no_reply_yet_and_ends_in_a_known_way() {
    let waits = |change: fn(&mut Reply)| {
        let mut reply = Reply {
            number: 1,
            waits: true,
            ..Reply::default()
        };
        change(&mut reply);
        let replies = vec![reply];
        crate::common::envelope(Body::Replies(Replies { replies })).check()
    };
    assert_eq!(waits(|_| {}), Ok(()));
    let early = Err("a reply to what still waits");
    assert_eq!(waits(|r| r.bytes = Bytes::from_static(b"+OK\r\n")), early);
    assert_eq!(waits(|r| r.more = true), early);
    assert_eq!(waits(|r| r.not_here = true), early);
    let ends = |count: usize, how| {
        let ends = vec![EndWait { number: 1, how }; count];
        crate::common::envelope(Body::EndWaits(EndWaits { ends })).check()
    };
    for how in [How::TimedOut, How::Unblocked, How::Stops] {
        assert_eq!(ends(MAX_REQUESTS, how as u32), Ok(()));
        assert_eq!(How::from_number(how as u32), Some(how));
    }
    let few = Err("no ends, or too many");
    assert_eq!([ends(0, 0), ends(MAX_REQUESTS + 1, 0)], [few; 2]);
    assert_eq!(ends(2, 3), Err("an end of an unknown kind"));
}
