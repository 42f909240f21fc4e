//! Sessions of nodes with a secret: which peers prove it, and what the others are told.

use crate::common::envelope;
use crate::end::{End, local, raw, settle};
use proptest::prelude::*;
use rufous_wire::frame::{self, Frames, MAX_STRANGER};
use rufous_wire::message::{Challenge, Heartbeat, Hello, Proof, Sealed};
use rufous_wire::proof::{Auth, Demand, MAC, MAX_SECRET, MIN_SECRET, NONCE, Role, Secret};
use rufous_wire::{Body, Class, Envelope, Peers, Refused, Session};

const SECRET: &[u8] = b"the secret of the birds";

fn auth(secret: &[u8], demand: Demand, node: u8) -> Auth {
    let secret = Secret::new(secret).expect("long enough");
    Auth::new(secret, demand, [node; NONCE])
}

/// One end of the `count`th connection of a node, which has this secret, if any.
fn end_of(secret: Option<(&[u8], Demand)>, node: u8, role: Role, count: u64) -> End {
    let auth = secret.map(|(secret, demand)| auth(secret, demand, node));
    let proving = auth.map(|auth| auth.connection(role, 0, count));
    let mut end = End::new(local(node), None);
    end.session = Session::with_proof(local(node), None, 300, proving);
    end
}

fn required(node: u8, role: Role) -> End {
    end_of(Some((SECRET, Demand::Required)), node, role, 1)
}

/// The messages in bytes, which are those of whole frames.
fn messages(bytes: &[u8]) -> Vec<Envelope> {
    let mut frames = Frames::default();
    frames.push(bytes);
    let mut all = Vec::new();
    while let Some(frame) = frames.next(MAX_STRANGER).expect("small frames") {
        assert_eq!(frame.version, 0, "of the handshake");
        all.push(frame.envelope);
    }
    assert_eq!(frames.pending(), 0);
    all
}

fn bodies(bytes: &[u8]) -> Vec<Body> {
    let bodies = messages(bytes).into_iter().map(|envelope| envelope.body);
    bodies.map(|body| body.expect("a body")).collect()
}

fn control(body: Body) -> Vec<u8> {
    raw(0, Class::Control, body)
}

