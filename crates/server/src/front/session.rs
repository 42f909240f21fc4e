//! What commands on connections and on the server itself work with.

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
    /// The reply will come later; set by [`Session::ask_all`] and the like.
    pub(super) pending: bool,
    /// The transaction that the request is part of, while that is run.
    pub(super) exec: Option<u64>,
}

impl Session<'_> {
    /// The database that the request is about: of its connection, or of whoever asks.
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
            .ok_or(Failure::from("ERR the connection is gone"))
    }
}

/// `CLIENT PAUSE`: which commands wait, and until when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// In `Now::mono_us`; zero: no pause.
    pub until_us: u64,
    /// Reads go on.
    pub writes_only: bool,
}

impl Pause {
    #[inline]
    pub fn is_active(&self) -> bool {
        self.until_us != 0
    }

    /// Whether a command has to wait. What ends a pause never does.
    /// `flags` are the command's, and of what it will run.
    pub fn holds_back(&self, spec: &Spec, flags: Flags) -> bool {
        if spec.flags.has(Flags::ADMIN)
            || spec.name.starts_with("client|")
            || spec.name == "config|resetstat"
        {
            return false;
        }
        !self.writes_only || flags.has(Flags::WRITE)
    }
}

impl Front {
    /// Starts a pause on this worker. One that is under way is neither
    /// shortened nor made to hold back less. Clients that wait for data, all of
    /// whose commands write, get none meanwhile.
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

    /// The end of the step serves who waits for data.
    pub(crate) fn end_pause(&mut self) {
        self.pause = Pause::default();
        self.kernel.hold_waiters(false);
    }
}
