//! Nodes with a secret, and processes without it: what these are told, and what they cannot do.

use crate::node::{Node, config, connect_all, number, settings};
use rufous_coordinator::meeting::Meeting;
use rufous_node::node::{Node as Server, NodeError};
use rufous_resp::reply::Reply;
use rufous_server::cluster::settings::{ClusterSecret, Wrong};
use rufous_server::cluster::{ClusterError, Settings};
use rufous_wire::frame::{self, Frames, MAX_FRAME};
use rufous_wire::message::{Ack, Challenge, Proof, Request, Requests, Sealed};
use rufous_wire::proof::{Auth, Demand, MAC, NONCE, Role, Secret};
use rufous_wire::{Body, Bytes, Class, Envelope, Event, Local, Peers, Session};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const SECRET: &str = "the secret of the birds";

fn guarded(meeting: &Meeting, secret: &str) -> Settings {
    Settings {
        secret: Some(ClusterSecret::new(secret)),
        ..settings(meeting)
    }
}

fn pair() -> Vec<Node> {
    let meeting = Meeting::default();
    let start = || Node::start(2, guarded(&meeting, SECRET));
    let mut nodes = vec![start(), start()];
    connect_all(&mut nodes);
    nodes
}

/// One that claims to be a member that has started again.
fn claims(node: &Node) -> Local {
    let mut local = node.local();
    local.incarnation += 100;
    local.start ^= 1;
    local
}

fn seal(version: u16, class: Class, body: Body) -> Vec<u8> {
    let envelope = Envelope {
        epoch: 1,
        body: Some(body),
        ..Envelope::default()
    };
    let mut bytes = Vec::new();
    frame::encode(version, class, &envelope, &mut bytes).expect("small");
    bytes
}

/// Sends bytes, and all that the node answers until it closes the connection.
fn told(node: &Node, sent: &[u8]) -> Vec<Body> {
    let mut stream = TcpStream::connect(node.peer_address()).expect("accepted");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("set");
    let _gone = stream.write_all(sent);
    let mut bytes = Vec::new();
    let _gone = stream.read_to_end(&mut bytes);
    let mut frames = Frames::default();
    frames.push(&bytes);
    let mut all = Vec::new();
    while let Ok(Some(frame)) = frames.next(MAX_FRAME) {
        assert_eq!(frame.envelope.epoch, 0, "of the cluster");
        all.extend(frame.envelope.body);
    }
    all
}

/// That nothing but a nonce and a refusal with this code was told.
fn refused_with(bodies: &[Body], code: u32) {
    let [Body::Challenge(_), Body::Refuse(refuse)] = bodies else {
        panic!("{bodies:?}");
    };
    assert_eq!(refuse.reason, code, "{}", refuse.text);
}

