//! Any bytes as what a peer sends: before it has said who it is, and after that as they are and in
//! frames with right checksums, of each version. In whatever pieces they come, the same is heard;
//! what is heard can be said again. A node with a secret tells such a peer nothing of itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_wire::frame::{self, Frames, MAX_FRAME};
use rufous_wire::proof::{Auth, Demand, NONCE, Role, Secret};
use rufous_wire::version::{NEWEST, OLDEST};
use rufous_wire::{Body, Event, Local, Peers, Session};

/// Those that there are, and one that there is not.
const CLASSES: u8 = 7;

fuzz_target!(|data: &[u8]| {
    let Some(([class, piece], data)) = data.split_first_chunk::<2>() else {
        return;
    };
    let piece = usize::from(*piece).max(1);
    let version = OLDEST + u16::from(class / CLASSES) % (NEWEST - OLDEST + 1);
    check(version, data, piece);
    let mut sealed = Vec::new();
    Session::new(local(2, version), None, 0).transmit(&mut sealed, 1000);
    let plain = [&sealed[..], data].concat();
    check(version, &plain, piece);
    // Two messages, cut where the input says so.
    let (one, two) = data.split_at(data.len().min(piece));
    for body in [one, two] {
        seal(version, class % CLASSES, body, &mut sealed);
    }
    check(version, &sealed, piece);
    let mut handshake = Vec::new();
    for body in [one, two] {
        seal(0, 0, body, &mut handshake);
    }
    for bytes in [data, &handshake[..]] {
        keeps_to_itself(version, bytes, piece);
    }
});

/// Both sides of a connection of a node with a secret.
fn keeps_to_itself(version: u16, bytes: &[u8], piece: usize) {
    for role in [Role::Dialler, Role::Acceptor] {
        let secret = Secret::new(b"the secret of the birds").expect("long enough");
        let auth = Auth::new(secret, Demand::Required, [3; NONCE]);
        let proving = Some(auth.connection(role, 0, 1));
        let mut session = Session::with_proof(local(1, version), None, 300, proving);
        let (peers, mut events, mut out) = (Peers::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            session.receive(piece, &peers, &mut events);
            while session.transmit(&mut out, 1000) {}
        }
        while session.transmit(&mut out, 1000) {}
        assert!(!session.is_up() && peers.is_empty());
        let mut frames = Frames::default();
        frames.push(&out);
        while let Some(frame) = frames.next(MAX_FRAME).expect("our own") {
            assert_eq!(frame.envelope.epoch, 0);
            assert!(matches!(
                frame.envelope.body,
                Some(Body::Challenge(_) | Body::Proof(_) | Body::Refuse(_))
            ));
        }
    }
}

fn check(version: u16, bytes: &[u8], piece: usize) {
    let whole = heard(version, bytes, bytes.len().max(1));
    assert_eq!(whole, heard(version, bytes, piece));
    for event in whole {
        let Event::Message { class, envelope, .. } = event else {
            continue;
        };
        let mut again = Vec::new();
        frame::encode(1, class, &envelope, &mut again).expect("it was no larger");
        let mut frames = Frames::default();
        frames.push(&again);
        let frame = frames.next(MAX_FRAME).expect("our own").expect("whole");
        assert_eq!(frame.envelope, envelope);
    }
}

fn heard(version: u16, bytes: &[u8], piece: usize) -> Vec<Event> {
    let mut session = Session::new(local(1, version), None, 0);
    let (peers, mut events) = (Peers::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        session.receive(piece, &peers, &mut events);
    }
    let mut out = Vec::new();
    while session.transmit(&mut out, 1000) {}
    session.close(&peers);
    assert!(peers.is_empty());
    events
}

fn local(id: u8, newest: u16) -> Local {
    Local {
        cluster: "birds".to_owned(),
        id: [id; 20],
        incarnation: 1,
        start: 1,
        oldest: OLDEST,
        newest,
        program: String::new(),
    }
}

fn seal(version: u16, class: u8, body: &[u8], out: &mut Vec<u8>) {
    let len = (body.len() as u32).to_le_bytes();
    let rest = [&version.to_le_bytes()[..], &[class, 0], body].concat();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&len), &rest);
    out.extend_from_slice(&[&len[..], &crc.to_le_bytes(), &rest].concat());
}
