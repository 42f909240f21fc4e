//! A cluster of processes of this machine, whose nodes come, go and are killed.
//!
//! | module | concept |
//! |---|---|
//! | [`coordinator`] | where its nodes agree |
//! | [`look`] | what one node knows of all |
//! | [`redis`] | a Redis Cluster beside it |

pub mod coordinator;
pub mod look;
pub mod redis;

use std::cell::Cell;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rufous_ports::free_ports;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::{Client, Reply};
use coordinator::Coordinator;
use look::Look;

/// The cluster's name.
const NAME: &str = "bench";
/// What never happens ends a run after so long.
const PATIENCE: Duration = Duration::from_secs(120);
/// So long nothing must change where all is done.
const STEADY: Duration = Duration::from_secs(1);
/// How often nodes are looked at by who waits.
const LOOKS: Duration = Duration::from_millis(20);

/// The server, as users name it.
#[derive(Args, Clone, Debug)]
pub struct Program {
    /// Rufous's binary [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    rufous: Option<PathBuf>,
    /// Further words for each node, as `rufous server` takes them
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        allow_hyphen_values = true
    )]
    words: String,
}

impl Program {
    pub fn plan(&self, workers: usize, copies: usize) -> Result<Plan> {
        let beside = std::env::current_exe()?.with_file_name("rufous");
        let program = self.rufous.clone().unwrap_or(beside);
        ensure!(
            program.is_file(),
            "no server at {}: build it first",
            program.display()
        );
        let words = self.words.split_whitespace().map(str::to_owned).collect();
        Ok(Plan {
            program,
            words,
            workers,
            copies,
        })
    }
}

/// How its nodes are started.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub program: PathBuf,
    /// Further words for each.
    pub words: Vec<String>,
    pub workers: usize,
    pub copies: usize,
}

impl Plan {
    /// With further words; of an option given twice, the last counts.
    pub fn with(mut self, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned());
        self.words.splice(0..0, words);
        self
    }
}

/// See the module's description.
pub struct Nodes {
    plan: Plan,
    running: Vec<Node>,
    started: usize,
    coordinator: Coordinator,
    folder: TempDir,
}

/// One process.
pub struct Node {
    /// The first that was started is 1.
    pub no: usize,
    /// Where clients connect that know nothing of the cluster.
    pub plain: SocketAddr,
    /// Where those do that know it.
    pub door: SocketAddr,
    child: Child,
    log: PathBuf,
}