#[test]
fn a_process_without_the_secret_is_told_nothing_and_does_nothing() {
    let mut nodes = pair();
    let mut hello = Vec::new();
    Session::new(claims(&nodes[1]), None, 1).transmit(&mut hello, 1000);
    let command = Request {
        words: Bytes::from_static(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$6\r\nforged\r\n"),
        ..Request::default()
    };
    let requests = Requests {
        first: 1,
        requests: vec![command],
        round: 0,
    };
    let ack = Ack {
        slot: 1,
        since: 1,
        seq: 1 << 40,
    };
    let after = [
        seal(2, Class::Chain, Body::Ack(ack)),
        seal(2, Class::Request, Body::Requests(requests)),
    ]
    .concat();
    let challenge = Challenge {
        nonce: vec![1; NONCE],
    };
    let challenge = seal(0, Class::Control, Body::Challenge(challenge));
    let proof = seal(0, Class::Control, Body::Proof(Proof { mac: vec![0; MAC] }));
    let sealed = Sealed {
        hello: Bytes::new(),
        mac: vec![0; MAC],
    };
    let sealed = seal(0, Class::Control, Body::Sealed(sealed));
    refused_with(&told(&nodes[0], &[&hello[..], &after].concat()), 17);
    refused_with(
        &told(&nodes[0], &[&challenge[..], &proof, &after].concat()),
        17,
    );
    refused_with(
        &told(&nodes[0], &[&challenge[..], &sealed, &after].concat()),
        11,
    );
    refused_with(&told(&nodes[0], &after), 11);
    for node in &mut nodes {
        node.has_the_same_sessions();
        assert_eq!(node.call(&["GET", "a"]), Reply::Null);
        node.call(&["SET", "b", "1"]);
    }
    let info = nodes[0].info();
    let reasons: Vec<&str> = info["cluster_refused_reasons"].split(',').collect();
    assert!(
        reasons.contains(&"11=2") && reasons.contains(&"17=2"),
        "{reasons:?}"
    );
}

/// The same with a secret of its own, by the session of a node.
#[test]
fn a_node_with_another_secret_takes_no_part() {
    let mut nodes = pair();
    let secret = Secret::new(b"the secret of the fish").expect("long enough");
    let auth = Auth::new(secret, Demand::Required, [5; NONCE]);
    let proving = auth.connection(Role::Dialler, 0, 1);
    let mut session = Session::with_proof(claims(&nodes[1]), None, 1, Some(proving));
    let mut stream = TcpStream::connect(nodes[0].peer_address()).expect("accepted");
    let (peers, mut events, mut bytes) = (Peers::default(), Vec::new(), vec![0; 65536]);
    loop {
        let mut out = Vec::new();
        session.transmit(&mut out, usize::MAX);
        let _gone = stream.write_all(&out);
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(read) => session.receive(&bytes[..read], &peers, &mut events),
        }
    }
    let [Event::Closed(refused)] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(refused.code(), 17, "{refused}");
    let meeting = Meeting::default();
    let mut apart = vec![
        Node::start(1, guarded(&meeting, SECRET)),
        Node::start(1, guarded(&meeting, "the secret of the fish")),
    ];
    for node in &mut apart {
        node.until("it is refused", |info| {
            number(info, "cluster_refused_by_nodes") + number(info, "cluster_refused") > 1
        });
        assert_eq!(number(&node.info(), "cluster_sessions"), 0);
    }
    nodes[0].has_the_same_sessions();
}

#[test]
fn a_cluster_beyond_loopback_has_a_secret_or_certificates() {
    let meeting = Meeting::default();
    let open = Settings {
        listen: ([0, 0, 0, 0], 0).into(),
        advertise: Some("127.0.0.1".into()),
        ..settings(&meeting)
    };
    let refused = Server::start(&config(1, open.clone()));
    assert!(
        matches!(
            refused,
            Err(NodeError::Cluster(ClusterError::Settings(Wrong::Open(_))))
        ),
        "it would believe any process"
    );
    for settings in [
        Settings {
            secret: Some(ClusterSecret::new(SECRET)),
            ..open.clone()
        },
        Settings {
            demand: Demand::Optional,
            ..open
        },
    ] {
        Node::start(1, settings).stop();
    }
}

/// A running cluster gets its secret: each node is restarted twice.
#[test]
fn nodes_get_their_secret_one_after_the_other() {
    let (none, optional) = ((false, Demand::Required), (true, Demand::Optional));
    let required = (true, Demand::Required);
    for both in [
        [none, optional],
        [optional, optional],
        [optional, required],
        [required, optional],
        [required, required],
    ] {
        let meeting = Meeting::default();
        let start = |(has_secret, demand): (bool, Demand)| {
            let settings = Settings {
                secret: has_secret.then(|| ClusterSecret::new(SECRET)),
                demand,
                ..settings(&meeting)
            };
            Node::start(1, settings)
        };
        let mut nodes: Vec<Node> = both.into_iter().map(start).collect();
        connect_all(&mut nodes);
        for node in nodes {
            node.stop();
        }
    }
}
