//! Random messages come as they were sent; random bytes do no harm.

use bytes::Bytes;
use proptest::prelude::*;
use rufous_wire::frame::{self, Frames, MAX_FRAME};
use rufous_wire::message::*;
use rufous_wire::version::{NEWEST, OLDEST};
use rufous_wire::{Body, Class, Envelope, Local, Peers, Session};

fn data() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    prop::collection::btree_map(any::<u64>(), data(), 0..8).prop_map(|items| {
        let item = |(seq, effect)| Item { seq, effect };
        items.into_iter().map(item).collect()
    })
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let words = prop::collection::vec(any::<u8>(), 1..200);
    let request = (
        0..16_u32,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        words,
    );
    let request = request.prop_map(|(db, resp3, quiet, no_touch, words)| Request {
        db,
        resp3,
        quiet,
        no_touch,
        words: words.into(),
    });
    prop::collection::vec(request, 1..8)
}

fn body() -> impl Strategy<Value = (Class, Body)> {
    let slot = || 0..16384_u32;
    prop_oneof![
        any::<u64>().prop_map(|asked_us| (Class::Control, Body::Ask(Ask { asked_us }))),
        (any::<u64>(), 0..=MAX_UNIX_US).prop_map(|(asked_us, unix_us)| {
            (Class::Control, Body::Clock(Clock { asked_us, unix_us }))
        }),
        (slot(), any::<u64>(), any::<u64>(), items()).prop_map(|(slot, since, all, items)| {
            let items = Items {
                slot,
                since,
                all,
                items,
            };
            (Class::Chain, Body::Items(items))
        }),
        (slot(), any::<u64>(), any::<u64>(), data()).prop_map(|(slot, since, part, chunk)| {
            let copy = Copy {
                slot,
                since,
                part,
                chunk,
            };
            (Class::Learning, Body::Copy(copy))
        }),
        (0..1000_u64, requests(), 0..9_u64).prop_map(|(first, requests, round)| {
            let requests = Requests {
                first,
                requests,
                round,
            };
            (Class::Request, Body::Requests(requests))
        }),
        prop::collection::vec((any::<u64>(), data()), 1..8).prop_map(|replies| {
            let reply = |(number, bytes)| Reply {
                number,
                bytes,
                ..Reply::default()
            };
            let replies = replies.into_iter().map(reply).collect();
            (Class::Reply, Body::Replies(Replies { replies }))
        }),
        data().prop_map(|batch| (Class::Gossip, Body::Gossip(Gossip { batch }))),
        prop::collection::vec(any::<u64>(), 0..50).prop_map(|hashes| {
            let digest = Digest { first: 9, hashes };
            (Class::Gossip, Body::Digest(digest))
        }),
    ]
}

fn message() -> impl Strategy<Value = (Class, Envelope)> {
    let worker = || 0..256_u32;
    (body(), any::<u64>(), worker(), worker()).prop_map(|((class, body), epoch, from, to)| {
        let body = Some(body);
        let envelope = Envelope {
            epoch,
            from,
            to,
            body,
        };
        (class, envelope)
    })
}

proptest! {
    #[test]
    fn messages_come_as_they_were_sent(
        messages in prop::collection::vec(message(), 1..6),
        piece in 1_usize..64,
    ) {
        let mut bytes = Vec::new();
        for (class, envelope) in &messages {
            prop_assert_eq!(envelope.check(), Ok(()));
            frame::encode(7, *class, envelope, &mut bytes).expect("small");
        }
        let mut frames = Frames::default();
        let mut came = Vec::new();
        for piece in bytes.chunks(piece) {
            frames.push(piece);
            while let Some(frame) = frames.next(MAX_FRAME).expect("good") {
                prop_assert_eq!(frame.version, 7);
                came.push((frame.class, frame.envelope));
            }
        }
        prop_assert_eq!(frames.pending(), 0);
        prop_assert_eq!(came, messages);
    }

    #[test]
    fn a_changed_byte_is_noticed(
        (class, envelope) in message(), at in any::<prop::sample::Index>(), flip in 1_u8..
    ) {
        let mut bytes = Vec::new();
        frame::encode(1, class, &envelope, &mut bytes).expect("small");
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let mut frames = Frames::default();
        frames.push(&bytes);
        // Another length may wait for more that never comes.
        let read = frames.next(MAX_FRAME);
        prop_assert!(!matches!(read, Ok(Some(_))), "{:?}", read);
    }

    #[test]
    fn random_bytes_under_a_right_checksum_do_no_harm(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 1..4),
        class in 0_u8..7,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        known in any::<prop::sample::Index>(),
        version in OLDEST..=NEWEST,
    ) {
        let all = crate::common::all();
        let (_, right, envelope) = &all[known.index(all.len())];
        let mut body = Vec::new();
        frame::encode(version, *right, envelope, &mut body).expect("small");
        let mut body = body.split_off(frame::HEADER);
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let local = |id| Local {
            cluster: "birds".to_owned(),
            id: [id; ID],
            incarnation: 1,
            start: 1,
            oldest: OLDEST,
            newest: version,
            program: String::new(),
        };
        let peers = Peers::default();
        let mut events = Vec::new();
        let mut session = Session::new(local(1), None, 0);
        let mut hello = Vec::new();
        Session::new(local(2), None, 0).transmit(&mut hello, 1000);
        session.receive(&hello, &peers, &mut events);
        prop_assert!(session.is_up());
        for body in bodies.iter().chain([&body]) {
            session.receive(&sealed(version, class, body), &peers, &mut events);
        }
        session.close(&peers);
        prop_assert!(peers.is_empty());
    }
}

fn sealed(version: u16, class: u8, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32).to_le_bytes();
    let rest = [&version.to_le_bytes()[..], &[class, 0], body].concat();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&len), &rest);
    [&len[..], &crc.to_le_bytes(), &rest].concat()
}
