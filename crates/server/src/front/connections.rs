//! The connections of a worker: opened, found by their ids, and closed once nothing is left to reply.

use super::connection::{Connection, Suspended};
use super::outbox::Place;
use super::replies::{Mark, Written};
use rufous_base::{Args, Backlog, Close, ConnId, ConnInfo, Effects, Now, Until};
use rufous_cluster::forward::Forwarding;
use rufous_command::{Flags, Spec, Table, blocking};
use rufous_kernel::{Header, Submitted};

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    places: Vec<Option<Box<Connection>>>,
    /// Connections that were ever opened.
    seen: u64,
    /// Connections that are closed as soon as their replies are sent.
    ended: Vec<ConnId>,
    closes: Vec<(ConnId, Close)>,
    backlogs: Vec<(ConnId, Backlog)>,
    /// Connections that are not read for now.
    holds: Vec<(ConnId, bool)>,
    idle_closes: Vec<ConnId>,
    /// Connections that are suspended.
    suspended: usize,
    /// Some replies wait for the log alone.
    splits: bool,
}

/// What suspended connections may wait for.
pub(super) struct Awaited<'a> {
    pub(super) now: Now,
    /// Clients are paused.
    pub(super) is_paused: bool,
    pub(super) forwarding: &'a Forwarding,
}

impl Awaited<'_> {
    /// Whether the reason to suspend a connection is gone.
    fn is_over(&self, connection: &Connection, why: Suspended) -> bool {
        match why {
            Suspended::Barrier => connection.replies.is_empty(),
            Suspended::TooManyInFlight => connection.replies.has_room(),
            Suspended::Paused => !self.is_paused,
            Suspended::Unsent => connection.replies.is_sent(),
            Suspended::Crowded(no) => self.forwarding.has_room(no),
            Suspended::NoWay { news, until_us } => {
                news != self.forwarding.news() || self.now.mono_us >= until_us
            }
            Suspended::Guess { until_us } => self.now.mono_us >= until_us,
        }
    }
}

/// Inputs.
impl Connections {
    /// A connection opens, at this worker of so many. Ids of clients differ over the node.
    pub(super) fn on_opened(
        &mut self,
        now: Now,
        id: ConnId,
        info: ConnInfo,
        place: Place,
    ) -> &mut Connection {
        let client_id = self.seen * place.workers as u64 + u64::from(place.own.0) + 1;
        self.seen += 1;
        if id.index() >= self.places.len() {
            self.places.resize_with(id.index() + 1, || None);
        }
        let connection = Box::new(Connection::new(id, client_id, info, now.mono_us));
        self.places[id.index()].insert(connection)
    }

    /// A connection was closed. Returns what was left of it.
    pub(super) fn on_closed(&mut self, id: ConnId) -> Option<Box<Connection>> {
        let place = self.places.get_mut(id.index())?;
        let closed = place.take_if(|connection| connection.id == id)?;
        self.suspended -= usize::from(closed.suspended.is_some());
        Some(closed)
    }

    /// A client has stopped sending.
    pub(super) fn on_ended(&mut self, id: ConnId) {
        self.ended.push(id);
    }

    /// Everything that was written to a connection has been sent.
    pub(super) fn on_drained(&mut self, id: ConnId) {
        if let Some(connection) = self.get(id) {
            connection.replies.on_sent();
        }
    }

    /// Runs no further request of a connection, and closes it when its last reply has been written.
    pub(super) fn close_after_reply(&mut self, id: ConnId) {
        if let Some(connection) = self.get(id) {
            connection.closing = true;
            if connection.replies.is_empty() {
                self.closes.push((id, Close::AfterReplies));
            }
        }
    }

    /// Closes a connection unless its client has sent something by then.
    pub(super) fn close_if_idle(&mut self, id: ConnId) {
        self.idle_closes.push(id);
    }

    /// Drops a connection with its pending replies.
    pub(super) fn close_now(&mut self, id: ConnId) {
        if let Some(connection) = self.get(id) {
            connection.closing = true;
            self.closes.push((id, Close::Now));
        }
    }

