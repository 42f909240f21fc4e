//! A cluster of this machine as it lies in a folder, and where its nodes are
//! reached.
//!
//! ```text
//!   rufous-cluster/cluster.toml      what was chosen when it was made
//!   rufous-cluster/secret            what the nodes prove to each other
//!   rufous-cluster/agreed/           what the nodes have agreed on
//!   rufous-cluster/node-1/data/      of the first node; its log and its errors beside
//! ```
//!
//! A node's number determines its ports. The port for clients is that of the first node and so many
//! more; those for other nodes, for metrics and for clients that know clusters lie at fixed distances
//! above it, outside of the ports that the system takes for outgoing connections.

use super::ask::{Password, find, status_at};
use super::ports::{self, Above};
use super::secret;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rufous::runtime::{DirError, DirLock, lock_data_dir};
use rufous_server::cluster::settings::{CoordinatorAddress, Wrong};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

pub(super) const FOLDER: &str = "rufous-cluster";
const PLAN: &str = "cluster.toml";
const SECRET: &str = "secret";

/// More would be too many processes for a machine.
pub(super) const MAX_NODES: u16 = 64;
/// How long `add` waits for the node.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// What was chosen when the cluster was made, and holds from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) name: String,
    /// Of the first node.
    pub(super) port: u16,
    pub(super) copies: usize,
    pub(super) workers: usize,
    pub(super) coordinator: Agree,
    #[serde(default = "Above::of_old")]
    pub(super) above: Above,
}

/// What nodes agree through, written down as its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) enum Agree {
    /// One of the cluster's own.
    Etcd,
    Process,
    /// An etcd that somebody else runs, as nodes are told of it.
    At(String),
}

impl FromStr for Agree {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text {
            "etcd" => Ok(Self::Etcd),
            "process" => Ok(Self::Process),
            _ => match CoordinatorAddress::parse(text)? {
                CoordinatorAddress::Etcd(_) => Ok(Self::At(text.to_owned())),
                _ => Err(Wrong::Coordinator),
            },
        }
    }
}

impl TryFrom<String> for Agree {
    type Error = Wrong;

    fn try_from(text: String) -> Result<Self, Wrong> {
        text.parse()
    }
}

impl From<Agree> for String {
    fn from(agree: Agree) -> Self {
        match agree {
            Agree::Etcd => "etcd".to_owned(),
            Agree::Process => "process".to_owned(),
            Agree::At(place) => place,
        }
    }
}

/// Where a node is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) plain: u16,
    pub(super) peer: u16,
    pub(super) clients: u16,
    pub(super) admin: u16,
}

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) folder: PathBuf,
    pub(super) plan: Plan,
}

impl Layout {
    /// A new cluster, whose folder has nothing yet.
    pub(super) fn new(folder: &Path, plan: Plan) -> Self {
        let folder = folder.to_owned();
        Self { folder, plan }
    }

