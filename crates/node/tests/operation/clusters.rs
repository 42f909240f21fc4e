//! `rufous cluster`: nodes in processes of their own, as their operator meets
//! them, with the development coordinator.

use crate::program::{Client, bulk, eventually, http_get, program, run, simple, stderr, stdout};
use rufous_ports::free_block;
use rufous_resp::Reply;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Nodes give each other their slots beside all else that the machine does.
const LONG: Duration = Duration::from_secs(300);

/// A cluster that runs, and what it says. It is killed in the end, with its nodes.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    pub(crate) port: u16,
    dir: tempfile::TempDir,
}

/// A port from which on six nodes have room. The coordinator has the two ports before those for other
/// nodes.
pub(crate) fn free_ports() -> u16 {
    free_block(8, &[0, 10_000, ADMIN, 20_000]).expect("free ports") + 2
}

/// How far the port for metrics is above that for clients.
pub(crate) const ADMIN: u16 = 15_000;

impl Running {
    pub(crate) fn start(nodes: u16) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        Self::start_in(dir, free_ports(), nodes)
    }

    pub(crate) fn start_in(dir: tempfile::TempDir, port: u16, nodes: u16) -> Self {
        Self::start_with(dir, port, nodes, &["--coordinator", "process"])
    }

    pub(crate) fn start_with(dir: tempfile::TempDir, port: u16, nodes: u16, more: &[&str]) -> Self {
        let mut child = program(&["cluster", "start"])
            .args(["--nodes", &nodes.to_string(), "--port", &port.to_string()])
            .arg("--dir")
            .arg(dir.path())
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            let mut all = out.lines().map_while(Result::ok);
            all.try_for_each(|line| tell.send(line))
        });
        Self {
            child,
            lines,
            said: Vec::new(),
            port,
            dir,
        }
    }

    /// Waits until it says something of the kind.
    pub(crate) fn says(&mut self, what: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("never: {what}: {:#?}", self.said));
            self.said.push(line.clone());
            if line.contains(what) {
                return line;
            }
        }
    }

    pub(crate) fn at(&self, node: u16) -> String {
        format!("127.0.0.1:{}", self.port + node - 1)
    }

    pub(crate) fn client(&self, node: u16) -> Client {
        Client::connect(("127.0.0.1", self.port + node - 1))
    }

    fn folder(&self, node: u16) -> std::path::PathBuf {
        self.dir.path().join(format!("node-{node}"))
    }

    /// The process of a node.
    pub(crate) fn pid(&self, node: u16) -> String {
        let Reply::Bulk(info) = self.client(node).call("INFO server") else {
            panic!("no INFO");
        };
        let info = String::from_utf8(info).expect("text");
        let pid = info
            .lines()
            .find_map(|line| line.strip_prefix("process_id:"));
        pid.expect("a process").to_owned()
    }

    pub(crate) fn status(&self, node: u16, more: &[&str]) -> Output {
        run(program(&["cluster", "status", &self.at(node)]).args(more))
    }

    /// Every slot has all its copies before long, and so many nodes are there.
    pub(crate) fn is_whole_with(&self, node: u16, alive: usize) {
        // One that has just joined may have to be heard yet, though no slot waits for that.
        let are_alive = format!("{alive} nodes are alive");
        eventually(&are_alive, || {
            let status = self.status(node, &["--wait", "300"]);
            let text = stdout(&status);
            assert_eq!(status.status.code(), Some(0), "{text}");
            (text.matches(" alive ").count() == alive).then_some(())
        });
    }

    pub(crate) fn stop(mut self) -> (ExitStatus, tempfile::TempDir) {
        signal("TERM", &self.child.id().to_string());
        let ended = eventually("it ends", || self.child.try_wait().expect("asked"));
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().expect("a folder"));
        (ended, dir)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            signal("TERM", &self.child.id().to_string());
            let _gone = self.child.wait();
        }
    }
}

pub(crate) fn signal(name: &str, pid: &str) {
    let sent = Command::new("kill").args(["-s", name, pid]).status();
    assert!(sent.expect("kill").success());
}

