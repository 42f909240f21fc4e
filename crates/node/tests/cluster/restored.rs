//! Processes of the real program that agree through a real etcd (Debian: etcd-server): all are killed,
//! one data folder is emptied or put back as it was, and all are started again. No strict write that
//! was acknowledged is undone, and the refused folder is reported.

use crate::node::Info;
use crate::processes::etcd;
use crate::returning::{copy, empty};
use rufous_ports::{free_block, free_ports};
use rufous_resp::reply::{Reply, ReplyParser};
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(120);
const NODES: usize = 3;
const KEYS: usize = 400;

struct Cluster {
    etcd: etcd::Server,
    /// The port for clients of the first node; others follow.
    port: u16,
    /// Ports between nodes.
    peers: [u16; NODES],
    folders: Vec<TempDir>,
    nodes: Vec<Child>,
}

impl Cluster {
    fn start() -> Self {
        let folder = |_| tempfile::tempdir().expect("a folder");
        let mut cluster = Self {
            etcd: etcd::Server::start(),
            port: free_block(NODES as u16, &[0]).expect("free ports"),
            peers: free_ports().expect("free ports"),
            folders: (0..NODES).map(folder).collect(),
            nodes: Vec::new(),
        };
        cluster.start_all();
        cluster
    }

    fn folder(&self, node: usize) -> &Path {
        self.folders[node].path()
    }

    fn start_all(&mut self) {
        self.nodes = (0..NODES).map(|node| self.start_one(node)).collect();
        self.is_whole();
    }

    fn start_one(&self, node: usize) -> Child {
        let (_, etcd) = self.etcd.endpoint.split_once("://").expect("an address");
        let log = self.folder(node).with_extension("log");
        let log = fs::File::options().create(true).append(true).open(log);
        Command::new(env!("CARGO_BIN_EXE_rufous"))
            .args(["server", "--bind", "127.0.0.1", "--workers", "2"])
            .args(["--admin-port", "0", "--pin", "no", "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--snapshot-retention", "3", "--log-segment-size", "4mb"])
            .args(["--port", &(self.port + node as u16).to_string()])
            .args(["--cluster-name", "birds", "--cluster-copies", "2"])
            .args(["--cluster-id", &format!("{:040x}", node + 1)])
            .args([
                "--cluster-listen",
                &format!("127.0.0.1:{}", self.peers[node]),
            ])
            .args(["--cluster-coordinator", &format!("etcd://{etcd}")])
            .arg("--dir")
            .arg(self.folder(node))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log"))
            .spawn()
            .expect("started")
    }

    fn log(&self, node: usize) -> String {
        fs::read_to_string(self.folder(node).with_extension("log")).unwrap_or_default()
    }

    /// As by a loss of power, but for what the system has written.
    fn kill_all(&mut self) {
        self.nodes.iter_mut().for_each(end);
    }

