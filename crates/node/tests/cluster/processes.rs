//! Nodes in processes of their own that agree through a real etcd (Debian:
//! etcd-server): they join, are killed, come back, and go on while etcd is away.
//!
//! A node's process is this very program, told by its environment to be one.

#[path = "../../../coordinator/tests/all/common/mod.rs"]
#[allow(dead_code, reason = "its own tests use the rest")]
pub(crate) mod etcd;

use crate::node::{Info, Node, config, number};
use rufous_base::limits::GOOD_SESSION_US;
use rufous_resp::reply::{Reply, ReplyParser};
use rufous_server::cluster::Settings;
use rufous_server::cluster::settings::{CoordinatorAddress, EtcdAccess};
use rufous_server::config::Config;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// Variables that make a node of this program.
const ETCD: &str = "RUFOUS_TEST_ETCD";
const FOLDER: &str = "RUFOUS_TEST_FOLDER";
/// A folder with certificates for etcd.
const CERTIFICATES: &str = "RUFOUS_TEST_CERTIFICATES";
/// How many copies each slot has, if not one.
const COPIES: &str = "RUFOUS_TEST_COPIES";
/// How many workers it has, if not two.
const WORKERS: &str = "RUFOUS_TEST_WORKERS";

/// No test, but a node: it ends when it is killed.
#[test]
#[ignore = "a process of other tests"]
fn node() {
    let (Ok(etcd), Ok(folder)) = (std::env::var(ETCD), std::env::var(FOLDER)) else {
        return;
    };
    let certificates = std::env::var(CERTIFICATES).ok();
    let access = certificates.map(|folder| EtcdAccess {
        ca_cert_file: format!("{folder}/birds.pem"),
        cert_file: format!("{folder}/node.pem"),
        key_file: format!("{folder}/node.key"),
        ..EtcdAccess::default()
    });
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|n| n.parse().expect("a number"))
    };
    let workers = number(WORKERS).unwrap_or(2);
    let cluster = Settings {
        coordinator: CoordinatorAddress::parse(&etcd).expect("an address"),
        etcd: access.unwrap_or_default(),
        copies: number(COPIES).unwrap_or(1),
        ..Settings::new("birds")
    };
    let config = Config {
        dir: folder.clone(),
        folder: true,
        appendonly: true,
        ..config(workers, cluster)
    };
    let node = Node::of(&config);
    let folder = Path::new(&folder);
    let beside = folder.join("port.new");
    std::fs::write(&beside, node.port().to_string()).expect("written");
    std::fs::rename(beside, folder.join("port")).expect("in its place");
    node.join();
}

/// A node's process.
struct Process {
    child: Child,
    stream: TcpStream,
}

impl Process {
    fn start(etcd: &etcd::Server, folder: &Path) -> Self {
        Self::start_with(etcd, folder, &[])
    }

