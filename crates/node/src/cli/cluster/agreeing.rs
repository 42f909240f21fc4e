//! What the nodes of one machine agree through: an etcd of their own, one that is
//! there, or the process that started them.

use super::layout::{Agree, Layout};
use anyhow::{Context, Result, ensure};
use rufous_coordinator::loopback::Server;
use std::fs::File;
use std::process::{Child, Command, Stdio};

/// While it exists, nodes can agree.
pub(super) enum Agreeing {
    Process {
        _server: Server,
    },
    Etcd(Child),
    /// Somebody else's.
    Elsewhere,
}

/// Whether this program can use etcd, and there is one.
pub(super) fn usual() -> Agree {
    let there = || {
        let mut etcd = Command::new("etcd");
        let asked = etcd.arg("--version").stdout(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    match cfg!(feature = "etcd") && there() {
        true => Agree::Etcd,
        false => Agree::Process,
    }
}

impl Agreeing {
    pub(super) async fn begin(layout: &Layout) -> Result<Self> {
        ensure!(
            cfg!(feature = "etcd") || layout.plan.coordinator == Agree::Process,
            "this cluster agrees through etcd, and this program was built without the feature etcd"
        );
        match layout.plan.coordinator {
            Agree::Process => {
                let [port, _] = layout.agreeing();
                let at = ([127, 0, 0, 1], port).into();
                let agreed = layout.agreed();
                let server = Server::start(at, &layout.plan.name, Some(&agreed)).await;
                Ok(Self::Process { _server: server? })
            }
            Agree::Etcd => etcd(layout).map(Self::Etcd),
            Agree::At(_) => Ok(Self::Elsewhere),
        }
    }

    /// As a setting of nodes.
    pub(super) fn place(layout: &Layout) -> String {
        let scheme = match &layout.plan.coordinator {
            Agree::Process => "rufous",
            Agree::Etcd => "etcd",
            Agree::At(place) => return place.clone(),
        };
        let [port, _] = layout.agreeing();
        format!("{scheme}://127.0.0.1:{port}")
    }

    /// What it is, and what it is not.
    pub(super) fn text(layout: &Layout) -> String {
        let place = Self::place(layout);
        match layout.plan.coordinator {
            Agree::Process => format!(
                "This process ({place}) is the coordinator of the nodes. It is a single point of failure and\naccepts any connection from this machine. While it is down all keys are served, but nodes\ncannot join, leave or be replaced. Use etcd in production.\n"
            ),
            Agree::Etcd => format!(
                "The coordinator is an etcd with one member ({place}) on this machine.\nUse an etcd with three members in production.\n"
            ),
            Agree::At(_) => format!("The coordinator is {place}.\n"),
        }
    }

    pub(super) fn child(&mut self) -> Option<&mut Child> {
        match self {
            Self::Process { .. } | Self::Elsewhere => None,
            Self::Etcd(child) => Some(child),
        }
    }
}

fn etcd(layout: &Layout) -> Result<Child> {
    let [port, peer] = layout.agreeing();
    let agreed = layout.agreed();
    std::fs::create_dir_all(&agreed).with_context(|| format!("{}", agreed.display()))?;
    let log = File::options()
        .create(true)
        .append(true)
        .open(agreed.join("log"))?;
    let (client, peer) = (
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{peer}"),
    );
    let mut command = Command::new("etcd");
    command
        .args(["--name", "one", "--data-dir"])
        .arg(agreed.join("etcd"))
        .args(["--listen-client-urls", &client])
        .args(["--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer])
        .args(["--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("one={peer}")])
        .env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    super::start::apart(&mut command);
    command.spawn().context("cannot start etcd")
}
