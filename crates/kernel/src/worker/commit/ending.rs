//! The end of a log while the node goes on.

use super::{Commit, LogWriter, Note, Out, Store, WorkerId};

impl Commit {
    /// Logging is switched off; the open frame has ended. Reports to worker 0 once the log is
    /// closed. What a log that cannot be written has not written is given up.
    pub(in crate::worker) fn on_end(&mut self, store: &mut Store<'_>, out: &mut Out) {
        if self.log.is_none() {
            return out.tell(WorkerId(0), Note::LogEnded);
        }
        store
            .shard
            .observers_mut()
            .set_journaling(self.gates.is_some());
        self.closing = true;
        self.give_up_stuck(out);
    }

    pub(super) fn give_up_stuck(&mut self, out: &mut Out) {
        if self.closing && !self.ending && self.log.as_ref().is_some_and(LogWriter::is_stuck) {
            self.end(out);
        }
    }

    /// There is no log any more; positions continue after its last one.
    pub(super) fn end(&mut self, out: &mut Out) {
        let Some(log) = self.log.take() else {
            return;
        };
        self.base += log.appended();
        self.next_id = log.last_id();
        self.closing = false;
        out.tell(WorkerId(0), Note::LogEnded);
    }
}