/// A key a number, each of which is there.
pub(crate) fn check_keys(client: &mut Client) {
    for key in 0..200 {
        let reply = client.call(&format!("GET key:{key}"));
        assert_eq!(reply, bulk(&key.to_string()), "key:{key}");
    }
}

#[test]
fn a_cluster_lives_through_a_start_a_join_a_drain_and_a_kill() {
    let mut running = Running::start(3);
    let ready = running.says("ready:");
    let all = "all 16384 slots are served, copies of each: 2";
    assert!(ready.contains(all), "{ready}");
    let mut first = running.client(1);
    for key in 0..200 {
        let reply = first.call(&format!("SET key:{key} {key}"));
        assert_eq!(reply, simple("OK"));
    }
    looks_well(&running);
    one_more(&running);

    // One less, in good order.
    let drained = run(&mut program(&[
        "cluster",
        "drain",
        &running.at(2),
        "--stop",
    ]));
    assert!(drained.status.success(), "{}", stderr(&drained));
    running.says("node-2 has ended (exit status: 0)");
    running.is_whole_with(1, 3);
    check_keys(&mut running.client(4));

    // One is killed: what it had is at others, and is copied again.
    signal("KILL", &running.pid(3));
    running.says("node-3 has ended (signal: 9");
    eventually("it is missed", || {
        let status = stdout(&running.status(1, &[]));
        status.contains(" away ").then_some(())
    });
    running.is_whole_with(4, 2);
    check_keys(&mut running.client(4));

    // All of it goes on from its folder.
    let port = running.port;
    let left = running.folder(2);
    let (ended, dir) = running.stop();
    assert!(ended.success());
    std::fs::remove_dir_all(left).expect("who has left");
    let mut again = Running::start_in(dir, port, 3);
    again.says("ready:");
    check_keys(&mut again.client(3));
    let (ended, _) = again.stop();
    assert!(ended.success());
}

/// Any client reaches every key by any node.
fn looks_well(running: &Running) {
    check_keys(&mut running.client(3));
    let mine = running.client(1).call("CONFIG GET cluster-name");
    let local = vec![bulk("cluster-name"), bulk("local")];
    assert_eq!(mine, Reply::Array(local));
    running.is_whole_with(2, 3);
    for node in 1..=3 {
        let ready = http_get(running.port + ADMIN + node - 1, "/readyz");
        assert_eq!(ready.expect("an answer"), (200, "ready\n".to_owned()));
    }
    metrics_of_others(running.port + ADMIN);
    let dir = running.dir.path().display().to_string();
    let second = run(&mut program(&["cluster", "start", "--dir", &dir]));
    let why = stderr(&second);
    assert!(why.contains("runs already"), "{why}");
}

/// Of both other nodes it is shown what is spoken with them, and what their clocks say.
fn metrics_of_others(port: u16) {
    let spoken = rufous_wire::version::NEWEST.to_string();
    eventually("both are known", || {
        let (_, text) = http_get(port, "/metrics").ok()?;
        let of = |name: &str| -> Vec<String> {
            let samples = text.lines().filter(|line| line.starts_with(name));
            let values = samples.filter_map(|line| line.split_once("\"} "));
            values.map(|(_, value)| value.to_owned()).collect()
        };
        let offsets = of("rufous_peer_clock_offset_microseconds{node=\"");
        let bounds = of("rufous_peer_clock_within_microseconds{node=\"");
        let numbers = offsets.iter().all(|us| us.parse::<i64>().is_ok());
        let are_known = (offsets.len(), bounds.len(), numbers) == (2, 2, true);
        let versions = of("rufous_peer_wire_version{node=\"");
        (are_known && versions == [&*spoken; 2]).then_some(())
    });
}

fn one_more(running: &Running) {
    let dir = running.dir.path().display().to_string();
    let added = run(&mut program(&["cluster", "add", "--dir", &dir]));
    assert!(added.status.success(), "{}", stderr(&added));
    let said = stdout(&added);
    assert!(said.contains("it has joined"), "{said}");
    let status = running.status(1, &["--wait", "300", "--json"]);
    assert_eq!(status.status.code(), Some(0), "{}", stdout(&status));
    let json: serde_json::Value = serde_json::from_str(&stdout(&status)).expect("JSON");
    let nodes = json["nodes"].as_array().expect("nodes");
    assert_eq!((nodes.len(), &json["copies"]), (4, &2.into()));
}

