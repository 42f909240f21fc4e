//! Passing on: messages to their session, bytes to their connection, and received messages to their
//! worker.

use super::Links;
use super::clocks;
use super::link::Up;
use super::parked::may_wait;
use crate::peer::{Credit, Heard, PeerMessage, Session};
use rufous_base::limits::OUTPUT_HIGH_WATER;
use rufous_base::slot::worker_of_slot;
use rufous_base::{Close, ConnId, Effects, Now, WorkerId};
use rufous_mapping::NodeNo;
use rufous_wire::message::{AskClock, Clock};
use rufous_wire::version::ALIKE;
use rufous_wire::{Body, Class, Envelope, NotSent, Refused};

/// Bytes given to a connection at a time. The driver takes another piece while less than its high
/// water waits, so that urgent messages wait only briefly.
const PIECE: usize = 256 * 1024;

const _: () = assert!(2 * PIECE < OUTPUT_HIGH_WATER);

impl Links {
    /// The worker of the slot that a message is about, or the worker that it names; all other
    /// messages stay at the worker that received them.
    pub(super) fn worker_of(&self, envelope: &Envelope) -> WorkerId {
        match envelope.body.as_ref().and_then(slot_in) {
            Some(slot) => worker_of_slot(slot, self.workers),
            None => match &envelope.body {
                Some(
                    Body::Gossip(_)
                    | Body::Replies(_)
                    | Body::Ask(_)
                    | Body::Grant(_)
                    | Body::Letter(_),
                ) => WorkerId((envelope.to as usize % self.workers) as u16),
                // This includes requests: they run at the worker with the session.
                _ => self.worker,
            },
        }
    }

    /// Gives a received message to its worker. Writes in one message go one by one where they are of several: their
    /// sender knows another number of workers.
    pub(super) fn pass_on(
        &mut self,
        up: Up,
        credit: Credit,
        envelope: Envelope,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let to = self.worker_of(&envelope);
        match envelope {
            Envelope {
                body: Some(Body::Alike(alike)),
                ..
            } if alike
                .slots()
                .any(|slot| worker_of_slot(slot, self.workers) != to) =>
            {
                for items in alike.each() {
                    let body = Some(Body::Items(items));
                    let part = Credit { size: 0, ..credit };
                    self.pass_on(up, part, Envelope { body, ..envelope }, fx);
                }
                self.taken(credit, fx);
            }
            envelope if to == self.worker => {
                self.heard.push(Heard::Message(up.no, Box::new(envelope)));
                self.taken(credit, fx);
            }
            envelope => {
                let message = PeerMessage::Take {
                    from: up.no,
                    session: up.session,
                    credit,
                    envelope: Box::new(envelope),
                };
                fx.messages.push((to, message.into()));
            }
        }
    }

    /// The layers above are done with a message.
    pub(super) fn taken(&mut self, credit: Credit, fx: &mut Effects<impl From<PeerMessage>>) {
        if !self.has(credit.conn) {
            return;
        }
        if let Some(link) = self.links.get_mut(&credit.conn.slot) {
            link.wire.take(credit.class, credit.size);
        }
        self.pump(credit.conn.slot, fx);
    }

    /// Sends a message to a node. Without a session it is lost, as it would be with a session that
    /// ends: the layers above send it again when the next session begins.
    pub fn send(
        &mut self,
        now: Now,
        to: NodeNo,
        class: Class,
        envelope: Envelope,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let Some(route) = self.routes.get(&to).copied() else {
            self.figures.lost += 1;
            return;
        };
        if route.worker == self.worker {
            return self.send_by(now, to, route.session, class, &envelope, fx);
        }
        let message = PeerMessage::Send {
            to,
            session: route.session,
            class,
            envelope: Box::new(envelope),
        };
        fx.messages.push((route.worker, message.into()));
    }

