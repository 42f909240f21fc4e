//! What goes wrong with the coordinator of one machine, and between nodes that
//! use it. What never happens makes a test hang until [`LIMIT`].

use rufous_coordinator::loopback::frames::{self, Asked, Told};
use rufous_coordinator::loopback::{Client, MAX_NODES, Secret, Server};
use rufous_coordinator::{Coordinator, Error, Member, NodeId, Proposed, View};
use rufous_ports::free_port;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

fn id(id: u8) -> NodeId {
    NodeId([id; 20])
}

/// At an address where another may come after it.
async fn server(folder: Option<&Path>) -> Server {
    let port = free_port().expect("a free port");
    let at = ([127, 0, 0, 1], port).into();
    Server::start(at, "birds", None, folder)
        .await
        .expect("started")
}

fn open(at: SocketAddr, name: u8, incarnation: u64) -> Client {
    let me = Member {
        id: id(name),
        incarnation,
        after: incarnation - 1,
        about: Vec::new(),
    };
    Client::open(&at.to_string(), "birds", None, me).expect("a client")
}

async fn sees(client: &Client, wanted: impl FnMut(&View) -> bool) -> View {
    let mut view = client.view();
    let seen = view.wait_for(wanted).await.expect("it goes on");
    seen.clone()
}

/// A member, as soon as it is one.
async fn enter(server: &Server, name: u8, incarnation: u64) -> Client {
    let client = open(server.address(), name, incarnation);
    sees(&client, |view| view.is_member).await;
    client
}

async fn limited(test: impl Future<Output = ()>) {
    tokio::time::timeout(LIMIT, test).await.expect("it hangs");
}

#[tokio::test]
async fn it_ends_and_comes_back_with_what_it_had() {
    limited(async {
        let folder = tempfile::tempdir().expect("a folder");
        let first = server(Some(folder.path())).await;
        let at = first.address();
        let (one, two) = (enter(&first, 1, 1).await, enter(&first, 2, 1).await);
        let proposed = one.propose(0, b"before".to_vec()).await;
        assert_eq!(proposed.expect("asked"), Proposed::Taken);
        sees(&two, |view| view.epoch() == 1 && view.members.len() == 2).await;
        drop(first);
        // What was known stays known, and nothing can be changed.
        let view = sees(&one, |view| !view.is_current).await;
        assert_eq!((view.epoch(), view.members.len()), (1, 2));
        assert!(!view.is_member);
        let proposed = one.propose(1, b"meanwhile".to_vec()).await;
        assert!(matches!(proposed, Err(Error::Away(_))), "{proposed:?}");
        assert!(matches!(one.read().await, Err(Error::Away(_))));
        // What is said of itself meanwhile is known when it comes back.
        let said = two.announce(b"later".to_vec()).await;
        assert!(said.is_err(), "{said:?}");
        let _second = Server::start(at, "birds", None, Some(folder.path()))
            .await
            .expect("started");
        let later = |view: &View| {
            let two = view.members.get(&id(2));
            two.is_some_and(|two| two.about == b"later")
        };
        let view = sees(&one, |view| view.is_member && later(view)).await;
        assert_eq!(view.epoch(), 1);
        let proposed = one.propose(1, b"after".to_vec()).await;
        assert_eq!(proposed.expect("asked"), Proposed::Taken);
        sees(&two, |view| view.epoch() == 2).await;
    })
    .await;
}

#[tokio::test]
async fn it_comes_after_the_nodes() {
    limited(async {
        let at = server(None).await.address();
        let one = open(at, 1, 1);
        assert!(matches!(one.read().await, Err(Error::Away(_))));
        let proposed = one.propose(0, Vec::new()).await.expect("not asked");
        assert_eq!(proposed, Proposed::NotAlive);
        let _server = Server::start(at, "birds", None, None)
            .await
            .expect("started");
        sees(&one, |view| view.is_member).await;
        let proposed = one.propose(0, Vec::new()).await;
        assert_eq!(proposed.expect("asked"), Proposed::Taken);
    })
    .await;
}

