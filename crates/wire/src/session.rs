//! The session of one connection between two nodes, sans-io: bytes in, messages and bytes out.
//!
//! Both sides begin with a handshake, and agree on the newest version that both know. Where nodes have
//! a secret, they prove it before they tell each other anything ([`proof`]). A peer that
//! belongs to another cluster, is not the expected node, or breaks a rule is sent the reason and
//! then ignored. A message that the version does not have is neither sent nor accepted
//! ([`version`]). Messages in transit are lost with the session; the layers above send them again.
//!
//! After every call there may be bytes to send: see [`Session::transmit`].

use crate::class::Class;
use crate::flow::Flows;
use crate::frame::{self, Frame, Frames, MAX_FRAME, MAX_STRANGER};
use crate::message::{Body, Challenge, Credit, Envelope, Hello, Piece};
use crate::peers::{Id, Peers, Versions};
use crate::pieces::{self, Pieces};
use crate::proof::{self, Demand, Handshake, Proving};
use crate::refused::Refused;
use crate::version;
use prost::Message;

/// This node's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    pub cluster: String,
    pub id: Id,
    /// Rises with every start of the node.
    pub incarnation: u64,
    /// Random, new with every start.
    pub start: u64,
    /// The versions of this node: [`version::OLDEST`], and [`version::NEWEST`] or the version that
    /// operators allow.
    pub oldest: u16,
    pub newest: u16,
    /// The program's own version, which is only shown.
    pub program: String,
}

impl Local {
    pub fn versions(&self) -> Versions {
        Versions {
            program: self.program.clone(),
            oldest: self.oldest,
            newest: self.newest,
        }
    }

    fn hello(&self) -> Hello {
        Hello {
            cluster: self.cluster.clone(),
            node: self.id.to_vec(),
            incarnation: self.incarnation,
            start: self.start,
            oldest: self.oldest.into(),
            newest: self.newest.into(),
            program: self.program.clone(),
            nonce: Vec::new(),
        }
    }
}

/// The node at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub id: Id,
    pub incarnation: u64,
    pub epoch: u64,
    /// The version in use.
    pub version: u16,
}

/// The outcome of received bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The first event. Messages can be sent from now on.
    Up(Peer),
    /// To be passed to [`Session::take`] after it was processed.
    Message {
        class: Class,
        size: usize,
        envelope: Envelope,
    },
    /// The last event. The remaining bytes to transmit tell the peer why.
    Closed(Refused),
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// There is no peer yet, or no longer.
    NotUp,
    /// Too many bytes of its class wait already: try again later.
    Full,
    /// The version in use has no such message. Others can be sent.
    TooNew,
    /// It breaks a rule, and the peer would refuse us for that.
    Wrong(&'static str),
    TooLarge,
}

#[derive(Debug)]
enum Stage {
    /// The peer has not sent its handshake.
    Met,
    Up {
        version: u16,
        id: Id,
        hello: Hello,
    },
    Closed,
}

/// See the module's description.
#[derive(Debug)]
pub struct Session {
    local: Local,
    expected: Option<Id>,
    epoch: u64,
    stage: Stage,
    /// `None`: this node has no secret.
    handshake: Option<Handshake>,
    /// Whether the peer has been told which node this is.
    is_named: bool,
    frames: Frames,
    flows: Flows,
    pieces: Pieces,
}

impl Session {
    /// A new connection. The side that dialled may expect a certain node. Without a secret any peer
    /// is believed.
    pub fn new(local: Local, expected: Option<Id>, epoch: u64) -> Self {
        Self::with_proof(local, expected, epoch, None)
    }

