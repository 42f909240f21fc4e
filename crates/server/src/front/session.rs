//! The session of a command on the connection or the server.

use super::connection::Connection;
use super::local::Local;
use super::orders::{SaveAnswer, SaveOrder};
use super::persistence::COORDINATOR;
use rufous_base::{ConnId, Now, Output, WorkerId};
use rufous_command::{Failure, Flags, Reply, Spec};
use rufous_kernel::Submitted;
use rufous_kernel::keyspace::Keyspaces;

/// The connection whose request runs, and the worker it runs on.
pub struct Session<'a> {
    pub local: Local<'a>,
    pub conn: ConnId,
    pub now: Now,
    /// The reply comes later; set by [`Session::ask_all`] and the like.
    pub(super) pending: bool,
    /// The transaction that the request is part of, while it runs.
    pub(super) exec: Option<u64>,
}

impl Session<'_> {
    /// The database of the request: that of its connection, or of the job that it runs for.
    pub fn db(&mut self) -> Result<u8, Failure> {
        match self.local.front.peers.jobs.of(self.conn) {
            Some(begun) => Ok(begun.db),
            None => Ok(self.connection()?.db),
        }
    }

    /// Closes the connection of the running request, once that request and all earlier ones are
    /// answered.
    pub fn close_after_reply(&mut self) {
        self.local.front.connections.close_after_reply(self.conn);
    }

    /// The connection whose request runs.
    pub fn connection(&mut self) -> Result<&mut Connection, Failure> {
        let conn = self.conn;
        self.local
            .front
            .connection(conn)
            .ok_or(Failure::from("ERR the connection was closed"))
    }
}

impl Session<'_> {
    /// Sends an order to the coordinator; the reply is made of its answer, which may come much
    /// later.
    pub fn order_save(
        &mut self,
        order: SaveOrder,
        finish: impl FnOnce(&mut Local<'_>, SaveAnswer, &mut Reply<'_>) + Send + 'static,
    ) {
        let finish =
            move |front: &mut Local<'_>, answers: Vec<SaveAnswer>, reply: &mut Reply<'_>| {
                if let Some(answer) = answers.into_iter().next() {
                    finish(front, answer, reply);
                }
            };
        let Some(gather) = self.expect(1, None, finish) else {
            return;
        };
        self.local.front.order_save(order, Some(gather));
    }
}

impl Session<'_> {
    /// Has all workers apply the settings, and waits until logging is what they say.
    pub fn switch_log(
        &mut self,
        finish: impl FnOnce(&mut Local<'_>, SaveAnswer, &mut Reply<'_>) + Send + 'static,
    ) {
        let finish =
            move |front: &mut Local<'_>, answers: Vec<SaveAnswer>, reply: &mut Reply<'_>| {
                if let Some(answer) = answers.into_iter().next() {
                    finish(front, answer, reply);
                }
            };
        self.local.take_settings();
        let own = self.local.front.id();
        let workers = self.local.front.kernel.placement().workers();
        let all = (0..workers).map(|w| WorkerId(w as u16));
        // The coordinator applies them with the order, which it answers in their place.
        let others: Vec<_> = all.filter(|w| *w != own && *w != COORDINATOR).collect();
        let Some(gather) = self.expect(others.len() + 1, None, finish) else {
            return;
        };
        self.ask_for(gather, &others, |local, _| local.take_settings());
        let order = SaveOrder::SwitchLog;
        self.local.front.order_save(order, Some(gather));
    }
}

impl Session<'_> {
    /// Has all workers apply a table; `done` makes the reply when they have.
    pub(crate) fn change_keyspaces(
        &mut self,
        table: Keyspaces,
        done: Output,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let command = self.local.front.table.find(b"keyspace").unwrap_or_default();
        let header = self.connection()?.header(command, false, None);
        let kernel = &mut self.local.front.kernel;
        let submitted = kernel.submit_keyspaces(&header, table, done, reply.out);
        self.pending = submitted != Submitted::Done;
        Ok(())
    }
}

/// `CLIENT PAUSE`: which commands wait, and until when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// In `Now::mono_us`; zero: no pause.
    pub until_us: u64,
    /// Reads are still served.
    pub writes_only: bool,
}

impl Pause {
    #[inline]
    pub fn is_active(&self) -> bool {
        self.until_us != 0
    }

    /// A pause begins. One in progress is neither shortened nor made weaker.
    pub(super) fn begin(&mut self, now: Now, timeout_us: u64, writes_only: bool) {
        let under_way = self.until_us > now.mono_us;
        let until_us = now.mono_us.saturating_add(timeout_us);
        self.writes_only = writes_only && (!under_way || self.writes_only);
        self.until_us = if under_way {
            until_us.max(self.until_us)
        } else {
            until_us
        };
    }

    /// Whether a request of a connection has to wait.
    #[inline]
    pub(super) fn holds(&self, connection: &Connection, spec: &Spec) -> bool {
        self.is_active()
            && self.holds_back(spec, connection.flags_with_queued(spec))
            && !connection.info.is_internal()
    }

    /// Whether a command has to wait. Administrative commands and `CLIENT` never do. `flags` are those
    /// of the command and of all commands that it will run.
    pub fn holds_back(&self, spec: &Spec, flags: Flags) -> bool {
        let is_exempt = spec.flags.has(Flags::ADMIN) || spec.flags.has(Flags::UNPAUSED);
        !is_exempt && (!self.writes_only || flags.has(Flags::WRITE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_in_progress_is_neither_shortened_nor_made_weaker() {
        let at = |mono_us| Now {
            mono_us,
            ..Now::default()
        };
        let mut pause = Pause::default();
        assert!(!pause.is_active());
        pause.begin(at(10), 100, false);
        pause.begin(at(20), 5, true);
        assert_eq!((pause.until_us, pause.writes_only), (110, false));
        pause.begin(at(30), 200, true);
        assert_eq!((pause.until_us, pause.writes_only), (230, false));
        // It is over.
        pause.begin(at(230), 5, true);
        assert_eq!((pause.until_us, pause.writes_only), (235, true));
        pause.begin(at(231), 1, false);
        assert_eq!((pause.until_us, pause.writes_only), (235, false));
        pause.begin(at(232), u64::MAX, false);
        assert_eq!(pause.until_us, u64::MAX);
    }
}
