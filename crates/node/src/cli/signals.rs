//! Signals: SIGTERM and SIGINT stop the node in good order, a second one at
//! once; SIGHUP opens the log file anew and loads certificates again; SIGXFSZ ends nothing, for a write beyond
//! a limit on the size of files fails with an error of its own.

use super::logging::Log;
use rufous::runtime::Handle;
use rufous_server::tls::Certificates;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGXFSZ on Linux, wherever it runs.
const FILE_TOO_LARGE: i32 = 25;

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// Takes over the signals; when this returns, they are in good hands.
pub(super) fn handle(
    node: &Handle,
    log: Log,
    certificates: Option<Arc<Certificates>>,
) -> io::Result<()> {
    let (installed, wait) = sync_channel(1);
    let stop = node.clone();
    node.spawn(async move {
        if let Some(signals) = install(&installed) {
            listen(signals, &stop, &log, certificates.as_deref()).await;
        }
    });
    // Nobody answers where the node has stopped already.
    wait.recv().unwrap_or(Ok(()))
}

fn install(installed: &SyncSender<io::Result<()>>) -> Option<Signals> {
    let all = || {
        // Whoever takes a signal over once has it for good.
        drop(signal(SignalKind::from_raw(FILE_TOO_LARGE))?);
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    };
    let (result, signals) = match all() {
        Ok(signals) => (Ok(()), Some(signals)),
        Err(error) => (Err(error), None),
    };
    let _ = installed.send(result);
    signals
}

async fn listen(
    mut signals: Signals,
    node: &Handle,
    log: &Log,
    certificates: Option<&Certificates>,
) {
    let mut asked = false;
    loop {
        let name = tokio::select! {
            _ = signals.terminate.recv() => "SIGTERM",
            _ = signals.interrupt.recv() => "SIGINT",
            _ = signals.hangup.recv() => {
                reopen(log);
                certificates.iter().for_each(|all| all.reload());
                continue;
            }
        };
        if asked {
            tracing::warn!(
                signal = name,
                "stopping at once, without waiting for what is under way"
            );
            std::process::exit(1);
        }
        asked = true;
        tracing::info!(
            signal = name,
            "stopping; send the signal again to stop at once"
        );
        super::notify::send("STOPPING=1");
        node.stop();
    }
}

fn reopen(log: &Log) {
    match log.reopen() {
        Ok(()) => tracing::info!("SIGHUP: log file reopened"),
        Err(error) => {
            tracing::error!(%error, "SIGHUP: cannot reopen the log file; the old one stays in use")
        }
    }
}
