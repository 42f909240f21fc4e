//! Clients of a node that drains and stops, at either endpoint: none of them meets an error.

use crate::node::{Node, connect_all, number, settings};
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::{Reply, ReplyParser};
use rufous_server::cluster::Settings;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// What a client shares with the test.
#[derive(Default)]
struct Shared {
    ends: AtomicBool,
    answers: AtomicU64,
}

/// A client that counts with a key of its own, with one request at a time. It knows several
/// addresses, follows redirections, and does not use a connection again that has ended.
struct Counter {
    key: String,
    doors: Vec<SocketAddr>,
    at: usize,
    stream: Option<TcpStream>,
    expected: i64,
    errors: Vec<String>,
}

impl Counter {
    fn start(key: String, doors: Vec<SocketAddr>, at: usize) -> (Arc<Shared>, JoinHandle<Self>) {
        let shared = Arc::new(Shared::default());
        let mut counter = Self {
            key,
            doors,
            at,
            stream: None,
            expected: 1,
            errors: Vec::new(),
        };
        let told = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            while !told.ends.load(Ordering::Relaxed) {
                counter.count();
                told.answers.fetch_add(1, Ordering::Relaxed);
            }
            counter
        });
        (shared, thread)
    }

    fn count(&mut self) {
        let mut stream = self.connected();
        match call(&mut stream, &self.key) {
            Ok(Reply::Integer(count)) if count == self.expected => {
                self.expected += 1;
                self.stream = Some(stream);
            }
            Ok(Reply::Error(why)) if why.starts_with(b"MOVED ") => {
                let why = String::from_utf8(why).expect("text");
                let to = why.rsplit(' ').next().expect("an address");
                self.stream = TcpStream::connect(to).ok();
            }
            Ok(other) => {
                self.errors.push(format!("{}: {other:?}", self.key));
                self.stream = Some(stream);
            }
            Err(error) => {
                self.errors.push(format!("{}: {error}", self.key));
                self.at += 1;
            }
        }
    }

    fn connected(&mut self) -> TcpStream {
        if let Some(stream) = self.stream.take() {
            if is_open(&stream) {
                return stream;
            }
            self.at += 1;
        }
        let begun = Instant::now();
        loop {
            match TcpStream::connect(self.doors[self.at % self.doors.len()]) {
                Ok(stream) => return stream,
                Err(_) => self.at += 1,
            }
            assert!(begun.elapsed() < PATIENCE, "no node listens");
        }
    }
}

fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).expect("set");
    matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn call(stream: &mut TcpStream, key: &str) -> std::io::Result<Reply> {
    stream.write_all(format!("INCR {key}\r\n").as_bytes())?;
    let (mut parser, mut received) = (ReplyParser::default(), Vec::new());
    loop {
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => received.extend_from_slice(&bytes[..read]),
        }
        if let (_, Some(reply)) = parser.parse(&received).expect("a reply") {
            return Ok(reply);
        }
    }
}

fn start() -> Vec<Node> {
    let meeting = Meeting::default();
    let settings = || Settings {
        copies: 2,
        clients: Some(([127, 0, 0, 1], 0).into()),
        ..settings(&meeting)
    };
    let mut nodes: Vec<Node> = (0..3).map(|_| Node::start(1, settings())).collect();
    connect_all(&mut nodes);
    for node in &mut nodes {
        node.until("all slots are whole", |info| {
            let (whole, member) = (&info["cluster_slots_whole"], &info["cluster_slots_member"]);
            whole == member && number(info, "cluster_slots_member") > 8000
        });
    }
    nodes
}

fn go_on(clients: &[(Arc<Shared>, JoinHandle<Counter>)]) {
    let begun = Instant::now();
    for (shared, _) in clients {
        let wanted = shared.answers.load(Ordering::Relaxed) + 100;
        while shared.answers.load(Ordering::Relaxed) < wanted {
            assert!(begun.elapsed() < PATIENCE, "a client waits for ever");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn clients_of_a_node_that_drains_and_stops_meet_no_error() {
    let mut nodes = start();
    let plain: Vec<SocketAddr> = nodes.iter().map(Node::address).collect();
    let doors: Vec<SocketAddr> = nodes.iter().map(Node::door).collect();
    // Two of each kind begin at each node.
    let clients: Vec<_> = (0..12)
        .map(|no| {
            let all = if no % 2 == 0 { &plain } else { &doors };
            Counter::start(format!("key:{no}"), all.clone(), no / 2)
        })
        .collect();
    go_on(&clients);
    let mut leaves = nodes.remove(1);
    assert_eq!(
        leaves.call(&["CLUSTER", "DRAIN"]),
        Reply::Simple(b"OK".to_vec())
    );
    leaves.until("it has given its slots away", |info| {
        info["cluster_slots_member"] == "0"
    });
    // A node without slots still serves its clients.
    go_on(&clients);
    leaves.stop();
    go_on(&clients);
    let joined = |(shared, thread): (Arc<Shared>, JoinHandle<Counter>)| {
        shared.ends.store(true, Ordering::Relaxed);
        thread.join().expect("no panic")
    };
    let ended: Vec<Counter> = clients.into_iter().map(joined).collect();
    let errors: Vec<&String> = ended.iter().flat_map(|counter| &counter.errors).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    for node in &mut nodes {
        node.until("the node is no member any more", |info| {
            info["cluster_members"] == "2"
        });
    }
}
