//! The coordinator of the nodes of one machine: an etcd of their own, an existing one, or a process of
//! this program.

use super::layout::{Agree, Layout};
use super::start::{apart, last_lines, say, terminate};
use anyhow::{Context, Result, bail};
use rufous::runtime::{DirError, lock_data_dir};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a coordinator has to listen.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);
/// Between two starts of a coordinator that ends.
const AGAIN: Duration = Duration::from_secs(1);

/// While it runs, nodes can agree.
pub(super) struct Agreeing {
    runs: Runs,
    begun: Instant,
}

enum Runs {
    Child(Child),
    /// A process of this program whose `start` was killed. Without a number: another user's.
    Adopted(Option<u32>),
    /// An etcd that this program does not start.
    Elsewhere,
}

/// The kind of coordinator for a cluster whose user names none: etcd, if it is installed.
pub(super) fn usual() -> Agree {
    let mut etcd = Command::new("etcd");
    let asked = etcd.arg("--version").stdout(Stdio::null()).status();
    if asked.is_ok_and(|status| status.success()) {
        return Agree::Etcd;
    }
    Agree::Process
}

/// The process that serves the cluster's coordinator, if it was left by an earlier `start`.
pub(super) fn left(layout: &Layout) -> Option<Option<u32>> {
    if layout.plan.coordinator != Agree::Process || !layout.agreed().is_dir() {
        return None;
    }
    match lock_data_dir(&layout.agreed()) {
        Err(DirError::InUse { pid, .. }) => Some(pid),
        _ => None,
    }
}

impl Agreeing {
    pub(super) fn begin(layout: &Layout) -> Result<Self> {
        let runs = match (&layout.plan.coordinator, left(layout)) {
            (Agree::At(_), _) => Runs::Elsewhere,
            (_, Some(pid)) => Runs::Adopted(pid),
            (_, None) => Runs::Child(spawn(layout)?),
        };
        let mut agreeing = Self {
            runs,
            begun: Instant::now(),
        };
        let [port, _] = layout.agreeing();
        while !matches!(agreeing.runs, Runs::Elsewhere) {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            let ended = agreeing.ended()?;
            if ended.is_some() || agreeing.begun.elapsed() > PATIENCE {
                agreeing.stop();
                let log = layout.agreed().join("log");
                bail!(
                    "the coordinator did not start; see {}{}",
                    log.display(),
                    last_lines(&log)
                );
            }
            std::thread::sleep(PAUSE);
        }
        Ok(agreeing)
    }

    /// The setting of nodes.
    pub(super) fn place(layout: &Layout) -> String {
        let scheme = match &layout.plan.coordinator {
            Agree::Process => "rufous",
            Agree::Etcd => "etcd",
            Agree::At(place) => return place.clone(),
        };
        let [port, _] = layout.agreeing();
        format!("{scheme}://127.0.0.1:{port}")
    }

    /// What it is, and its limits.
    pub(super) fn text(layout: &Layout) -> String {
        let place = Self::place(layout);
        match layout.plan.coordinator {
            Agree::Process => format!(
                "The coordinator is a process of this program ({place}). It is a single point of failure:\nwhile it is down all keys are served, but nodes cannot join, leave or be replaced.\nUse etcd in production.\n"
            ),
            Agree::Etcd => format!(
                "The coordinator is an etcd with one member ({place}) on this machine.\nUse an etcd with three members in production.\n"
            ),
            Agree::At(_) => format!("The coordinator is {place}.\n"),
        }
    }

    /// Starts a coordinator again that has ended.
    pub(super) fn look(&mut self, layout: &Layout) -> Result<()> {
        let ended = match &self.runs {
            Runs::Adopted(_) => left(layout).is_none().then(|| "has ended".to_owned()),
            _ => self.ended()?,
        };
        let Some(how) = ended.filter(|_| self.begun.elapsed() > AGAIN) else {
            return Ok(());
        };
        let log = layout.agreed().join("log");
        say(&format!(
            "the coordinator {how}; it starts again; see {}\n",
            log.display()
        ));
        self.runs = Runs::Child(spawn(layout)?);
        self.begun = Instant::now();
        Ok(())
    }

    fn ended(&mut self) -> Result<Option<String>> {
        let Runs::Child(child) = &mut self.runs else {
            return Ok(None);
        };
        let status = child.try_wait()?;
        Ok(status.map(|status| format!("has ended ({status})")))
    }

    pub(super) fn stop(&mut self) {
        match &mut self.runs {
            Runs::Elsewhere => {}
            Runs::Child(child) => {
                terminate(child);
                let _gone = child.wait();
            }
            Runs::Adopted(pid) => {
                let pid = pid.and_then(|pid| i32::try_from(pid).ok());
                if let Some(pid) = pid.and_then(Pid::from_raw) {
                    // If it has ended already, there is nothing to do.
                    let _gone = kill_process(pid, Signal::TERM);
                }
            }
        }
    }
}

fn spawn(layout: &Layout) -> Result<Child> {
    let agreed = layout.agreed();
    std::fs::create_dir_all(&agreed).with_context(|| format!("{}", agreed.display()))?;
    let log = File::options()
        .create(true)
        .append(true)
        .open(agreed.join("log"))?;
    let mut command = match layout.plan.coordinator {
        Agree::Etcd => etcd(layout),
        _ => {
            let program = std::env::current_exe().context("cannot find this program")?;
            let mut command = Command::new(program);
            command.args(["cluster", "coordinator", "--dir"]);
            command.arg(&layout.folder);
            command
        }
    };
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    apart(&mut command);
    command.spawn().context("cannot start the coordinator")
}

fn etcd(layout: &Layout) -> Command {
    let [port, peer] = layout.agreeing();
    let (client, peer) = (
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{peer}"),
    );
    let mut command = Command::new("etcd");
    command
        .args(["--name", "one", "--data-dir"])
        .arg(layout.agreed().join("etcd"))
        .args(["--listen-client-urls", &client])
        .args(["--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer])
        .args(["--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("one={peer}")])
        .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH);
    command
}
