//! Sessions of one worker with other nodes, without sockets: connections, bytes
//! and the time come in, effects go out.

pub mod clocks;
mod entrance;
mod link;
mod parked;
mod passing;
mod probes;
mod routes;
#[cfg(test)]
mod tests;

use crate::common::Common;
use crate::damage::Damage;
use crate::figures::{Figures, PeerFigures, Traffic};
use crate::peer::{Credit, Heard, PeerMessage, Session};
use entrance::Entrance;
use link::{Link, Up};
use parked::Parked;
use routes::{Attempt, Route};
use rufous_base::limits::{FAREWELL_US, HANDSHAKE_PATIENCE_US, HEARTBEAT_US};
use rufous_base::{Backlog, Close, ConnId, ConnInfo, Effects, Now, Origin, Read, WorkerId};
use rufous_mapping::{Mapping, NodeNo};
use rufous_wire::message::Heartbeat;
use rufous_wire::session::Peer;
use rufous_wire::{Body, Class, Envelope, Event, Refused};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Log lines about refusals in a period; further ones are only counted.
const MAX_LINES: u32 = 10;
const LINES_PERIOD_US: u64 = 10_000_000;

/// See the module's description.
pub struct Links {
    common: Arc<Common>,
    worker: WorkerId,
    workers: usize,
    mapping: Option<Arc<Mapping>>,
    /// This node's number in the mapping.
    own: Option<NodeNo>,
    /// By the connection's slot.
    links: BTreeMap<u32, Link>,
    routes: BTreeMap<NodeNo, Route>,
    attempts: BTreeMap<NodeNo, Attempt>,
    probes: probes::Probes,
    entrance: Entrance,
    dialled: u64,
    /// When each node was last heard on a session of this worker.
    last_heard: BTreeMap<NodeNo, u64>,
    figures: Figures,
    heard: Vec<Heard>,
    lines: (u64, u32),
    stopping: bool,
    pub damage: Damage,
}

impl Links {
    pub fn new(common: Arc<Common>, worker: WorkerId, workers: usize) -> Self {
        Self {
            common,
            worker,
            workers,
            mapping: None,
            own: None,
            links: BTreeMap::new(),
            routes: BTreeMap::new(),
            attempts: BTreeMap::new(),
            probes: probes::Probes::default(),
            entrance: Entrance::default(),
            dialled: 0,
            last_heard: BTreeMap::new(),
            figures: Figures::default(),
            heard: Vec::new(),
            lines: (0, 0),
            stopping: false,
            damage: Damage::default(),
        }
    }

    /// What all workers of the node share.
    pub fn common(&self) -> &Common {
        &self.common
    }

