//! Requests without a client connection at this node: another node sent them, or they are parts of
//! a client's request.
//!
//! In the kernel each has a connection id of its own, which no driver ever assigns, so that none
//! waits for another.

use rufous_base::{ConnId, Output, Until};
use rufous_cluster::serving::Asker;
use rufous_cluster::splitting::Part;
use rufous_command::Reply;
use rufous_kernel::Header;
use rufous_kernel::batch::ReplyRange;
use std::collections::BTreeMap;

/// Connection slots from here on are not real ones. Drivers count from zero and never reach it.
const FIRST: u32 = 1 << 31;

/// The receiver of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// The reply waits until then.
    Peer(Asker, Until),
    Part(Part),
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Done {
    Reply(Output),
    /// It was not executed: its keys are at another node.
    NotHere,
    /// The reply says that the outcome is not known.
    Lost(Output),
}

/// What a connection would store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    job: Job,
    pub(crate) db: u8,
    pub(crate) resp3: bool,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    begun: u64,
    under_way: BTreeMap<u64, Begun>,
    /// Requests with an outcome that is not taken yet.
    done: Vec<(Job, Done)>,
}

/// Whether this id stands for a request without a connection.
#[inline]
pub(crate) fn is_job(conn: ConnId) -> bool {
    conn.slot >= FIRST
}

fn conn_of(number: u64) -> ConnId {
    ConnId {
        // The highest bit but one stays clear: the very last slot is reserved for another use.
        slot: FIRST | ((number >> 32) as u32 & ((FIRST >> 1) - 1)),
        generation: number as u32,
    }
}

fn number_of(conn: ConnId) -> u64 {
    u64::from(conn.slot & !FIRST) << 32 | u64::from(conn.generation)
}

impl Jobs {
    /// A request is about to run.
    pub(crate) fn begin(&mut self, job: Job, db: u8, resp3: bool) -> ConnId {
        self.begun += 1;
        self.under_way.insert(self.begun, Begun { job, db, resp3 });
        conn_of(self.begun)
    }

    fn get(&self, conn: ConnId) -> Option<&Begun> {
        self.under_way.get(&number_of(conn))
    }

    /// The request that this id stands for, if it has no connection.
    pub(crate) fn of(&self, conn: ConnId) -> Option<&Begun> {
        self.get(conn).filter(|_| is_job(conn))
    }

    /// The node's worker that has sent it, if another node has.
    pub(crate) fn asker(&self, conn: ConnId) -> Option<Asker> {
        match self.get(conn)?.job {
            Job::Peer(asker, _) => Some(asker),
            Job::Part(_) => None,
        }
    }

    /// Whether another node has sent it; `None` if it has a connection.
    pub(crate) fn is_peers(&self, conn: ConnId) -> Option<bool> {
        let job = self.of(conn)?.job;
        Some(matches!(job, Job::Peer(..)))
    }

    /// It has run.
    pub(crate) fn complete(&mut self, conn: ConnId, from: &Output, range: ReplyRange) {
        let mut reply = Output::default();
        reply.append_range(from, range.start, range.end);
        self.end(conn, Done::Reply(reply));
    }

    /// It was not executed.
    pub(crate) fn turn_away(&mut self, conn: ConnId) {
        self.end(conn, Done::NotHere);
    }

    fn end(&mut self, conn: ConnId, done: Done) {
        match self.under_way.remove(&number_of(conn)) {
            Some(Begun { job, .. }) => self.done.push((job, done)),
            None => debug_assert!(false, "a reply to a request that is not under way"),
        }
    }

    /// Its outcome is unknown.
    pub(crate) fn lose(&mut self, header: &Header) {
        let mut out = Output::default();
        let why = "UNKNOWNRESULT The log cannot be written, or the slot has moved to other nodes: it is \
                   not known whether this was done";
        Reply::new(&mut out, header.resp3).error(&why.into());
        self.end(header.conn, Done::Lost(out));
    }

    pub(crate) fn take_done(&mut self) -> Vec<(Job, Done)> {
        std::mem::take(&mut self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_that_no_connection_has() {
        for number in [1, 2, u64::from(u32::MAX), 1 << 32, (1 << 61) + 7] {
            let conn = conn_of(number);
            assert!(is_job(conn) && conn.slot != u32::MAX, "{number}");
            assert_eq!(number_of(conn), number);
        }
        let real = ConnId {
            slot: FIRST - 1,
            generation: u32::MAX,
        };
        assert!(!is_job(real));
    }
}
