//! A cluster of two wire versions: upgraded node by node, and back, while somebody
//! writes. A node of version 1 is this program, told to speak nothing newer.

use crate::node::{Info, Node, config, number, settings};
use crate::plain::text;
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::Reply;
use rufous_server::cluster::Settings;
use rufous_server::cluster::status::Status;
use rufous_server::config::Config;
use rufous_server::identity::VERSION;
use rufous_wire::version::OLDEST;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// Errors that say that nothing was done.
const WAITS: [&str; 3] = ["-TRYAGAIN ", "-CLUSTERDOWN ", "-LOADING "];

/// Of each node the door for any client, and the one that redirects.
type Doors = Arc<Mutex<Vec<[SocketAddr; 2]>>>;

struct Three {
    meeting: Meeting,
    folders: [tempfile::TempDir; 3],
    versions: [u16; 3],
    nodes: Vec<Node>,
    doors: Doors,
}

impl Three {
    fn start(versions: [u16; 3]) -> Self {
        let mut all = Self {
            meeting: Meeting::default(),
            folders: [0, 1, 2].map(|_| tempfile::tempdir().expect("a folder")),
            versions,
            nodes: Vec::new(),
            doors: Doors::default(),
        };
        for n in 0..3 {
            let node = all.open(n);
            all.enter(n, node);
        }
        all.settle();
        all
    }

    fn open(&self, n: usize) -> Node {
        let cluster = Settings {
            id: Some([n as u8 + 1; 20]),
            clients: Some(([127, 0, 0, 1], 0).into()),
            copies: 2,
            wire_version: self.versions[n],
            ..settings(&self.meeting)
        };
        Node::of(&Config {
            folder: true,
            appendonly: true,
            dir: self.folders[n].path().display().to_string(),
            ..config(1 + n % 2, cluster)
        })
    }

    fn enter(&mut self, n: usize, node: Node) {
        let mut doors = self.doors.lock().expect("not poisoned");
        let places = [node.address(), node.door()];
        match doors.get_mut(n) {
            Some(known) => *known = places,
            None => doors.push(places),
        }
        drop(doors);
        self.nodes.insert(n, node);
    }

    /// Stops a node, starts it with another version, and waits as an operator would.
    fn restart(&mut self, n: usize, version: u16) {
        self.versions[n] = version;
        self.nodes.remove(n).stop();
        let node = self.open(n);
        self.enter(n, node);
        self.settle();
    }

