//! Limits of one connection: replies that are not sent yet, and requests that have not run.

use super::connection::{Connection, Slot, Suspended, What};
use super::guesses::{self, Turn};
use super::shared::Counters;
use super::turn::Request;
use super::{Front, Message};
use crate::cluster::way::Way;
use rufous_base::limits::{MAX_PIPELINE_IN_FLIGHT, OUTPUT_HIGH_WATER};
use rufous_base::{Args, Backlog, ConnId, Effects, Now, Output};
use rufous_command::{Flags, Spec};

/// Microseconds between two log lines about rejected HTTP requests.
const HTTP_LOG_PERIOD_US: u64 = 60_000_000;

impl Front {
    /// Counts the `written` bytes of a reply of `conn`. A turn's replies are all sent at its end:
    /// without a bound, one pipeline of reads of large values would have them all in memory at
    /// once.
    #[inline]
    pub(super) fn bound_replies(
        &mut self,
        conn: ConnId,
        written: usize,
        fx: &mut Effects<Message>,
    ) {
        let Some(connection) = self.connections.get(conn) else {
            return;
        };
        connection.unsent = connection.unsent.saturating_add(written);
        if connection.unsent > OUTPUT_HIGH_WATER {
            self.wait_until_sent(conn, fx);
        } else if connection.slots.len() >= MAX_PIPELINE_IN_FLIGHT {
            self.suspend(conn, Suspended::TooManyInFlight, fx);
        }
    }

    #[cold]
    fn wait_until_sent(&mut self, conn: ConnId, fx: &mut Effects<Message>) {
        let Some(connection) = self.connections.get(conn) else {
            return;
        };
        if connection.slots.is_empty() {
            self.connections.drain(conn);
            self.suspend(conn, Suspended::Unsent, fx);
        } else {
            // These bytes are behind a pending reply, and are sent with it: then the connection
            // waits until they have been sent.
            self.suspend(conn, Suspended::Barrier, fx);
        }
    }

    /// Why a request has to wait, if it has to.
    pub(super) fn why_waits(
        &mut self,
        now: Now,
        request: &Request<'_>,
        way: &Way,
        args: &Args<'_>,
        guesses: bool,
    ) -> Option<Suspended> {
        let What::Command(id) = request.what else {
            return None;
        };
        let spec = self.table.spec(id);
        let guess = guesses.then(|| self.holds_guess(now, request.conn));
        let held = guess.flatten();
        let held = held.or_else(|| self.holds_back(now, request, spec, way));
        held.or_else(|| {
            let waits = self.apart(now).waits(request, way, args);
            waits.then_some(Suspended::Barrier)
        })
    }

    /// Whether a password waits before it is checked.
    fn holds_guess(&mut self, now: Now, conn: ConnId) -> Option<Suspended> {
        let connection = self.connections.get(conn)?;
        if connection.guess == Some(Turn::Now) {
            return None;
        }
        let address = guesses::address_of(&connection.info.peer)?;
        let turn = self.shared.guesses().on_attempt(now.mono_us, address);
        let Turn::At(until_us) = turn else {
            connection.guess = Some(turn);
            return None;
        };
        connection.guess = Some(Turn::Now);
        self.counters.auth_delayed += 1;
        Some(Suspended::Guess { until_us })
    }

    /// Drops a connection that speaks HTTP. A page in a browser on this machine can send requests
    /// to a local port, with commands in their bodies; nothing after the first lines may run.
    #[cold]
    pub(super) fn turns_away_http(&mut self, now: Now, conn: ConnId, args: &Args<'_>) -> bool {
        let name = args.get(0);
        if !name.eq_ignore_ascii_case(b"post") && !name.eq_ignore_ascii_case(b"host:") {
            return false;
        }
        let logged = self.http_logged_us;
        if logged.is_none_or(|at| now.mono_us >= at.saturating_add(HTTP_LOG_PERIOD_US)) {
            self.http_logged_us = Some(now.mono_us);
            let peer = self.connection(conn).map(|c| c.info.peer.clone());
            tracing::warn!(
                peer = peer.as_deref().unwrap_or_default(),
                "closed a connection that speaks HTTP: possible cross-protocol attack through a browser"
            );
        }
        self.connections.close_now(conn);
        true
    }
}

/// Whether a command's reply may be as long as its key's value. Large strings are sent by
/// reference, so `GET` does not count.
pub(super) fn may_answer_long(spec: &Spec) -> bool {
    spec.flags.has(Flags::READONLY) && !spec.flags.has(Flags::FAST)
}

/// Limits on a connection's requests to other workers. These do not know how many bytes already
/// wait for the connection, so it requests only what is likely to fit: few replies that may be
/// long, until it has measured their length.
impl Connection {
    /// How many requests may be in flight, including the last one, whose reply may be long or not.
    pub(super) fn window(&self, long: bool) -> usize {
        match long {
            true => (OUTPUT_HIGH_WATER / self.long_reply.max(1)).clamp(1, MAX_PIPELINE_IN_FLIGHT),
            false => MAX_PIPELINE_IN_FLIGHT,
        }
    }

    /// The same, for requests that are in flight already.
    pub(super) fn last_window(&self) -> usize {
        let waits_long = |slot: &Slot| matches!(slot, Slot::Waiting { long: true, .. });
        self.window(self.slots.back().is_some_and(waits_long))
    }

    /// A reply has arrived from another worker: suspends the connection if it was large.
    #[inline]
    pub(super) fn bound_awaited(&mut self, counters: &mut Counters, fx: &mut Effects<Message>) {
        if self.suspended.is_none() && self.has_too_much_unsent(fx) {
            counters.suspended += 1;
            fx.holds.push((self.id, true));
        }
    }

    /// Whether enough bytes wait to be sent that the connection has to wait too. Then notes the
    /// reason: pending replies that precede them, or that all bytes are sent.
    #[inline]
    pub(super) fn has_too_much_unsent(&mut self, fx: &mut Effects<Message>) -> bool {
        if self.unsent <= OUTPUT_HIGH_WATER {
            return false;
        }
        if self.slots.is_empty() {
            fx.drains.push(self.id);
            self.suspended = Some(Suspended::Unsent);
        } else {
            self.suspended = Some(Suspended::Barrier);
        }
        true
    }
}

impl Connection {
    pub(super) fn wanted_backlog(&self) -> Backlog {
        match (self.authenticated, self.monitor) {
            (false, _) => Backlog::Stranger,
            (true, true) => Backlog::Feed,
            (true, false) => Backlog::Client,
        }
    }

    /// Frees held bytes whose requests have run.
    pub(super) fn release_held(&mut self) {
        if self.held_at == self.held.len() {
            self.held.clear();
            self.held.shrink_to(16 * 1024);
            self.held_at = 0;
        } else if self.held_at > self.held.len() / 2 {
            self.held.drain(..self.held_at);
            self.held_at = 0;
        }
    }
}

/// Bytes written to `out` since `mark`, large values included.
#[inline]
pub(super) fn written_since(out: &Output, mark: (usize, usize)) -> usize {
    written_between(out, mark, out.mark())
}

/// The same, from one mark to another.
#[inline]
pub(super) fn written_between(out: &Output, start: (usize, usize), end: (usize, usize)) -> usize {
    let shared = out.shared.get(start.1..end.1).unwrap_or_default();
    let lengths = shared.iter().map(|(_, apart)| apart.len());
    lengths.fold(end.0 - start.0, usize::saturating_add)
}
