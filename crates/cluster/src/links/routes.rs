//! Which worker has the session with which node, and how sessions are established.

use super::Links;
use crate::peer::{Heard, PeerMessage, Session};
use crate::way::Routing;
use rufous_base::limits::{DIAL_PATIENCE_US, DIAL_PAUSE_US, GOOD_SESSION_US, HEARING_US};
use rufous_base::{Close, ConnId, Dial, DialError, Effects, Now, WorkerId};
use rufous_mapping::{Mapping, NodeNo};
use rufous_wire::Refused;
use std::sync::Arc;

/// The session with a node, as one worker knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) worker: WorkerId,
    pub(super) session: Session,
    /// The connection's slot, if it is this worker's.
    pub(super) slot: Option<u32>,
}

/// A connection that this worker has to establish.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The token of the connection in progress or established.
    token: Option<u64>,
    due_us: u64,
    pause_us: u64,
    /// The last failure, so that it is logged once.
    said: String,
}

impl Links {
    /// The inputs of routing.
    pub fn routing(&self) -> Routing<'_, impl Fn(NodeNo) -> bool> {
        Routing {
            mapping: self.mapping.as_deref(),
            own: self.own,
            reaches: |no| self.reaches(no),
        }
    }

    /// The version of the messages to a node, while there is a session with it.
    pub fn version(&self, no: NodeNo) -> Option<u16> {
        let member = self.mapping.as_ref()?.members.get(&no)?;
        let theirs = self.common.peers.versions(&member.id.0)?;
        self.common.local.versions().agree(&theirs)
    }

    /// Whether a member with a session speaks earlier versions only.
    pub fn has_earlier(&self, version: u16) -> bool {
        self.earlier(version).next().is_some()
    }

    /// Members with a session that speak earlier versions only.
    pub fn earlier(&self, version: u16) -> impl Iterator<Item = NodeNo> {
        let is_earlier =
            move |no: &NodeNo| self.version(*no).is_some_and(|spoken| spoken < version);
        self.connected().filter(is_earlier)
    }

    /// Applies a mapping; older ones are ignored.
    pub fn on_mapping(
        &mut self,
        now: Now,
        mapping: Arc<Mapping>,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        if mapping.epoch <= self.epoch() || self.stopping {
            return;
        }
        self.own = mapping.number_of(rufous_mapping::NodeId(self.common.local.id));
        self.mapping = Some(Arc::clone(&mapping));
        let mut gone = Vec::new();
        for (slot, link) in &mut self.links {
            link.wire.set_epoch(mapping.epoch);
            let Some(up) = link.up else {
                continue;
            };
            match mapping.members.get(&up.no) {
                None => gone.push((*slot, Refused::NoMember)),
                Some(member) if member.incarnation > up.incarnation => {
                    gone.push((*slot, Refused::Outdated));
                }
                Some(_) => {}
            }
        }
        for (slot, refused) in gone {
            self.refuse(now, slot, &refused, fx);
        }
        self.attempts
            .retain(|no, _| mapping.members.contains_key(no));
        self.heard.push(Heard::Mapping(mapping));
        self.dial_due(now, fx);
    }

    /// Another worker reports a session, or sends messages for nodes.
    pub fn on_peer_message(
        &mut self,
        now: Now,
        from: WorkerId,
        message: PeerMessage,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        match message {
            PeerMessage::Mapping(mapping) => self.on_mapping(now, mapping, fx),
            PeerMessage::Up(no, session) => {
                self.take_route(now, no, from, session, None, fx);
            }
            PeerMessage::Down(no, session) => self.forget_route(no, from, session),
            PeerMessage::Send {
                to,
                session,
                class,
                envelope,
            } => self.send_by(now, to, session, class, &envelope, fx),
            PeerMessage::Take {
                from: node,
                session,
                credit,
                envelope,
            } => {
                let route = self.routes.get(&node);
                if route.is_some_and(|route| (route.worker, route.session) == (from, session)) {
                    self.heard.push(Heard::Message(node, envelope));
                }
                let taken = PeerMessage::Taken(credit);
                fx.messages.push((from, taken.into()));
            }
            PeerMessage::Taken(credit) => self.taken(credit, fx),
            PeerMessage::Refuse(no, session, why) => {
                let route = self.routes.get(&no);
                if route.is_some_and(|route| route.session == session) {
                    self.refuse_node(now, no, why, fx);
                }
            }
            // The front handles this message of the control thread.
            PeerMessage::Report { .. } => {}
        }
    }

    /// Records a session. Of two with one node the later one is valid: the other side has given up
    /// the earlier one. False if a later one is known.
    pub(super) fn take_route(
        &mut self,
        now: Now,
        no: NodeNo,
        worker: WorkerId,
        session: Session,
        slot: Option<u32>,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) -> bool {
        if let Some(known) = self.routes.get(&no).copied() {
            if (known.session, known.worker) >= (session, worker) {
                return false;
            }
            match known.slot {
                // Ending it removes its route.
                Some(earlier) => self.refuse(now, earlier, &Refused::Replaced, fx),
                None => self.heard.push(Heard::Down(no)),
            }
        }
        let route = Route {
            worker,
            session,
            slot,
        };
        self.routes.insert(no, route);
        self.heard.push(Heard::Up(no));
        true
    }

    fn forget_route(&mut self, no: NodeNo, worker: WorkerId, session: Session) {
        let known = self.routes.get(&no);
        if known.is_some_and(|known| (known.worker, known.session) == (worker, session)) {
            self.routes.remove(&no);
            self.heard.push(Heard::Down(no));
        }
    }

    /// A connection of this worker has no session any more.
    pub(super) fn leave_route(&mut self, slot: u32, fx: &mut Effects<impl From<PeerMessage>>) {
        let Some(up) = self.links.get(&slot).and_then(|link| link.up) else {
            return;
        };
        let route = self.routes.get(&up.no);
        if route.is_some_and(|route| route.slot == Some(slot) && route.session == up.session) {
            self.forget_route(up.no, self.worker, up.session);
            self.tell_others(&PeerMessage::Down(up.no, up.session), fx);
        }
    }

    /// The connection is closed.
    pub fn on_closed(&mut self, now: Now, conn: ConnId, fx: &mut Effects<impl From<PeerMessage>>) {
        self.leave_route(conn.slot, fx);
        let Some(mut link) = self.links.remove(&conn.slot) else {
            return;
        };
        if link.up.is_some() && link.refused_us.is_none() {
            tracing::info!(address = link.address, "lost the connection to a node");
        }
        link.wire.close(&self.common.peers);
        self.figures.past.add(&link.traffic);
        match (link.dialled, link.up) {
            (Some(no), up) => {
                let lasted = up.map(|up| now.mono_us.saturating_sub(up.session.0));
                self.dial_later(now, no, lasted);
            }
            (None, Some(up)) => self.probes.on_ended(now, up.no),
            (None, None) => {}
        }
    }

    /// A connection without a known node makes room for another one.
    pub(super) fn on_too_many(&mut self, slot: u32, fx: &mut Effects<impl From<PeerMessage>>) {
        if let Some(mut link) = self.links.remove(&slot) {
            link.wire.close(&self.common.peers);
            self.figures.past.add(&link.traffic);
            self.figures.turned_away += 1;
            fx.at_once.closes.push((link.conn, Close::Now));
        }
    }

    /// Dials the nodes that this worker has to reach and has no session with.
    pub(super) fn dial_due(&mut self, now: Now, fx: &mut Effects<impl From<PeerMessage>>) {
        let (Some(mapping), Some(own)) = (self.mapping.clone(), self.own) else {
            return;
        };
        if self.stopping {
            return;
        }
        let is_mine =
            |no: &NodeNo| *no > own && usize::from(no.0) % self.workers == self.worker.index();
        for (no, member) in mapping.members.iter().filter(|(no, _)| is_mine(no)) {
            let attempt = self.attempts.entry(*no).or_insert_with(|| Attempt {
                token: None,
                due_us: now.mono_us,
                pause_us: DIAL_PAUSE_US.0,
                said: String::new(),
            });
            if attempt.token.is_some() || attempt.due_us > now.mono_us {
                continue;
            }
            self.dialled += 1;
            let token = self.dialled << 16 | u64::from(no.0);
            attempt.token = Some(token);
            self.figures.dials += 1;
            fx.dials.push(Dial {
                token,
                to: member.peer.clone(),
                within_us: DIAL_PATIENCE_US,
            });
        }
        let Self {
            probes,
            dialled,
            routes,
            ..
        } = self;
        let asked = probes.take_due(now, |no| {
            let asks = mapping.members.contains_key(&no) && !routes.contains_key(&no);
            *dialled += u64::from(asks);
            asks.then_some(*dialled << 16 | u64::from(no.0))
        });
        self.figures.dials += asked.len() as u64;
        fx.dials.extend(asked.into_iter().map(|(no, token)| Dial {
            token,
            to: mapping.members[&no].peer.clone(),
            within_us: DIAL_PATIENCE_US,
        }));
    }

    /// The node that a dialled connection reaches, if it is still needed.
    pub(super) fn on_dialled(&mut self, token: u64) -> Option<NodeNo> {
        let no = NodeNo(token as u16);
        let attempt = self.attempts.get(&no)?;
        (attempt.token == Some(token)).then_some(no)
    }

    /// A connection could not be made. True if it is news that the node's process has ended.
    pub fn on_undialled(&mut self, now: Now, token: u64, error: &DialError) -> bool {
        let asked = self.probes.on_failed(token);
        let dialled = self.on_dialled(token);
        let Some(no) = asked.or(dialled) else {
            return false;
        };
        self.figures.dial_errors += 1;
        if let Some(attempt) = self.attempts.get_mut(&no).filter(|_| dialled.is_some())
            && attempt.said != error.why
        {
            let why = &error.why;
            tracing::warn!(node = %no, why, "cannot reach a node; trying again");
            attempt.said.clone_from(why);
        }
        if dialled.is_some() {
            self.dial_later(now, no, None);
        }
        error.is_refused && self.on_gone(now, no)
    }

    /// A connection is closed; `lasted_us` is the duration of its session, if there was one.
    pub(super) fn dial_later(&mut self, now: Now, no: NodeNo, lasted_us: Option<u64>) {
        let Some(attempt) = self.attempts.get_mut(&no) else {
            return;
        };
        attempt.token = None;
        if lasted_us.is_some_and(|lasted| lasted >= GOOD_SESSION_US) {
            attempt.pause_us = DIAL_PAUSE_US.0;
            attempt.said.clear();
        }
        attempt.due_us = now.mono_us + attempt.pause_us;
        attempt.pause_us = (attempt.pause_us * 2).min(DIAL_PAUSE_US.1);
    }

    /// No process listens where the node was: it is not heard any more, unless it has a session. True
    /// if that is news.
    fn on_gone(&mut self, now: Now, no: NodeNo) -> bool {
        let member = self
            .mapping
            .as_ref()
            .and_then(|mapping| mapping.members.get(&no));
        let Some(incarnation) = member.map(|member| member.incarnation) else {
            return false;
        };
        if self.reaches(no) || self.last_heard.remove(&no).is_none() {
            return false;
        }
        tracing::info!(node = %no, "a node's process has ended: no process listens at its address");
        self.figures.gone += 1;
        self.common.health.gone(no, incarnation);
        self.tell_heard(now);
        true
    }

    /// Reports the nodes that were heard lately.
    pub(super) fn tell_heard(&mut self, now: Now) {
        for link in self.links.values() {
            if let Some(up) = link.up {
                let last = self.last_heard.entry(up.no).or_default();
                *last = link.heard_us.max(*last);
            }
        }
        // The next session with a node may begin soon.
        self.last_heard
            .retain(|_, last| now.mono_us.saturating_sub(*last) < HEARING_US);
        let nodes = self.last_heard.keys().copied().collect();
        self.common.health.hears(self.worker.0, nodes);
    }
}