#[tokio::test]
async fn who_says_nothing_more_is_gone_and_another_leads() {
    limited(async {
        let server = server(None).await;
        let one = enter(&server, 1, 1).await;
        let two = enter(&server, 2, 1).await;
        let three = enter(&server, 3, 1).await;
        let view = sees(&three, |view| view.members.len() == 3).await;
        assert_eq!(view.leader, Some(id(1)));
        // Nobody says goodbye: the lease runs out, and not the connection.
        let begun = Instant::now();
        drop(one);
        let view = sees(&three, |view| view.members.len() == 2).await;
        assert!(begun.elapsed() > Duration::from_secs(1));
        assert_eq!(view.leader, Some(id(2)));
        // One that starts again is the youngest, whatever it was before.
        let again = enter(&server, 2, 2).await;
        let view = sees(&three, |view| view.members[&id(2)].incarnation == 2).await;
        assert_eq!(view.leader, Some(id(3)));
        sees(&two, |view| !view.is_member).await;
        let proposed = two.propose(0, Vec::new()).await.expect("not asked");
        assert_eq!(proposed, Proposed::NotAlive);
        again.leave().await;
        sees(&three, |view| view.members.len() == 1).await;
    })
    .await;
}

/// The lease of who leaves need not run out. Where a machine is so busy that it could have, another
/// attempt tells; without a goodbye all of them take as long.
#[tokio::test]
async fn who_leaves_is_gone_at_once() {
    limited(async {
        let server = server(None).await;
        let one = enter(&server, 1, 1).await;
        for incarnation in 1..=10 {
            let two = enter(&server, 2, incarnation).await;
            sees(&one, |view| view.members.len() == 2).await;
            let begun = Instant::now();
            two.leave().await;
            sees(&one, |view| view.members.len() == 1).await;
            if begun.elapsed() < Duration::from_secs(1) {
                return;
            }
        }
        panic!("who leaves is there until its lease ends");
    })
    .await;
}

#[tokio::test]
async fn of_two_nodes_with_one_id_one_is_a_member() {
    limited(async {
        let server = server(None).await;
        let one = enter(&server, 1, 7).await;
        let copy = open(server.address(), 1, 7);
        tokio::time::sleep(Duration::from_millis(600)).await;
        let proposed = copy.propose(0, Vec::new()).await.expect("not asked");
        assert_eq!(proposed, Proposed::NotAlive);
        assert!(one.view().borrow().is_member);
        drop(one);
        sees(&copy, |view| view.is_member).await;
    })
    .await;
}

/// A proxy in between is cut: the node keeps its place, and its age.
#[tokio::test]
async fn a_broken_connection_changes_nothing() {
    limited(async {
        let server = server(None).await;
        let (between, cut) = proxy(server.address());
        let one = open(between, 1, 1);
        sees(&one, |view| view.is_member).await;
        let two = enter(&server, 2, 1).await;
        sees(&two, |view| view.members.len() == 2).await;
        let mut seen = two.view();
        seen.mark_unchanged();
        cut.send(()).expect("a proxy");
        sees(&one, |view| !view.is_current).await;
        let view = sees(&one, |view| view.is_member).await;
        assert_eq!(view.leader, Some(id(1)));
        assert!(!seen.has_changed().expect("it goes on"), "nobody noticed");
    })
    .await;
}

/// Passes connections on until it is told to cut what there is.
fn proxy(to: SocketAddr) -> (SocketAddr, std::sync::mpsc::Sender<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let (cut, told) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let near = near.expect("a connection");
            let far = TcpStream::connect(to).expect("connected");
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (mut from, mut to) = (from.try_clone().expect("a"), to.try_clone().expect("b"));
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
            if told.recv().is_ok() {
                let _gone = near.shutdown(std::net::Shutdown::Both);
                let _gone = far.shutdown(std::net::Shutdown::Both);
            }
        }
    });
    (at, cut)
}

