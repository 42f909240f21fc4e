//! Clients that wait in a blocking command.
//!
//! The kernel records which clients wait for which keys (`worker::waiting`). This module keeps
//! the connection's side: a waiting connection runs no other request, it is read within bounds so
//! that its end is noticed, and it resumes when data arrives, on timeout, by `CLIENT UNBLOCK`, or
//! when the node stops.

use super::connection::Connection;
use super::{Front, Message};
use rufous_base::{Close, ConnId, Effects, Now, Output};
use rufous_command::{Failure, Reply};
use rufous_kernel::Header;
use rufous_kernel::worker::WaitEnd;
use std::borrow::Cow;

/// A waiting client that has sent this many bytes is no longer read.
const INPUT_WHILE_BLOCKED: usize = 64 << 10;

/// The reply to a client unblocked by `CLIENT UNBLOCK … ERROR`.
const UNBLOCKED: Failure = Failure(Cow::Borrowed(
    "UNBLOCKED client unblocked via CLIENT UNBLOCK",
));
/// The reply to a waiting client when the node stops.
const STOPPING: Failure = Failure(Cow::Borrowed("UNBLOCKED the node is shutting down"));

fn error(failure: &Failure) -> WaitEnd {
    let mut out = Output::default();
    Reply::new(&mut out, false).error(failure);
    WaitEnd::Reply(out)
}

/// A client begins to wait. False if it is closed, or has stopped sending.
pub(super) fn begin(
    connection: Option<&mut Connection>,
    header: &Header,
    fx: &mut Effects<Message>,
) -> bool {
    let Some(connection) = connection else {
        return false;
    };
    if connection.closing || connection.ended {
        fx.closes.push((connection.id, Close::Now));
        return false;
    }
    connection.blocked = Some(header.seq);
    fx.holds.push((connection.id, false));
    true
}

impl Connection {
    /// Whether it has sent as much as is read from a waiting client.
    pub(super) fn has_sent_enough(&self) -> bool {
        self.blocked.is_some() && self.held.len() > INPUT_WHILE_BLOCKED
    }

    /// The reply to its request `seq` is ready.
    pub(super) fn unblock(&mut self, seq: u32) {
        if self.blocked == Some(seq) {
            self.blocked = None;
        }
    }
}

impl Front {
    /// The client has stopped sending. A waiting client is then taken to be closed.
    pub(super) fn on_ended(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get(conn) else {
            return;
        };
        connection.ended = true;
        if connection.blocked.is_some() {
            self.kernel.end_wait(conn, WaitEnd::Gone);
            self.connections.close_now(conn);
        } else {
            self.connections.on_ended(conn);
        }
    }

    /// `CLIENT UNBLOCK` for a client of this worker. Returns whether it waited.
    pub(crate) fn end_wait_of(&mut self, client_id: u64, with_error: bool) -> bool {
        let mut all = self.connections.iter();
        let Some(conn) = all.find(|c| c.client_id == client_id).map(|c| c.id) else {
            return false;
        };
        let how = match with_error {
            true => error(&UNBLOCKED),
            false => WaitEnd::TimedOut,
        };
        self.kernel.end_wait(conn, how)
    }

    /// A stopping node ends all waits for data.
    pub(super) fn end_waits_to_stop(&mut self, now: Now, fx: &mut Effects<Message>) {
        let stops = self.stopping || self.farewell.has_begun();
        while stops && !self.kernel.waiting_clients().is_empty() {
            let conns: Vec<_> = self.kernel.waiting_clients().conns().collect();
            for conn in conns {
                self.kernel.end_wait(conn, error(&STOPPING));
            }
            self.settle_kernel(now, fx);
        }
    }
}