    /// Waits until all have heard of all, and all slots have all their copies. Then each
    /// two have to speak the newest version that both know, and to know of each other's clocks
    /// what that version tells.
    fn settle(&mut self) {
        let starts: Vec<u64> = self
            .nodes
            .iter_mut()
            .map(|node| number(&node.info(), "cluster_incarnation"))
            .collect();
        for node in &mut self.nodes {
            let begun = Instant::now();
            while !is_whole(node, &starts) {
                assert!(begun.elapsed() < PATIENCE, "{:#?}", node.info());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let names: Vec<String> = self
            .nodes
            .iter_mut()
            .map(|node| node.info()["cluster_node_number"].clone())
            .collect();
        let all = self.versions;
        for (n, node) in self.nodes.iter_mut().enumerate() {
            let others = (0..3).filter(|other| *other != n);
            let others: Vec<_> = others
                .map(|other| (names[other].as_str(), all[n].min(all[other])))
                .collect();
            let info = node.until("clocks are known", |info| {
                others.iter().all(|(name, version)| {
                    let offset = info.get(&format!("cluster_clock_offset_us_{name}"));
                    offset.is_some_and(|offset| *version == 1 || offset != "unknown")
                })
            });
            assert_eq!(number(&info, "cluster_wire_version"), u64::from(all[n]));
            for (name, version) in others {
                check_session(&info, name, version);
            }
            check_status(node, n, all);
        }
    }
}

/// Whether it knows these starts of all nodes to be there with all copies.
fn is_whole(node: &mut Node, starts: &[u64]) -> bool {
    let status = Status::parse(&text(node.call(&["CLUSTER", "STATUS"])));
    let connected = number(&node.info(), "cluster_connected_nodes");
    status.is_some_and(|status| {
        let mut known: Vec<_> = status
            .nodes
            .iter()
            .filter(|node| node.is_alive)
            .map(|node| (node.id.clone(), node.incarnation))
            .collect();
        // Ids rise from node to node.
        known.sort();
        let known = known.into_iter().map(|(_, start)| start);
        status.is_whole() && connected == 2 && known.eq(starts.iter().copied())
    })
}

/// Whichever node is asked shows the versions of all, and the one that it speaks with each.
fn check_status(node: &mut Node, asked: usize, newest: [u16; 3]) {
    let status = Status::parse(&text(node.call(&["CLUSTER", "STATUS"]))).expect("a status");
    assert_eq!(status.nodes.len(), 3);
    for shown in &status.nodes {
        let n = (0..3).find(|n| shown.id == format!("{:02x}", n + 1).repeat(20));
        let n = n.expect("one of the three");
        assert_eq!(shown.program.as_deref(), Some(VERSION), "{shown:?}");
        let speaks = (shown.wire_oldest, shown.wire_newest);
        assert_eq!(speaks, (Some(OLDEST), Some(newest[n])), "{shown:?}");
        let used = (n != asked).then(|| newest[asked].min(newest[n]));
        assert_eq!(shown.wire_used, used, "{shown:?}");
    }
}

fn check_session(info: &Info, name: &str, version: u16) {
    let no = name.trim_start_matches('n');
    let line = &info[&format!("cluster_node{no}")];
    assert!(
        line.contains("state=connected,") && line.contains(&format!(",version={version},")),
        "version {version} with {name}: {line}"
    );
    let offset = &info[&format!("cluster_clock_offset_us_{name}")];
    let within = &info[&format!("cluster_clock_within_us_{name}")];
    match version {
        1 => assert_eq!([offset, within], ["unknown"; 2]),
        _ => {
            // It is one machine: they have one clock. Whoever reads it may be held up.
            let us: i64 = offset.parse().expect("a number");
            let within: u64 = within.parse().expect("a number");
            assert!(us.unsigned_abs() <= within + 1_000_000, "{us} ± {within}");
        }
    }
}

/// What came of a request.
#[derive(Debug, PartialEq)]
enum Outcome {
    Done(String),
    /// Nothing was done.
    Not,
    Unknown,
}

/// Does a request at a door, and where that sends it.
fn request(doors: &Doors, (node, door): (usize, usize), words: &str) -> Outcome {
    let mut at = doors.lock().expect("not poisoned")[node][door];
    for _ in 0..5 {
        let Ok(socket) = TcpStream::connect(at) else {
            return Outcome::Not;
        };
        let Ok(reply) = exchange(socket, words) else {
            return Outcome::Unknown;
        };
        // A node that has gone leaves its port to others: to nodes of other tests.
        let Some(reply) = (1..=3).find_map(|id| reply.strip_prefix(&hello(id))) else {
            return Outcome::Not;
        };
        let Some(reply) = reply.strip_suffix("+OK\r\n") else {
            return Outcome::Unknown;
        };
        if let Some(moved) = reply.strip_prefix("-MOVED ") {
            let to = moved.trim_end().rsplit_once(' ').map(|(_, to)| to);
            at = to.expect("where").parse().expect("an address");
            continue;
        }
        return match reply {
            _ if WAITS.iter().any(|wait| reply.starts_with(wait)) => Outcome::Not,
            _ if reply.starts_with("-UNKNOWNRESULT ") => Outcome::Unknown,
            _ => Outcome::Done(reply.to_owned()),
        };
    }
    Outcome::Not
}

/// What a node says of itself first.
fn hello(id: u8) -> String {
    format!("$40\r\n{}\r\n", format!("{id:02x}").repeat(20))
}

fn exchange(mut socket: TcpStream, words: &str) -> std::io::Result<String> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(format!("CLUSTER MYID\r\n{words}\r\nQUIT\r\n").as_bytes())?;
    let mut reply = String::new();
    socket.read_to_string(&mut reply)?;
    Ok(reply)
}

/// Writes at one door after the other, and reads what was acknowledged at the next.
struct Writer {
    ends: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: JoinHandle<BTreeMap<String, String>>,
}

impl Writer {
    fn start(doors: &Doors) -> Self {
        let (ends, count) = (Arc::default(), Arc::default());
        let thread = std::thread::spawn({
            let (doors, ends, count) = (doors.clone(), Arc::clone(&ends), Arc::clone(&count));
            move || write_on(&doors, &ends, &count)
        });
        Self {
            ends,
            count,
            thread,
        }
    }