#[test]
fn whether_copies_are_missing_is_told_by_the_exit_code() {
    let mut running = Running::start(2);
    running.says("ready:");
    let cancel = ["cluster", "drain", &running.at(1), "--cancel"];
    let drain = run(&mut program(&cancel));
    assert!(drain.status.success(), "{}", stderr(&drain));
    let rebalance = |more: &[&str]| {
        let half = ["cluster", "rebalance", &running.at(1), "--weight", "n1=50"];
        let half = run(program(&half).args(more));
        assert!(half.status.success(), "{}", stderr(&half));
        stdout(&half)
    };
    let shown = rebalance(&["--dry-run"]);
    assert!(shown.contains(" copies of slots move, "), "{shown}");
    assert!(!shown.contains("It begins"), "{shown}");
    assert!(rebalance(&[]).contains("It begins"));
    eventually("it is heeded", || {
        stdout(&running.status(2, &[]))
            .contains("      50  ")
            .then_some(())
    });

    // Without the second there is one copy of each.
    signal("KILL", &running.pid(2));
    running.says("node-2 has ended");
    // Before the coordinator notices it, it is one that is not heard.
    eventually("it is missed", || {
        let status = running.status(1, &[]);
        let is_missed = stdout(&status).contains("16384 have fewer than 2 copies");
        (status.status.code() == Some(1) && is_missed).then_some(())
    });
    // Who is there is ready as before.
    let ready = http_get(running.port + ADMIN, "/readyz").expect("an answer");
    assert_eq!(ready.0, 200);
    let nobody = running.status(2, &[]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(
        stderr(&nobody).contains("cannot reach"),
        "{}",
        stderr(&nobody)
    );
    let last = run(&mut program(&["cluster", "drain", "127.0.0.1:1"]));
    assert_eq!(last.status.code(), Some(1));
}

/// A node that starts while a copy of what it has is missing is not ready.
#[test]
fn a_node_is_not_ready_before_all_copies_are_there() {
    let mut running = Running::start(2);
    running.says("ready:");
    let port = running.port;
    let (_, dir) = running.stop();
    // The second node's folder is put aside: the mapping names a node that is away.
    let (there, aside) = (dir.path().join("node-2"), dir.path().join("aside"));
    std::fs::rename(&there, &aside).expect("put aside");
    let running = Running::start_in(dir, port, 1);
    let not = eventually("it is there", || {
        let (code, text) = http_get(port + ADMIN, "/readyz").ok()?;
        text.contains("too few copies").then_some(code)
    });
    assert_eq!(not, 503);
    back(&aside, &there);
    let begun = Instant::now();
    while !http_get(port + ADMIN, "/readyz").is_ok_and(|(code, _)| code == 200) {
        assert!(begun.elapsed() < LONG, "it is never ready");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(running);
}

/// Ends the processes that a test left behind, also if it fails.
struct Left(Vec<String>);

impl Drop for Left {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _gone = Command::new("kill").args(["-s", "KILL", pid]).output();
        }
    }
}

