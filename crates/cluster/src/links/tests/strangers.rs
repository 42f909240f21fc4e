//! Connections of processes that are no nodes of the cluster, or not yet known to be.

use super::super::entrance::MAX_STRANGERS;
use super::world::{A, B, World, info, local};
use crate::common::Common;
use crate::links::Links;
use crate::peer::PeerMessage;
use rufous_base::limits::HANDSHAKE_PATIENCE_US;
use rufous_base::{ConnId, ConnInfo, Effects, Now, Origin, Read};
use rufous_wire::proof::{Auth, Demand, NONCE, Secret};
use rufous_wire::version::NEWEST;
use std::sync::Arc;

const SECRET: &[u8] = b"the secret of the birds";

fn guarded(id: u8, secret: &[u8]) -> Common {
    let secret = Secret::new(secret).expect("long enough");
    let mut common = Common::new(local(id, NEWEST));
    common.auth = Some(Auth::new(secret, Demand::Required, [id; NONCE]));
    common
}

/// The other side has the lower number, so that it dials.
fn world(secrets: [&[u8]; 2]) -> World {
    World::of([1, 1], 0, [guarded(1, secrets[A]), guarded(2, secrets[B])])
}

#[test]
fn nodes_with_one_secret_connect_and_nodes_with_two_do_not() {
    let mut one = world([SECRET, SECRET]);
    assert_eq!(one.heard(A, 0), ["mapping 2", "up n1"]);
    assert_eq!(one.heard(B, 0), ["mapping 2", "up n0"]);
    one.ack(0, 1, 7);
    one.settle();
    assert_eq!(one.heard(B, 0), ["ack 7 from n0"]);
    let mut two = world([SECRET, b"the secret of the fish"]);
    two.pass_ms(1_000);
    assert_eq!(two.heard(A, 0), ["mapping 2"]);
    assert_eq!(two.heard(B, 0), ["mapping 2"]);
    assert!(
        two.reasons(B).iter().all(|(code, _)| *code == 17),
        "{:?}",
        two.reasons(B)
    );
    assert!(two.figures(B).refused[&17] >= 1 && two.figures(A).refused_by_peers >= 1);
}

/// A node by itself, and what it does with connections.
struct Node {
    links: Links,
    now: Now,
    opened: u32,
}

impl Node {
    fn new() -> Self {
        let common = Arc::new(guarded(2, SECRET));
        let mut links = Links::new(common, rufous_base::WorkerId(0), 1);
        let now = Now {
            mono_us: 1_000_000,
            unix_us: 1_700_000_000_000_000,
        };
        let mapping = Arc::new(super::mapping(&[1, 2]));
        links.on_mapping(now, mapping, &mut Effects::<PeerMessage>::default());
        let opened = 0;
        Self { links, now, opened }
    }

    fn accept(&mut self) -> (ConnId, Effects<PeerMessage>) {
        self.opened += 1;
        let conn = ConnId {
            slot: self.opened,
            generation: 1,
        };
        let mut fx = Effects::default();
        let info: ConnInfo = info(Origin::Peer);
        self.links.on_opened(self.now, conn, info, &mut fx);
        (conn, fx)
    }

    fn receive(&mut self, conn: ConnId, bytes: &[u8]) -> Effects<PeerMessage> {
        let mut fx = Effects::default();
        let read = Read {
            conn,
            start: 0,
            end: bytes.len(),
        };
        self.links.on_received(self.now, bytes, &[read], &mut fx);
        fx
    }
}

#[test]
fn connections_that_say_nothing_make_room_for_others() {
    let mut node = Node::new();
    let (first, _) = node.accept();
    for _ in 1..MAX_STRANGERS {
        let (_, fx) = node.accept();
        assert!(fx.at_once.closes.is_empty());
    }
    for more in 0..1_000_u32 {
        let (last, fx) = node.accept();
        let [(closed, _)] = fx.at_once.closes[..] else {
            panic!("{:?}", fx.at_once.closes);
        };
        assert_eq!(closed.slot, first.slot + more, "the oldest");
        assert!(!node.links.has(closed) && node.links.has(last));
    }
    assert_eq!(node.links.figures().turned_away, 1_000);
    // The driver reports what was asked for.
    let mut fx = Effects::<PeerMessage>::default();
    node.links.on_closed(node.now, first, &mut fx);
}

#[test]
fn a_connection_that_says_nothing_is_closed_after_a_while() {
    let mut node = Node::new();
    let (conn, _) = node.accept();
    // A byte now and then is no handshake.
    for _ in 0..9 {
        node.now.mono_us += HANDSHAKE_PATIENCE_US / 10;
        let mut fx = Effects::<PeerMessage>::default();
        node.links.tick(node.now, &mut fx);
        assert!(fx.at_once.closes.is_empty());
        let _ = node.receive(conn, &[0]);
    }
    node.now.mono_us += HANDSHAKE_PATIENCE_US / 10;
    let mut fx = Effects::<PeerMessage>::default();
    node.links.tick(node.now, &mut fx);
    assert!(fx.at_once.closes.iter().any(|(closed, _)| *closed == conn));
}

/// Under TLS a node has a certificate for the host that the member with its id has announced.
#[test]
fn a_certificate_names_its_node() {
    for (host, expected) in [("node-1", true), ("node-2", false), ("", false)] {
        let mut common = [Common::new(local(1, NEWEST)), Common::new(local(2, NEWEST))];
        for one in &mut common {
            one.is_for = Some(|certificate, host| certificate == host.as_bytes());
        }
        let mut world = World::uncertified([1, 1], common);
        world.certificate = (!host.is_empty()).then(|| Arc::from(host.as_bytes()));
        world.start();
        world.pass_ms(1_000);
        let up = world.heard(B, 0).contains(&"up n0".to_owned());
        assert_eq!(up, expected, "{host}");
        let codes: Vec<u32> = world.reasons(B).iter().map(|(code, _)| *code).collect();
        assert_eq!(codes == [19], !expected, "{codes:?}");
    }
}