    /// Closes connections whose clients have stopped sending, once all replies are sent.
    pub(super) fn close_ended(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let (places, closes) = (&mut self.places, &mut self.closes);
        self.ended.retain(|&id| {
            let Some(connection) = find(places, id).filter(|c| !c.closing) else {
                return false;
            };
            let answered = connection.is_answered();
            if answered {
                connection.closing = true;
                closes.push((id, Close::AfterReplies));
            }
            !answered
        });
    }

    /// A client that waits for data has sent enough.
    pub(super) fn stop_reading(&mut self, id: ConnId) {
        self.holds.push((id, true));
    }

    /// Tells the driver how many bytes may wait for a connection, if that has changed.
    pub(super) fn renew_backlog(&mut self, id: ConnId) {
        let Some(connection) = find(&mut self.places, id) else {
            return;
        };
        let backlog = connection.wanted_backlog();
        if connection.backlog != backlog {
            connection.backlog = backlog;
            self.backlogs.push((id, backlog));
        }
    }

    /// No password is needed any more.
    pub(super) fn authenticate_all(&mut self) {
        let all: Vec<ConnId> = self.iter().map(|connection| connection.id).collect();
        for id in all {
            if let Some(connection) = self.get(id) {
                connection.authenticated = true;
            }
            self.renew_backlog(id);
        }
    }
}

/// Requests and replies.
impl Connections {
    /// Whether some replies wait for the log alone, and others for copies as well. Until that is known,
    /// all do the latter.
    #[inline]
    pub(super) fn on_splits(&mut self, splits: bool) {
        if self.splits != splits {
            self.splits = splits;
            let all = self.iter_mut();
            all.for_each(|connection| connection.replies.wait_for_copies());
        }
    }

    #[inline]
    pub(super) fn splits(&self) -> bool {
        self.splits
    }

    /// The reply to the request about to run waits for other nodes' copies as well as for the log.
    pub(super) fn wait_for_copies(&mut self, id: ConnId) {
        if let Some(connection) = self.get(id) {
            connection.replies.wait_for_copies();
        }
    }

    /// The bytes written since `start` are replies to a client.
    #[inline]
    pub(super) fn write<M>(&mut self, id: ConnId, start: Mark, fx: &mut Effects<M>) {
        if !self.splits {
            return fx.write(id, start);
        }
        let connection = self.get(id);
        let until = connection.map_or(Until::Passed, |c| c.replies.take_until(true));
        fx.write_until(id, start, until);
    }

    /// A request has run: puts the reply, written since `mark` or still pending, in its place.
    pub(super) fn on_submitted<M>(
        &mut self,
        id: ConnId,
        submitted: Submitted,
        table: &Table,
        mark: Mark,
        fx: &mut Effects<M>,
    ) {
        let Some(connection) = find(&mut self.places, id) else {
            return;
        };
        let (last, is_far) = (connection.last_command, &mut connection.is_far);
        let is_long = || {
            let may_be = last.is_some_and(|id| may_answer_long(table.spec(id)));
            std::mem::take(is_far) || may_be
        };
        let replies = &mut connection.replies;
        if let Some(why) = replies.on_submitted(submitted, is_long, mark, &mut fx.output) {
            self.suspend(id, why, fx);
        }
    }

    /// Takes the reply to a request that was pending, and writes those that are in order now.
    pub(super) fn on_reply<M>(
        &mut self,
        id: ConnId,
        seq: u32,
        reply: Written<'_>,
        fx: &mut Effects<M>,
    ) {
        let Some(connection) = find(&mut self.places, id) else {
            return;
        };
        connection.unblock(seq);
        let at = fx.output.mark();
        let replies = &mut connection.replies;
        replies.on_reply(seq, reply, &mut fx.output);
        fx.write_until(id, at, replies.take_until(self.splits));
        if connection.closing && connection.replies.is_empty() {
            fx.closes.push((id, Close::AfterReplies));
        }
        if connection.suspended.is_none()
            && let Some(why) = connection.replies.excess()
        {
            self.suspend(id, why, fx);
        }
    }

    /// Runs no request of a connection for now.
    pub(crate) fn suspend<M>(&mut self, id: ConnId, why: Suspended, fx: &mut Effects<M>) {
        let Some(connection) = find(&mut self.places, id) else {
            return;
        };
        if connection.suspended.is_none() {
            self.suspended += 1;
            fx.holds.push((id, true));
        }
        set(connection, why, fx);
    }