    /// Waits until more was written.
    fn goes_on(&self) {
        let enough = self.count.load(Ordering::Relaxed) + 200;
        let begun = Instant::now();
        while self.count.load(Ordering::Relaxed) < enough {
            assert!(!self.thread.is_finished(), "it has found something");
            assert!(begun.elapsed() < PATIENCE, "nothing can be written");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What has to be there.
    fn end(self) -> BTreeMap<String, String> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().expect("it has found nothing")
    }
}

fn write_on(doors: &Doors, ends: &AtomicBool, count: &AtomicU64) -> BTreeMap<String, String> {
    let mut kept = BTreeMap::new();
    // A key of which nobody knows what was written to it is used no more.
    let mut given_up = [0; 97];
    for n in 0.. {
        if ends.load(Ordering::Relaxed) {
            break;
        }
        let place = n % given_up.len();
        let key = format!("key:{place}:{}", given_up[place]);
        let value = n.to_string();
        let door = (n % 3, n / 3 % 2);
        match request(doors, door, &format!("SET {key} {value}")) {
            Outcome::Done(reply) => assert_eq!(reply, "+OK\r\n", "{key}"),
            Outcome::Not => continue,
            Outcome::Unknown => {
                kept.remove(&key);
                given_up[place] += 1;
                continue;
            }
        }
        count.fetch_add(1, Ordering::Relaxed);
        let next = ((n + 1) % 3, 1 - door.1);
        if let Outcome::Done(read) = request(doors, next, &format!("GET {key}")) {
            assert_eq!(read, format!("${}\r\n{value}\r\n", value.len()), "{key}");
        }
        kept.insert(key, value);
    }
    kept
}

/// Checks that all that was acknowledged is there, whichever node is asked.
fn all_is_there(nodes: &mut [Node], kept: &BTreeMap<String, String>) {
    for node in nodes {
        for (key, value) in kept {
            let begun = Instant::now();
            loop {
                let reply = text(node.call(&["GET", key]));
                if !WAITS.iter().any(|wait| reply.starts_with(&wait[1..])) {
                    assert_eq!(&reply, value, "{key}");
                    break;
                }
                assert!(begun.elapsed() < PATIENCE, "{key}: {reply}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

#[test]
fn nodes_are_upgraded_one_after_the_other_and_may_go_back() {
    let mut three = Three::start([1, 1, 2]);
    let writer = Writer::start(&three.doors);
    for (node, version) in [(0, 2), (1, 2), (1, 1), (1, 2)] {
        writer.goes_on();
        three.restart(node, version);
    }
    writer.goes_on();
    let kept = writer.end();
    assert!(kept.len() > 50, "{kept:?}");
    // What would be a transaction between nodes of today is done in parts.
    let keys: Vec<String> = (0..20).map(|n| format!("gone:{n}")).collect();
    let delete: Vec<&str> = ["DEL"]
        .into_iter()
        .chain(keys.iter().map(|k| &**k))
        .collect();
    for node in &mut three.nodes {
        for key in &keys {
            assert_eq!(text(node.call(&["SET", key, "1"])), "OK");
        }
        assert_eq!(node.call(&delete), Reply::Integer(20));
    }
    all_is_there(&mut three.nodes, &kept);
    for node in &mut three.nodes {
        // Nobody has said what the other does not understand.
        let info = node.info();
        let reasons = info["cluster_refused_reasons"].split(',');
        let codes: Vec<_> = reasons.filter_map(|one| one.split_once('=')).collect();
        let is_fault = |code: &str| ["2", "8", "11"].contains(&code);
        assert!(!codes.iter().any(|(code, _)| is_fault(code)), "{codes:?}");
    }
    // The copies are there, too.
    three.nodes.remove(0).stop();
    all_is_there(&mut three.nodes, &kept);
}
