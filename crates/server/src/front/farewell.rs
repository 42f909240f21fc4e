//! The end of clients' connections before the node stops: each is closed when nothing of it is
//! pending, so that no request is lost.
//!
//! A client that has sent one request and waits for the reply is closed with that reply: it cannot
//! have sent another one, and finds the connection closed before it does. Others, such as clients
//! that pipeline, are closed after some milliseconds of silence, unless the driver finds that they
//! have sent something meanwhile. Connections in a transaction stay until the driver ends them.
//!
//! It looks at connections when a turn ends: a reply that was written in the turn leaves together
//! with the end of its connection, and no request of the turn is left.

use super::connection::Connection;
use super::connections::Connections;
use rufous_base::{ConnId, Now};
use std::collections::BTreeMap;

/// Silence after which a connection is closed.
const SILENCE_US: u64 = 20_000;
/// After this long any moment without a pending request will do: a client that never pauses is cut
/// off by the driver otherwise.
const PATIENCE_US: u64 = 500_000;
/// A client that has sent a request before the reply to the one before within this time may do so
/// again.
const PIPELINES_US: u64 = 5_000_000;
/// How often silence is looked for.
const LOOK_US: u64 = 5_000;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    begun_us: Option<u64>,
    /// Requests of each client when its connection was last without a pending one.
    commands: BTreeMap<u64, u64>,
}

/// How a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parting {
    WithReply,
    IfIdle,
}

impl Farewell {
    /// The node stops soon.
    pub(super) fn on_begin(&mut self, now: Now, connections: &Connections) {
        self.begun_us.get_or_insert(now.mono_us);
        let all = connections.iter();
        self.commands = all.map(|c| (c.client_id, c.commands)).collect();
    }

    /// A turn ends: closes the connections that are ready for it.
    pub(super) fn on_turn_end(&mut self, now: Now, connections: &mut Connections) {
        let Some(begun_us) = self.begun_us else {
            return;
        };
        let mut done: Vec<(ConnId, Parting)> = Vec::new();
        for connection in clients(connections).filter(|c| c.is_at_rest()) {
            let commands = connection.commands;
            let before = self.commands.insert(connection.client_id, commands);
            let answered = commands.wrapping_sub(before.unwrap_or(commands));
            let parting = parting(now, begun_us, connection, answered);
            done.extend(parting.map(|parting| (connection.id, parting)));
        }
        for (id, parting) in done {
            match parting {
                Parting::WithReply => connections.close_after_reply(id),
                Parting::IfIdle => connections.close_if_idle(id),
            }
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun_us.is_some()
    }

    /// When a turn is needed.
    pub(super) fn wake_us(&self, now: Now, connections: &Connections) -> Option<u64> {
        self.begun_us?;
        let next = clients(connections).next();
        next.map(|_| now.mono_us + LOOK_US)
    }
}

/// Clients whose connections are open.
fn clients(connections: &Connections) -> impl Iterator<Item = &Connection> {
    let open = connections.iter().filter(|c| !c.closing);
    open.filter(|c| !c.info.is_internal())
}

/// How a connection without a pending request is closed, if it is. `answered`: requests since it was
/// last without one; the last of their replies was written in this turn.
fn parting(now: Now, begun_us: u64, connection: &Connection, answered: u64) -> Option<Parting> {
    let is_late = now.mono_us >= begun_us + PATIENCE_US;
    let before_us = now.mono_us.saturating_sub(PIPELINES_US);
    let pipelines = connection.pipelined_us > before_us;
    if answered == 1 && !pipelines || answered > 0 && is_late {
        return Some(Parting::WithReply);
    }
    let active_us = connection.last_active_us.max(begun_us);
    let is_silent = now.mono_us.saturating_sub(active_us) >= SILENCE_US;
    (is_silent || is_late).then_some(Parting::IfIdle)
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::super::testing::{Client, Rig};

    fn open(rig: &Rig, clients: &[Client]) -> Vec<bool> {
        let all = clients.iter();
        all.map(|client| !rig.is_closed(*client)).collect()
    }

    #[test]
    fn clients_are_closed_between_two_requests() {
        let mut rig = Rig::new(1);
        let all: Vec<Client> = (0..4).map(|_| rig.connect(0)).collect();
        let [one, many, half, queues] = all[..] else {
            panic!("four clients");
        };
        rig.send(queues, b"MULTI\r\n");
        rig.take(queues);
        rig.tell_all(|| Message::Farewell);
        assert_eq!(open(&rig, &all), [true; 4]);
        // With its only reply.
        rig.send(one, b"SET a 1\r\n");
        assert_eq!(rig.take(one), "+OK\r\n");
        assert_eq!(open(&rig, &all), [false, true, true, true]);
        // More may follow these, and the rest of that.
        rig.send(many, b"SET a 2\r\nGET a\r\n");
        rig.send(half, b"SET b");
        assert_eq!(rig.take(many), "+OK\r\n$1\r\n2\r\n");
        assert_eq!(open(&rig, &all), [false, true, true, true]);
        rig.advance_ms(15);
        // It has sent two at once, and may do so again.
        rig.send(many, b"GET a\r\n");
        rig.advance_ms(15);
        assert_eq!(open(&rig, &all), [false, true, true, true]);
        rig.advance_ms(30);
        assert_eq!(open(&rig, &all), [false, false, true, true]);
        rig.send(half, b" 3\r\n");
        assert_eq!(rig.take(half), "+OK\r\n");
        assert_eq!(open(&rig, &all), [false, false, false, true]);
        rig.send(queues, b"INCR a\r\n");
        rig.advance_ms(100);
        assert_eq!(open(&rig, &all), [false, false, false, true]);
        rig.send(queues, b"EXEC\r\n");
        rig.advance_ms(30);
        assert_eq!(open(&rig, &all), [false; 4]);
    }
}