    /// The mapping that this worker applies.
    pub fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.mapping.as_ref()
    }

    /// This node's number in the mapping.
    pub fn own(&self) -> Option<NodeNo> {
        self.own
    }

    /// Nodes with a session at any worker.
    pub fn connected(&self) -> impl Iterator<Item = NodeNo> {
        self.routes.keys().copied()
    }

    /// Whether any worker has a session with it.
    pub fn reaches(&self, no: NodeNo) -> bool {
        self.routes.contains_key(&no)
    }

    pub fn epoch(&self) -> u64 {
        self.mapping.as_ref().map_or(0, |mapping| mapping.epoch)
    }

    /// Whether there is no connection: most turns check nothing more.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub fn has(&self, conn: ConnId) -> bool {
        let link = self.links.get(&conn.slot);
        link.is_some_and(|link| link.conn == conn)
    }

    /// Events that the layers above have not taken yet.
    pub fn take_heard(&mut self) -> Vec<Heard> {
        std::mem::take(&mut self.heard)
    }

    pub fn on_opened(
        &mut self,
        now: Now,
        conn: ConnId,
        info: ConnInfo,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let dialled = match info.origin {
            Origin::Dialled { token } if self.probes.on_taken(now, token) => {
                return fx.at_once.closes.push((conn, Close::Now));
            }
            Origin::Dialled { token } => match self.on_dialled(token) {
                Some(no) => Some(no),
                None => return fx.at_once.closes.push((conn, Close::Now)),
            },
            _ => None,
        };
        if self.stopping {
            return fx.at_once.closes.push((conn, Close::Now));
        }
        let members = self.mapping.as_ref().map(|mapping| &mapping.members);
        let expected = dialled.and_then(|no| members?.get(&no));
        let expected = expected.map(|member| member.id.0);
        if let Some(slot) = entrance::oldest_of_too_many(&self.links) {
            self.on_too_many(slot, fx);
        }
        let Common { auth, local, .. } = &*self.common;
        let proving = self
            .entrance
            .proving(auth.as_ref(), self.worker, info.origin);
        let wire = rufous_wire::Session::with_proof(local.clone(), expected, self.epoch(), proving);
        fx.backlogs.push((conn, Backlog::Stranger));
        let link = Link {
            conn,
            wire,
            address: info.peer,
            certificate: info.certificate,
            dialled,
            up: None,
            opened_us: now.mono_us,
            heard_us: now.mono_us,
            beat_us: now.mono_us,
            refused_us: None,
            unsent: 0,
            rest: (Vec::new(), 0),
            parked: Parked::default(),
            traffic: Traffic::default(),
            clock: clocks::Known::default(),
        };
        self.links.insert(conn.slot, link);
        self.pump(conn.slot, fx);
    }

    /// Takes what one turn has read; bytes of other connections are ignored.
    pub fn on_received(
        &mut self,
        now: Now,
        bytes: &[u8],
        reads: &[Read],
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        if self.stopping {
            // A request would be executed after its log has ended.
            return;
        }
        for read in reads {
            if self.has(read.conn) {
                self.receive(now, read.conn.slot, &bytes[read.start..read.end], fx);
            }
        }
    }

    fn receive(
        &mut self,
        now: Now,
        slot: u32,
        bytes: &[u8],
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let Some(link) = self.links.get_mut(&slot) else {
            return;
        };
        link.heard_us = now.mono_us;
        link.traffic.bytes_in += bytes.len() as u64;
        let mut events = Vec::new();
        link.wire.receive(bytes, &self.common.peers, &mut events);
        for event in events {
            // A session that was refused meanwhile passes on nothing more.
            if self
                .links
                .get(&slot)
                .is_none_or(|link| link.refused_us.is_some())
            {
                break;
            }
            match event {
                Event::Up(peer) => self.on_named(now, slot, &peer, fx),
                Event::Message {
                    class,
                    size,
                    envelope,
                } => self.on_message(now, slot, (class, size), envelope, fx),
                Event::Closed(refused) => self.end(now, slot, &refused, fx),
            }
        }
        self.pump(slot, fx);
    }

    /// A peer has sent its identity, and the session accepts it.
    fn on_named(
        &mut self,
        now: Now,
        slot: u32,
        peer: &Peer,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        match self.judge(slot, peer) {
            Ok(no) => self.begin(now, slot, no, peer, fx),
            Err(refused) => self.refuse(now, slot, &refused, fx),
        }
    }

    /// Whether it is a member, by the mapping in force.
    fn judge(&self, slot: u32, peer: &Peer) -> Result<NodeNo, Refused> {
        let id = rufous_mapping::NodeId(peer.id);
        let mapping = self.mapping.as_ref();
        let found = mapping.and_then(|mapping| {
            let no = mapping.number_of(id)?;
            Some((no, mapping.members.get(&no)?))
        });
        let Some((no, member)) = found else {
            return Err(match peer.epoch > self.epoch() {
                true => Refused::Ahead,
                false => Refused::NoMember,
            });
        };
        if member.incarnation > peer.incarnation {
            return Err(Refused::Outdated);
        }
        let link = self.links.get(&slot);
        let dialled = link.is_some_and(|link| link.dialled.is_some());
        // Of a node that was dialled, the certificate is for the host that was dialled.
        let certificate = link.and_then(|link| link.certificate.as_deref());
        if !dialled && !self.common.is_certified(certificate, member) {
            return Err(Refused::Certificate);
        }
        match self.own {
            // The peer's mapping has our number, and ours does not.
            None => Err(Refused::Ahead),
            Some(own) if dialled != (own < no) => {
                Err(Refused::Misplaced("the node with the lower number dials"))
            }
            Some(_) => Ok(no),
        }
    }

    fn begin(
        &mut self,
        now: Now,
        slot: u32,
        no: NodeNo,
        peer: &Peer,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let session = Session(now.mono_us);
        if !self.take_route(now, no, self.worker, session, Some(slot), fx) {
            return self.refuse(now, slot, &Refused::Replaced, fx);
        }
        let Some(link) = self.links.get_mut(&slot) else {
            return;
        };
        let (epoch, version) = (peer.epoch, peer.version);
        link.up = Some(Up {
            no,
            session,
            incarnation: peer.incarnation,
            version,
            epoch,
        });
        fx.backlogs.push((link.conn, Backlog::Node));
        self.figures.sessions += 1;
        self.common.health.begins(no);
        tracing::info!(node = %no, address = link.address, epoch, version, "connected to a node");
        self.tell_others(&PeerMessage::Up(no, session), fx);
    }

    fn on_message(
        &mut self,
        now: Now,
        slot: u32,
        (class, size): (Class, usize),
        envelope: Envelope,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let Some((link, mut up)) = self.links.get_mut(&slot).and_then(|link| {
            let up = link.up?;
            Some((link, up))
        }) else {
            return;
        };
        link.traffic.messages_in += 1;
        up.epoch = up.epoch.max(envelope.epoch);
        link.up = Some(up);
        let credit = Credit {
            conn: link.conn,
            class,
            size,
        };
        let is_beat = matches!(envelope.body, Some(Body::Heartbeat(_)));
        if is_beat || self.hear_of_clocks(now, slot, envelope.body.as_ref(), fx) {
            return self.taken(credit, fx);
        }
        self.pass_on(up, credit, envelope, fx);
    }

    /// Ends a session for a reason that this node has.
    fn refuse(
        &mut self,
        now: Now,
        slot: u32,
        refused: &Refused,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        if let Some(link) = self
            .links
            .get_mut(&slot)
            .filter(|link| link.refused_us.is_none())
        {
            link.wire.refuse(refused, &self.common.peers);
            self.end(now, slot, refused, fx);
            self.pump(slot, fx);
        }
    }

    /// A session is over; the remaining bytes tell the other side why.
    fn end(
        &mut self,
        now: Now,
        slot: u32,
        refused: &Refused,
        fx: &mut Effects<impl From<PeerMessage>>,
    ) {
        let Some(link) = self.links.get_mut(&slot) else {
            return;
        };
        link.refused_us = Some(now.mono_us);
        let address = link.address.clone();
        let node = link.up.map_or_else(String::new, |up| up.no.to_string());
        match refused {
            Refused::ByPeer { .. } => self.figures.refused_by_peers += 1,
            _ => *self.figures.refused.entry(refused.code()).or_default() += 1,
        }
        match refused.is_harmless() || !self.may_log(now) {
            true => tracing::debug!(address, node, %refused, "no more of a node"),
            false => {
                tracing::warn!(address, node, %refused, "refused a connection of a node")
            }
        }
        self.leave_route(slot, fx);
    }

    /// Limits log lines per period: strangers could fill the disk.
    fn may_log(&mut self, now: Now) -> bool {
        if now.mono_us >= self.lines.0 + LINES_PERIOD_US {
            self.lines = (now.mono_us, 0);
        }
        self.lines.1 += 1;
        self.lines.1 <= MAX_LINES
    }

    /// Runs what is due at this time.
    pub fn tick(&mut self, now: Now, fx: &mut Effects<impl From<PeerMessage>>) {
        let late = |since: u64, limit: u64| now.mono_us.saturating_sub(since) >= limit;
        let slots: Vec<u32> = self.links.keys().copied().collect();
        for slot in slots {
            let Some(link) = self.links.get_mut(&slot) else {
                continue;
            };
            match (link.refused_us, link.up) {
                (Some(at), _) if late(at, FAREWELL_US) => {
                    // Not after replies: they may wait for the next session with this node.
                    fx.at_once.closes.push((link.conn, Close::Now));
                }
                (Some(_), _) => {}
                (None, None) if late(link.opened_us, HANDSHAKE_PATIENCE_US) => {
                    self.refuse(now, slot, &Refused::Silent, fx);
                }
                (None, None) => {}
                (None, Some(_)) if link.is_lost(now, self.mapping.as_deref()) => {
                    self.refuse(now, slot, &Refused::Silent, fx);
                }
                (None, Some(up)) if late(link.beat_us, HEARTBEAT_US) => {
                    link.beat_us = now.mono_us;
                    let beat = self.envelope(Body::Heartbeat(Heartbeat {}));
                    self.send_by(now, up.no, up.session, Class::Control, &beat, fx);
                }
                (None, Some(_)) => {}
            }
        }
        self.tick_clocks(now, fx);
        self.dial_due(now, fx);
        self.tell_heard(now);
    }

    /// A message of this worker.
    pub fn envelope(&self, body: Body) -> Envelope {
        Envelope {
            epoch: self.epoch(),
            from: self.worker.0.into(),
            to: 0,
            body: Some(body),
        }
    }

    fn tell_others(&self, message: &PeerMessage, fx: &mut Effects<impl From<PeerMessage>>) {
        let others = (0..self.workers).filter(|worker| *worker != self.worker.index());
        for worker in others {
            let to = WorkerId(worker as u16);
            fx.messages.push((to, message.clone().into()));
        }
    }

    /// The node stops: sessions end, and no new ones begin.
    pub fn stop(&mut self, fx: &mut Effects<impl From<PeerMessage>>) {
        self.stopping = true;
        let conns = self.links.values().map(|link| link.conn);
        fx.closes
            .extend(conns.map(|conn| (conn, Close::AfterReplies)));
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    pub fn figures(&self) -> Figures {
        let up = self.links.values().filter(|link| link.refused_us.is_none());
        let peers = up.filter_map(|link| {
            let up = link.up?;
            Some(PeerFigures {
                no: up.no,
                worker: self.worker.0,
                version: up.version,
                epoch: up.epoch,
                traffic: link.traffic,
                clock: link.clock.offset,
            })
        });
        let mut figures = self.figures.clone();
        figures.peers = peers.collect();
        figures.epoch = self.epoch();
        // Those that are not shown individually.
        let others = self.links.values();
        let others = others.filter(|link| link.refused_us.is_some() || link.up.is_none());
        others.for_each(|link| figures.past.add(&link.traffic));
        figures
    }
}