    /// The same of a node that may have a secret.
    pub fn with_proof(
        local: Local,
        expected: Option<Id>,
        epoch: u64,
        proving: Option<Proving>,
    ) -> Self {
        let handshake = proving.map(Handshake::new);
        let mut hello = local.hello();
        let first = match &handshake {
            None => Body::Hello(hello),
            Some(handshake) if handshake.demand() == Demand::Required => {
                let nonce = handshake.nonce();
                Body::Challenge(Challenge { nonce })
            }
            Some(handshake) => {
                hello.nonce = handshake.nonce();
                Body::Hello(hello)
            }
        };
        let mut session = Self {
            local,
            expected,
            epoch,
            stage: Stage::Met,
            handshake,
            is_named: matches!(first, Body::Hello(_)),
            frames: Frames::default(),
            flows: Flows::new(),
            pieces: Pieces::default(),
        };
        session.say(first);
        session
    }

    /// The newest epoch that is known here.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// Bytes of messages of a class that are not sent yet.
    pub fn queued(&self, class: Class) -> usize {
        self.flows.queued(class)
    }

    pub fn is_up(&self) -> bool {
        matches!(self.stage, Stage::Up { .. })
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed)
    }

    /// Takes received bytes, split in any way. `peers` are those of all sessions of this node.
    pub fn receive(&mut self, bytes: &[u8], peers: &Peers, events: &mut Vec<Event>) {
        if self.is_closed() {
            return;
        }
        self.frames.push(bytes);
        if let Err(refused) = self.on_frames(peers, events) {
            self.refuse(&refused, peers);
            events.push(Event::Closed(refused));
        }
    }

    /// Refuses the peer, for a reason outside the session. The remaining bytes to transmit tell it
    /// why; there is no [`Event::Closed`].
    pub fn refuse(&mut self, refused: &Refused, peers: &Peers) {
        if self.is_closed() {
            return;
        }
        let by_peer = matches!(refused, Refused::ByPeer { .. });
        let farewell = (!by_peer).then(|| Body::Refuse(refused.to_message()));
        self.close(peers);
        if let Some(farewell) = farewell {
            self.say(farewell);
        }
    }

    /// Queues a message. It is sent as soon as credit and fairness allow it.
    pub fn send(&mut self, class: Class, envelope: &Envelope) -> Result<(), NotSent> {
        let Stage::Up { version, .. } = self.stage else {
            return Err(NotSent::NotUp);
        };
        envelope.check().map_err(NotSent::Wrong)?;
        match &envelope.body {
            Some(Body::Credit(_) | Body::Piece(_)) | None => {
                return Err(NotSent::Wrong("reserved for the session layer"));
            }
            Some(body) if version::since(body) == 0 => {
                return Err(NotSent::Wrong("reserved for the session layer"));
            }
            Some(body) if !class.takes(body) => {
                return Err(NotSent::Wrong("not of this class"));
            }
            Some(body) if version::since(body) > version => return Err(NotSent::TooNew),
            Some(_) => {}
        }
        if !self.flows.may_fit(class, envelope.encoded_len()) {
            return Err(NotSent::Full);
        }
        let is_queued = if pieces::is_long(class, envelope) {
            let frames = pieces::frames(version, class, envelope).map_err(|_| NotSent::TooLarge)?;
            self.flows.push_all(class, frames)
        } else {
            let mut frame = Vec::new();
            frame::encode(version, class, envelope, &mut frame).map_err(|_| NotSent::TooLarge)?;
            self.flows.push(class, frame)
        };
        if is_queued {
            Ok(())
        } else {
            Err(NotSent::Full)
        }
    }

    /// Whether nothing of a class waits to be sent: then any message is accepted.
    pub fn has_room(&self, class: Class) -> bool {
        self.flows.has_room(class)
    }

    /// The owner is done with one or several messages: returns this many bytes of credit to the
    /// sender.
    pub fn take(&mut self, class: Class, size: usize) {
        self.flows.take(class, size);
    }

    /// Appends bytes to be sent now, up to `limit` bytes and the end of a frame. With a small
    /// limit, urgent messages wait only briefly. Returns whether there is more.
    pub fn transmit(&mut self, out: &mut Vec<u8>, limit: usize) -> bool {
        // Credit is made here, and not queued, so that it cannot be lost because a queue is full.
        while let Some((class, bytes)) = self.is_up().then(|| self.flows.give_back()).flatten() {
            let credit = Credit {
                class: class as u32,
                bytes: bytes as u64,
            };
            out.extend(self.frame(Body::Credit(credit)));
        }
        let end = out.len().saturating_add(limit);
        while out.len() < end {
            match self.flows.pop() {
                Some(frame) => out.extend_from_slice(&frame),
                None => break,
            }
        }
        self.flows.can_pop()
    }

    /// The connection has ended. To be called for every session.
    pub fn close(&mut self, peers: &Peers) {
        if let Stage::Up { id, hello, .. } = &self.stage {
            peers.leave(*id, hello);
        }
        self.stage = Stage::Closed;
        self.flows.clear();
        self.frames = Frames::default();
        self.pieces = Pieces::default();
    }

    /// Queues a message of the session itself.
    fn say(&mut self, body: Body) {
        let frame = self.frame(body);
        let _fits = self.flows.push(Class::Control, frame);
        debug_assert!(_fits, "names and farewells are first in the queue");
    }

    fn frame(&self, body: Body) -> Vec<u8> {
        let version = match (&self.stage, &body) {
            (Stage::Up { version, .. }, Body::Credit(_)) => *version,
            _ => 0,
        };
        let envelope = Envelope {
            epoch: if self.is_named { self.epoch } else { 0 },
            body: Some(body),
            ..Envelope::default()
        };
        let mut frame = Vec::new();
        // invariant: what sessions say of themselves is small
        frame::encode(version, Class::Control, &envelope, &mut frame).expect("a small message");
        frame
    }

    fn on_frames(&mut self, peers: &Peers, events: &mut Vec<Event>) -> Result<(), Refused> {
        loop {
            let limit = if self.is_up() {
                MAX_FRAME
            } else {
                MAX_STRANGER
            };
            match self.frames.next(limit)? {
                Some(frame) => self.on_frame(frame, peers, events)?,
                None => return Ok(()),
            }
        }
    }

    fn on_frame(
        &mut self,
        frame: Frame,
        peers: &Peers,
        events: &mut Vec<Event>,
    ) -> Result<(), Refused> {
        let Some(body) = &frame.envelope.body else {
            return Err(Refused::Garbage("a message of an unknown kind"));
        };
        if !frame.class.takes(body) {
            return Err(Refused::Misplaced("not of this class"));
        }
        let spoken = match (&self.stage, body) {
            (_, body) if version::since(body) == 0 => 0,
            (Stage::Up { version, .. }, _) => *version,
            _ => return Err(Refused::Misplaced("a message before a name")),
        };
        if frame.version != spoken {
            return Err(Refused::Misplaced("a version that was not agreed on"));
        }
        has(spoken, Some(body))?;
        match body {
            Body::Refuse(refuse) => Err(Refused::from_message(refuse)),
            Body::Hello(_) | Body::Challenge(_) | Body::Proof(_) | Body::Sealed(_) => {
                if self.is_up() {
                    return Err(Refused::Misplaced("a second name"));
                }
                let peer = self.on_handshake(body, frame.envelope.epoch, peers)?;
                events.extend(peer.map(Event::Up));
                Ok(())
            }
            Body::Credit(credit) => self.flows.grant(credit.class, credit.bytes),
            Body::Piece(piece) => self.on_piece(spoken, &frame, piece, events),
            _ if self.pieces.has_begun(frame.class) => {
                Err(Refused::Misplaced("a message inside another one"))
            }
            _ => {
                self.flows.hold(frame.class, frame.size)?;
                events.push(Event::Message {
                    class: frame.class,
                    size: frame.size,
                    envelope: frame.envelope,
                });
                Ok(())
            }
        }
    }

    /// An incomplete message is not passed on, so the session itself returns its credit.
    fn on_piece(
        &mut self,
        spoken: u16,
        frame: &Frame,
        piece: &Piece,
        events: &mut Vec<Event>,
    ) -> Result<(), Refused> {
        let (class, size) = (frame.class, frame.size);
        self.flows.hold(class, size)?;
        let Some(envelope) = self.pieces.take(class, piece)? else {
            self.flows.take(class, size);
            return Ok(());
        };
        has(spoken, envelope.body.as_ref())?;
        events.push(Event::Message {
            class,
            size,
            envelope,
        });
        Ok(())
    }

    /// A message of the handshake. Returns the peer once it is known, and proved where that is asked
    /// for.
    fn on_handshake(
        &mut self,
        body: &Body,
        epoch: u64,
        peers: &Peers,
    ) -> Result<Option<Peer>, Refused> {
        let answer = match (body, &mut self.handshake) {
            (Body::Hello(hello), None) => return self.on_hello(hello, epoch, peers).map(Some),
            (Body::Hello(hello), Some(handshake)) if handshake.takes_names() => {
                return self.on_hello(hello, epoch, peers).map(Some);
            }
            (_, None) => return Err(Refused::NoSecret),
            (Body::Hello(hello), Some(handshake)) => handshake.on_name(hello)?,
            (Body::Challenge(challenge), Some(handshake)) => handshake.on_challenge(challenge)?,
            (Body::Proof(proof), Some(handshake)) => {
                handshake.on_proof(proof)?;
                self.say_sealed();
                None
            }
            (Body::Sealed(sealed), Some(handshake)) => {
                let hello = handshake.on_sealed(epoch, sealed)?;
                let answers = handshake.role() == proof::Role::Dialler;
                let peer = self.on_hello(&hello, epoch, peers)?;
                if answers {
                    self.say_sealed();
                }
                return Ok(Some(peer));
            }
            _ => return Err(Refused::Misplaced("no message of a handshake")),
        };
        if let Some(proof) = answer {
            self.say(Body::Proof(proof));
        }
        Ok(None)
    }

    /// Tells the peer which node this is, with proof.
    fn say_sealed(&mut self) {
        self.is_named = true;
        let (epoch, hello) = (self.epoch, self.local.hello());
        if let Some(handshake) = &self.handshake {
            let sealed = handshake.seal(epoch, &hello);
            self.say(Body::Sealed(sealed));
        }
    }

    fn on_hello(&mut self, hello: &Hello, epoch: u64, peers: &Peers) -> Result<Peer, Refused> {
        if hello.cluster != self.local.cluster {
            return Err(Refused::Cluster);
        }
        let version = self.agree(hello)?;
        let id = Id::try_from(&hello.node[..]).map_err(|_| Refused::Garbage("no id"))?;
        if id == self.local.id {
            return Err(Refused::Myself);
        }
        if self.expected.is_some_and(|expected| expected != id) {
            return Err(Refused::Unexpected);
        }
        peers.enter(id, hello)?;
        let hello = hello.clone();
        let incarnation = hello.incarnation;
        self.stage = Stage::Up { version, id, hello };
        Ok(Peer {
            id,
            incarnation,
            epoch,
            version,
        })
    }

    /// The newest version that both nodes know.
    fn agree(&self, hello: &Hello) -> Result<u16, Refused> {
        let agreed = self.local.versions().agree(&Versions::of(hello));
        agreed.ok_or_else(|| Refused::Version {
            ours: format!("{} to {}", self.local.oldest, self.local.newest),
            theirs: format!("{} to {}", hello.oldest, hello.newest),
        })
    }
}

/// Whether the version in use has such a message.
fn has(spoken: u16, body: Option<&Body>) -> Result<(), Refused> {
    match body {
        Some(body) if version::since(body) > spoken => {
            Err(Refused::Misplaced("a message of a newer version"))
        }
        _ => Ok(()),
    }
}