    fn call(&self, node: usize, words: &[&str]) -> io::Result<Reply> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port + node as u16))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        stream.write_all(request.as_bytes())?;
        let (mut parser, mut received) = (ReplyParser::default(), Vec::new());
        loop {
            let (done, reply) = parser.parse(&received).expect("a reply");
            received.drain(..done);
            if let Some(reply) = reply {
                return Ok(reply);
            }
            let mut bytes = [0; 4096];
            match stream.read(&mut bytes)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => received.extend_from_slice(&bytes[..read]),
            }
        }
    }

    fn text(&self, node: usize, words: &[&str]) -> io::Result<String> {
        match self.call(node, words)? {
            Reply::Bulk(text) => Ok(String::from_utf8(text).expect("text")),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    fn info(&self, node: usize) -> Info {
        let text = self.text(node, &["INFO", "cluster"]).expect("answered");
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
    }

    /// Every slot is served, and has all its copies, in the eyes of each node. (The first node alone
    /// has a cluster of one copy, and all of that.)
    fn is_whole(&self) {
        let begun = Instant::now();
        for node in 0..NODES {
            loop {
                let status = self.text(node, &["CLUSTER", "STATUS"]);
                let is_whole = |text: &String| {
                    text.contains("\r\ncopies:2\r\n")
                        && text.contains("slots_served:16384\r\n")
                        && text.contains("slots_whole:16384\r\n")
                };
                if status.as_ref().is_ok_and(is_whole) {
                    break;
                }
                let logs: Vec<String> = (0..NODES).map(|node| self.log(node)).collect();
                assert!(
                    begun.elapsed() < PATIENCE,
                    "never whole: {status:?}\n{}",
                    logs.join("\n")
                );
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    fn set(&self, value: &str) {
        for key in 0..KEYS {
            let set = self.call(0, &["SET", &format!("key:{key}"), value]);
            assert_eq!(
                set.expect("answered"),
                Reply::Simple("OK".into()),
                "key:{key}"
            );
        }
    }

    /// Every key has this value, whichever node is asked.
    #[track_caller]
    fn has(&self, value: &str) {
        let lost = |key: &usize| {
            let got = self.call(*key % NODES, &["GET", &format!("key:{key}")]);
            got.expect("answered") != Reply::Bulk(value.into())
        };
        let lost = (0..KEYS).filter(lost).count();
        assert_eq!(lost, 0, "of {KEYS} acknowledged writes are undone");
    }

    /// Status, metrics and logs report that the folder of this node is refused.
    #[track_caller]
    fn reports(&self, node: usize, what: &str, log: &str) {
        let status = self.text(0, &["CLUSTER", "STATUS"]).expect("answered");
        let id = format!("id={:040x},", node + 1);
        let line = status.lines().find(|line| line.contains(&id));
        let line = line.expect("a line of the node");
        assert!(line.contains(&format!(",folder={what},")), "{line}");
        for at in 0..NODES {
            let info = self.info(at);
            assert_eq!(info["cluster_folders_refused"], "1", "{info:#?}");
            assert_eq!(info["cluster_slots_halted"], "0");
            assert_eq!(info["cluster_slots_continued_with_loss"], "0");
        }
        assert!(self.log(node).contains(log), "{}", self.log(node));
    }
}

fn end(node: &mut Child) {
    let _gone = node.kill();
    let _gone = node.wait();
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill_all();
    }
}

#[test]
fn an_emptied_folder_undoes_no_write() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    let mut cluster = Cluster::start();
    cluster.set("new");
    cluster.kill_all();
    empty(cluster.folder(1));
    cluster.start_all();
    cluster.has("new");
    cluster.reports(1, "emptied", "was empty");
}

#[test]
fn a_folder_from_the_past_undoes_no_write() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    let mut cluster = Cluster::start();
    cluster.set("old");
    cluster.kill_all();
    let backup = tempfile::tempdir().expect("a folder");
    copy(cluster.folder(1), backup.path());
    cluster.start_all();
    cluster.set("new");
    cluster.kill_all();
    empty(cluster.folder(1));
    copy(backup.path(), cluster.folder(1));
    cluster.start_all();
    cluster.has("new");
    cluster.reports(1, "past", "was restored from an earlier state");
}

#[test]
fn a_restored_save_undoes_no_write() {
    if !rufous_skip::has_program("etcd") {
        return;
    }
    let mut cluster = Cluster::start();
    cluster.set("old");
    for _ in 0..2 {
        let saved = cluster.call(1, &["SAVE"]).expect("answered");
        assert_eq!(saved, Reply::Simple("OK".into()));
    }
    cluster.set("new");
    cluster.kill_all();
    let saves = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rufous"));
        command.arg("saves").args(words).arg("--dir");
        let done = command.arg(cluster.folder(1)).output().expect("run");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    };
    let all = saves(&["list"]);
    let last = all.lines().last().expect("an earlier save");
    let number = last.split('\t').next().expect("a number");
    saves(&["restore", number]);
    cluster.start_all();
    cluster.has("new");
    cluster.reports(1, "past", "was restored from an earlier state");
    // The note of the restored save has done its part: the next start is none of the past.
    cluster.kill_all();
    cluster.start_all();
    assert_eq!(cluster.info(0)["cluster_folders_refused"], "0");
    cluster.has("new");
}
