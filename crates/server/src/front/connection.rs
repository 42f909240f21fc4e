//! The state of one client connection.

use super::guesses::{self, Guesses, Turn};
use super::held::Held;
use super::lookahead::ParsedKey;
use super::replies::Replies;
use super::transaction::Transaction;
use crate::cluster::door::Door;
use rufous_base::limits::ROUTE_PATIENCE_US;
use rufous_base::{Backlog, ConnId, ConnInfo, Now, Origin};
use rufous_command::Table;
use rufous_kernel::Header;
use rufous_mapping::NodeNo;

/// A waiting client that has sent this many bytes is no longer read.
const INPUT_WHILE_BLOCKED: usize = 64 << 10;

/// Why a connection's requests are suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspended {
    /// Until every pending request has been answered: the last one could be overtaken.
    Barrier,
    /// Until fewer requests are pending at other workers.
    TooManyInFlight,
    /// `CLIENT PAUSE`.
    Paused,
    /// Until almost all replies written in this turn are sent.
    Unsent,
    /// Until fewer requests are pending at a node.
    Crowded(NodeNo),
    /// Until a route to the keys of its next request may exist: routing has changed since `news`,
    /// or `until_us` has passed.
    NoWay { news: u64, until_us: u64 },
    /// Until its password is checked: see [`super::guesses`].
    Guess { until_us: u64 },
}

/// One client connection, at the worker that accepted it.
#[derive(Debug)]
pub struct Connection {
    pub id: ConnId,
    /// The number that `CLIENT ID` returns.
    pub client_id: u64,
    pub info: ConnInfo,
    pub created_us: u64,
    pub last_active_us: u64,
    pub name: Vec<u8>,
    pub lib_name: Vec<u8>,
    pub lib_version: Vec<u8>,
    pub db: u8,
    pub resp3: bool,
    pub authenticated: bool,
    /// Consecutive wrong passwords.
    pub auth_failures: u32,
    /// Whether its next password may be checked; `None`: that was not asked yet.
    pub(crate) guess: Option<Turn>,
    pub no_evict: bool,
    pub no_touch: bool,
    /// At the redirecting port: it is served as at the plain one.
    pub crosses_slots: bool,
    /// An error within `EXEC` or `COMMIT` undoes all of it.
    pub undoes: bool,
    pub monitor: bool,
    /// The reply that ends the connection has been written.
    pub closing: bool,
    /// What the driver was told last.
    pub(super) backlog: Backlog,
    pub last_command: Option<u16>,
    pub transaction: Transaction,
    pub commands: u64,
    /// When it last had more than one request pending; 0: never.
    pub(super) pipelined_us: u64,

    /// What it has sent and cannot run yet.
    pub held: Held,
    pub suspended: Option<Suspended>,
    /// How long its next request waits for a route to its keys.
    way_until_us: Option<u64>,
    /// The number of the request that waits for data.
    pub(super) blocked: Option<u32>,
    /// When its last blocking command times out; `None`: never.
    pub(crate) deadline_us: Option<u64>,
    /// The client has stopped sending.
    pub(super) ended: bool,

    /// Its next reply comes from another node, which sends large values as bytes and not by
    /// reference.
    pub(crate) is_far: bool,

    pub replies: Replies,
}

impl Connection {
    pub fn new(id: ConnId, client_id: u64, info: ConnInfo, now_us: u64) -> Self {
        Self {
            id,
            client_id,
            info,
            created_us: now_us,
            last_active_us: now_us,
            name: Vec::new(),
            lib_name: Vec::new(),
            lib_version: Vec::new(),
            db: 0,
            resp3: false,
            authenticated: false,
            auth_failures: 0,
            guess: None,
            no_evict: false,
            no_touch: false,
            crosses_slots: false,
            undoes: false,
            monitor: false,
            closing: false,
            backlog: Backlog::default(),
            last_command: None,
            transaction: Transaction::default(),
            commands: 0,
            pipelined_us: 0,
            held: Held::default(),
            suspended: None,
            way_until_us: None,
            blocked: None,
            deadline_us: None,
            ended: false,
            is_far: false,
            replies: Replies::default(),
        }
    }