#[test]
fn the_coordinator_outlives_the_process_that_started_it() {
    let mut running = Running::start(3);
    running.says("ready:");
    let agreed = running.dir.path().join("agreed");
    let coordinator = std::fs::read_to_string(agreed.join("lock")).expect("its lock");
    let nodes = [1, 2, 3].map(|node| running.pid(node));
    let mut left = Left(nodes.to_vec());
    left.0.push(coordinator.trim().to_owned());
    signal("KILL", &running.child.id().to_string());
    let _killed = running.child.wait();

    // A node that is missed is a change of the mapping: the coordinator has to agree.
    signal("KILL", &nodes[2]);
    eventually("others take over", || {
        let status = stdout(&running.status(1, &[]));
        status.contains(" away ").then_some(())
    });
    running.is_whole_with(1, 2);

    // The next start refuses while nodes of the last one run, and names them.
    let again = ["--coordinator", "process"];
    let dir = running.dir.path().display().to_string();
    let refused = run(program(&["cluster", "start", "--dir", &dir]).args(again));
    let why = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(
        why.contains(&format!("rufous, process {}", nodes[0])),
        "{why}"
    );
    for pid in &nodes[..2] {
        signal("TERM", pid);
        eventually("it ends", || {
            let there = Command::new("kill").args(["-s", "0", pid]).output();
            (!there.expect("kill").status.success()).then_some(())
        });
    }
    let port = running.port;
    let dir = std::mem::replace(&mut running.dir, tempfile::tempdir().expect("a folder"));
    let mut again = Running::start_in(dir, port, 3);
    again.says("ready:");
    let now = std::fs::read_to_string(again.dir.path().join("agreed/lock"));
    assert_eq!(now.expect("its lock"), coordinator);
    // It is started again when it ends by itself.
    signal("KILL", coordinator.trim());
    again.says("the coordinator has ended; it starts again");
    again.is_whole_with(1, 3);
    let (ended, dir) = again.stop();
    assert!(ended.success());
    let lock = dir.path().join("agreed/lock");
    let last = std::fs::read_to_string(lock).expect("its lock");
    assert_ne!(last, coordinator);
    let there = Command::new("kill").args(["-s", "0", last.trim()]).output();
    assert!(!there.expect("kill").status.success());
}

#[test]
fn a_port_that_is_taken_is_named_with_its_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let port = free_ports();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port + ADMIN + 1)).expect("free");
    let start = ["cluster", "start", "--coordinator", "process", "--port"];
    let mut start = program(&start);
    let refused = run(start.arg(port.to_string()).arg("--dir").arg(dir.path()));
    let why = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{why}");
    let own = format!("process {}", std::process::id());
    let named = format!("port {} (for metrics of node-2)", port + ADMIN + 1);
    assert!(why.contains(&own) && why.contains(&named), "{why}");
    // The next start may take other ports.
    assert!(!dir.path().join("cluster.toml").exists());
}

#[test]
fn a_node_that_cannot_start_is_part_of_no_ready_cluster() {
    let dir = tempfile::tempdir().expect("a folder");
    let node = dir.path().join("node-2");
    std::fs::create_dir(&node).expect("a folder");
    std::fs::write(node.join("rufous.toml"), "maxclients = \"many\"\n").expect("written");
    let port = free_ports().to_string();
    let start = ["cluster", "start", "--coordinator", "process", "--port"];
    let ended = run(program(&start).arg(port).arg("--dir").arg(dir.path()));
    let (said, why) = (stdout(&ended), stderr(&ended));
    assert_eq!(ended.status.code(), Some(1), "{said} {why}");
    assert!(!said.contains("ready: "), "{said}");
    assert!(why.contains("node-2 has ended (exit status: "), "{why}");
    assert!(why.contains("maxclients"), "{why}");
}

fn back(from: &Path, to: &Path) {
    std::fs::rename(from, to).expect("put back");
}

#[test]
fn a_cluster_of_one_says_so() {
    let node = crate::program::Node::start(&[
        "--cluster-name",
        "birds",
        "--cluster-listen",
        "127.0.0.1:0",
    ]);
    assert!(node.log().contains("a cluster of one"), "{}", node.log());
    let status = run(&mut program(&[
        "cluster",
        "status",
        &format!("127.0.0.1:{}", node.port),
        "--wait",
        "30",
    ]));
    assert_eq!(status.status.code(), Some(0), "{}", stdout(&status));
    assert!(
        stdout(&status).contains("each has 1 copy"),
        "{}",
        stdout(&status)
    );
    let mut client = node.client();
    let refused = client.call("CLUSTER DRAIN");
    assert!(
        matches!(&refused, Reply::Error(why) if why.starts_with(b"ERR no other node can take")),
        "{refused:?}"
    );
    assert_eq!(
        client.call("CONFIG GET cluster-enabled"),
        Reply::Array(vec![bulk("cluster-enabled"), bulk("yes")])
    );
}
