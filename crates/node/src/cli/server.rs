//! `rufous server`: from the settings to the end of the node.

use super::arguments::Arguments;
use super::logging::{self, Log};
use super::{banner, check, fail, notify, signals};
use crate::admin;
use crate::node::{Node, NodeError};
use crate::settings::sources::Effective;
use anyhow::{Context, Result, anyhow, bail};
use rufous::runtime::{DirError, Handle, Listen, StartError};
use rufous_server::cluster::Settings;
use rufous_server::cluster::settings::CoordinatorAddress;
use rufous_server::config::{Config, LogLevel};
use rufous_server::front::shared::Shared;
use rufous_server::identity;
use std::io::{ErrorKind, IsTerminal, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a change of the log level is looked for.
const LEVEL_PERIOD: Duration = Duration::from_millis(250);

/// How often it is looked whether the data is loaded, and how often the log
/// tells how much of it is.
const LOAD_LOOK: Duration = Duration::from_millis(5);
const LOAD_REPORT: Duration = Duration::from_secs(2);

/// Runs a node until it has stopped. `plain`: without any arguments.
pub(super) fn run(arguments: Arguments, plain: bool) -> ExitCode {
    let Some(effective) = check::load(arguments) else {
        return ExitCode::FAILURE;
    };
    let log = match logging::start(&effective.config) {
        Ok(log) => log,
        Err(error) => {
            return fail(format!(
                "cannot open the log file '{}': {error}",
                effective.config.logfile
            ));
        }
    };
    match serve(&effective, &log, plain) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Also where a person or a supervisor looks who does not read the log.
            tracing::error!("cannot start: {error:#}");
            fail(format!("{error:#}"))
        }
    }
}

fn serve(effective: &Effective, log: &Log, plain: bool) -> Result<()> {
    let config = &effective.config;
    effective
        .warnings
        .iter()
        .for_each(|warning| tracing::warn!("{warning}"));
    let admin = admin_listener(effective)?;
    let node = Node::start(config).map_err(explain)?;
    let handle = node.handle();
    signals::handle(&handle, log.clone(), node.certificates.clone())
        .context("cannot take over signals")?;
    let admin_address = match admin {
        Some(listener) => Some(admin::serve(listener, &node).context("cannot serve metrics")?),
        None => None,
    };
    watch_level(&node, config.loglevel, log.clone());
    wait_until_loaded(&node);
    let shared = Arc::clone(&node.shared);
    if shared.start_error().is_none() {
        announce(&node, config, admin_address);
        notify::send("READY=1");
    }
    if shared.start_error().is_none() && (plain || std::io::stdout().is_terminal()) {
        let text = banner::text(
            handle.addresses(),
            admin_address,
            config.workers,
            !config.requirepass.is_empty(),
        );
        // A terminal that is gone is no reason to stop.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    node.join();
    if let Some(why) = shared.start_error() {
        bail!("{why}");
    }
    match shared.loss() {
        Some(why) if config.wants_folder() => {
            bail!("stopped, but the last changes may not be on disk: {why}")
        }
        _ => Ok(()),
    }
}

/// Waits until clients are served, and tells how far loading is. Addresses are
/// open meanwhile: whoever asks is told so too.
fn wait_until_loaded(node: &Node) {
    let (loading, handle) = (&node.shared.loading, node.handle());
    let mut told = Instant::now();
    while loading.is_loading() && !handle.is_stopping() {
        std::thread::sleep(LOAD_LOOK);
        if told.elapsed() >= LOAD_REPORT {
            told = Instant::now();
            tracing::info!(
                percent = loading.percent(),
                bytes = loading.done_bytes(),
                of = loading.total_bytes(),
                "loading"
            );
        }
    }
}

/// The socket for metrics and health. A default port that is taken is left
/// alone: several nodes may run on a machine.
fn admin_listener(effective: &Effective) -> Result<Option<TcpListener>> {
    let config = &effective.config;
    if config.admin_port == 0 {
        return Ok(None);
    }
    let (host, port) = (config.admin_bind.as_str(), config.admin_port);
    match TcpListener::bind((host, port)) {
        Ok(listener) if port == config.port => {
            drop(listener);
            tracing::warn!(
                port,
                "clients connect to the default admin port: metrics and health are off"
            );
            Ok(None)
        }
        Ok(listener) => Ok(Some(listener)),
        Err(error) if effective.is_given("admin-port") => {
            bail!("cannot listen on {host}:{port} for metrics and health (admin-port): {error}")
        }
        Err(error) => {
            tracing::warn!(port, %error, "cannot listen on the default admin port: metrics and health are off");
            Ok(None)
        }
    }
}

/// Adds what to do about it.
fn explain(error: NodeError) -> anyhow::Error {
    let advice = match &error {
        NodeError::Start(StartError::Listen { source, .. }) => match source.kind() {
            ErrorKind::AddrInUse => {
                "another process uses this port; choose another one with --port, or with --cluster-listen for other nodes"
            }
            ErrorKind::PermissionDenied => {
                "ports below 1024, and directories of others, need more rights"
            }
            ErrorKind::AddrNotAvailable => "this machine does not have that address; see --bind",
            _ => "",
        },
        NodeError::Folder(DirError::Create { source, .. } | DirError::Write { source, .. }) => {
            match source.kind() {
                ErrorKind::ReadOnlyFilesystem => {
                    "the file system is read-only: choose another folder with --dir, or keep data in memory alone with --appendonly no --save ''"
                }
                ErrorKind::PermissionDenied => {
                    "choose another folder with --dir, or grant this user write permission"
                }
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "make room, or choose another folder with --dir"
                }
                _ => "",
            }
        }
        _ => "",
    };
    if advice.is_empty() {
        error.into()
    } else {
        anyhow!("{error} ({advice})")
    }
}

