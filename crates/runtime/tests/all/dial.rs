//! Connections that actors ask for, and those of other nodes.

use crate::common::*;
use rufous_base::{Dial, DialError, Effects, Input, Now, Origin};
use rufous_runtime::{Config, Listen, Runtime, start};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};

/// What an actor was told.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Opened(Origin, String),
    Undialled(u64, DialError),
    Heard(Vec<u8>),
}

/// A node with one worker whose actor dials at its first step, says hello to
/// whom it reaches, and tells what it is told.
fn dialler(config: Config, dials: Vec<Dial>) -> (Runtime<impl rufous_base::Actor>, Receiver<Told>) {
    let (tell, told) = channel();
    let node = start(config, move |_| {
        let (tell, mut dials) = (tell.clone(), dials.clone());
        by::<(), _>(move |_: Now, input: Input<'_, ()>, fx: &mut Effects<()>| {
            fx.dials.append(&mut dials);
            let told = match input {
                Input::Opened { conn, info } => {
                    if matches!(info.origin, Origin::Dialled { .. }) {
                        say(fx, conn, b"hello");
                    }
                    Told::Opened(info.origin, info.peer)
                }
                Input::Undialled { token, error } => Told::Undialled(token, error),
                Input::Received { bytes, .. } => Told::Heard(bytes.to_vec()),
                _ => return,
            };
            let _ = tell.send(told);
        })
    })
    .expect("starts");
    // Its first step.
    drop(node.connect().expect("connected"));
    let first = told.recv().expect("told");
    assert!(matches!(first, Told::Opened(Origin::Internal, _)));
    (node, told)
}

fn dial(token: u64, to: impl ToString) -> Dial {
    let to = to.to_string();
    Dial {
        token,
        to,
        within_us: 60_000_000,
    }
}

fn with_peers(config: Config) -> Config {
    Config {
        listen_peers: vec![Listen::Tcp(([127, 0, 0, 1], 0).into())],
        ..config
    }
}

fn peer_address<A: rufous_base::Actor>(node: &Runtime<A>) -> SocketAddr {
    match node.peer_addresses() {
        [Listen::Tcp(address)] => *address,
        other => panic!("no address for peers: {other:?}"),
    }
}

#[test]
fn an_actor_reaches_another_node_and_is_known_as_one() {
    let other = echo(with_peers(config(2)));
    let at = peer_address(&other);
    let dials = vec![dial(7, at), dial(8, format!("localhost:{}", at.port()))];
    let (_node, told) = dialler(config(1), dials);
    let mut tokens = Vec::new();
    let mut heard = Vec::new();
    while heard.len() < 10 {
        match told.recv().expect("told") {
            Told::Opened(Origin::Dialled { token }, _) => tokens.push(token),
            Told::Heard(bytes) => heard.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    tokens.sort_unstable();
    assert_eq!((&tokens[..], &heard[..]), (&[7, 8][..], &b"hellohello"[..]));
}

#[test]
fn peers_take_no_room_from_clients() {
    let limited = Config {
        max_clients: 1,
        ..with_peers(config(1))
    };
    let (node, told) = dialler(limited, Vec::new());
    let mut peer = std::net::TcpStream::connect(peer_address(&node)).expect("accepted");
    assert!(matches!(
        told.recv().expect("told"),
        Told::Opened(Origin::Peer, _)
    ));
    let mut served = client(&node);
    assert!(matches!(
        told.recv().expect("told"),
        Told::Opened(Origin::Client, _)
    ));
    assert_eq!(
        read_to_end(&mut client(&node)),
        b"-ERR max number of clients reached\r\n"
    );
    std::io::Write::write_all(&mut peer, b"still here").expect("sent");
    assert_eq!(
        told.recv().expect("told"),
        Told::Heard(b"still here".into())
    );
    std::io::Write::write_all(&mut served, b"as well").expect("sent");
    assert_eq!(told.recv().expect("told"), Told::Heard(b"as well".into()));
}

#[test]
fn what_cannot_be_reached_is_told() {
    let free = rufous_ports::free_port().expect("a free port");
    let nobody = SocketAddr::from(([127, 0, 0, 1], free));
    // An address for documentation, and no time to answer.
    let late = Dial {
        within_us: 1,
        ..dial(3, "192.0.2.1:1")
    };
    let (_node, told) = dialler(
        config(1),
        vec![dial(1, nobody), dial(2, "no such host:1"), late],
    );
    let mut tokens: Vec<u64> = (0..3)
        .map(|_| match told.recv().expect("told") {
            Told::Undialled(token, error) => {
                assert!(!error.why.is_empty());
                // A firewall may refuse the third one in place of its host.
                assert!(token == 3 || error.is_refused == (token == 1), "{error:?}");
                token
            }
            other => panic!("{other:?}"),
        })
        .collect();
    tokens.sort_unstable();
    assert_eq!(tokens, [1, 2, 3]);
}
