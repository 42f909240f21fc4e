//! Many clients at once, each with its ledger, until they are told to stop.

use super::Ledger;
use super::wire::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// Before a client that was turned away tries again.
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    acknowledged: AtomicU64,
}

pub(crate) struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Ledger>>,
}

impl Load {
    /// Each ledger gets a client, with up to `depth` commands under way.
    pub(crate) fn start(port: u16, ledgers: Vec<Ledger>, depth: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let start = |ledger| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || run(port, ledger, depth, &shared))
        };
        let threads = ledgers.into_iter().map(start).collect();
        Self { shared, threads }
    }

    /// Since the start of the load.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(SeqCst)
    }

    /// All clients end, after the replies they wait for, or without them
    /// where the node is gone.
    pub(crate) fn stop(self) -> Vec<Ledger> {
        self.shared.stop.store(true, SeqCst);
        let mut ledgers = Vec::new();
        for thread in self.threads {
            match thread.join() {
                Ok(ledger) => ledgers.push(ledger),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        ledgers
    }
}

/// A connection that was closed is opened anew: where a node cannot say what
/// became of a command, it closes.
fn run(port: u16, mut ledger: Ledger, depth: usize, shared: &Shared) -> Ledger {
    while ledger.wrong.is_empty() && !shared.stop.load(SeqCst) {
        let Ok(mut connection) = Connection::open(port) else {
            std::thread::sleep(PAUSE);
            continue;
        };
        loop {
            let before = (ledger.acknowledged, ledger.refused);
            let driven = ledger.drive(&mut connection, depth);
            let acknowledged = ledger.acknowledged - before.0;
            shared.acknowledged.fetch_add(acknowledged, SeqCst);
            if driven.is_err() || shared.stop.load(SeqCst) {
                break;
            }
            if ledger.refused > before.1 {
                std::thread::sleep(PAUSE);
            }
        }
    }
    ledger
}