    /// Whether nothing of its requests is pending: no reply, no request, no part of one, and no
    /// transaction.
    pub(super) fn is_at_rest(&self) -> bool {
        self.replies.is_empty()
            && self.suspended.is_none()
            && self.held.is_empty()
            && !self.is_blocked()
            && !self.transaction.is_open()
    }

    /// Whether it waits for data.
    pub fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// A command is about to run, or to be queued.
    #[inline]
    pub(super) fn note_command(&mut self, id: u16, queues: bool) {
        self.commands += u64::from(!queues);
        self.last_command = Some(id);
    }

    /// The command last run, as `CLIENT LIST` shows it.
    pub fn last_command_name(&self, table: &Table) -> &'static str {
        self.last_command.map_or("NULL", |id| table.spec(id).name)
    }
    /// It has sent something in this turn.
    pub(super) fn on_received(&mut self, now: Now) {
        self.last_active_us = now.mono_us;
        if !self.replies.is_empty() {
            self.pipelined_us = now.mono_us;
        }
        self.replies.on_sent();
    }

    /// It begins to wait for data with its request `seq`. False if it is closed, or has stopped sending.
    pub(super) fn block(&mut self, seq: u32) -> bool {
        let may = !self.closing && !self.ended;
        self.blocked = may.then_some(seq).or(self.blocked);
        may
    }

    /// The reply to its request `seq` is ready.
    pub(super) fn unblock(&mut self, seq: u32) {
        if self.blocked == Some(seq) {
            self.blocked = None;
        }
    }

    /// Whether it has sent as much as is read from a waiting client.
    pub(super) fn has_sent_enough(&self) -> bool {
        self.blocked.is_some() && self.held.len() > INPUT_WHILE_BLOCKED
    }

    /// How its requests for keys of other nodes are answered.
    #[inline]
    pub(crate) fn door(&self) -> Door {
        match self.info.origin {
            Origin::Redirected if !self.crosses_slots => Door::Redirecting,
            _ => Door::Plain,
        }
    }

    /// The kernel's view of the next request.
    #[inline]
    pub(crate) fn header(
        &self,
        command: u16,
        quiet: bool,
        first_key: Option<&ParsedKey>,
    ) -> Header {
        Header {
            conn: self.id,
            client: self.client_id,
            seq: self.replies.next_seq(),
            command,
            db: self.db,
            resp3: self.resp3,
            no_touch: self.no_touch,
            quiet,
            door: self.door().of_requests(),
            key: first_key.map_or(0, |k| k.arg as u8),
            hash: first_key.map_or(0, |k| k.hash),
            strict_in: None,
        }
    }

    /// Whether a password waits before it is checked.
    pub(super) fn holds_guess(&mut self, now: Now, guesses: &mut Guesses) -> Option<Suspended> {
        if self.guess == Some(Turn::Now) {
            return None;
        }
        let address = guesses::address_of(&self.info.peer)?;
        let turn = guesses.on_attempt(now.mono_us, address);
        let Turn::At(until_us) = turn else {
            self.guess = Some(turn);
            return None;
        };
        self.guess = Some(Turn::Now);
        Some(Suspended::Guess { until_us })
    }

    /// No node may serve the keys of its next request now. Returns until when it waits for one that
    /// does, if it has not waited long enough.
    pub(crate) fn wait_for_way(&mut self, now: Now) -> Option<u64> {
        let until_us = match self.way_until_us {
            // A request behind one that waited in vain waits no longer than that one.
            Some(until_us) if now.mono_us < until_us + ROUTE_PATIENCE_US => until_us,
            _ => now.mono_us + ROUTE_PATIENCE_US,
        };
        self.way_until_us = Some(until_us);
        (now.mono_us < until_us).then_some(until_us)
    }

    /// There is a way to the keys of its next request.
    pub(crate) fn has_way(&mut self) {
        self.way_until_us = None;
    }

    /// How many bytes may wait for it at the driver.
    pub(super) fn wanted_backlog(&self) -> Backlog {
        match (self.authenticated, self.monitor) {
            (false, _) => Backlog::Stranger,
            (true, true) => Backlog::Feed,
            (true, false) => Backlog::Client,
        }
    }

    /// Whether no reply and no request of it waits.
    pub(super) fn is_answered(&self) -> bool {
        self.replies.is_empty() && self.suspended.is_none()
    }
}
