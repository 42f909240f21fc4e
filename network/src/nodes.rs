//! The processes: nodes of a cluster, each in a namespace with its folder, its etcd in another.

mod operate;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rufous_bench::client::{Client, Reply};
use rustix::process::{Pid, Signal, kill_process};

use crate::demo::disk;
use crate::space::Host;

/// The cluster's name.
const NAME: &str = "network";
/// What its nodes prove to each other: they listen beyond loopback.
const SECRET: &str = "the secret of the test network";
/// What never happens ends a run after so long.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks of who waits.
const LOOKS: Duration = Duration::from_millis(50);
/// Keys that are written and read at each node to see that all slots are served.
const SWEPT: usize = 64;

/// How nodes are started.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub program: PathBuf,
    pub workers: usize,
    /// Has the processes' folders.
    pub folder: PathBuf,
    /// Each node has a disk of its own.
    pub disks: bool,
    /// Copies of each slot: one node less may be in trouble.
    pub copies: usize,
    /// Tables of a node's configuration file.
    pub keyspaces: String,
}

/// See the module's description.
pub struct Nodes {
    plan: Plan,
    nodes: Vec<Node>,
    /// A node under an address that no one reaches.
    unreached: Option<Process>,
    _etcd: Process,
}

pub struct Node {
    /// The first is 1.
    pub no: usize,
    pub host: Host,
    folder: PathBuf,
    /// Its permanent id.
    id: String,
    /// None while it is down.
    process: Option<Process>,
    way: Way,
}

/// What other nodes connect to, and what makes them wait: see [`crate::delay`].
struct Way {
    _process: Process,
    delay: ChildStdin,
}

fn id_of(no: usize) -> String {
    format!("{no:040x}")
}

/// A child that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Nodes {
    /// A mounted disk would keep the folder from being removed.
    fn drop(&mut self) {
        let _ = disk::release(&self.plan.folder.join("etcd"));
    }
}

impl Nodes {
    /// Starts etcd and so many nodes; they may not have met yet.
    pub fn start(plan: Plan, nodes: usize) -> Result<Self> {
        // The syncs of nodes must not delay those of etcd, which would end leases.
        disk::make_fast(&plan.folder.join("etcd"))?;
        let mut all = Self {
            _etcd: etcd(&plan.folder)?,
            plan,
            nodes: Vec::new(),
            unreached: None,
        };
        for no in 1..=nodes {
            all.add(no)?;
        }
        Ok(all)
    }

    /// Makes a node's folder, and starts it.
    pub(super) fn add(&mut self, no: usize) -> Result<()> {
        let folder = self.plan.folder.join(format!("node{no}"));
        if self.plan.disks {
            disk::make(&folder)?
        } else {
            std::fs::create_dir_all(&folder)?
        }
        let file = folder.with_extension("toml");
        std::fs::write(file, &self.plan.keyspaces)?;
        let host = Host::of_node(no);
        let way = way(&host, no)?;
        self.nodes.push(Node {
            no,
            host,
            folder,
            id: id_of(no),
            process: None,
            way,
        });
        self.start_again(no)
    }

    pub fn all(&self) -> &[Node] {
        &self.nodes
    }

    fn node(&mut self, no: usize) -> Result<&mut Node> {
        let node = self.nodes.iter_mut().find(|node| node.no == no);
        node.with_context(|| format!("there is no node {no}"))
    }

    /// From its folder, if there is something in it.
    pub fn start_again(&mut self, no: usize) -> Result<()> {
        self.start_in(no, &[])
    }

    /// Likewise, with these variables of the environment.
    pub fn start_in(&mut self, no: usize, environment: &[(&str, &str)]) -> Result<()> {
        self.launch(no, environment)?;
        self.node(no)?.answers()
    }

    /// Starts a node that may not be able to answer yet.
    pub fn launch(&mut self, no: usize, environment: &[(&str, &str)]) -> Result<()> {
        let plan = self.plan.clone();
        let node = self.node(no)?;
        let mut command = node.command(&plan)?;
        let child = command.envs(environment.iter().copied()).spawn();
        let child = child.with_context(|| format!("starting {}", plan.program.display()))?;
        node.process = Some(Process(child));
        Ok(())
    }

    /// Starts nodes in this order, and waits until all of them answer.
    pub fn start_all(&mut self, order: &[usize]) -> Result<()> {
        for no in order {
            self.launch(*no, &[])?;
        }
        order.iter().try_for_each(|no| self.node(*no)?.answers())
    }

