//! Two nodes whose connections are queues of bytes.

use super::super::Links;
use crate::common::Common;
use crate::figures::Figures;
use crate::peer::{Heard, PeerMessage};
use rufous_base::{
    Close, ConnId, ConnInfo, DialError, Effects, Now, Origin, Output, Read, WorkerId,
};
use rufous_mapping::planner::{self, Limits, Seen};
use rufous_mapping::{Mapping, Member, NodeId, NodeNo};
use rufous_wire::message::Ack;
use rufous_wire::version::{NEWEST, OLDEST};
use rufous_wire::{Body, Class, Local};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) const A: usize = 0;
pub(super) const B: usize = 1;

type Act<'a> = Box<dyn FnOnce(&mut Links, Now, &mut Effects<PeerMessage>) + 'a>;

pub(super) struct Side {
    pub(super) workers: Vec<Links>,
    pub(super) messages: VecDeque<(usize, usize, PeerMessage)>,
    pub(super) heard: Vec<Vec<Heard>>,
    pub(super) conns: u32,
}

/// One connection: its worker at A and at B, and the bytes in transit to each.
pub(super) struct Pipe {
    pub(super) at: [(usize, ConnId); 2],
    pub(super) bytes: [Vec<u8>; 2],
    pub(super) open: [bool; 2],
}

pub(super) struct World {
    pub(super) now: Now,
    /// How much each side's wall clock is ahead of `now`.
    pub(super) ahead_us: [u64; 2],
    pub(super) mapping: Arc<Mapping>,
    pub(super) sides: [Side; 2],
    pub(super) pipes: Vec<Pipe>,
    /// The worker of B that gets the next connection.
    pub(super) accepts: usize,
    /// B reads nothing.
    pub(super) stalled: bool,
    /// The node whose process has ended.
    pub(super) ended: Option<usize>,
    /// What A shows to B.
    pub(super) certificate: Option<Arc<[u8]>>,
}

fn member(id: u8) -> Member {
    Member {
        id: NodeId([id; 20]),
        incarnation: 1,
        peer: format!("node-{id}:1"),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        workers: 1,
        drains: false,
        folder: Default::default(),
    }
}

pub(super) fn mapping(ids: &[u8]) -> Mapping {
    let mut mapping = Mapping::new(1);
    let mut seen = Seen::default();
    for id in ids {
        seen.alive.insert(NodeId([*id; 20]), member(*id));
        mapping = planner::next(&mapping, &seen, &Limits::default()).expect("a change");
    }
    mapping
}

pub(super) fn local(id: u8, newest: u16) -> Local {
    Local {
        cluster: "birds".into(),
        id: [id; 20],
        incarnation: 1,
        start: u64::from(id),
        oldest: OLDEST,
        newest,
        program: String::new(),
    }
}

impl Side {
    pub(super) fn new(common: Common, workers: usize) -> Self {
        let cluster = Arc::new(common);
        let links = |w| Links::new(Arc::clone(&cluster), WorkerId(w as u16), workers);
        Self {
            workers: (0..workers).map(links).collect(),
            messages: VecDeque::new(),
            heard: (0..workers).map(|_| Vec::new()).collect(),
            conns: 0,
        }
    }

    pub(super) fn conn(&mut self) -> ConnId {
        self.conns += 1;
        ConnId {
            slot: self.conns,
            generation: 1,
        }
    }
}

pub(super) fn info(origin: Origin) -> ConnInfo {
    ConnInfo {
        peer: "somewhere".into(),
        local: "here".into(),
        is_local: true,
        origin,
        certificate: None,
    }
}

impl World {
    /// Two nodes; the second one accepts connections at the given worker.
    pub(super) fn new(workers: [usize; 2], accepts: usize) -> Self {
        Self::of_versions(workers, accepts, [NEWEST, NEWEST])
    }

    /// The same with the newest wire version of each.
    pub(super) fn of_versions(workers: [usize; 2], accepts: usize, newest: [u16; 2]) -> Self {
        let common = |side: usize| Common::new(local(side as u8 + 1, newest[side]));
        Self::of(workers, accepts, [common(A), common(B)])
    }