/// That nothing in these bytes tells which node has sent them.
fn tells_nothing(bytes: &[u8]) {
    for envelope in messages(bytes) {
        assert_eq!(envelope.epoch, 0, "of the cluster");
        match envelope.body.expect("a body") {
            Body::Challenge(_) | Body::Proof(_) | Body::Refuse(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn code(end: &End) -> Option<u32> {
    end.refused().map(Refused::code)
}

#[test]
fn nodes_with_one_secret_know_each_other_after_both_have_proved_it() {
    let (mut d, mut a) = (required(1, Role::Dialler), required(2, Role::Acceptor));
    let (from_d, from_a) = (d.out(), a.out());
    assert!(matches!(bodies(&from_d)[..], [Body::Challenge(_)]));
    assert!(matches!(bodies(&from_a)[..], [Body::Challenge(_)]));
    d.receive(&from_a);
    a.receive(&from_d);
    assert_eq!(
        a.out(),
        b"",
        "it waits for the proof of the node that dials"
    );
    let proof = d.out();
    assert!(matches!(bodies(&proof)[..], [Body::Proof(_)]));
    assert!(!d.session.is_up() && !a.session.is_up());
    a.receive(&proof);
    let name = a.out();
    assert!(matches!(bodies(&name)[..], [Body::Sealed(_)]));
    assert!(!a.session.is_up(), "the other one has not told its name");
    d.receive(&name);
    assert!(d.session.is_up());
    // Messages may follow the name at once.
    let beat = envelope(Body::Heartbeat(Heartbeat {}));
    assert_eq!(d.session.send(Class::Control, &beat), Ok(()));
    a.receive(&d.out());
    assert!(a.session.is_up());
    assert_eq!(a.messages(), [&beat]);
    assert!(a.peers.versions(&[1; 20]).is_some() && d.peers.versions(&[2; 20]).is_some());
}

#[test]
fn in_whatever_pieces_it_comes() {
    let (mut d, mut a) = (required(1, Role::Dialler), required(2, Role::Acceptor));
    loop {
        let (to_a, to_d) = (d.out(), a.out());
        if to_a.is_empty() && to_d.is_empty() {
            break;
        }
        to_a.iter().for_each(|byte| a.receive(&[*byte]));
        to_d.iter().for_each(|byte| d.receive(&[*byte]));
    }
    assert!(d.session.is_up() && a.session.is_up());
}

#[test]
fn another_secret_is_refused_before_anything_is_told() {
    let other = end_of(
        Some((b"the secret of the fish", Demand::Required)),
        1,
        Role::Dialler,
        1,
    );
    let (mut d, mut a) = (other, required(2, Role::Acceptor));
    let challenge = a.out();
    a.receive(&d.out());
    d.receive(&challenge);
    a.receive(&d.out());
    assert_eq!(a.refused(), Some(&Refused::Unproven));
    let told = a.out();
    tells_nothing(&told);
    d.receive(&told);
    assert_eq!(code(&d), Some(17));
    assert!(a.peers.is_empty() && d.peers.is_empty());
}

/// A process at the address of a node learns a nonce and a code, and no name.
#[test]
fn a_process_that_is_dialled_and_has_no_secret_is_told_nothing() {
    for answer in [
        Body::Proof(Proof { mac: vec![7; MAC] }),
        Body::Sealed(Sealed {
            hello: bytes_of_hello(),
            mac: vec![7; MAC],
        }),
        Body::Hello(hello()),
        Body::Heartbeat(Heartbeat {}),
    ] {
        let mut d = required(1, Role::Dialler);
        tells_nothing(&d.out());
        d.receive(&control(Body::Challenge(Challenge {
            nonce: vec![9; NONCE],
        })));
        let proof = d.out();
        tells_nothing(&proof);
        d.receive(&control(answer.clone()));
        assert!(
            matches!(code(&d), Some(11 | 17)),
            "{answer:?}: {:?}",
            d.refused()
        );
        tells_nothing(&d.out());
        assert!(d.peers.is_empty());
    }
}

fn hello() -> Hello {
    Hello {
        cluster: "birds".to_owned(),
        node: vec![1; 20],
        // It claims to have started later than the member.
        incarnation: 1_000,
        start: 77,
        oldest: 1,
        newest: 2,
        program: String::new(),
        nonce: Vec::new(),
    }
}

fn bytes_of_hello() -> bytes::Bytes {
    prost::Message::encode_to_vec(&hello()).into()
}

#[test]
fn a_forged_name_is_refused() {
    let nonce = || Challenge {
        nonce: vec![3; NONCE],
    };
    let sealed = || Sealed {
        hello: bytes_of_hello(),
        mac: vec![0; MAC],
    };
    let with_nonce = Hello {
        nonce: vec![3; NONCE],
        ..hello()
    };
    let proof = || Body::Proof(Proof { mac: vec![0; MAC] });
    for (forged, expected) in [
        (vec![Body::Hello(hello())], 17),
        (vec![Body::Hello(with_nonce.clone()), proof()], 17),
        (
            vec![Body::Hello(with_nonce.clone()), Body::Hello(with_nonce)],
            17,
        ),
        (vec![Body::Challenge(nonce()), Body::Hello(hello())], 17),
        (vec![Body::Challenge(nonce()), proof()], 17),
        (vec![Body::Challenge(nonce()), Body::Sealed(sealed())], 11),
        (vec![Body::Challenge(nonce()), Body::Challenge(nonce())], 11),
        (vec![proof()], 11),
        (vec![Body::Sealed(sealed())], 11),
        (vec![Body::Challenge(Challenge { nonce: vec![] })], 8),
        (vec![Body::Challenge(Challenge { nonce: vec![1; 33] })], 8),
        (
            vec![Body::Challenge(nonce()), Body::Proof(Proof { mac: vec![] })],
            8,
        ),
    ] {
        let mut a = required(2, Role::Acceptor);
        for body in &forged {
            a.receive(&control(body.clone()));
        }
        assert_eq!(code(&a), Some(expected), "{forged:?}");
        tells_nothing(&a.out());
        assert!(a.peers.is_empty() && a.session.is_closed());
    }
    // Frames of other messages, and of more bytes than a handshake has.
    let mut a = required(2, Role::Acceptor);
    a.receive(&raw(1, Class::Control, Body::Heartbeat(Heartbeat {})));
    assert_eq!(code(&a), Some(11));
    let mut a = required(2, Role::Acceptor);
    a.receive(&(MAX_STRANGER as u32 + 1).to_le_bytes());
    assert_eq!(code(&a), Some(9));
}

/// What a node has said on one connection, on another one.
#[test]
fn what_was_recorded_proves_nothing_on_another_connection() {
    let (mut d, mut a) = (required(1, Role::Dialler), required(2, Role::Acceptor));
    let mut recorded = Vec::new();
    let mut recorded_of_a = Vec::new();
    loop {
        let (to_a, to_d) = (d.out(), a.out());
        if to_a.is_empty() && to_d.is_empty() {
            break;
        }
        recorded.extend_from_slice(&to_a);
        recorded_of_a.extend_from_slice(&to_d);
        a.receive(&to_a);
        d.receive(&to_d);
    }
    assert!(a.session.is_up());
    let secret = Some((SECRET, Demand::Required));
    let mut again = end_of(secret, 2, Role::Acceptor, 2);
    again.receive(&recorded);
    assert_eq!(again.refused(), Some(&Refused::Unproven));
    tells_nothing(&again.out());
    let mut again = end_of(secret, 1, Role::Dialler, 2);
    again.receive(&recorded_of_a);
    assert_eq!(again.refused(), Some(&Refused::Unproven));
    tells_nothing(&again.out());
}

/// A peer that sends back what it receives, or what another connection of the same node says.
#[test]
fn what_a_node_says_itself_proves_nothing_to_it() {
    for role in [Role::Dialler, Role::Acceptor] {
        let mut end = required(1, role);
        for _ in 0..4 {
            let out = end.out();
            tells_nothing(&out);
            end.receive(&out);
        }
        assert!(!end.session.is_up() && end.peers.is_empty());
    }
    // Two connections of one node are joined: both sides know the secret, and it is the same node.
    let (mut d, mut a) = (required(1, Role::Dialler), required(1, Role::Acceptor));
    settle(&mut d, &mut a);
    assert!(!d.session.is_up() && !a.session.is_up());
    assert!([code(&d), code(&a)].contains(&Some(3)));
    // Both ends dial, or both accept: neither has what the other waits for.
    for role in [Role::Dialler, Role::Acceptor] {
        let (mut one, mut two) = (required(1, role), required(2, role));
        settle(&mut one, &mut two);
        assert!(!one.session.is_up() && !two.session.is_up());
        assert!(one.peers.is_empty() && two.peers.is_empty());
    }
}

/// A process between two nodes passes their proofs on and exchanges a name.
#[test]
fn a_name_cannot_be_exchanged_on_its_way() {
    for change in 0..2 {
        let (mut d, mut a) = (required(1, Role::Dialler), required(2, Role::Acceptor));
        let (to_a, to_d) = (d.out(), a.out());
        a.receive(&to_a);
        d.receive(&to_d);
        a.receive(&d.out());
        let mut envelope = messages(&a.out()).remove(0);
        match (&mut envelope.body, change) {
            (Some(Body::Sealed(sealed)), 0) => sealed.hello = bytes_of_hello(),
            (Some(Body::Sealed(_)), _) => envelope.epoch += 1,
            other => panic!("{other:?}"),
        }
        let mut bytes = Vec::new();
        frame::encode(0, Class::Control, &envelope, &mut bytes).expect("small");
        d.receive(&bytes);
        assert_eq!(d.refused(), Some(&Refused::Unproven));
        tells_nothing(&d.out());
    }
}

#[test]
fn a_node_without_a_secret_and_one_with_it_say_what_is_missing() {
    for (one, two) in [
        (Role::Dialler, Role::Acceptor),
        (Role::Acceptor, Role::Dialler),
    ] {
        let (mut open, mut closed) = (end_of(None, 1, one, 1), required(2, two));
        let (to_closed, to_open) = (open.out(), closed.out());
        closed.receive(&to_closed);
        assert_eq!(closed.refused(), Some(&Refused::Unproven));
        tells_nothing(&closed.out());
        open.receive(&to_open);
        assert_eq!(open.refused(), Some(&Refused::NoSecret));
    }
}

/// While nodes of a running cluster get their secret, one after the other.
#[test]
fn nodes_that_do_not_demand_proof_talk_to_all() {
    let optional = Some((SECRET, Demand::Optional));
    let required = Some((SECRET, Demand::Required));
    for (one, two) in [(optional, optional), (optional, None), (optional, required)] {
        for [first, second] in [
            [Role::Dialler, Role::Acceptor],
            [Role::Acceptor, Role::Dialler],
        ] {
            for [a, b] in [[one, two], [two, one]] {
                let (mut a, mut b) = (end_of(a, 1, first, 1), end_of(b, 2, second, 1));
                settle(&mut a, &mut b);
                assert!(a.session.is_up() && b.session.is_up(), "{:?}", a.refused());
            }
        }
    }
    // Their secret has to be the right one where it is asked for.
    let other = Some((&b"the secret of the fish"[..], Demand::Optional));
    let (mut a, mut b) = (
        end_of(other, 1, Role::Dialler, 1),
        end_of(required, 2, Role::Acceptor, 1),
    );
    settle(&mut a, &mut b);
    assert_eq!(b.refused(), Some(&Refused::Unproven));
}

#[test]
fn secrets_have_a_length() {
    assert!(Secret::new(&[1; MIN_SECRET]).is_some());
    assert!(Secret::new(&[1; MAX_SECRET]).is_some());
    assert!(Secret::new(&[1; MIN_SECRET - 1]).is_none());
    assert!(Secret::new(&[1; MAX_SECRET + 1]).is_none());
    let shown = format!("{:?}", auth(SECRET, Demand::Required, 1));
    assert!(!shown.contains("birds"), "{shown}");
}

#[test]
fn no_two_connections_have_the_same_nonce() {
    let auth = auth(SECRET, Demand::Required, 1);
    let mut nonces = std::collections::BTreeSet::new();
    for worker in 0..4 {
        for count in 0..100 {
            assert!(nonces.insert(auth.connection(Role::Acceptor, worker, count).nonce));
        }
    }
}

proptest! {
    /// Whatever a peer without the secret sends, in whatever order, it is told no name.
    #[test]
    fn no_bytes_get_a_name_out_of_a_node(
        parts in prop::collection::vec((0..6_u8, prop::collection::vec(any::<u8>(), 0..80)), 0..8),
        dials in any::<bool>(),
        piece in 1..64_usize,
    ) {
        let role = if dials { Role::Dialler } else { Role::Acceptor };
        let mut end = required(1, role);
        let mut out = end.out();
        for (kind, bytes) in parts {
            let exact = |len: usize| bytes.iter().copied().cycle().take(len).collect::<Vec<u8>>();
            let exact = |len| if bytes.is_empty() { vec![0; len] } else { exact(len) };
            let sent = match kind {
                0 => control(Body::Challenge(Challenge { nonce: exact(NONCE) })),
                1 => control(Body::Proof(Proof { mac: exact(MAC) })),
                2 => control(Body::Sealed(Sealed { hello: bytes_of_hello(), mac: exact(MAC) })),
                3 => control(Body::Hello(Hello { nonce: exact(NONCE), ..hello() })),
                4 => out.clone(),
                _ => bytes,
            };
            for part in sent.chunks(piece) {
                end.receive(part);
            }
            out = end.out();
            tells_nothing(&out);
        }
        prop_assert!(!end.session.is_up());
        end.session.close(&Peers::default());
        prop_assert!(end.peers.is_empty());
    }
}