    /// Writes the plan into the folder. Whoever calls has its lock.
    pub(super) fn save(&self) -> Result<()> {
        let text = toml::to_string(&self.plan).context("cannot save the cluster's plan")?;
        let path = self.folder.join(PLAN);
        self.keep(&path, &text)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Whole or not at all, also if power is lost.
    fn keep(&self, path: &Path, text: &str) -> std::io::Result<()> {
        let made = path.with_extension("new");
        fs::write(&made, text)?;
        fs::File::open(&made)?.sync_all()?;
        fs::rename(&made, path)?;
        fs::File::open(&self.folder)?.sync_all()
    }

    pub(super) fn open(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(PLAN);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let plan: Plan = toml::from_str(&text)
            .with_context(|| format!("{} is not a valid plan of a cluster", path.display()))?;
        ensure!(
            plan.above.suits(plan.port),
            "{}: ports of two nodes would be the same, or above {}",
            path.display(),
            u16::MAX
        );
        let folder = folder.to_owned();
        Ok(Some(Self { folder, plan }))
    }

    /// The numbers of its nodes.
    pub(super) fn nodes(&self) -> Result<Vec<u16>> {
        let mut nodes = Vec::new();
        for entry in fs::read_dir(&self.folder).context("cannot read the cluster's folder")? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("node-"));
            let number = number.and_then(|number| number.parse().ok());
            nodes.extend(number.filter(|number| (1..=MAX_NODES).contains(number)));
        }
        nodes.sort_unstable();
        Ok(nodes)
    }

    /// The numbers of its nodes, once it has so many at least.
    pub(super) fn nodes_to_be(&self, least: u16) -> Result<Vec<u16>> {
        let mut nodes = self.nodes()?;
        while nodes.len() < usize::from(least) {
            nodes.push(nodes.last().map_or(1, |last| last + 1));
        }
        Ok(nodes)
    }

    /// Makes the folder of one more node.
    pub(super) fn add(&self) -> Result<u16> {
        let number = self.nodes()?.last().map_or(1, |last| last + 1);
        ensure!(
            number <= MAX_NODES,
            "the limit of {MAX_NODES} nodes on one machine is reached"
        );
        let folder = self.node(number);
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(number)
    }

    pub(super) fn node(&self, number: u16) -> PathBuf {
        self.folder.join(format!("node-{number}"))
    }

    /// The configuration that a node reads: its own, or the one of all nodes.
    pub(super) fn config_of(&self, number: u16) -> Option<PathBuf> {
        let all = [self.node(number), self.folder.clone()].into_iter();
        all.map(|folder| folder.join("rufous.toml"))
            .find(|file| file.is_file())
    }

    /// The file with the secret that the nodes prove to each other.
    pub(super) fn secret(&self) -> PathBuf {
        self.folder.join(SECRET)
    }

    /// Makes the secret, if there is none yet.
    pub(super) fn make_secret(&self) -> Result<()> {
        secret::make(&self.secret())
    }

    pub(super) fn agreed(&self) -> PathBuf {
        self.folder.join("agreed")
    }

    pub(super) fn ports(&self, number: u16) -> Ports {
        let (plain, above) = (self.plan.port + number.saturating_sub(1), self.plan.above);
        Ports {
            plain,
            peer: plain + above.peer,
            clients: plain + above.clients,
            admin: plain + above.admin,
        }
    }

    /// That of the coordinator, and one more if it needs one.
    pub(super) fn agreeing(&self) -> [u16; 2] {
        let first_peer = self.plan.port + self.plan.above.peer;
        [first_peer - 1, first_peer - 2]
    }

    /// An error that names each port of these nodes, and of the coordinator, that is taken.
    pub(super) fn check_ports(&self, nodes: &[u16], coordinator: Kept) -> Result<()> {
        let mut all = Vec::new();
        if coordinator == Kept::NotYet {
            let count = match self.plan.coordinator {
                Agree::Etcd => 2,
                Agree::Process => 1,
                Agree::At(_) => 0,
            };
            let ports = self.agreeing().into_iter().take(count);
            all.extend(ports.map(|port| (port, "the coordinator".to_owned())));
        }
        for number in nodes {
            let ports = self.ports(*number);
            all.extend([
                (ports.plain, format!("any client of node-{number}")),
                (ports.peer, format!("other nodes, of node-{number}")),
                (
                    ports.clients,
                    format!("clients that redirect, of node-{number}"),
                ),
                (ports.admin, format!("metrics of node-{number}")),
            ]);
        }
        let taken = all.into_iter().filter_map(|(port, what)| {
            let why = ports::obstacle(port)?;
            Some(format!("\n  port {port} (for {what}) {why}"))
        });
        let taken: String = taken.collect();
        ensure!(
            taken.is_empty(),
            "nodes cannot listen on their ports:{taken}\nStop these processes (nodes outlive a `rufous cluster start` that was killed), or give a new cluster\nother ports with --port and another folder with --dir."
        );
        Ok(())
    }

    pub(super) fn address(&self, number: u16) -> String {
        format!("127.0.0.1:{}", self.ports(number).plain)
    }
}

/// Whether a coordinator runs already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Runs,
    NotYet,
}

