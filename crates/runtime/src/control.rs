//! The control thread: accepts connections, runs what the caller spawns there
//! (admin HTTP, signals), and leads the node through its stop.

use crate::dial::{Dialling, dial};
use crate::inbox::Order;
use crate::listen::{Bound, accept_all};
use crate::shared::{Report, Shared};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

/// Replies get this long to leave, even where actors took all the time there was.
const LEAST_FLUSH: Duration = Duration::from_millis(500);
/// How often a stopping node looks whether its clients have left.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) struct Control {
    pub(crate) shared: Arc<Shared>,
    pub(crate) reports: UnboundedReceiver<Report>,
    pub(crate) listeners: Vec<Bound>,
    pub(crate) dialling: Dialling,
    pub(crate) farewell: Duration,
    pub(crate) drain: Duration,
}

impl Control {
    /// Serves until the node has stopped.
    pub(crate) async fn run(mut self) {
        let mut acceptors = JoinSet::new();
        for bound in self.listeners.drain(..) {
            let keepalive = self.dialling.keepalive.clone();
            acceptors.spawn(accept_all(bound, Arc::clone(&self.shared), keepalive));
        }
        let mut tally = Tally::default();
        let mut dials = JoinSet::new();
        while !tally.stop {
            match self.reports.recv().await {
                Some(report) => self.hear(report, &mut tally, &mut dials),
                None => return,
            }
        }
        tracing::info!("stopping");
        // Waits until the sockets are closed: from now on no client can connect.
        acceptors.shutdown().await;
        let until = Instant::now() + self.farewell;
        while self.shared.clients() > 0 && Instant::now() < until {
            match timeout(LOOK, self.reports.recv()).await {
                Ok(Some(report)) => self.hear(report, &mut tally, &mut dials),
                Ok(None) => return,
                Err(_) => {}
            }
        }
        self.shared.set_left_by_all();
        dials.shutdown().await;
        let mut deadline = Instant::now() + self.drain;
        let workers = self.shared.inboxes.len();
        self.shared.order_all(|| Order::Stop);
        while tally.stopped < workers && tally.ended < workers {
            match timeout_at(deadline, self.reports.recv()).await {
                Ok(Some(report)) => {
                    if report == Report::Progress {
                        deadline = Instant::now() + self.drain;
                    }
                    tally.count(report);
                }
                Ok(None) => return,
                Err(_) => {
                    tracing::warn!(
                        finished = tally.stopped,
                        workers,
                        "stopping without waiting any longer for what is under way"
                    );
                    break;
                }
            }
        }
        let until = deadline.max(Instant::now() + LEAST_FLUSH).into_std();
        self.shared.order_all(|| Order::Finish(until));
        while tally.ended < workers {
            match self.reports.recv().await {
                Some(report) => tally.count(report),
                None => return,
            }
        }
        self.end_last(deadline).await;
        tracing::info!("stopped");
    }

    fn hear(&self, report: Report, tally: &mut Tally, dials: &mut JoinSet<()>) {
        match report {
            Report::Dial(worker, wanted) => {
                while dials.try_join_next().is_some() {}
                let (shared, how) = (Arc::clone(&self.shared), self.dialling.clone());
                dials.spawn(dial(shared, how, worker, wanted));
            }
            report => tally.count(report),
        }
    }

    /// Waits for what wants to be waited for, not for ever.
    async fn end_last(&self, deadline: Instant) {
        let until = deadline.max(Instant::now() + LEAST_FLUSH);
        for last in self.shared.take_last() {
            if timeout_at(until, last).await.is_err() {
                tracing::warn!("stopping without waiting for the last task");
            }
        }
    }
}

#[derive(Default)]
struct Tally {
    stop: bool,
    stopped: usize,
    ended: usize,
    told: Vec<u16>,
}

impl Tally {
    fn count(&mut self, report: Report) {
        match report {
            Report::Stop => self.stop = true,
            // An actor may say so more than once.
            Report::Stopped(worker) if self.told.contains(&worker.0) => {}
            Report::Stopped(worker) => {
                self.told.push(worker.0);
                self.stopped += 1;
            }
            Report::Ended => self.ended += 1,
            // A stopping node dials no more connections.
            Report::Dial(..) | Report::Progress => {}
        }
    }
}
