//! Replies to requests that did not run in the call that submitted them. Each waits for the earlier
//! replies on its connection.

use super::gather::Answer;
use super::replies::Written;
use super::{Front, Message, keyspaces};
use crate::cluster::jobs::is_job;
use rufous_base::{Close, ConnId, Effects, Now, Output, WorkerId};
use rufous_command::{DataCommands, Reply};
use rufous_kernel::batch::{Door, ReplyRange, Status};
use rufous_kernel::worker::WaitEnd;
use rufous_kernel::{Batch, Header, Outcome, Program};

impl Front {
    /// Handles the outcomes of requests that were submitted earlier. To be called after every call
    /// of the kernel that may run requests. Returns whether there were any.
    #[inline]
    pub(crate) fn deliver_outcomes(&mut self, fx: &mut Effects<Message>) -> bool {
        let mut any = false;
        while let Some(outcome) = self.kernel.next_outcome() {
            any = true;
            self.deliver_outcome(outcome, fx);
        }
        any
    }

    fn deliver_outcome(&mut self, outcome: Outcome, fx: &mut Effects<Message>) {
        match outcome {
            Outcome::Replies(batch) => self.deliver_batch(batch, fx),
            Outcome::Lost(header) => self.lose(&header, fx),
            Outcome::Transacted(transacted) => {
                self.apart(Now::default()).on_transacted(&transacted, fx)
            }
            Outcome::Waits(header) => self.on_waits(&header, fx),
        }
    }

    /// A request that was submitted to the kernel waits for data.
    fn on_waits(&mut self, header: &Header, fx: &mut Effects<Message>) {
        let conn = header.conn;
        if is_job(conn) {
            if let Some(how) = self.peers.on_waits(conn) {
                self.kernel.end_wait(conn, how);
            }
            return;
        }
        self.peers.forwarding.on_waits_here(header);
        if !self.connections.block(header, fx) {
            self.kernel.end_wait(conn, WaitEnd::Gone);
        }
    }

    fn deliver_batch(&mut self, mut batch: Box<Batch>, fx: &mut Effects<Message>) {
        for index in 0..batch.requests.len() {
            let request = batch.requests[index];
            let header = request.header;
            if batch.is_doubtful && header.conn != keyspaces::ITSELF {
                // Its connection is closed, or its sender was told: see `lose`.
                continue;
            }
            match request.reply.status {
                Status::Ready => {}
                Status::Later => continue,
                Status::NotHere if self.asks_elsewhere(&mut batch, index, fx) => continue,
                Status::NotHere => {}
            }
            self.deliver_range(header.conn, header.seq, (&batch.replies, request.reply), fx);
        }
        self.kernel.recycle(batch);
    }

    /// Whether a request with keys elsewhere is forwarded, by this node or by the node that sent
    /// it.
    fn asks_elsewhere(
        &mut self,
        batch: &mut Batch,
        index: usize,
        fx: &mut Effects<Message>,
    ) -> bool {
        let (header, args, _) = batch.parts(index);
        if header.conn == keyspaces::ITSELF {
            return false;
        }
        if header.door == Door::Forwarded {
            self.peers.jobs.turn_away(header.conn);
            return true;
        }
        self.forward_late(&header, &args, fx);
        true
    }

    fn lose(&mut self, header: &Header, fx: &mut Effects<Message>) {
        if header.conn == keyspaces::ITSELF {
            return;
        }
        if is_job(header.conn) {
            if DataCommands::is_write(header.command) {
                return self.peers.jobs.lose(header);
            }
            // What it has seen may be undone; the sender asks again.
            return self.peers.jobs.turn_away(header.conn);
        }
        if self.connections.get(header.conn).is_some() {
            fx.closes.push((header.conn, Close::Now));
        }
    }

    /// Takes the reply to a request that ran, or failed, outside the kernel.
    pub(crate) fn deliver(
        &mut self,
        conn: ConnId,
        seq: u32,
        reply: &Output,
        fx: &mut Effects<Message>,
    ) {
        let range = ReplyRange {
            start: (0, 0),
            end: reply.mark(),
            status: Status::Ready,
        };
        self.deliver_range(conn, seq, (reply, range), fx);
    }

    fn deliver_range(
        &mut self,
        conn: ConnId,
        seq: u32,
        (from, range): (&Output, ReplyRange),
        fx: &mut Effects<Message>,
    ) {
        if is_job(conn) {
            return self.deliver_to_none(conn, from, range);
        }
        self.counters.note_reply(from, range.start, range.end);
        let reply = Written {
            out: from,
            start: range.start,
            end: range.end,
        };
        self.connections.on_reply(conn, seq, reply, fx);
    }

    #[cold]
    fn deliver_to_none(&mut self, conn: ConnId, from: &Output, range: ReplyRange) {
        if conn == keyspaces::ITSELF {
            let mut reply = Output::default();
            reply.append_range(from, range.start, range.end);
            self.declared.on_reply(reply);
            return;
        }
        self.peers.jobs.complete(conn, from, range);
    }
}

/// Questions to other workers.
impl Front {
    /// A worker has answered.
    pub(super) fn on_answered(
        &mut self,
        id: u64,
        from: WorkerId,
        answer: Answer,
        fx: &mut Effects<Message>,
    ) {
        let Some(gathered) = self.gathers.on_answer(id, from, answer) else {
            return;
        };
        let (asker, mut out) = (gathered.asker, Output::default());
        let reply = &mut Reply::new(&mut out, asker.resp3);
        (gathered.finish)(self, gathered.answers, reply);
        match asker.exec {
            Some(exec) => self.transactions.answer(exec, out),
            None => self.deliver(asker.conn, asker.seq, &out, fx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::testing::Rig;
    use rufous_kernel::Message as Between;

    /// A client on the first worker sends requests until one of them is for the second.
    fn request_elsewhere(rig: &mut Rig) -> Header {
        let client = rig.connect(0);
        for n in 0..100 {
            rig.send_only(client, format!("SET key:{n} v\r\n").as_bytes());
            if let Some((.., Message::Kernel(Between::Requests(batch)))) = rig.messages.pop_front()
            {
                return batch.requests[0].header;
            }
        }
        panic!("all keys are the first worker's");
    }

    fn reply_to(header: Header, is_doubtful: bool) -> Outcome {
        let mut reply = Output::default();
        reply.bytes.extend_from_slice(b"+OK\r\n");
        let mut batch = Box::<Batch>::default();
        batch.push_reply(header, reply);
        batch.is_doubtful = is_doubtful;
        Outcome::Replies(batch)
    }

    /// The driver sends what a turn has written before it closes connections.
    #[test]
    fn a_reply_that_comes_in_the_turn_in_which_its_request_was_lost_is_not_sent() {
        for (is_doubtful, written) in [(true, 0), (false, 1)] {
            let mut rig = Rig::new(2);
            let header = request_elsewhere(&mut rig);
            let (front, mut fx) = (&mut rig.fronts[0], Effects::default());
            front.deliver_outcome(Outcome::Lost(header), &mut fx);
            assert_eq!(fx.closes, [(header.conn, Close::Now)]);
            front.deliver_outcome(reply_to(header, is_doubtful), &mut fx);
            let bytes: usize = fx.writes.iter().map(|of| of.end.0 - of.start.0).sum();
            assert_eq!(usize::from(bytes > 0), written);
        }
    }
}