impl Nodes {
    /// One without nodes.
    pub fn new(plan: Plan) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("rufous-nodes-").tempdir()?;
        Ok(Self {
            coordinator: Coordinator::start(NAME, folder.path())?,
            plan,
            running: Vec::new(),
            started: 0,
            folder,
        })
    }

    pub fn running(&self) -> &[Node] {
        &self.running
    }

    pub fn get(&self, no: usize) -> Result<&Node> {
        let mut running = self.running.iter();
        let node = running.find(|node| node.no == no);
        node.with_context(|| format!("node {no} does not run"))
    }

    /// Starts one more; it is in the cluster later. Returns its number.
    pub fn start(&mut self) -> Result<usize> {
        let no = self.started + 1;
        let dir = self.folder.path().join(format!("node{no}"));
        std::fs::create_dir_all(&dir)?;
        let log = dir.join("log");
        let [plain, door, peers] = free_ports()?;
        let out = File::create(&log)?;
        let child = self
            .command(plain, door, peers)
            .arg("--dir")
            .arg(&dir)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("starting {}", self.plan.program.display()))?;
        self.started = no;
        let mut node = Node {
            no,
            plain: (Ipv4Addr::LOCALHOST, plain).into(),
            door: (Ipv4Addr::LOCALHOST, door).into(),
            child,
            log,
        };
        node.answers()?;
        self.running.push(node);
        Ok(no)
    }

    fn command(&self, plain: u16, door: u16, peers: u16) -> Command {
        // The nodes must not outlive this process, however it ends.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .arg(&self.plan.program)
            .args(["server", "--bind", "127.0.0.1", "--save", ""])
            .args(["--admin-port", "0", "--pin", "no"])
            .args(["--port", &plain.to_string()])
            .args(["--workers", &self.plan.workers.to_string()])
            .args(["--cluster-name", NAME])
            .args(["--cluster-listen", &format!("127.0.0.1:{peers}")])
            .args(["--cluster-clients", &format!("127.0.0.1:{door}")])
            .args(["--cluster-copies", &self.plan.copies.to_string()])
            .args(["--cluster-coordinator", self.coordinator.place()])
            .args(&self.plan.words);
        command
    }

    /// What one of them knows.
    pub fn look(&self) -> Result<Look> {
        let node = self.running.first().context("no node runs")?;
        node.look()
    }

    /// Waits until one of them sees what is waited for. How long that took.
    pub fn until(&self, what: &str, is_so: impl Fn(&Look) -> bool) -> Result<Duration> {
        let node = self.running.first().context("no node runs")?;
        let began = Instant::now();
        loop {
            let look = node.look();
            if let Ok(look) = &look
                && is_so(look)
            {
                return Ok(began.elapsed());
            }
            if began.elapsed() > PATIENCE {
                bail!("never: {what}: {look:?}\n{}", self.last_words());
            }
            std::thread::sleep(LOOKS);
        }
    }

    /// Waits until all that run are members, every slot has its copies at nodes that run, and
    /// nothing changes any more. How long that took, without the time to be sure.
    pub fn until_whole(&self) -> Result<Duration> {
        let doors: Vec<u16> = self.running.iter().map(|node| node.door.port()).collect();
        let copies = self.plan.copies.min(doors.len());
        let steady = Cell::new((0, Instant::now()));
        let took = self.until("all copies", |look| {
            let is_whole = look.alive == doors.len()
                && look.thin(copies, &doors) == 0
                && look.is_balanced(&doors);
            let (epoch, since) = steady.get();
            if epoch != look.epoch || !is_whole {
                steady.set((look.epoch, Instant::now()));
                return false;
            }
            since.elapsed() >= STEADY
        })?;
        Ok(took.saturating_sub(STEADY))
    }

    /// Has a node give its slots to others. How long that took.
    pub fn drain(&self, no: usize) -> Result<Duration> {
        let node = self.get(no)?;
        let reply = node.client()?.call(&["CLUSTER", "DRAIN", "ON"])?;
        ensure!(
            reply == Reply::Simple("OK".into()),
            "CLUSTER DRAIN: {reply:?}"
        );
        let door = node.door.port();
        self.until("it is drained", |look| look.slots_with(door) == 0)
    }

    /// Asks a node to end, and waits for that.
    pub fn stop(&mut self, no: usize) -> Result<()> {
        let mut node = self.take(no)?;
        kill_process(node.pid()?, Signal::TERM)?;
        let began = Instant::now();
        while node.child.try_wait()?.is_none() {
            ensure!(began.elapsed() < PATIENCE, "node {no} does not end");
            std::thread::sleep(LOOKS);
        }
        Ok(())
    }

    /// `kill -9`.
    pub fn kill(&mut self, no: usize) -> Result<()> {
        let mut node = self.take(no)?;
        node.child.kill()?;
        node.child.wait()?;
        Ok(())
    }

    fn take(&mut self, no: usize) -> Result<Node> {
        let at = self.running.iter().position(|node| node.no == no);
        let at = at.with_context(|| format!("node {no} does not run"))?;
        let mut node = self.running.remove(at);
        let ended = node.child.try_wait()?;
        ensure!(
            ended.is_none(),
            "node {no} has ended by itself:\n{}",
            node.last_words()
        );
        Ok(node)
    }

    /// The ends of all logs.
    pub fn last_words(&self) -> String {
        let of = |node: &Node| format!("node {}:\n{}\n", node.no, node.last_words());
        self.running.iter().map(of).collect()
    }

    /// Fails where one has ended that nobody stopped.
    pub fn all_run(&mut self) -> Result<()> {
        for node in &mut self.running {
            if let Some(status) = node.child.try_wait()? {
                bail!(
                    "node {} ended with {status}:\n{}",
                    node.no,
                    node.last_words()
                );
            }
        }
        Ok(())
    }
}

impl Node {
    pub fn client(&self) -> Result<Client> {
        Client::connect_within(self.plain, PATIENCE)
    }

    pub fn look(&self) -> Result<Look> {
        Look::through(&mut self.client()?)
    }

    fn pid(&self) -> Result<Pid> {
        let raw = i32::try_from(self.child.id())?;
        Pid::from_raw(raw).context("no process")
    }

    /// The process, for its CPU time.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    fn answers(&mut self) -> Result<()> {
        let began = Instant::now();
        loop {
            let ping = Client::connect_within(self.plain, PATIENCE);
            let reply = ping.and_then(|mut client| client.call(&["PING"]));
            if matches!(reply, Ok(Reply::Simple(text)) if text == "PONG") {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("a node ended with {status}:\n{}", self.last_words());
            }
            ensure!(began.elapsed() < PATIENCE, "a node does not answer");
            std::thread::sleep(LOOKS);
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(2_000)..]).into_owned()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
