//! What the threads of one node know in common.

use crate::inbox::{Inbox, Incoming, Order};
use crate::stats::{Snapshot, WorkerStats};
use rufous_base::{ConnInfo, Dial, Origin, WorkerId};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Connections from peers that are other nodes or claim to be: several from
/// each node of the largest cluster.
const MAX_PEERS: usize = 4096;

/// Messages to the control thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// A stop of the node was requested.
    Stop,
    /// An actor has finished its pending work.
    Stopped(WorkerId),
    /// An actor's pending work has progressed.
    Progress,
    /// A worker has ended.
    Ended,
    /// An actor wants to have a connection.
    Dial(WorkerId, Dial),
}

pub(crate) struct Shared {
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    pub(crate) stats: Vec<Arc<WorkerStats>>,
    /// Connections that each worker was dealt and that have not ended.
    dealt: Vec<AtomicUsize>,
    /// Those of them that were accepted, from clients and from other nodes.
    clients: AtomicUsize,
    peers: AtomicUsize,
    max_clients: AtomicUsize,
    stopping: watch::Sender<bool>,
    /// A stopping node serves no client any more.
    left: watch::Sender<bool>,
    /// What the end of the node waits for.
    last: Mutex<Vec<JoinHandle<()>>>,
    /// Bounded: at most one `Stop`, one or two reports of each worker, and as
    /// many dials as actors have pending.
    reports: UnboundedSender<Report>,
    pub(crate) rejected: AtomicU64,
    pub(crate) accept_errors: AtomicU64,
    /// Of TLS: those that succeeded, and those that did not.
    pub(crate) handshakes: AtomicU64,
    pub(crate) handshake_errors: AtomicU64,
}

/// Room for one connection from outside; free again where it is dropped.
pub(crate) struct Room {
    shared: Arc<Shared>,
    origin: Origin,
    /// Its holder gives it back: see [`Shared::left`].
    is_dealt: bool,
}

impl Room {
    /// Nothing where the node has the most that it accepts of this kind.
    pub(crate) fn take(shared: &Arc<Shared>, origin: Origin) -> Option<Self> {
        let most = match origin {
            Origin::Peer => MAX_PEERS,
            _ => shared.max_clients.load(Ordering::Relaxed),
        };
        let one_more = |open| (open < most).then_some(open + 1);
        let taken = shared.accepted(origin).is_none_or(|open| {
            open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
                .is_ok()
        });
        taken.then(|| Self {
            shared: Arc::clone(shared),
            origin,
            is_dealt: false,
        })
    }

    /// Gives it to a connection.
    pub(crate) fn deal(mut self, incoming: Incoming, info: ConnInfo) {
        self.is_dealt = true;
        self.shared.deal(incoming, info);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.is_dealt {
            self.shared.gone(self.origin);
        }
    }
}

impl Shared {
    pub(crate) fn new(
        inboxes: Vec<Arc<Inbox>>,
        stats: Vec<Arc<WorkerStats>>,
        max_clients: usize,
        reports: UnboundedSender<Report>,
    ) -> Self {
        Self {
            dealt: inboxes.iter().map(|_| AtomicUsize::new(0)).collect(),
            inboxes,
            stats,
            clients: AtomicUsize::new(0),
            peers: AtomicUsize::new(0),
            max_clients: AtomicUsize::new(max_clients),
            stopping: watch::Sender::new(false),
            left: watch::Sender::new(false),
            last: Mutex::default(),
            reports,
            rejected: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
            handshakes: AtomicU64::new(0),
            handshake_errors: AtomicU64::new(0),
        }
    }

    /// Gives a connection to the worker with the fewest. One from outside has
    /// taken its [`Room`].
    pub(crate) fn deal(&self, incoming: Incoming, info: ConnInfo) {
        let fewest = (0..self.dealt.len())
            .min_by_key(|&worker| self.dealt[worker].load(Ordering::Relaxed))
            .unwrap_or(0);
        self.deal_to(WorkerId(fewest as u16), incoming, info);
    }

    pub(crate) fn deal_to(&self, worker: WorkerId, incoming: Incoming, info: ConnInfo) {
        self.dealt[worker.index()].fetch_add(1, Ordering::Relaxed);
        self.inboxes[worker.index()].order(Order::Open(incoming, info));
    }

    /// A connection of `worker` has ended.
    pub(crate) fn left(&self, worker: WorkerId, origin: Origin) {
        self.dealt[worker.index()].fetch_sub(1, Ordering::Relaxed);
        self.gone(origin);
    }

    fn gone(&self, origin: Origin) {
        if let Some(open) = self.accepted(origin) {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn accepted(&self, origin: Origin) -> Option<&AtomicUsize> {
        match origin {
            Origin::Client | Origin::Redirected => Some(&self.clients),
            Origin::Peer => Some(&self.peers),
            Origin::Dialled { .. } | Origin::Internal => None,
        }
    }

    pub(crate) fn set_max_clients(&self, most: usize) {
        self.max_clients.store(most, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        if !self.stopping.send_replace(true) {
            self.report(Report::Stop);
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(crate) fn set_left_by_all(&self) {
        self.left.send_replace(true);
    }

    pub(crate) fn left_by_all(&self) -> watch::Receiver<bool> {
        self.left.subscribe()
    }

    /// Connections of clients.
    pub(crate) fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Has the end of the node wait for it.
    pub(crate) fn wait_for(&self, last: JoinHandle<()>) {
        self.last().push(last);
    }

    pub(crate) fn take_last(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut *self.last())
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn report(&self, report: Report) {
        // Without a control thread there is no receiver.
        let _ = self.reports.send(report);
    }

    pub(crate) fn order_all(&self, order: impl Fn() -> Order) {
        for inbox in &self.inboxes {
            inbox.order(order());
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            workers: self.stats.iter().map(|stats| stats.snapshot()).collect(),
            rejected: self.rejected.load(Ordering::Relaxed),
            accept_errors: self.accept_errors.load(Ordering::Relaxed),
            handshakes: self.handshakes.load(Ordering::Relaxed),
            handshake_errors: self.handshake_errors.load(Ordering::Relaxed),
        }
    }
}
