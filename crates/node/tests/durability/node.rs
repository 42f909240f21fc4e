//! A node that is started over and over on one data folder, and its clients.

use crate::audit::wire::{Connection, Reply};
use crate::audit::{Findings, Ledger, Load, ledger};
use crate::common::wait_until;
use rufous_ports::free_port;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

pub(crate) struct Node {
    child: Child,
    pub(crate) port: u16,
    log: tempfile::NamedTempFile,
}

/// Settings that all nodes here have; later ones count.
const SETTINGS: &str = "--bind 127.0.0.1 --admin-port 0 --pin no --appendonly yes --workers 2 \
                        --auto-aof-rewrite-percentage 0 --log-segment-size 64kb --save=";

impl Node {
    /// Begins a start on `dir`; settings stand between blanks.
    pub(crate) fn spawn(dir: &Path, settings: &str) -> Self {
        Self::spawn_with("", dir, settings)
    }

    /// As [`Node::spawn`], after a line of shell.
    pub(crate) fn spawn_with(prelude: &str, dir: &Path, settings: &str) -> Self {
        let port = free_port().expect("a free port");
        let log = tempfile::NamedTempFile::new().expect("a file");
        let child = Command::new("bash")
            .arg("-c")
            .arg(format!("{prelude}\nexec \"$@\""))
            .args(["bash", env!("CARGO_BIN_EXE_rufous"), "server"])
            .args(SETTINGS.split_whitespace())
            .args(settings.split_whitespace())
            .args(["--port", &port.to_string(), "--dir"])
            .arg(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.reopen().expect("the file"))
            .spawn()
            .expect("started");
        Self { child, port, log }
    }

    /// Starts on `dir` and waits until clients are served.
    #[track_caller]
    pub(crate) fn start(dir: &Path, settings: &str) -> Self {
        Self::start_with("", dir, settings)
    }

    #[track_caller]
    pub(crate) fn start_with(prelude: &str, dir: &Path, settings: &str) -> Self {
        let mut node = Self::spawn_with(prelude, dir, settings);
        assert!(node.serves(), "the node ends: {}", node.log());
        node
    }

    /// Waits until clients are served; false where the node ends instead.
    pub(crate) fn serves(&mut self) -> bool {
        let mut ended = false;
        wait_until("the node serves or ends", || {
            ended = self.child.try_wait().expect("asked").is_some();
            ended || self.field("loading").as_deref() == Some("0")
        });
        !ended
    }

    /// The exit code and the log of a start that must fail.
    #[track_caller]
    pub(crate) fn refused(prelude: &str, dir: &Path, settings: &str) -> String {
        let mut node = Self::spawn_with(prelude, dir, settings);
        assert!(!node.serves(), "a node starts on this:\n{}", node.log());
        let status = node.child.wait().expect("ended");
        let code = status.code();
        assert!(code.is_some_and(|c| c != 0), "{status}: {}", node.log());
        node.log()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    /// Waits for what must happen in the end, while the node lives.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut reached: impl FnMut() -> bool) {
        let stat = format!("/proc/{}/stat", self.id());
        wait_until(what, || {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            assert!(!stat.contains(") Z "), "the node ended before: {what}");
            reached()
        });
    }

    /// Waits for so many more acknowledged writes.
    #[track_caller]
    pub(crate) fn takes(&self, load: &Load, writes: u64) {
        let enough = load.acknowledged() + writes;
        self.until("writes are acknowledged", || load.acknowledged() >= enough);
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    #[track_caller]
    pub(crate) fn client(&self) -> Connection {
        Connection::open(self.port).expect("the node listens")
    }

    /// Runs one command; its words stand between blanks.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> Reply {
        let request: Vec<&str> = line.split(' ').collect();
        self.client().run(&request).expect("answered")
    }

    fn field(&self, name: &str) -> Option<String> {
        let mut client = Connection::open(self.port).ok()?;
        let Reply::Bulk(Some(text)) = client.run(&["INFO", "everything"]).ok()? else {
            return None;
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut lines = text.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.to_owned()))
    }

    /// A field of `INFO`; empty where there is none.
    pub(crate) fn info(&self, field: &str) -> String {
        self.field(field).unwrap_or_default()
    }

    /// Waits until no snapshot is being taken.
    #[track_caller]
    pub(crate) fn wait_until_saved(&self) {
        self.until("the save ends", || {
            [
                "rdb_bgsave_in_progress",
                "aof_rewrite_in_progress",
                "aof_rewrite_scheduled",
            ]
            .iter()
            .all(|field| self.info(field) == "0")
        });
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.id().to_string()])
            .status();
        assert!(status.expect("run").success());
    }

    /// kill -9.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Waits until it has ended.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the node ends", || {
            status = self.child.try_wait().expect("asked");
            status.is_some()
        });
        status.expect("ended")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the node\n{}", self.log());
        }
    }
}

/// The clients of one test, who remember over all starts.
pub(crate) struct Clients {
    ledgers: Vec<Ledger>,
}

/// Commands that a client has under way at most.
pub(crate) const DEPTH: usize = 12;

impl Clients {
    pub(crate) fn new(count: usize, keys: usize) -> Self {
        Self {
            ledgers: (0..count).map(|n| Ledger::new(n, keys, 7)).collect(),
        }
    }

    /// Each writes each of its keys.
    #[track_caller]
    pub(crate) fn fill(&mut self, node: &Node) {
        for ledger in &mut self.ledgers {
            ledger.fill(&mut node.client()).expect("answered");
        }
        self.check();
    }

    /// All that is known is read, and nothing refused.
    #[track_caller]
    pub(crate) fn read_all(&mut self, node: &Node) {
        for ledger in &mut self.ledgers {
            ledger.read_all(&mut node.client()).expect("answered");
        }
        self.check();
    }

    pub(crate) fn load(&mut self, node: &Node) -> Load {
        Load::start(node.port, std::mem::take(&mut self.ledgers), DEPTH)
    }

    /// Ends the load. Answers until then were right.
    #[track_caller]
    pub(crate) fn rest(&mut self, load: Load) {
        self.ledgers = load.stop();
        self.check();
    }

    /// As `rest`, after so many more acknowledged writes.
    #[track_caller]
    pub(crate) fn rest_after(&mut self, node: &Node, load: Load, writes: u64) {
        node.takes(&load, writes);
        self.rest(load);
    }

    #[track_caller]
    fn check(&self) {
        let wrong: Vec<_> = self.ledgers.iter().flat_map(|l| &l.wrong).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// What errors said.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let all = self.ledgers.iter().flat_map(|l| &l.refusals);
        all.cloned().collect()
    }

    /// What an audit finds, be it right or wrong.
    #[track_caller]
    pub(crate) fn findings(&mut self, node: &Node) -> Findings {
        ledger::audit_all(&mut self.ledgers, node.port).expect("answered")
    }

    /// Every key is as acknowledged, and there is no other.
    #[track_caller]
    pub(crate) fn audit(&mut self, node: &Node) -> Findings {
        let findings = self.findings(node);
        assert!(findings.lost.is_empty(), "{findings:#?}");
        // Some may have expired since.
        let Reply::Int(size) = node.run("DBSIZE") else {
            panic!("no number");
        };
        assert!(size as u64 <= findings.present, "{size}: {findings:?}");
        findings
    }
}

/// A data folder that goes with the test.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().expect("a folder");
    let path = temporary.path().join("data");
    (temporary, path)
}