    /// Sends it on a session of this worker, if that is still the same session.
    pub(super) fn send_by(
        &mut self,
        now: Now,
        to: NodeNo,
        session: Session,
        class: Class,
        envelope: &Envelope,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let route = self
            .routes
            .get(&to)
            .filter(|route| route.session == session);
        let Some(slot) = route.and_then(|route| route.slot) else {
            self.figures.lost += 1;
            return;
        };
        let Some(link) = self.links.get_mut(&slot) else {
            return;
        };
        let is_earlier = link.up.is_some_and(|up| up.version < ALIKE);
        if let Some(Body::Alike(alike)) = envelope.body.as_ref().filter(|_| is_earlier) {
            for items in alike.clone().each() {
                let body = Some(Body::Items(items));
                let one = Envelope { body, ..*envelope };
                self.send_by(now, to, session, class, &one, fx);
            }
            return;
        }
        let sent = match link.parked.bytes(class) {
            0 => link.wire.send(class, envelope),
            // Queued behind those that wait already.
            _ => Err(NotSent::Full),
        };
        match sent {
            Ok(()) => {
                link.traffic.messages_out += 1;
                self.pump(slot, fx);
            }
            Err(NotSent::Full) if may_wait(class) && link.parked.push(class, envelope) => {
                self.tell_rooms(slot);
            }
            // If a message was dropped, those behind it would be out of sequence.
            Err(NotSent::Full) => self.refuse(now, slot, &Refused::Slow, fx),
            Err(NotSent::NotUp) => self.figures.lost += 1,
            // The other node's version does not have this message, and does not need it.
            Err(NotSent::TooNew) => {}
            Err(error @ (NotSent::Wrong(_) | NotSent::TooLarge)) => {
                tracing::error!(?error, node = %to, "an invalid message to a node");
                self.refuse(now, slot, &Refused::Garbage("this node made no sense"), fx);
            }
        }
    }

    /// Whether no message of a class waits at a session of this worker.
    pub fn has_room(&self, to: NodeNo, class: Class) -> bool {
        let slot = self.routes.get(&to).and_then(|route| route.slot);
        let link = slot.and_then(|slot| self.links.get(&slot));
        link.is_some_and(|link| {
            link.wire.is_up() && link.wire.has_room(class) && link.parked.bytes(class) == 0
        })
    }

    /// Ends the session with a node, at whichever worker, because of an invalid message.
    pub fn refuse_node(
        &mut self,
        now: Now,
        no: NodeNo,
        why: &'static str,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let Some(route) = self.routes.get(&no).copied() else {
            return;
        };
        if route.worker != self.worker {
            let message = PeerMessage::Refuse(no, route.session, why);
            return fx.messages.push((route.worker, message.into()));
        }
        if let Some(slot) = route.slot {
            self.refuse(now, slot, &Refused::Garbage(why), fx);
        }
    }

    /// Gives the connection as many bytes as it may take.
    pub(super) fn pump(&mut self, slot: u32, fx: &mut Effects<impl From<PeerMessage>>) {
        let Some(link) = self.links.get_mut(&slot) else {
            return;
        };
        if link.unsent < PIECE {
            let start = fx.at_once.output.mark();
            let before = fx.at_once.output.bytes.len();
            let room = match link.refused_us {
                // The connection closes after these bytes.
                Some(_) => usize::MAX,
                None => PIECE,
            };
            link.give_rest(room, &mut fx.at_once.output.bytes);
            while link.rest.0.is_empty() && fx.at_once.output.bytes.len() - before < PIECE {
                match link.parked.send(&mut link.wire) {
                    Ok(sent) => link.traffic.messages_out += sent,
                    Err(error) => {
                        tracing::error!(?error, "an invalid message to a node");
                        fx.at_once.closes.push((link.conn, Close::Now));
                        break;
                    }
                }
                let had = fx.at_once.output.bytes.len();
                link.wire.transmit(&mut fx.at_once.output.bytes, PIECE);
                if link.parked.is_empty() || fx.at_once.output.bytes.len() == had {
                    break;
                }
            }
            let most = before.saturating_add(room);
            if fx.at_once.output.bytes.len() > most {
                link.rest = (fx.at_once.output.bytes.split_off(most), 0);
            }
            let sent = fx.at_once.output.bytes.len() - before;
            fx.at_once.write(link.conn, start);
            link.traffic.bytes_out += sent as u64;
            link.unsent += sent;
            if link.unsent >= PIECE {
                fx.at_once.drains.push(link.conn);
            }
        }
        if link.refused_us.is_some() {
            let close = (link.conn, Close::AfterReplies);
            if !fx.at_once.closes.contains(&close) {
                fx.at_once.closes.push(close);
            }
        }
        self.tell_rooms(slot);
    }

    /// Publishes how many bytes wait for a node.
    fn tell_rooms(&self, slot: u32) {
        let link = self.links.get(&slot);
        if let Some((link, up)) = link.and_then(|link| Some((link, link.up?))) {
            for class in [Class::Chain, Class::Learning] {
                let waits = link.wire.queued(class) + link.parked.bytes(class);
                self.common.rooms.tell(class, up.no, waits);
            }
        }
    }

    /// Written bytes have been sent.
    pub fn on_drained(&mut self, conn: ConnId, fx: &mut Effects<impl From<PeerMessage>>) {
        if let Some(link) = self.links.get_mut(&conn.slot) {
            link.unsent = 0;
        }
        self.pump(conn.slot, fx);
    }
}

