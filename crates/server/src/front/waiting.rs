//! Requests that may not run yet, and replies that may not be sent yet.

use super::Front;
use super::connection::{Connection, Deferred, ParsedKey, ReplyMode, Slot, What};
use rufous_base::{Args, Output};
use rufous_command::{Failure, Flags, Spec};
use rufous_kernel::{Batch, Header};

impl Front {
    /// Whether a request has to be refused because the data is not loaded yet. A client that was
    /// served by the first worker that is ready could meet one that is not by its next connection.
    #[inline]
    pub(crate) fn refuses_while_loading(&self, spec: &Spec) -> bool {
        let loads = self.durability.loading || self.declared.is_awaited();
        (loads || self.shared.loading.is_loading()) && !spec.flags.has(Flags::LOADING)
    }

    pub(crate) fn loading_failure(&self) -> Failure {
        let percent = self.shared.loading.percent();
        format!("LOADING Rufous is loading the dataset in memory ({percent} % so far)").into()
    }
}

impl Connection {
    /// The kernel's view of the next request.
    #[inline]
    pub(super) fn header(
        &self,
        command: u16,
        quiet: bool,
        first_key: Option<&ParsedKey>,
    ) -> Header {
        Header {
            conn: self.id,
            client: self.client_id,
            seq: self.next_seq(),
            command,
            db: self.db,
            resp3: self.resp3,
            no_touch: self.no_touch,
            quiet,
            door: self.door().of_requests(),
            key: first_key.map_or(0, |k| k.arg as u8),
            hash: first_key.map_or(0, |k| k.hash),
        }
    }

    /// Notes whether the reply to this request is left out. A second call does nothing.
    pub(super) fn begin_request(&mut self) {
        if self.reply_mode == ReplyMode::SkipNext {
            self.reply_mode = ReplyMode::Skipping;
        }
    }

    /// Defers a parsed request.
    pub(super) fn defer(&mut self, what: What, quiet: bool, args: Args<'_>, errors: &[String]) {
        if let What::Malformed(index) = what {
            let text = errors.get(index as usize).cloned().unwrap_or_default();
            self.deferred.push_back(Deferred::Malformed(text));
            return;
        }
        let request = self.copy_of(quiet, args);
        self.deferred.push_back(request);
    }

    pub(super) fn defer_first(&mut self, quiet: bool, args: Args<'_>) {
        let request = self.copy_of(quiet, args);
        self.deferred.push_front(request);
    }

    fn copy_of(&self, quiet: bool, args: Args<'_>) -> Deferred {
        let mut batch = Box::<Batch>::default();
        let header = Header {
            conn: self.id,
            client: self.client_id,
            seq: 0,
            command: 0,
            db: self.db,
            resp3: self.resp3,
            no_touch: self.no_touch,
            quiet,
            door: self.door().of_requests(),
            key: 0,
            hash: 0,
        };
        batch.push(header, args);
        Deferred::Request(batch)
    }

    /// Moves the reply written since `mark` behind the pending ones.
    pub(super) fn put_late(&mut self, mark: (usize, usize), out: &mut Output) {
        let start = self.late.mark();
        self.late.append_range(out, mark, out.mark());
        out.truncate(mark);
        self.slots.push_back(Slot::Late {
            start,
            end: self.late.mark(),
        });
    }
}