    /// `kill -9`.
    pub fn kill(&mut self, no: usize) -> Result<()> {
        let node = self.node(no)?;
        node.is_running()?;
        node.process = None;
        Ok(())
    }

    /// It does nothing, and does not know it; or goes on.
    pub fn pause(&mut self, no: usize, pauses: bool) -> Result<()> {
        let signal = if pauses { Signal::STOP } else { Signal::CONT };
        self.node(no)?.signal(signal)
    }

    /// Ends a node in good order, and fails where its exit code is not 0.
    pub fn stop(&mut self, no: usize) -> Result<()> {
        let node = self.node(no)?;
        node.signal(Signal::TERM)?;
        let mut process = node.process.take().context("it does not run")?;
        let began = Instant::now();
        loop {
            if let Some(status) = process.0.try_wait()? {
                ensure!(status.success(), "node {no} ended with {status}");
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "node {no} does not stop");
            std::thread::sleep(LOOKS);
        }
    }

    /// What other nodes and it say to each other takes so long from now on, each way.
    pub fn delay(&mut self, no: usize, time: Duration) -> Result<()> {
        let node = self.node(no)?;
        writeln!(node.way.delay, "{}", time.as_millis())?;
        Ok(node.way.delay.flush()?)
    }

    /// Fails where one has ended that nobody killed.
    pub fn all_run(&mut self) -> Result<()> {
        self.nodes.iter_mut().try_for_each(Node::is_running)
    }

    /// Waits until each of them says that every slot has all its copies, and then
    /// writes and reads keys at each, and waits until all its workers serve lattice keys.
    pub fn until_whole(&mut self) -> Result<Duration> {
        let began = Instant::now();
        for node in &self.nodes {
            let mut command = Command::new(&self.plan.program);
            command
                .args(["cluster", "status", &node.plain().to_string()])
                .args(["--wait", &PATIENCE.as_secs().to_string()]);
            let output = command.output().context("rufous cluster status")?;
            ensure!(
                output.status.success(),
                "not all slots have all copies, says node {} after {} s:\n{}{}\n{}",
                node.no,
                began.elapsed().as_secs(),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
                self.last_words()
            );
        }
        let workers = self.plan.workers;
        let swept = self.nodes.iter().try_for_each(|node| {
            node.sweep()?;
            node.until_lattice_keys_are_served(workers)
        });
        swept.with_context(|| self.last_words())?;
        self.all_run()?;
        Ok(began.elapsed())
    }

    /// The ends of all logs.
    pub fn last_words(&self) -> String {
        let of = |node: &Node| format!("node {}:\n{}\n", node.no, node.last_words());
        self.nodes.iter().map(of).collect()
    }
}

impl Node {
    /// Where clients connect that know nothing of the cluster. No two nodes have the same port.
    pub fn plain(&self) -> SocketAddr {
        self.port(7000)
    }

    /// Where those connect that know it.
    pub fn door(&self) -> SocketAddr {
        self.port(7100)
    }

    fn port(&self, of: u16) -> SocketAddr {
        (self.host.address, of + self.no as u16).into()
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let process = self.process.as_ref().context("it does not run")?;
        let pid = Pid::from_raw(i32::try_from(process.0.id())?).context("no process")?;
        Ok(kill_process(pid, signal)?)
    }

