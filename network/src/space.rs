//! A network of namespaces on a bridge: one for each node, one for etcd.
//!
//! The program starts itself again in namespaces of its own (`unshare`): mounts, processes and
//! the network in which the clients and the bridge are. The kernel takes all of it away with
//! the last process, so nothing has to be cleaned up.

use std::ffi::{OsStr, OsString};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

/// Where the clients are.
const HERE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 254);
const BRIDGE: &str = "br0";
/// The network card of each namespace.
const CARD: &str = "eth0";

/// A namespace with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub address: Ipv4Addr,
}

impl Host {
    /// The host of a node; the first is 1.
    pub fn of_node(no: usize) -> Self {
        Self {
            name: format!("node{no}"),
            address: Ipv4Addr::new(10, 77, 0, no as u8),
        }
    }

    pub fn of_etcd() -> Self {
        Self {
            name: "etcd".to_owned(),
            address: Ipv4Addr::new(10, 77, 0, 100),
        }
    }

    /// A program that runs there. The process is the program's own.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Plugs its card into the bridge.
    fn make(&self) -> Result<()> {
        let (name, link) = (self.name.as_str(), self.link());
        run(&["ip", "netns", "add", name])?;
        let pair = ["ip", "link", "add", &link, "type", "veth", "peer", "name"];
        run(&[&pair[..], &[CARD, "netns", name]].concat())?;
        run(&["ip", "link", "set", &link, "master", BRIDGE, "up"])?;
        let address = format!("{}/24", self.address);
        run(&["ip", "-n", name, "addr", "add", &address, "dev", CARD])?;
        for card in ["lo", CARD] {
            run(&["ip", "-n", name, "link", "set", card, "up"])?;
        }
        Ok(())
    }

    /// Its end at the bridge.
    fn link(&self) -> String {
        format!("v-{}", self.name)
    }

    /// Pulls the plug, or puts it in again.
    pub fn plug(&self, is_in: bool) -> Result<()> {
        let state = if is_in { "up" } else { "down" };
        run(&["ip", "link", "set", &self.link(), state])
    }
}

/// Makes the bridge and all hosts. To be called in namespaces of one's own.
pub fn make(hosts: &[Host]) -> Result<()> {
    hide_others()?;
    run(&["ip", "link", "set", "lo", "up"])?;
    run(&["ip", "link", "add", BRIDGE, "type", "bridge"])?;
    let address = format!("{HERE}/24");
    run(&["ip", "addr", "add", &address, "dev", BRIDGE])?;
    run(&["ip", "link", "set", BRIDGE, "up"])?;
    hosts.iter().try_for_each(Host::make)
}

/// Names of namespaces that others have made are not ours to see, nor ours theirs.
fn hide_others() -> Result<()> {
    run(&["mount", "-t", "tmpfs", "none", "/run"])?;
    std::fs::create_dir_all("/run/netns").context("/run/netns")
}

/// What keeps this machine from it.
pub fn obstacle() -> Option<String> {
    for (program, package) in [
        ("ip", "iproute2"),
        ("unshare", "util-linux"),
        ("setpriv", "util-linux"),
        ("etcd", "etcd-server"),
    ] {
        if !is_there(program) {
            return Some(format!("no {program}: apt-get install {package}"));
        }
    }
    let trial = format!(
        "mount -t tmpfs none /run && mkdir /run/netns && ip netns add try && \
         ip link add {BRIDGE} type bridge && \
         ip link add v-try type veth peer name {CARD} netns try && \
         ip netns exec try ip link set lo up"
    );
    let output = apart("sh").args(["-c", &trial]).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("no reason given").to_owned();
            Some(format!("no network namespaces: {said}"))
        }
        Err(error) => Some(format!("no network namespaces: {error}")),
    }
}

fn is_there(program: &str) -> bool {
    std::env::split_paths(&path()).any(|path| path.join(program).is_file())
}

/// Not everybody has the administrator's programs in the path.
fn path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

/// A program in namespaces of its own, in which it may do what root may. It ends with
/// who started it.
fn apart(program: impl AsRef<OsStr>) -> Command {
    // It must not outlive this process, nor its child it, however they end.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare"]);
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child"])
        .arg("--mount-proc")
        .arg(program)
        .env("PATH", path());
    command
}

/// Starts this program again, apart from everything else, and waits for its end.
pub fn again(program: &Path, words: &[String]) -> Result<ExitStatus> {
    let status = apart(program).args(words).status();
    status.context("cannot run unshare")
}

/// Runs a command that has to succeed.
pub fn run(words: &[&str]) -> Result<()> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    let output = command.output();
    let output = output.with_context(|| format!("cannot run {}", words[0]))?;
    ensure!(
        output.status.success(),
        "{}: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
