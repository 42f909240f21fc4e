//! A Redis Cluster of this machine: masters, and a replica of each.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rufous_ports::free_ports;
use tempfile::TempDir;

use super::{LOOKS, PATIENCE};
use crate::client::Client;

/// Masters; as many replicas are beside them.
const MASTERS: usize = 3;
/// After so long a silence a node counts as failed: as long as leases of nodes of Rufous.
const TIMEOUT_MS: u32 = 2000;

/// Ends with this value.
pub struct RedisCluster {
    nodes: Vec<(SocketAddr, Child)>,
    _folder: TempDir,
}

impl RedisCluster {
    pub fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("redis-nodes-").tempdir()?;
        let mut cluster = Self {
            nodes: Vec::new(),
            _folder: folder,
        };
        for no in 0..2 * MASTERS {
            let dir = cluster._folder.path().join(no.to_string());
            cluster.nodes.push(node(dir)?);
        }
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]);
        create.args(cluster.nodes.iter().map(|(at, _)| at.to_string()));
        create.args(["--cluster-replicas", "1", "--cluster-yes"]);
        let made = create.stdout(Stdio::null()).status().context("redis-cli")?;
        ensure!(made.success(), "redis-cli makes no cluster: {made}");
        for at in cluster.addresses() {
            until("it is whole", || {
                let nodes = ask(at, "NODES")?;
                let slaves = nodes.matches("slave").count();
                Ok(ask(at, "INFO")?.contains("cluster_state:ok") && slaves == MASTERS)
            })?;
        }
        // A replica that has never had its master's data does not take over.
        for at in cluster.addresses().into_iter().skip(MASTERS) {
            until("replicas have their data", || {
                let info = Client::connect(at)?.call(&["INFO", "replication"])?;
                Ok(info.text()?.contains("master_link_status:up"))
            })?;
        }
        Ok(cluster)
    }

    /// The first are the masters.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|(at, _)| *at).collect()
    }

    /// `kill -9` of a master. How long the others took to agree that it has failed.
    pub fn kill(&mut self) -> Result<Duration> {
        let (killed, mut child) = self.nodes.remove(0);
        child.kill()?;
        child.wait()?;
        let at = self.nodes[0].0;
        let port = format!(":{}@", killed.port());
        until("it is missed", || {
            let nodes = ask(at, "NODES")?;
            let mut lines = nodes.lines();
            let line = lines.find(|line| line.contains(&port));
            Ok(line.is_some_and(|line| line.contains("fail") && !line.contains("fail?")))
        })
    }

    pub fn version(&self) -> Result<String> {
        let mut client = Client::connect(self.nodes[0].0)?;
        let info = client.call(&["INFO", "server"])?.text()?;
        Ok(crate::sections::version(&info))
    }
}

impl Drop for RedisCluster {
    fn drop(&mut self) {
        for (_, child) in &mut self.nodes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn node(dir: PathBuf) -> Result<(SocketAddr, Child)> {
    std::fs::create_dir_all(&dir)?;
    let log = File::create(dir.join("log"))?;
    let [port, bus] = free_ports()?;
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "redis-server"])
        .args([
            "--port",
            &port.to_string(),
            "--cluster-port",
            &bus.to_string(),
        ])
        .args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--cluster-enabled",
            "yes",
        ])
        .args(["--cluster-node-timeout", &TIMEOUT_MS.to_string()])
        .args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"])
        .arg(&dir)
        .stdin(Stdio::null())
        .stdout(log)
        .spawn()
        .context("starting redis-server (Debian: apt-get install redis-server)")?;
    let at = (Ipv4Addr::LOCALHOST, port).into();
    until("it answers", || {
        Client::connect(at)?.call(&["PING"])?.text()?;
        Ok(true)
    })?;
    Ok((at, child))
}

fn ask(at: SocketAddr, what: &str) -> Result<String> {
    Client::connect(at)?.call(&["CLUSTER", what])?.text()
}

fn until(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<Duration> {
    let began = Instant::now();
    loop {
        match is_so() {
            Ok(true) => return Ok(began.elapsed()),
            other if began.elapsed() > PATIENCE => bail!("Redis Cluster: never: {what}: {other:?}"),
            _ => std::thread::sleep(LOOKS),
        }
    }
}
