//! Clients that wait in a blocking command.
//!
//! The kernel records which clients wait for which keys (`worker::waiting`), and the forwarding which
//! of them wait at other nodes (`crates/cluster/src/forward/waits.rs`). This module keeps
//! the connection's side: a waiting connection runs no other request, it is read within bounds so
//! that its end is noticed, and it resumes when data arrives, on timeout, by `CLIENT UNBLOCK`, or
//! when the node stops.

use super::{Front, Message};
use crate::cluster::jobs::is_job;
use rufous_base::{Args, ConnId, Effects, Now, Output};
use rufous_cluster::forward::error_of;
use rufous_command::{Failure, Flags, Reply, Spec, blocking};
use rufous_kernel::Header;
use rufous_kernel::worker::WaitEnd;
use rufous_wire::message::How;
use std::borrow::Cow;

/// The reply to a waiting client of another node when this node stops.
const STOPPING: &str = "UNBLOCKED the node that has the key is shutting down";
/// The end of a wait of a client of another node where too many of them wait here.
const TOO_MANY: &str =
    "ERR too many clients of this node wait for data at the node that has the key: connect there";

/// The end of a wait of another node where too many wait here.
pub(crate) fn too_many() -> WaitEnd {
    error(TOO_MANY)
}

fn error(text: &'static str) -> WaitEnd {
    let mut out = Output::default();
    Reply::new(&mut out, false).error(&Failure(Cow::Borrowed(text)));
    WaitEnd::Reply(out)
}

/// The end of a wait in the kernel.
pub(crate) fn end_of(how: How) -> WaitEnd {
    error_of(how).map_or(WaitEnd::TimedOut, error)
}

/// Clients of this node.
impl Front {
    /// Keeps the time until which a blocking command waits, wherever its keys are by then.
    #[inline]
    pub(crate) fn note_deadline(&mut self, now: Now, conn: ConnId, spec: &Spec, args: &Args<'_>) {
        if spec.flags.has(Flags::BLOCKING)
            && let Some(connection) = self.connections.get(conn)
        {
            connection.deadline_us = blocking::deadline_us(spec, args, now);
        }
    }

    /// A request that was submitted to the kernel waits for data.
    pub(super) fn on_waits(&mut self, header: &Header, fx: &mut Effects<Message>) {
        if is_job(header.conn) {
            if let Some(how) = self.peers.on_waits(header.conn) {
                self.kernel.end_wait(header.conn, how);
            }
            return;
        }
        self.peers.forwarding.on_waits_here(header);
        if !self.connections.block(header, fx) {
            self.kernel.end_wait(header.conn, WaitEnd::Gone);
        }
    }

    /// The client is gone.
    pub(super) fn end_wait_of_gone(&mut self, conn: ConnId) {
        self.kernel.end_wait(conn, WaitEnd::Gone);
        self.peers.forwarding.on_gone(conn);
    }

    /// The client has stopped sending. A waiting client is then taken to be closed.
    pub(super) fn on_ended(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get(conn) else {
            return;
        };
        connection.ended = true;
        if connection.blocked.is_some() {
            self.end_wait_of_gone(conn);
            self.connections.close_now(conn);
        } else {
            self.connections.on_ended(conn);
        }
    }

    /// `CLIENT UNBLOCK` for a client of this worker. Returns whether it waited.
    pub(crate) fn end_wait_of(&mut self, now: Now, client_id: u64, with_error: bool) -> bool {
        let mut all = self.connections.iter();
        let found = all.find(|c| c.client_id == client_id && c.is_blocked());
        let Some(conn) = found.map(|c| c.id) else {
            return false;
        };
        let how = if with_error {
            How::Unblocked
        } else {
            How::TimedOut
        };
        self.kernel.end_wait(conn, end_of(how)) || self.peers.forwarding.on_end(now, conn, how)
    }

    /// A stopping node ends all waits for data.
    pub(super) fn end_waits_to_stop(&mut self, now: Now, fx: &mut Effects<Message>) {
        let stops = self.stop.has_begun() || self.farewell.has_begun();
        if stops {
            self.peers.forwarding.on_stops_soon();
        }
        while stops && !self.kernel.waiting_clients().is_empty() {
            let conns: Vec<_> = self.kernel.waiting_clients().conns().collect();
            for conn in conns {
                let how = if is_job(conn) {
                    error(STOPPING)
                } else {
                    end_of(How::Stops)
                };
                self.kernel.end_wait(conn, how);
            }
            self.settle_kernel(now, fx);
        }
    }
}

/// Figures.
impl Front {
    /// Clients of this worker that wait for data, wherever it is.
    pub(super) fn blocked_clients(&self) -> usize {
        self.connections().filter(|c| c.is_blocked()).count()
    }

    /// Those of them that wait until a deadline.
    pub(super) fn blocked_in_time(&self) -> usize {
        let here = self.kernel.waiting_clients().in_time();
        here.filter(|conn| !is_job(*conn)).count() + self.peers.forwarding.in_time()
    }
}
