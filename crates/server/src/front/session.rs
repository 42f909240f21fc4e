//! The session of a command on the connection or the server.

use super::Front;
use super::connection::Connection;
use super::local::Local;
use crate::cluster::jobs::is_job;
use rufous_base::{ConnId, Now};
use rufous_command::{Failure, Flags, Spec};

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
        match self
            .local
            .front
            .jobs
            .get(self.conn)
            .filter(|_| is_job(self.conn))
        {
            Some(begun) => Ok(begun.db),
            None => Ok(self.connection()?.db),
        }
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

    /// Whether a command has to wait. Administrative commands and `CLIENT` never do. `flags` are those
    /// of the command and of all commands that it will run.
    pub fn holds_back(&self, spec: &Spec, flags: Flags) -> bool {
        let is_exempt = spec.flags.has(Flags::ADMIN) || spec.flags.has(Flags::UNPAUSED);
        !is_exempt && (!self.writes_only || flags.has(Flags::WRITE))
    }
}

impl Front {
    /// Starts a pause on this worker. A pause in progress is neither shortened nor made weaker.
    /// Clients that wait for data get none meanwhile, as all blocking commands write.
    pub(crate) fn start_pause(&mut self, now: Now, timeout_us: u64, writes_only: bool) {
        let under_way = self.pause.until_us > now.mono_us;
        let until_us = now.mono_us.saturating_add(timeout_us);
        self.pause = Pause {
            until_us: if under_way {
                until_us.max(self.pause.until_us)
            } else {
                until_us
            },
            writes_only: writes_only && (!under_way || self.pause.writes_only),
        };
        self.kernel.hold_waiters(true);
    }

    /// Clients that wait for data are served at the end of the step.
    pub(crate) fn end_pause(&mut self) {
        self.pause = Pause::default();
        self.kernel.hold_waiters(false);
    }
}
