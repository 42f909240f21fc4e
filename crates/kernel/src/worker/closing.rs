//! The end of a node: once nothing is under way anywhere, every worker brings
//! its log to its end.

use super::Worker;
use crate::durable::Note;
use crate::program::Program;
use rufous_base::{Now, WorkerId};

impl<P: Program> Worker<P> {
    /// The node stops, and this worker has nothing under way that it began.
    /// True once all workers are so: then nothing is under way anywhere.
    pub fn all_quiet(&mut self, now: Now) -> bool {
        self.say_quiet(now);
        self.durable.may_close || self.durable.quiet == self.placement.workers()
    }

    /// Has worker 0 know that this worker has nothing under way. Returns
    /// whether it was said before.
    pub fn say_quiet(&mut self, now: Now) -> bool {
        let said = std::mem::replace(&mut self.durable.said_quiet, true);
        if !said {
            self.tell(now, WorkerId(0), Note::Quiet);
        }
        said
    }

    /// At worker 0, when all are quiet: has every worker close its log.
    pub fn close_logs(&mut self, now: Now) {
        if !self.durable.may_close {
            self.tell_all(now, || Note::CloseLogs);
        }
    }

    /// Brings the log to its end. True once it is on disk, or where there is none.
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