    fn start_with(etcd: &etcd::Server, folder: &Path, more: &[(&str, &Path)]) -> Self {
        let _none = std::fs::remove_file(folder.join("port"));
        let (_, hosts) = etcd.endpoint.split_once("://").expect("an address");
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["--exact", "processes::node", "--ignored", "--nocapture"])
            .env(ETCD, format!("etcd://{hosts}"))
            .env(FOLDER, folder)
            .envs(more.iter().copied())
            .stdout(Stdio::null())
            .spawn()
            .expect("started");
        let begun = Instant::now();
        let port: u16 = loop {
            if let Ok(port) = std::fs::read_to_string(folder.join("port")) {
                break port.parse().expect("a port");
            }
            let ended = child.try_wait().expect("asked");
            assert!(
                ended.is_none() && begun.elapsed() < PATIENCE,
                "it does not start"
            );
            std::thread::sleep(Duration::from_millis(10));
        };
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        Self { child, stream }
    }

    fn info(&mut self) -> Info {
        self.stream.write_all(b"INFO cluster\r\n").expect("sent");
        let (mut parser, mut received) = (ReplyParser::default(), Vec::new());
        loop {
            let (done, reply) = parser.parse(&received).expect("a reply");
            received.drain(..done);
            if let Some(Reply::Bulk(text)) = reply {
                let text = String::from_utf8(text).expect("text");
                let fields = text.lines().filter_map(|line| line.split_once(':'));
                return fields.map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
            }
            let mut bytes = [0; 4096];
            let read = self.stream.read(&mut bytes).expect("answered");
            assert!(read > 0, "it has ended");
            received.extend_from_slice(&bytes[..read]);
        }
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Info) -> bool) -> Info {
        let begun = Instant::now();
        loop {
            let info = self.info();
            if is_so(&info) {
                return info;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}: {info:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// As by `kill -9`.
    fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until all see so many members, and have sessions with all that are alive.
fn settled(nodes: &mut [Process], members: u64) -> u64 {
    let alive = nodes.len() as u64;
    let mut epochs = Vec::new();
    for node in nodes {
        let info = node.until("they are connected", |info| {
            number(info, "cluster_members") == members
                && number(info, "cluster_nodes_alive") == alive
                && number(info, "cluster_connected_nodes") == alive - 1
        });
        epochs.push(number(&info, "cluster_epoch"));
    }
    epochs.into_iter().max().expect("a node")
}

#[test]
fn three_nodes_live_through_joins_kills_and_an_etcd_that_is_away() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    let mut etcd = etcd::Server::start();
    let folders: Vec<_> = (0..5)
        .map(|_| tempfile::tempdir().expect("a folder"))
        .collect();
    let start = |etcd: &etcd::Server, at: usize| Process::start(etcd, folders[at].path());
    let mut nodes: Vec<Process> = (0..3).map(|at| start(&etcd, at)).collect();
    let three = settled(&mut nodes, 3);

    // One is killed: the others find it gone before its lease ends, and its place in the cluster stays.
    let first = number(&nodes[2].info(), "cluster_incarnation");
    // After a shorter session they may wait longer before they dial.
    std::thread::sleep(Duration::from_micros(GOOD_SESSION_US));
    nodes.remove(2).kill();
    for node in &mut nodes {
        node.until("its port refuses", |info| {
            number(info, "cluster_nodes_gone") == 1
        });
    }
    settled(&mut nodes, 3);

    // One joins.
    nodes.push(start(&etcd, 3));
    let four = settled(&mut nodes, 4);
    assert!(four > three, "a mapping has four members");

    // Without etcd nothing changes.
    etcd.kill();
    let mut before = Vec::new();
    for node in &mut nodes {
        before.push(node.until("it is missed", |info| info["cluster_coordinator"] == "away"));
    }
    for (node, before) in nodes.iter_mut().zip(&before) {
        let sent = number(before, "cluster_messages_sent");
        let after = node.until("they go on talking", |info| {
            number(info, "cluster_messages_sent") >= sent + 10
        });
        for field in [
            "cluster_epoch",
            "cluster_sessions",
            "cluster_connected_nodes",
        ] {
            assert_eq!(after[field], before[field], "{field}");
        }
    }

    // With it things go on: who was killed comes back as the same node, and a
    // new one joins.
    etcd.begin();
    nodes.push(start(&etcd, 2));
    nodes.push(start(&etcd, 4));
    let five = settled(&mut nodes, 5);
    assert!(five > four);
    let again = nodes[3].info();
    assert!(number(&again, "cluster_incarnation") > first);

    // Whoever plans is killed: another one does.
    nodes.remove(0).kill();
    for node in &mut nodes {
        node.until("four are alive", |info| {
            number(info, "cluster_nodes_alive") == 4
        });
    }
    let plans = |node: &mut Process| number(&node.info(), "cluster_is_planning");
    let planning: u64 = nodes.iter_mut().map(plans).sum();
    assert_eq!(planning, 1);
}

/// Waits until all apply the same mapping, which stays for a moment.
fn agreed(nodes: &mut [Process]) -> u64 {
    let begun = Instant::now();
    let mut last = Vec::new();
    loop {
        let epochs: Vec<u64> = nodes
            .iter_mut()
            .map(|node| number(&node.info(), "cluster_epoch"))
            .collect();
        if epochs.iter().all(|epoch| *epoch == epochs[0]) && epochs == last {
            return epochs[0];
        }
        last = epochs;
        assert!(begun.elapsed() < PATIENCE, "{last:?}");
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn nodes_refuse_an_etcd_that_was_restored_to_an_earlier_state() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    let mut etcd = etcd::Server::start();
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let start = |etcd: &etcd::Server, at: usize| Process::start(etcd, folders[at].path());
    let mut nodes: Vec<Process> = (0..2).map(|at| start(&etcd, at)).collect();
    settled(&mut nodes, 2);
    agreed(&mut nodes);
    etcd.kill();
    let backup = etcd.save();
    etcd.begin();
    nodes.push(start(&etcd, 2));
    settled(&mut nodes, 3);
    let last = agreed(&mut nodes);

    etcd.kill();
    let latest = etcd.save();
    etcd.restore(&backup);
    etcd.begin();
    for node in &mut nodes {
        let info = node.until("it notices", |info| info["cluster_coordinator"] == "behind");
        assert_eq!(number(&info, "cluster_epoch"), last);
        assert_eq!(number(&info, "cluster_connected_nodes"), 2);
    }
    // A node that starts does not act by the earlier mapping, and no node plans from it.
    nodes.remove(2).kill();
    let mut again = start(&etcd, 2);
    let info = again.until("it notices", |info| info["cluster_coordinator"] == "behind");
    assert_eq!(number(&info, "cluster_epoch"), 0);
    nodes.push(again);
    for node in &mut nodes {
        assert_eq!(number(&node.info(), "cluster_is_planning"), 0);
    }

    etcd.kill();
    etcd.restore(&latest);
    etcd.begin();
    for node in &mut nodes {
        node.until("it goes on", |info| {
            info["cluster_coordinator"] == "current"
        });
    }
    settled(&mut nodes, 3);
    assert!(agreed(&mut nodes) > last, "the node has started again");
}

/// A client that the node knows.
fn connected(port: u16) -> TcpStream {
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    client.write_all(b"PING\r\n").expect("sent");
    let mut pong = [0; 7];
    client.read_exact(&mut pong).expect("a reply");
    assert_eq!(&pong, b"+PONG\r\n");
    client
}

/// The other node stops acknowledging writes, and keeps its connections: the writes of both workers wait for it.
#[test]
fn a_node_stops_in_time_though_no_copy_acknowledges_its_writes() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    let etcd = etcd::Server::start();
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut nodes: Vec<Process> = folders
        .iter()
        .map(|folder| Process::start_with(&etcd, folder.path(), &[(COPIES, Path::new("2"))]))
        .collect();
    settled(&mut nodes, 2);
    for node in &mut nodes {
        node.until("it has all copies", crate::node::has_all_copies);
    }
    agreed(&mut nodes);
    let mut other = nodes.pop().expect("two");
    let mut node = nodes.pop().expect("two");
    let port = node.stream.peer_addr().expect("connected").port();
    let mut clients: Vec<TcpStream> = (0..32).map(|_| connected(port)).collect();
    signal(&other, "-STOP");
    for (n, client) in clients.iter_mut().enumerate() {
        let request = format!("SET k{n} 1\r\n");
        client.write_all(request.as_bytes()).expect("sent");
    }
    let info = node.until("all of them wait", |info| {
        let forwarded = number(info, "cluster_forwarded_under_way");
        forwarded + number(info, "cluster_replies_waiting") >= 32
    });
    let forwarded = number(&info, "cluster_forwarded_under_way");
    let begun = Instant::now();
    node.stream.write_all(b"SHUTDOWN\r\n").expect("sent");
    let ended = node.child.wait().expect("ended");
    let took = begun.elapsed();
    signal(&other, "-CONT");
    assert!(ended.success(), "{ended}");
    // A second for clients, five for other nodes.
    assert!(took < Duration::from_millis(8_500), "{took:?}");
    let mut told = 0;
    for mut client in clients {
        let mut reply = Vec::new();
        let _reset = client.read_to_end(&mut reply);
        told += u64::from(reply.starts_with(b"-UNKNOWNRESULT "));
    }
    // The others wait for a copy, and are closed without a reply.
    assert!(forwarded > 0);
    assert_eq!(told, forwarded, "told that the outcome is unknown");
    other.end();
}

/// Clients that leave do not take their transactions along: those that wait for a slot whose node hangs are bounded.
#[test]
fn transactions_that_wait_are_bounded() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    let etcd = etcd::Server::start();
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut nodes: Vec<Process> = folders
        .iter()
        .map(|folder| Process::start_with(&etcd, folder.path(), &[(WORKERS, Path::new("1"))]))
        .collect();
    settled(&mut nodes, 2);
    agreed(&mut nodes);
    let other = nodes.pop().expect("two");
    let mut node = nodes.pop().expect("two");
    let port = node.stream.peer_addr().expect("connected").port();
    // Some of these keys are the other node's.
    let mset: String = (0..16).map(|n| format!(" k{n} 1")).collect();
    let mset = format!("MSET{mset}\r\n");
    signal(&other, "-STOP");
    for _ in 0..4096 {
        let mut client = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        client.write_all(mset.as_bytes()).expect("sent");
    }
    node.until("all of them wait", |info| {
        number(info, "cluster_transactions_waiting") == 4096
    });
    let mut client = connected(port);
    let mut reply = [0; 27];
    client.write_all(mset.as_bytes()).expect("sent");
    client.read_exact(&mut reply).expect("a reply");
    assert_eq!(
        String::from_utf8_lossy(&reply),
        "-TRYAGAIN 4096 transactions"
    );
    // Nothing else is refused.
    let _alive = connected(port);
}

fn signal(to: &Process, signal: &str) {
    let pid = to.child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status();
    assert!(sent.expect("kill runs").success());
    if signal == "-STOP" {
        while !is_stopped(&pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Whether no thread runs any more: some do a little longer than the call that stops them.
fn is_stopped(pid: &str) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    threads.filter_map(Result::ok).all(|thread| {
        let state = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        state
            .rsplit_once(") ")
            .is_none_or(|(_, state)| state.starts_with('T'))
    })
}

#[test]
fn a_node_shows_its_certificate_to_etcd() {
    if !rufous_skip::has_program("etcd") || !rufous_skip::has_program("openssl") {
        return;
    }
    let (certificates, folder) = (tempfile::tempdir(), tempfile::tempdir());
    let (certificates, folder) = (certificates.expect("one"), folder.expect("another"));
    let at = certificates.path();
    let etcd = etcd::Server::that_wants_certificates(at);
    let node = Process::start_with(&etcd, folder.path(), &[(CERTIFICATES, at)]);
    settled(&mut [node], 1);
}