impl Links {
    /// Asks the nodes that are due for their clock, and logs clocks that are far off.
    pub(super) fn tick_clocks(&mut self, now: Now, fx: &mut Effects<impl From<PeerMessage>>) {
        let mut due = Vec::new();
        for link in self.links.values_mut() {
            let Some(up) = link.up.filter(|_| link.refused_us.is_none()) else {
                continue;
            };
            link.clock.look(now);
            if let (Some(is_far), Some(offset)) = (link.clock.news(), link.clock.offset) {
                clocks::report(&self.common.far, up.no, is_far, offset);
            }
            if link.clock.ask(now) {
                due.push((up.no, up.session));
            }
        }
        let asked_us = now.mono_us;
        for (no, session) in due {
            self.say(now, no, session, Body::AskClock(AskClock { asked_us }), fx);
        }
    }

    /// Takes a message about clocks, which concerns its session alone. False if the message is
    /// about something else.
    pub(super) fn hear_of_clocks(
        &mut self,
        now: Now,
        slot: u32,
        body: Option<&Body>,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) -> bool {
        let Some(link) = self.links.get_mut(&slot) else {
            return false;
        };
        match (body, link.up) {
            (Some(Body::AskClock(ask)), Some(up)) => {
                let clock = Clock {
                    asked_us: ask.asked_us,
                    unix_us: now.unix_us,
                };
                self.say(now, up.no, up.session, Body::Clock(clock), fx);
            }
            (Some(Body::Clock(clock)), Some(_)) => link.clock.take(now, clock),
            _ => return false,
        }
        true
    }

    fn say(
        &mut self,
        now: Now,
        no: NodeNo,
        session: Session,
        body: Body,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let envelope = self.envelope(body);
        self.send_by(now, no, session, Class::Control, &envelope, fx);
    }
}

/// The slot that a message is about.
fn slot_in(body: &Body) -> Option<u16> {
    let slot = match body {
        Body::Items(m) => m.slot,
        Body::Ack(m) => m.slot,
        Body::State(m) => m.slot,
        Body::Behind(m) => m.slot,
        Body::Learn(m) => m.slot,
        Body::Copy(m) => m.slot,
        Body::Copied(m) => m.slot,
        Body::Alike(m) => return m.slots().next(),
        _ => return None,
    };
    u16::try_from(slot).ok()
}