/// Takes over the level of the log where `CONFIG SET` has changed it.
fn watch_level(node: &Node, mut level: LogLevel, log: Log) {
    let shared = node.shared.clone();
    node.handle().spawn(async move {
        loop {
            tokio::time::sleep(LEVEL_PERIOD).await;
            if let Some(settings) = shared.settings()
                && settings.loglevel != level
            {
                level = settings.loglevel;
                log.set_level(level);
            }
        }
    });
}

/// What the log says of a node that has started.
fn announce(node: &Node, config: &Config, admin: Option<SocketAddr>) {
    let handle = node.handle();
    for address in handle.addresses() {
        match address {
            Listen::Tcp(at) => tracing::info!(address = %at, "listening"),
            Listen::Tls(at) => tracing::info!(address = %at, "listening by TLS"),
            Listen::Unix { path, .. } => tracing::info!(path = %path.display(), "listening"),
        }
    }
    announce_cluster(&node.shared, &handle);
    if let Some(at) = admin {
        tracing::info!(address = %at, "metrics and health");
    }
    tracing::info!(
        version = identity::VERSION,
        pid = std::process::id(),
        workers = config.workers,
        maxclients = config.maxclients,
        open_files = handle.fd_limit().now,
        "ready"
    );
}

/// Where other nodes and clients that know clusters connect, and who it is that
/// agrees on the nodes.
fn announce_cluster(shared: &Shared, handle: &Handle) {
    let Some(cluster) = &shared.cluster else {
        return;
    };
    for at in handle.peer_addresses() {
        tracing::info!(address = %at, "listening for other nodes");
    }
    for at in handle.redirected_addresses() {
        tracing::info!(address = %at, "listening for clients that know clusters");
    }
    let Settings {
        name, coordinator, ..
    } = &cluster.settings;
    match coordinator {
        CoordinatorAddress::Local => tracing::info!(
            name,
            "a cluster of one: its coordinator is local, so no other node can join; for several give all of them the same etcd (cluster-coordinator)"
        ),
        _ => tracing::info!(name, %coordinator, "a node of a cluster"),
    }
}
