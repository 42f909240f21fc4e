//! Replies that come from elsewhere than the request that runs: they wait for
//! their turn at the connection.

use super::connection::Connection;
use super::{Front, Message, blocked, closing, find, keyspaces, shared};
use crate::cluster::jobs::{Jobs, is_job};
use crate::cluster::returned::Returned;
use rufous_base::{Args, Close, ConnId, Effects, Output, Until};
use rufous_command::{DataCommands, Reply};
use rufous_kernel::batch::ReplyRange;
use rufous_kernel::{Completions, Header, Worker};

impl Front {
    /// The kernel, and where its replies go.
    pub(super) fn kernel_and_replies<'a>(
        &'a mut self,
        fx: &'a mut Effects<Message>,
    ) -> (&'a mut Worker<DataCommands>, Replies<'a>) {
        let splits = self.splits;
        let replies = Replies {
            connections: &mut self.connections,
            counters: &mut self.counters,
            jobs: &mut self.jobs,
            to_itself: &mut self.declared.reply,
            returned: &mut self.forward.returned,
            splits,
            fx,
        };
        (&mut self.kernel, replies)
    }

    /// What was written since `start` are replies to a client.
    #[inline]
    pub(super) fn write(&mut self, conn: ConnId, start: (usize, usize), fx: &mut Effects<Message>) {
        if !self.splits {
            return fx.write(conn, start);
        }
        let connection = find(&mut self.connections, conn);
        let until = connection.map_or(Until::Passed, |connection| connection.take_until(true));
        fx.write_until(conn, start, until);
    }

    /// Takes the reply to a request that ran, or failed to, elsewhere than in the kernel.
    pub(crate) fn deliver(
        &mut self,
        conn: ConnId,
        seq: u32,
        reply: &Output,
        fx: &mut Effects<Message>,
    ) {
        let range = whole(reply);
        let (_, mut replies) = self.kernel_and_replies(fx);
        replies.deliver(conn, seq, reply, range);
    }
}

fn whole(reply: &Output) -> ReplyRange {
    ReplyRange {
        start: (0, 0),
        end: reply.mark(),
        later: false,
    }
}

/// Takes replies of the kernel to their connections.
pub(super) struct Replies<'a> {
    pub(super) connections: &'a mut [Option<Box<Connection>>],
    pub(super) counters: &'a mut shared::Counters,
    /// Requests of nobody who is connected here.
    pub(super) jobs: &'a mut Jobs,
    /// The reply to what no client has asked for.
    pub(super) to_itself: &'a mut Option<Vec<u8>>,
    /// Requests whose keys are another node's by now.
    pub(super) returned: &'a mut Returned,
    /// See [`Front::note_splits`].
    pub(super) splits: bool,
    pub(super) fx: &'a mut Effects<Message>,
}

impl Completions for Replies<'_> {
    fn lose(&mut self, header: &Header) {
        if header.conn == keyspaces::ITSELF {
            return;
        }
        if is_job(header.conn) {
            return self.jobs.lose(header);
        }
        if find(self.connections, header.conn).is_some() {
            self.fx.closes.push((header.conn, Close::Now));
        }
    }

    fn elsewhere(&mut self, header: &Header, args: &Args<'_>) -> bool {
        if header.conn == keyspaces::ITSELF {
            return false;
        }
        if let Some(why) = self.returned.take(header, args) {
            let mut out = Output::default();
            Reply::new(&mut out, header.resp3).error(&why);
            let range = whole(&out);
            self.deliver(header.conn, header.seq, &out, range);
        }
        true
    }

    fn wait(&mut self, header: &Header) -> bool {
        let connection = find(self.connections, header.conn);
        blocked::begin(connection, header, self.fx)
    }

    fn complete(&mut self, header: &Header, from: &Output, range: ReplyRange) {
        self.deliver(header.conn, header.seq, from, range);
    }
}

impl Replies<'_> {
    fn deliver(&mut self, conn: ConnId, seq: u32, from: &Output, range: ReplyRange) {
        if is_job(conn) {
            return self.deliver_to_none(conn, from, range);
        }
        self.counters
            .note_reply(&from.bytes[range.start.0..range.end.0]);
        let Some(connection) = find(self.connections, conn) else {
            return;
        };
        connection.unblock(seq);
        let start = self.fx.output.mark();
        connection.complete(seq, from, range.start, range.end, &mut self.fx.output);
        let until = connection.take_until(self.splits);
        self.fx.write_until(conn, start, until);
        connection.bound_awaited(self.counters, self.fx);
        closing::close_if_last(connection, self.fx);
    }

    #[cold]
    fn deliver_to_none(&mut self, conn: ConnId, from: &Output, range: ReplyRange) {
        if conn == keyspaces::ITSELF {
            *self.to_itself = Some(from.bytes[range.start.0..range.end.0].to_vec());
            return;
        }
        self.jobs.complete(conn, from, range);
    }
}