    /// The same with all that each node's workers share.
    pub(super) fn of(workers: [usize; 2], accepts: usize, common: [Common; 2]) -> Self {
        let mut world = Self {
            accepts,
            ..Self::uncertified(workers, common)
        };
        world.start();
        world
    }

    /// Nodes that do not know of each other yet.
    pub(super) fn uncertified(workers: [usize; 2], common: [Common; 2]) -> Self {
        let [a, b] = common;
        let now = Now {
            mono_us: 1_000_000,
            unix_us: 1_700_000_000_000_000,
        };
        Self {
            now,
            ahead_us: [0; 2],
            mapping: Arc::new(mapping(&[1, 2])),
            sides: [Side::new(a, workers[0]), Side::new(b, workers[1])],
            pipes: Vec::new(),
            accepts: 0,
            stalled: false,
            ended: None,
            certificate: None,
        }
    }

    /// Both learn of the mapping.
    pub(super) fn start(&mut self) {
        for side in [B, A] {
            for worker in 0..self.sides[side].workers.len() {
                let mapping = Arc::clone(&self.mapping);
                self.with(side, worker, |links, now, fx| {
                    links.on_mapping(now, mapping, fx)
                });
            }
        }
        self.settle();
    }

    /// Calls a worker, and carries out the effects.
    pub(super) fn with(
        &mut self,
        side: usize,
        worker: usize,
        act: impl FnOnce(&mut Links, Now, &mut Effects<PeerMessage>),
    ) {
        self.act(side, worker, Box::new(act));
    }

    fn act(&mut self, side: usize, worker: usize, act: Act<'_>) {
        let mut fx = Effects::default();
        let links = &mut self.sides[side].workers[worker];
        let mut now = self.now;
        now.unix_us += self.ahead_us[side];
        act(links, now, &mut fx);
        let heard = links.take_heard();
        self.sides[side].heard[worker].extend(heard);
        let messages = fx
            .messages
            .into_iter()
            .map(|(to, m)| (worker, to.index(), m));
        self.sides[side].messages.extend(messages);
        for write in &fx.at_once.writes {
            let mut part = Output::default();
            part.append_range(&fx.at_once.output, write.start, write.end);
            if let Some(pipe) = self.pipe(side, worker, write.conn) {
                pipe.bytes[1 - side].extend(part.to_vec());
            }
        }
        for dial in fx.dials {
            assert_eq!(dial.to, ["node-2:1", "node-1:1"][side]);
            self.dial(side, worker, dial.token);
        }
        for conn in fx.at_once.drains {
            if !self.stalled {
                self.with(side, worker, |links, _, fx| links.on_drained(conn, fx));
            }
        }
        assert!(fx.closes.is_empty(), "a gate may wait for the next session");
        for (conn, _) in fx.at_once.closes {
            self.close(side, worker, conn);
        }
    }

    /// The lower number dials; the other one only asks whether a process listens.
    fn dial(&mut self, side: usize, worker: usize, token: u64) {
        let asked = info(Origin::Dialled { token });
        if self.ended == Some(1 - side) {
            return self.with(side, worker, |links, now, _| {
                let error = DialError {
                    is_refused: true,
                    why: "refused".into(),
                };
                links.on_undialled(now, token, &error);
            });
        }
        if side == A {
            return self.connect(worker, Some(token));
        }
        let conn = self.sides[B].conn();
        self.with(B, worker, |links, now, fx| {
            links.on_opened(now, conn, asked, fx);
            assert_eq!(fx.at_once.closes, [(conn, Close::Now)]);
        });
    }

    fn pipe(&mut self, side: usize, worker: usize, conn: ConnId) -> Option<&mut Pipe> {
        self.pipes
            .iter_mut()
            .find(|pipe| pipe.at[side] == (worker, conn) && pipe.open[side])
    }

    /// A connection from a worker of A to B.
    fn connect(&mut self, worker: usize, token: Option<u64>) {
        let at = [
            (worker, self.sides[A].conn()),
            (self.accepts, self.sides[B].conn()),
        ];
        self.pipes.push(Pipe {
            at,
            bytes: [Vec::new(), Vec::new()],
            open: [true, true],
        });
        let (accepts, theirs) = at[B];
        let shown = ConnInfo {
            certificate: self.certificate.clone(),
            ..info(Origin::Peer)
        };
        self.with(B, accepts, |links, now, fx| {
            links.on_opened(now, theirs, shown, fx)
        });
        if let Some(token) = token {
            let dialled = info(Origin::Dialled { token });
            self.with(A, worker, |links, now, fx| {
                links.on_opened(now, at[A].1, dialled, fx)
            });
        }
    }

