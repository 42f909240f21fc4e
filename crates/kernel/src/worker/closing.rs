//! The shutdown of a node: once no work is in progress anywhere, every worker closes its log.

use super::Worker;
use crate::durable::Note;
use crate::program::Program;
use rufous_base::{Now, WorkerId};

impl<P: Program> Worker<P> {
    /// The node stops, and this worker has no work in progress that it began. True once this holds
    /// for all workers: then no work is in progress anywhere.
    pub fn all_quiet(&mut self, now: Now) -> bool {
        self.say_quiet(now);
        self.durable.may_close || self.durable.quiet == self.placement.workers()
    }

    /// Reports to worker 0 that this worker has no work in progress. Returns whether it was
    /// reported before.
    pub fn say_quiet(&mut self, now: Now) -> bool {
        let said = std::mem::replace(&mut self.durable.said_quiet, true);
        if !said {
            self.tell(now, WorkerId(0), Note::Quiet);
        }
        said
    }

    /// At worker 0, when all are quiet: makes every worker close its log.
    pub fn close_logs(&mut self, now: Now) {
        if !self.durable.may_close {
            self.tell_all(now, || Note::CloseLogs);
        }
    }

    /// Ends the log. True once it is on disk, or if there is no log.
    pub fn close_log(&mut self, now: Now) -> bool {
        self.end_frame();
        let Some(log) = &mut self.durable.log else {
            return true;
        };
        self.durable.closing = true;
        self.durable.ending = true;
        log.close();
        log.poll(now, &mut self.out.disk);
        log.is_closed()
    }
}