    /// The server, with its output in the node's log.
    fn command(&self, plan: &Plan) -> Result<Command> {
        let log = self.log();
        let out = OpenOptions::new().create(true).append(true).open(&log)?;
        let inner = inner(self.no);
        let etcd = format!("etcd://{}:2379", Host::of_etcd().address);
        let address = self.host.address.to_string();
        let mut command = self.host.command(&plan.program);
        command
            .args(["server", "--bind", &address, "--save", "", "--config"])
            .arg(self.folder.with_extension("toml"))
            .args(["--appendonly", "yes", "--admin-port", "0", "--pin", "no"])
            .args(["--protected-mode", "no"])
            .args(["--port", &self.plain().port().to_string()])
            .args(["--workers", &plan.workers.to_string()])
            .args(["--cluster-name", NAME, "--cluster-id", &self.id])
            .args(["--log-segment-size", "4mb"])
            .args(["--cluster-listen", &inner.to_string()])
            .args(["--cluster-advertise", &address])
            .args(["--cluster-clients", &self.door().to_string()])
            .args(["--cluster-copies", &plan.copies.to_string()])
            .args(["--cluster-coordinator", &etcd])
            .arg("--dir")
            .arg(&self.folder)
            .env("RUFOUS_CLUSTER_SECRET", SECRET)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out);
        Ok(command)
    }

    fn answers(&mut self) -> Result<()> {
        let began = Instant::now();
        loop {
            let ping = Client::connect_within(self.plain(), LOOKS * 20);
            let reply = ping.and_then(|mut client| client.call(&["PING"]));
            if matches!(reply, Ok(Reply::Simple(text)) if text == "PONG") {
                return Ok(());
            }
            self.is_running()?;
            ensure!(
                began.elapsed() < PATIENCE,
                "node {} does not answer:\n{}",
                self.no,
                self.last_words()
            );
            std::thread::sleep(LOOKS);
        }
    }

    fn is_running(&mut self) -> Result<()> {
        let process = self.process.as_mut();
        let process = process.with_context(|| format!("node {} does not run", self.no))?;
        if let Some(status) = process.0.try_wait()? {
            bail!(
                "node {} ended with {status}:\n{}",
                self.no,
                self.last_words()
            );
        }
        Ok(())
    }

    /// What is written here is read here: of all nodes' slots.
    fn sweep(&self) -> Result<()> {
        for at in 0..SWEPT {
            let (key, value) = (format!("swept:{at}"), format!("{}", self.no));
            let mut client = self.until_written(&key, &value)?;
            let read = client.call(&["GET", &key])?;
            ensure!(
                read == Reply::Bulk(value.into_bytes()),
                "{key} at node {}: SET answered OK and then GET {read:?}",
                self.no
            );
        }
        Ok(())
    }

    /// Writes until that is acknowledged: who has just met etcd again may be heard of in
    /// a mapping or two, which leave the outcome of a write unknown, and its client disconnected.
    fn until_written(&self, key: &str, value: &str) -> Result<Client> {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut client = Client::connect_within(self.plain(), PATIENCE)?;
            let came = client.call(&["SET", key, value]);
            match came {
                Ok(Reply::Simple(text)) if text == "OK" => return Ok(client),
                other if Instant::now() > until => {
                    bail!("{key} at node {}: SET answered {other:?}", self.no)
                }
                _ => std::thread::sleep(LOOKS),
            }
        }
    }

    fn until_lattice_keys_are_served(&self, workers: usize) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let field = format!("cluster_gossip_workers_serving:{workers}");
        loop {
            let mut client = Client::connect_within(self.plain(), PATIENCE)?;
            let info = client.call(&["INFO", "cluster"])?.text()?;
            if info.lines().any(|line| line == field) {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "node {} does not serve lattice keys:\n{info}",
                self.no
            );
            std::thread::sleep(LOOKS);
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.with_extension("log")
    }

    fn last_words(&self) -> String {
        let log = std::fs::read(self.log()).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(3_000)..]).into_owned()
    }
}

/// Where a node itself listens for others: they come by the way before it.
fn inner(no: usize) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 7200 + no as u16).into()
}

fn way(host: &Host, no: usize) -> Result<Way> {
    let inner = inner(no);
    let outer = SocketAddr::from((host.address, inner.port()));
    let mut child = host
        .command(std::env::current_exe()?)
        .args(["delay", &outer.to_string(), &inner.to_string()])
        .stdin(Stdio::piped())
        .spawn()?;
    let delay = child.stdin.take().context("its input")?;
    Ok(Way {
        _process: Process(child),
        delay,
    })
}

fn etcd(folder: &Path) -> Result<Process> {
    let host = Host::of_etcd();
    let log = File::create(folder.join("etcd.log"))?;
    let clients = format!("http://{}:2379", host.address);
    let peers = "http://127.0.0.1:2380";
    let child = host
        .command("etcd")
        .args(["--name", "one", "--data-dir"])
        .arg(folder.join("etcd"))
        .args(["--listen-client-urls", &clients])
        .args(["--advertise-client-urls", &clients])
        .args(["--listen-peer-urls", peers])
        .args(["--initial-advertise-peer-urls", peers])
        .args(["--initial-cluster", &format!("one={peers}")])
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("starting etcd")?;
    let etcd = Process(child);
    let address = SocketAddr::from((host.address, 2379));
    let began = Instant::now();
    while std::net::TcpStream::connect_timeout(&address, LOOKS).is_err() {
        ensure!(began.elapsed() < PATIENCE, "etcd does not listen");
        std::thread::sleep(LOOKS);
    }
    Ok(etcd)
}