    /// One side closes: what it has sent arrives, then the other is notified.
    pub(super) fn close(&mut self, side: usize, worker: usize, conn: ConnId) {
        let Some(pipe) = self.pipe(side, worker, conn) else {
            return;
        };
        pipe.open[side] = false;
        self.with(side, worker, |links, now, fx| {
            links.on_closed(now, conn, fx)
        });
    }

    /// Delivers until nothing is in transit.
    pub(super) fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for side in [A, B] {
                while let Some((from, to, message)) = self.sides[side].messages.pop_front() {
                    quiet = false;
                    let from = WorkerId(from as u16);
                    self.with(side, to, |links, now, fx| {
                        links.on_peer_message(now, from, message, fx)
                    });
                }
                for at in 0..self.pipes.len() {
                    quiet &= !self.read(side, at);
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// Gives one side what has arrived on a connection.
    fn read(&mut self, side: usize, at: usize) -> bool {
        if side == B && self.stalled {
            return false;
        }
        let pipe = &mut self.pipes[at];
        let ((worker, conn), bytes) = (pipe.at[side], std::mem::take(&mut pipe.bytes[side]));
        if !pipe.open[side] {
            return false;
        }
        let gone = !pipe.open[1 - side];
        let reads = [Read {
            conn,
            start: 0,
            end: bytes.len(),
        }];
        if !bytes.is_empty() {
            self.with(side, worker, |links, now, fx| {
                links.on_received(now, &bytes, &reads, fx)
            });
        }
        if gone {
            self.close(side, worker, conn);
        }
        gone || !bytes.is_empty()
    }

    /// The first message of a side.
    pub(super) fn hello(&self, side: usize) -> Vec<u8> {
        let local = self.sides[side].workers[0].common.local.clone();
        let mut hello = Vec::new();
        rufous_wire::Session::new(local, None, 2).transmit(&mut hello, 1000);
        hello
    }

    pub(super) fn pass_ms(&mut self, ms: u64) {
        for _ in 0..ms / 50 {
            self.now.mono_us += 50_000;
            self.now.unix_us += 50_000;
            let ended = self.ended;
            for side in [A, B].into_iter().filter(|side| ended != Some(*side)) {
                for worker in 0..self.sides[side].workers.len() {
                    self.with(side, worker, |links, now, fx| links.tick(now, fx));
                }
            }
            self.settle();
        }
    }

    /// What a worker has heard since the last call, in short form.
    pub(super) fn heard(&mut self, side: usize, worker: usize) -> Vec<String> {
        let heard = std::mem::take(&mut self.sides[side].heard[worker]);
        let short = |heard: Heard| match heard {
            Heard::Mapping(mapping) => format!("mapping {}", mapping.epoch),
            Heard::Up(no) => format!("up {no}"),
            Heard::Down(no) => format!("down {no}"),
            Heard::Message(no, envelope) => match envelope.body {
                Some(Body::Ack(ack)) => format!("ack {} from {no}", ack.seq),
                other => format!("{other:?} from {no}"),
            },
        };
        heard.into_iter().map(short).collect()
    }

    /// A worker of A sends B an acknowledgement for a slot.
    pub(super) fn ack(&mut self, worker: usize, slot: u16, seq: u64) {
        let ack = Body::Ack(Ack {
            slot: slot.into(),
            since: 1,
            seq,
        });
        self.with(A, worker, |links, now, fx| {
            let envelope = links.envelope(ack);
            links.send(now, NodeNo(1), Class::Chain, envelope, fx);
        });
    }

    pub(super) fn reasons(&self, side: usize) -> Vec<(u32, u64)> {
        self.figures(side).refused.into_iter().collect()
    }

    pub(super) fn figures(&self, side: usize) -> Figures {
        let mut all = Figures::default();
        let workers = self.sides[side].workers.iter();
        workers.for_each(|links| all.merge(links.figures()));
        all
    }
}