/// Takes the folder for this process; `None`: another one has it.
pub(super) fn lock(folder: &Path) -> Result<Option<DirLock>> {
    match lock_data_dir(folder) {
        Ok(lock) => Ok(Some(lock)),
        Err(DirError::InUse { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Add {
    /// The folder of the cluster
    #[arg(long, value_name = "PATH", default_value = FOLDER)]
    dir: PathBuf,
    #[command(flatten)]
    password: Password,
}

/// The process that has the cluster's nodes finds the folder of one more.
pub(super) fn add(add: &Add) -> Result<()> {
    let dir = &add.dir;
    let Some(layout) = Layout::open(dir)? else {
        bail!(
            "no cluster in {}: create one with `rufous cluster start`",
            dir.display()
        );
    };
    ensure!(
        lock(dir)?.is_none(),
        "the cluster in {} does not run: rufous cluster start --dir {0}",
        dir.display()
    );
    let next = layout.nodes()?.last().map_or(1, |last| last + 1);
    layout.check_ports(&[next], Kept::Runs)?;
    let number = layout.add()?;
    let at = layout.address(number);
    println!("node-{number} starts: {at}");
    let log = layout.node(number).join("log");
    let until = Instant::now() + PATIENCE;
    loop {
        let found = status_at(&at, &add.password);
        if found.is_ok_and(|status| find(&status, &at).is_ok_and(|node| node.is_alive)) {
            break;
        }
        ensure!(
            Instant::now() < until,
            "node-{number} did not become ready in time; see its log {}{}",
            log.display(),
            super::start::last_lines(&log)
        );
        std::thread::sleep(PAUSE);
    }
    println!("it has joined and receives its share of the slots: rufous cluster status {at}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(port: u16) -> Plan {
        Plan {
            name: "birds".into(),
            port,
            copies: 2,
            workers: 1,
            coordinator: Agree::Process,
            above: Above::of_old(),
        }
    }

    fn make(folder: &Path, plan: Plan) -> Layout {
        let layout = Layout::new(folder, plan);
        layout.save().expect("written");
        layout
    }

    #[test]
    fn a_cluster_is_found_again_as_it_was_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        assert!(Layout::open(folder).expect("read").is_none());
        let made = make(folder, plan(7001));
        assert_eq!(made.nodes_to_be(2).expect("read"), [1, 2]);
        assert_eq!(made.nodes().expect("read"), [] as [u16; 0]);
        assert_eq!((made.add().expect("one"), made.add().expect("two")), (1, 2));
        fs::create_dir(folder.join("node-x")).expect("somebody's");
        let again = Layout::open(folder).expect("read").expect("found");
        assert_eq!(again.plan, plan(7001));
        assert_eq!(again.nodes().expect("read"), [1, 2]);
        assert_eq!(again.address(2), "127.0.0.1:7002");
        fs::write(folder.join(PLAN), "port = 7\n").expect("written");
        assert!(Layout::open(folder).is_err());
    }

    #[test]
    fn what_nodes_agree_through_comes_back_from_its_text() {
        for text in ["etcd", "process", "etcd://10.0.0.1:2379,[::1]:2379"] {
            let agree: Agree = text.parse().expect("known");
            assert_eq!(String::from(agree.clone()), text);
            let folder = tempfile::tempdir().expect("a folder");
            let chosen = Plan {
                coordinator: agree,
                ..plan(7001)
            };
            make(folder.path(), chosen.clone());
            let found = Layout::open(folder.path()).expect("read");
            assert_eq!(found.map(|layout| layout.plan), Some(chosen));
        }
        for text in [
            "",
            "local",
            "rufous://a:1",
            "etcd://",
            "etcd://a",
            "http://a:1",
        ] {
            assert_eq!(text.parse::<Agree>(), Err(Wrong::Coordinator), "{text}");
        }
    }

    #[test]
    fn no_two_have_the_same_port() {
        let folder = tempfile::tempdir().expect("a folder");
        for port in [1, 7001, 40_000, 65_000] {
            let above = Above::choose(port, 3).expect("some");
            let plan = Plan {
                above,
                ..plan(port)
            };
            let layout = Layout::new(folder.path(), plan);
            let mut all: Vec<u16> = layout.agreeing().into();
            for number in 1..=MAX_NODES {
                let Ports {
                    plain,
                    peer,
                    clients,
                    admin,
                } = layout.ports(number);
                all.extend([plain, peer, clients, admin]);
            }
            all.sort_unstable();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{port}");
        }
    }

    /// Folders from before ports were chosen.
    #[test]
    fn a_folder_without_distances_keeps_its_ports() {
        let folder = tempfile::tempdir().expect("a folder");
        let text =
            "name = \"birds\"\nport = 7001\ncopies = 2\nworkers = 1\ncoordinator = \"process\"\n";
        fs::write(folder.path().join(PLAN), text).expect("written");
        let layout = Layout::open(folder.path()).expect("read").expect("found");
        let ports = layout.ports(2);
        assert_eq!(
            (ports.peer, ports.clients, ports.admin),
            (17_002, 27_002, 37_002)
        );
        assert_eq!(layout.agreeing(), [17_000, 16_999]);
        let text = format!("{text}[above]\npeer = 10\nadmin = 20\nclients = 30\n");
        fs::write(folder.path().join(PLAN), text).expect("written");
        assert!(Layout::open(folder.path()).is_err());
    }

    #[test]
    fn each_taken_port_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let port = rufous_ports::free_block(5, &[0, 10_000, 20_000, 30_000]).expect("free") + 2;
        let layout = Layout::new(folder.path(), plan(port));
        layout.check_ports(&[1, 2], Kept::NotYet).expect("free");
        let at = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).expect("free");
        let _taken = [at(port + 30_001), at(port + 9_999)];
        let why = layout
            .check_ports(&[1, 2], Kept::NotYet)
            .expect_err("taken");
        let why = why.to_string();
        let own = format!("process {}", std::process::id());
        assert_eq!(why.matches(&own).count(), 2, "{why}");
        for what in ["metrics of node-2", "the coordinator"] {
            assert!(why.contains(what), "{why}");
        }
    }

    #[test]
    fn a_cluster_runs_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = lock(folder.path()).expect("asked");
        assert!(first.is_some());
        assert!(lock(folder.path()).expect("asked").is_none());
        drop(first);
        assert!(lock(folder.path()).expect("asked").is_some());
    }
}