    /// Resumes connections whose reason to wait is gone.
    pub(super) fn resume<M>(
        &mut self,
        awaited: &Awaited<'_>,
        resumed: &mut Vec<ConnId>,
        fx: &mut Effects<M>,
    ) {
        if self.suspended == 0 {
            return;
        }
        for connection in self.places.iter_mut().flatten() {
            let is_over = |why: &Suspended| awaited.is_over(connection, *why);
            if connection.suspended.filter(is_over).is_none() {
                continue;
            }
            if let Some(why) = connection.replies.excess() {
                set(connection, why, fx);
                continue;
            }
            connection.suspended = None;
            self.suspended -= 1;
            fx.holds.push((connection.id, false));
            resumed.push(connection.id);
        }
    }

    /// Keeps the time until which a blocking command waits, wherever its keys are by then.
    #[inline]
    pub(crate) fn note_deadline(&mut self, now: Now, id: ConnId, spec: &Spec, args: &Args<'_>) {
        if spec.flags.has(Flags::BLOCKING)
            && let Some(connection) = self.get(id)
        {
            connection.deadline_us = blocking::deadline_us(spec, args, now);
        }
    }

    /// The client of a request begins to wait for data, and is read within bounds. False if it is gone.
    pub(crate) fn block<M>(&mut self, header: &Header, fx: &mut Effects<M>) -> bool {
        let Some(connection) = self.get(header.conn) else {
            return false;
        };
        let may = connection.block(header.seq);
        if may {
            fx.holds.push((header.conn, false));
        } else {
            fx.closes.push((header.conn, Close::Now));
        }
        may
    }
}

/// A connection waits, for another reason than before.
fn set<M>(connection: &mut Connection, why: Suspended, fx: &mut Effects<M>) {
    connection.suspended = Some(why);
    if why == Suspended::Unsent {
        fx.drains.push(connection.id);
    }
}

/// Whether a command's reply may be as long as its key's value. Large strings are sent by
/// reference, so `GET` does not count.
fn may_answer_long(spec: &Spec) -> bool {
    spec.flags.has(Flags::READONLY) && !spec.flags.has(Flags::FAST)
}

/// Outputs.
impl Connections {
    /// The connections of clients, not those that the process itself opened.
    pub(super) fn clients(&self) -> impl Iterator<Item = &Connection> {
        self.iter().filter(|c| !c.info.is_internal())
    }

    /// Clients that wait for data, wherever it is.
    pub(super) fn blocked(&self) -> usize {
        self.iter().filter(|c| c.is_blocked()).count()
    }

    /// Connections with an open `BEGIN` transaction.
    pub(super) fn begun(&self) -> usize {
        self.iter().filter(|c| c.transaction.is_begun()).count()
    }

    /// Connections that are suspended.
    #[cfg(test)]
    pub(super) fn suspended(&self) -> usize {
        self.suspended
    }

    /// The connection, unless it is closed or its slot was reused.
    #[inline]
    pub(crate) fn get(&mut self, id: ConnId) -> Option<&mut Connection> {
        find(&mut self.places, id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.places.iter().flatten().map(|connection| &**connection)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        let all = self.places.iter_mut().flatten();
        all.map(|connection| &mut **connection)
    }

    /// Connections that are to be closed now.
    pub(super) fn take_closes<M>(&mut self, fx: &mut Effects<M>) {
        fx.closes.append(&mut self.closes);
        fx.idle_closes.append(&mut self.idle_closes);
    }

    /// What else the driver has to know.
    pub(super) fn take_notes<M>(&mut self, fx: &mut Effects<M>) {
        fx.holds.append(&mut self.holds);
        fx.backlogs.append(&mut self.backlogs);
    }
}

#[inline]
fn find(places: &mut [Option<Box<Connection>>], id: ConnId) -> Option<&mut Connection> {
    places
        .get_mut(id.index())?
        .as_deref_mut()
        .filter(|c| c.id == id)
}

#[cfg(test)]
mod tests;
