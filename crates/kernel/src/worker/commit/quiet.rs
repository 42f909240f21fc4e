//! The shutdown of a node: once no work is in progress anywhere, every worker closes its log.

use crate::durable::Note;
use crate::worker::out::Out;
use crate::worker::store::Store;
use rufous_base::WorkerId;

/// See the module's description.
#[derive(Debug, Default)]
pub(in crate::worker) struct Quiet {
    /// This worker has reported that it has no work in progress.
    said: bool,
    /// At worker 0: the number of such reports.
    heard: usize,
    /// All have reported: logs may be closed.
    may_close: bool,
}

impl Quiet {
    /// This worker has no work in progress that it began: reports it to worker 0. Returns whether
    /// it was reported before.
    pub(in crate::worker) fn say(&mut self, out: &mut Out) -> bool {
        let said = std::mem::replace(&mut self.said, true);
        if !said {
            out.tell(WorkerId(0), Note::Quiet);
        }
        said
    }

    pub(in crate::worker) fn on_quiet(&mut self) {
        self.heard += 1;
    }

    /// Whether no work is in progress anywhere.
    pub(in crate::worker) fn is_everywhere(&self, workers: usize) -> bool {
        self.may_close || self.heard == workers
    }

    /// At worker 0, when all are quiet: makes every worker close its log.
    pub(in crate::worker) fn close_logs(&self, store: &Store<'_>, out: &mut Out) {
        if !self.may_close {
            out.tell_all(store, || Note::CloseLogs);
        }
    }

    pub(in crate::worker) fn on_close_logs(&mut self) {
        self.may_close = true;
    }

    /// Whether logs are being closed: nothing is saved any more.
    pub(in crate::worker) fn may_close(&self) -> bool {
        self.may_close
    }
}