#[tokio::test]
async fn nonsense_harms_nobody() {
    limited(async {
        let server = server(None).await;
        let one = enter(&server, 1, 1).await;
        for said in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0xff; 100],
            &[0, 0, 0, 0],
            &[1, 0, 0, 0, 2],
            &[2, 0, 0, 0, 1, 9],
        ] {
            let at = server.address();
            let answer = tokio::task::spawn_blocking(move || {
                let mut stream = TcpStream::connect(at).expect("connected");
                stream.write_all(said).expect("said");
                let mut answer = Vec::new();
                let _reset = stream.read_to_end(&mut answer);
                answer
            });
            let answer = answer.await.expect("no panic");
            assert_eq!(answer, b"", "{said:?}");
        }
        let me = Member {
            id: id(2),
            incarnation: 1,
            after: 0,
            about: Vec::new(),
        };
        let fish = Client::open(&server.address().to_string(), "fish", None, me).expect("a client");
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(!fish.view().borrow().is_current);
        assert_eq!(one.view().borrow().members.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn it_serves_this_machine_and_so_many_nodes() {
    limited(async {
        let everywhere = ([0, 0, 0, 0], 0).into();
        let refused = Server::start(everywhere, "birds", None, None).await;
        assert!(matches!(refused, Err(Error::Settings(_))));
        let server = server(None).await;
        let mut all = Vec::new();
        for name in 0..MAX_NODES {
            all.push(enter(&server, name as u8, 1).await);
        }
        let more = open(server.address(), 200, 1);
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(!more.view().borrow().is_member);
        assert_eq!(server.alive(), MAX_NODES);
    })
    .await;
}

fn secret(text: &str) -> Option<Secret> {
    Some(Secret::new(text.as_bytes()))
}

/// A node with this secret.
fn open_with(at: SocketAddr, name: u8, secret: Option<Secret>) -> Client {
    let me = Member {
        id: id(name),
        incarnation: 1,
        after: 0,
        about: Vec::new(),
    };
    Client::open(&at.to_string(), "birds", secret, me).expect("a client")
}

#[tokio::test]
async fn with_a_secret_it_serves_the_nodes_that_know_it() {
    limited(async {
        let any = ([127, 0, 0, 1], 0).into();
        let guarded = Server::start(any, "birds", secret("nest"), None).await;
        let guarded = guarded.expect("started");
        let one = open_with(guarded.address(), 1, secret("nest"));
        sees(&one, |view| view.is_member).await;
        let open = server(None).await;
        let others = [
            open_with(guarded.address(), 2, None),
            open_with(guarded.address(), 3, secret("egg")),
            // It does not trust a coordinator that does not know it.
            open_with(open.address(), 4, secret("nest")),
        ];
        tokio::time::sleep(Duration::from_millis(400)).await;
        for other in &others {
            assert!(!other.view().borrow().is_current);
        }
        assert_eq!((guarded.alive(), open.alive()), (1, 0));
        assert_eq!(one.view().borrow().members.len(), 1);
    })
    .await;
}

/// What strangers send, and with which frames they are answered.
#[tokio::test]
async fn strangers_are_told_nothing_of_a_cluster_with_a_secret() {
    limited(async {
        let any = ([127, 0, 0, 1], 0).into();
        let guarded = Server::start(any, "birds", secret("nest"), None).await;
        let guarded = guarded.expect("started");
        let hello = Asked::Hello {
            lease: 0,
            cluster: "birds".into(),
            me: Member {
                id: id(9),
                incarnation: 1,
                after: 0,
                about: Vec::new(),
            },
        };
        let challenge = Asked::Challenge([7; 32]);
        for said in [
            vec![hello.clone()],
            vec![Asked::Proof([7; 32]), hello.clone()],
            vec![challenge.clone(), hello.clone()],
            vec![challenge.clone(), Asked::Proof([7; 32]), hello.clone()],
            vec![challenge.clone(), challenge, hello],
        ] {
            let stream = tokio::net::TcpStream::connect(guarded.address()).await;
            let (mut from, mut to) = stream.expect("connected").into_split();
            for asked in &said {
                let _closed = frames::write(&mut to, &asked.encode()).await;
            }
            while let Ok(Some(frame)) = frames::read(&mut from, 1 << 20).await {
                let told = Told::decode(&frame).expect("a frame");
                let is_nothing = matches!(told, Told::Challenge(_) | Told::Refused(_));
                assert!(is_nothing, "{said:?}: {told:?}");
            }
        }
        assert_eq!(guarded.alive(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_node_enters_nothing_that_has_not_proved_itself() {
    limited(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let at = listener.local_addr().expect("an address");
        let node = open_with(at, 1, secret("nest"));
        for answers in [
            vec![Told::Welcome(1)],
            vec![Told::Challenge([1; 32]), Told::Welcome(1)],
            vec![
                Told::Challenge([1; 32]),
                Told::Proof([2; 32]),
                Told::Welcome(1),
            ],
        ] {
            let (stream, _) = listener.accept().await.expect("it comes again");
            let (mut from, mut to) = stream.into_split();
            for told in answers {
                let _closed = frames::write(&mut to, &told.encode()).await;
            }
            while let Ok(Some(frame)) = frames::read(&mut from, 1 << 20).await {
                let asked = Asked::decode(&frame).expect("a frame");
                let is_nothing = matches!(asked, Asked::Challenge(_) | Asked::Proof(_));
                assert!(is_nothing, "{asked:?}");
            }
        }
        assert!(!node.view().borrow().is_current);
    })
    .await;
}
