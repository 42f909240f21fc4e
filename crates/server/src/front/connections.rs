//! The connections of a worker: opened, found by their ids, and closed once nothing is left to reply.

use super::connection::Connection;
use rufous_base::{Backlog, Close, ConnId, ConnInfo, Effects, Now, WorkerId};

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
    drains: Vec<ConnId>,
    idle_closes: Vec<ConnId>,
}

/// Inputs.
impl Connections {
    /// A connection opens, at this worker of so many. Ids of clients differ over the node.
    pub(super) fn on_opened(
        &mut self,
        now: Now,
        id: ConnId,
        info: ConnInfo,
        (worker, workers): (WorkerId, usize),
    ) -> &mut Connection {
        let client_id = self.seen * workers as u64 + u64::from(worker.0) + 1;
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
        place.take_if(|connection| connection.id == id)
    }

    /// A client has stopped sending.
    pub(super) fn on_ended(&mut self, id: ConnId) {
        self.ended.push(id);
    }

    /// Everything that was written to a connection has been sent.
    pub(super) fn on_drained(&mut self, id: ConnId) {
        if let Some(connection) = self.get(id) {
            connection.unsent = 0;
        }
    }

    /// Runs no further request of a connection, and closes it when its last reply has been written.
    pub(super) fn close_after_reply(&mut self, id: ConnId) {
        if let Some(connection) = self.get(id) {
            connection.closing = true;
            if connection.slots.is_empty() {
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
            let answered = connection.slots.is_empty() && connection.suspended.is_none();
            if answered {
                connection.closing = true;
                closes.push((id, Close::AfterReplies));
            }
            !answered
        });
    }

    /// Has the driver say when everything that was written to a connection is sent.
    pub(super) fn drain(&mut self, id: ConnId) {
        self.drains.push(id);
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

/// Outputs.
impl Connections {
    /// The connection, unless it is closed or its slot was reused.
    #[inline]
    pub(super) fn get(&mut self, id: ConnId) -> Option<&mut Connection> {
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
        fx.backlogs.append(&mut self.backlogs);
        fx.drains.append(&mut self.drains);
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
mod tests {
    use super::super::connection::{Slot, Suspended};
    use super::*;
    use rufous_base::Origin;

    const WAITING: Slot = Slot::Waiting {
        discard: false,
        long: false,
    };

    fn id(slot: u32, generation: u32) -> ConnId {
        ConnId { slot, generation }
    }

    fn open(all: &mut Connections, id: ConnId) -> u64 {
        let place = (WorkerId(1), 4);
        let info = ConnInfo {
            peer: String::new(),
            local: String::new(),
            is_local: true,
            origin: Origin::Client,
            certificate: None,
        };
        all.on_opened(Now::default(), id, info, place).client_id
    }

    fn closes(all: &mut Connections) -> Vec<(ConnId, Close)> {
        let mut fx = Effects::<()>::default();
        all.take_closes(&mut fx);
        fx.closes
    }

    #[test]
    fn a_reused_slot_is_another_connection() {
        let mut all = Connections::default();
        assert_eq!(open(&mut all, id(2, 1)), 2);
        assert!(all.get(id(2, 2)).is_none() && all.get(id(0, 1)).is_none());
        assert!(all.on_closed(id(2, 2)).is_none());
        assert!(all.on_closed(id(2, 1)).is_some());
        assert_eq!(open(&mut all, id(2, 2)), 6, "in steps of the workers");
        assert!(all.get(id(2, 1)).is_none() && all.get(id(2, 2)).is_some());
        all.close_now(id(2, 1));
        assert_eq!(closes(&mut all), []);
    }

    #[test]
    fn a_connection_with_a_pending_reply_is_closed_at_once_or_later() {
        let mut all = Connections::default();
        for slot in 0..3 {
            open(&mut all, id(slot, 1));
        }
        all.get(id(0, 1)).expect("open").slots.push_back(WAITING);
        all.get(id(1, 1)).expect("open").slots.push_back(WAITING);
        all.close_after_reply(id(0, 1));
        all.close_now(id(1, 1));
        all.close_after_reply(id(2, 1));
        let now = [(id(1, 1), Close::Now), (id(2, 1), Close::AfterReplies)];
        assert_eq!(closes(&mut all), now);
        assert!(all.iter().all(|connection| connection.closing));
    }

    #[test]
    fn an_ended_client_gets_its_replies_first() {
        let mut all = Connections::default();
        open(&mut all, id(0, 1));
        let connection = all.get(id(0, 1)).expect("open");
        connection.slots.push_back(WAITING);
        connection.suspended = Some(Suspended::Barrier);
        all.on_ended(id(0, 1));
        all.close_ended();
        all.get(id(0, 1)).expect("open").slots.clear();
        all.close_ended();
        assert_eq!(closes(&mut all), [], "it is suspended");
        all.get(id(0, 1)).expect("open").suspended = None;
        all.close_ended();
        assert_eq!(closes(&mut all), [(id(0, 1), Close::AfterReplies)]);
        all.close_ended();
        assert_eq!(closes(&mut all), [], "only once");
    }

    #[test]
    fn the_driver_hears_of_a_backlog_when_it_changes() {
        let mut all = Connections::default();
        open(&mut all, id(0, 1));
        let mut fx = Effects::<()>::default();
        all.renew_backlog(id(0, 1));
        all.authenticate_all();
        all.authenticate_all();
        all.drain(id(0, 1));
        all.take_notes(&mut fx);
        let kinds = [Backlog::Stranger, Backlog::Client];
        assert_eq!(fx.backlogs, kinds.map(|kind| (id(0, 1), kind)));
        assert_eq!(fx.drains, [id(0, 1)]);
    }
}
