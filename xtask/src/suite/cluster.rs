//! A cluster on this machine whose nodes join, drain and are killed: `rufous cluster start` and
//! its like, as operators use them.

use crate::process::{output, run};
use anyhow::{Context, Result, ensure};
use rufous_ports::free_block;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nodes that it begins with.
pub(super) const NODES: u16 = 3;
/// What never happens ends a run after so long.
const PATIENCE: Duration = Duration::from_secs(120);
/// Every node has a port in each of these distances: see docs/clusters.md.
const APART: [u16; 4] = [0, 10_000, 15_000, 20_000];
/// Of clients that know clusters.
const CLIENTS: u16 = 20_000;

/// Stopped, with its folder removed, when this goes away.
pub(super) struct Cluster {
    program: PathBuf,
    child: Child,
    folder: PathBuf,
    /// Of the first node.
    port: u16,
}

#[derive(Deserialize)]
struct Status {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    is_alive: bool,
}

impl Cluster {
    /// Waits until every slot has all its copies.
    pub(super) fn start(program: &Path, folder: PathBuf, log: &Path) -> Result<Self> {
        // For all nodes and one more; the port before the first is what the nodes agree through.
        let port = free_block(NODES + 2, &APART)? + 1;
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let log = File::create(log)?;
        let child = Command::new(program)
            .args(["cluster", "start", "--coordinator", "process"])
            .args(["--nodes", &NODES.to_string(), "--port", &port.to_string()])
            .arg("--dir")
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let cluster = Self {
            program: program.to_path_buf(),
            child,
            folder,
            port,
        };
        cluster.until_whole(1, NODES)?;
        Ok(cluster)
    }

    /// Where clients that know clusters find the nodes that it began with.
    pub(super) fn addresses(&self) -> String {
        let address = |number| format!("127.0.0.1:{}", self.port_of(number) + CLIENTS);
        let all: Vec<String> = (1..=NODES).map(address).collect();
        all.join(",")
    }

    fn port_of(&self, number: u16) -> u16 {
        self.port + number - 1
    }

    fn address(&self, number: u16) -> String {
        format!("127.0.0.1:{}", self.port_of(number))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("cluster").args(words).stdout(Stdio::null());
        command
    }

    /// Waits until node `asked` says that so many nodes are alive, and that every slot has all its
    /// copies.
    pub(super) fn until_whole(&self, asked: u16, nodes: u16) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut status = Command::new(&self.program);
            status.args(["cluster", "status", &self.address(asked)]);
            // It fails while something is missing.
            if let Ok(text) = output(status.args(["--json", "--wait", "5"])) {
                let status: Status =
                    serde_json::from_str(&text).context("rufous cluster status")?;
                let alive = status.nodes.iter().filter(|node| node.is_alive).count();
                if alive == usize::from(nodes) {
                    return Ok(());
                }
            }
            ensure!(
                Instant::now() < until,
                "the cluster is not whole with {nodes} nodes: see {}",
                self.folder.display()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// One node more.
    pub(super) fn add(&self) -> Result<()> {
        run(self.command(&["add", "--dir"]).arg(&self.folder))
    }

    /// Has a node give away all that it has; it goes on running.
    pub(super) fn drain(&self, number: u16) -> Result<()> {
        run(&mut self.command(&["drain", &self.address(number)]))
    }

    /// Sends a signal to a node.
    pub(super) fn signal(&self, number: u16, signal: &str) -> Result<()> {
        let mut stream = TcpStream::connect(self.address(number))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"INFO server\r\nQUIT\r\n")?;
        let mut info = String::new();
        stream.read_to_string(&mut info)?;
        let process = info
            .lines()
            .find_map(|line| line.strip_prefix("process_id:"))
            .context("INFO server tells no process_id")?;
        let process: u32 = process.trim().parse()?;
        run(Command::new("kill").args([format!("-{signal}"), process.to_string()]))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        // It stops its nodes, which takes a while; they would go on if it were killed.
        let _ = run(Command::new("kill").args(["-TERM", &id]));
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
