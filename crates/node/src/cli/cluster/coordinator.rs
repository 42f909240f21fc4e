//! `rufous cluster coordinator`: the process in which the nodes of one machine agree. `start` has it as
//! a child, and it outlives a `start` that is killed, as the nodes do.

use super::layout::{Agree, FOLDER, Layout, lock};
use super::secret;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rufous_coordinator::loopback::{Secret, Server};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

const LOOK: Duration = Duration::from_secs(1);
/// Without a node for this long it ends: its nodes were stopped, and its `start` was killed.
const IDLE: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Coordinate {
    /// The folder of the cluster
    #[arg(long, value_name = "PATH", default_value = FOLDER)]
    dir: PathBuf,
}

pub(super) fn run(coordinate: &Coordinate) -> Result<()> {
    let dir = &coordinate.dir;
    let Some(layout) = Layout::open(dir)? else {
        bail!(
            "no cluster in {}: create one with `rufous cluster start`",
            dir.display()
        );
    };
    ensure!(
        layout.plan.coordinator == Agree::Process,
        "the nodes of the cluster in {} agree through etcd",
        dir.display()
    );
    let Some(_lock) = lock(&layout.agreed())? else {
        bail!(
            "the coordinator of the cluster in {} runs already",
            dir.display()
        );
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(serve(&layout))
}

async fn serve(layout: &Layout) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // A terminal that is closed does not end it.
    let mut hangup = signal(SignalKind::hangup())?;
    let [port, _] = layout.agreeing();
    let at = ([127, 0, 0, 1], port).into();
    // A cluster of an earlier version may have none.
    let secret = secret::read(&layout.secret())?;
    let secret = secret.map(|text| Secret::new(text.as_bytes()));
    let server = Server::start(at, &layout.plan.name, secret, Some(&layout.agreed())).await?;
    eprintln!(
        "the coordinator of cluster {} listens on {at}",
        layout.plan.name
    );
    let mut seen = Instant::now();
    while seen.elapsed() < IDLE {
        tokio::select! {
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            _ = hangup.recv() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
        if server.alive() > 0 {
            seen = Instant::now();
        }
    }
    eprintln!("no node for {} s: the coordinator ends", IDLE.as_secs());
    Ok(())
}
