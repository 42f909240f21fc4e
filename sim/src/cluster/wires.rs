//! Connections, and the network under them. Bytes arrive in order, late, and split;
//! while the network is parted they wait, as retransmitted ones would, until
//! it is whole again or the connection is closed.

use super::node::Power;
use super::world::{What, World};
use crate::node::seat::Arrival;
use rufous_base::{Close, ConnId, ConnInfo, Dial, DialError, Origin};
use std::collections::VecDeque;

/// What is at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Client(usize),
    /// A process that claims to be a node.
    Stranger(usize),
    Worker {
        node: usize,
        worker: usize,
        life: u32,
        /// Nothing before the connection is made.
        conn: Option<ConnId>,
    },
}

#[derive(Debug)]
pub(super) enum Piece {
    /// The dialled connection is there.
    Made(u64),
    Bytes(Vec<u8>),
    /// The sender gets `Drained` when this arrives.
    Drain,
    End,
}

#[derive(Debug)]
pub(super) struct Wire {
    pub(super) who: [Who; 2],
    pub(super) open: [bool; 2],
    /// On the way to each end, and when it is there.
    queues: [VecDeque<(u64, Piece)>; 2],
    last_us: [u64; 2],
}

impl World {
    fn delay(&mut self) -> u64 {
        let (low, high) = self.plan.network_us;
        self.network.skewed(low, high)
    }

    pub(super) fn new_wire(&mut self, who: [Who; 2]) -> usize {
        let wire = self.wires.len();
        self.wires.push(Wire {
            who,
            open: [true; 2],
            queues: Default::default(),
            last_us: [0; 2],
        });
        for (side, who) in who.into_iter().enumerate() {
            self.place(wire, side, who);
        }
        wire
    }

    fn place(&mut self, wire: usize, side: usize, who: Who) {
        if let Who::Worker {
            node,
            worker,
            conn: Some(conn),
            ..
        } = who
        {
            let place = (node, worker, conn.slot, conn.generation);
            self.places.insert(place, (wire, side));
        }
    }

    pub(super) fn wire_of(
        &self,
        node: usize,
        worker: usize,
        conn: ConnId,
    ) -> Option<(usize, usize)> {
        let place = (node, worker, conn.slot, conn.generation);
        let (wire, side) = *self.places.get(&place)?;
        self.wires[wire].open[side].then_some((wire, side))
    }

    /// From one end to the other.
    pub(super) fn send(&mut self, wire: usize, from: usize, piece: Piece) {
        let delay = self.delay();
        self.send_in(wire, from, piece, delay);
    }

    fn send_in(&mut self, wire: usize, from: usize, piece: Piece, delay: u64) {
        let to = 1 - from;
        let at = (self.engine.now_us + delay).max(self.wires[wire].last_us[to]);
        self.wires[wire].last_us[to] = at;
        self.wires[wire].queues[to].push_back((at, piece));
        self.push(at, None, What::Deliver { wire, to });
    }

    /// Cuts bytes as networks do.
    pub(super) fn send_bytes(&mut self, wire: usize, from: usize, mut bytes: Vec<u8>) {
        while bytes.len() > 1 && self.network.chance(self.plan.split) {
            let rest = bytes.split_off(1 + self.network.index(bytes.len() - 1));
            let part = std::mem::replace(&mut bytes, rest);
            self.send(wire, from, Piece::Bytes(part));
        }
        self.send(wire, from, Piece::Bytes(bytes));
    }

    /// Until when nothing gets from one end to the other.
    fn blocked(&self, wire: usize, to: usize) -> Option<u64> {
        let who = self.wires[wire].who;
        let (Who::Worker { node: from, .. }, Who::Worker { node: to, .. }) = (who[1 - to], who[to])
        else {
            return None;
        };
        self.parted(from, to)
    }

    pub(super) fn parted(&self, from: usize, to: usize) -> Option<u64> {
        let until = self.parted.get(&(from, to)).copied()?;
        (until > self.engine.now_us).then_some(until)
    }

    pub(super) fn on_deliver(&mut self, wire: usize, to: usize) {
        if let Some(until) = self.blocked(wire, to) {
            let delay = self.delay();
            return self.push(until + delay, None, What::Deliver { wire, to });
        }
        let now = self.engine.now_us;
        while self.wires[wire].queues[to]
            .front()
            .is_some_and(|(at, _)| *at <= now)
            && let Some((_, piece)) = self.wires[wire].queues[to].pop_front()
        {
            self.take_piece(wire, to, piece);
        }
    }

    fn take_piece(&mut self, wire: usize, to: usize, piece: Piece) {
        if let Piece::Drain = piece {
            return self.give(wire, 1 - to, Arrival::Drained);
        }
        if !self.wires[wire].open[to] {
            let is_there = match self.wires[wire].who[to] {
                Who::Client(_) | Who::Stranger(_) => true,
                Who::Worker { node, .. } => self.nodes[node].is_up(),
            };
            if matches!(piece, Piece::Bytes(_)) && is_there && self.wires[wire].open[1 - to] {
                // A sender to a closed connection learns that it is closed.
                self.wires[wire].queues[1 - to].clear();
                self.send(wire, to, Piece::End);
            }
            return;
        }
        match (piece, self.wires[wire].who[to]) {
            (Piece::Made(token), who) => self.on_made(wire, to, who, token),
            (Piece::Bytes(bytes), Who::Client(client)) => self.on_reply(client, wire, &bytes),
            (Piece::Bytes(bytes), Who::Stranger(stranger)) => {
                match self.strangers.hear(stranger, &bytes) {
                    Ok(true) => self.reach("a process without the secret was refused"),
                    Ok(false) => {}
                    Err(told) => self.fail(told),
                }
            }
            (Piece::Bytes(bytes), _) => self.give(wire, to, |conn| Arrival::Bytes(conn, bytes)),
            (Piece::End, Who::Client(client)) => {
                self.wires[wire].open[to] = false;
                self.on_lost(client, wire);
            }
            (Piece::End, _) => {
                self.give(wire, to, Arrival::Closed);
                self.wires[wire].open[to] = false;
            }
            (Piece::Drain, _) => {}
        }
    }

    /// Something of a connection arrives at the worker at one end.
    fn give(&mut self, wire: usize, side: usize, arrival: impl FnOnce(ConnId) -> Arrival) {
        let Who::Worker {
            node,
            worker,
            life,
            conn: Some(conn),
        } = self.wires[wire].who[side]
        else {
            return;
        };
        if self.wires[wire].open[side] && self.nodes[node].life == life && self.nodes[node].is_up()
        {
            self.arrive(node, worker, arrival(conn));
        }
    }

    /// One end closes: the other one receives the close after all bytes sent before it.
    pub(super) fn close(&mut self, wire: usize, side: usize, close: Close) {
        if !self.wires[wire].open[side] {
            return;
        }
        if let Who::Worker { .. } = self.wires[wire].who[side] {
            self.give(wire, side, Arrival::Closed);
        }
        self.wires[wire].open[side] = false;
        if close == Close::Now && self.network.chance(0.5) {
            self.wires[wire].queues[1 - side].clear();
        }
        self.send(wire, side, Piece::End);
    }

    /// The connection breaks: both ends notice, each at its own time.
    pub(super) fn cut(&mut self, wire: usize) {
        for to in 0..2 {
            let queue = &mut self.wires[wire].queues[to];
            let keep = self.network.index(queue.len() + 1);
            let is_made = queue
                .iter()
                .take(keep)
                .any(|(_, p)| matches!(p, Piece::Made(_)));
            if self.network.chance(0.7) && !is_made {
                queue.truncate(keep);
            }
            let delay = self.network.skewed(100, 2_000_000);
            self.send_in(wire, 1 - to, Piece::End, delay);
        }
    }

    /// A node is gone; `silently`: its peers are not notified.
    pub(super) fn lose_wires(&mut self, node: usize, silently: bool) {
        for wire in 0..self.wires.len() {
            for side in 0..2 {
                let Who::Worker { node: at, .. } = self.wires[wire].who[side] else {
                    continue;
                };
                if at != node || !self.wires[wire].open[side] {
                    continue;
                }
                self.wires[wire].open[side] = false;
                let is_client = matches!(self.wires[wire].who[1 - side], Who::Client(_));
                if !silently || is_client {
                    self.send(wire, side, Piece::End);
                }
            }
        }
    }

    pub(super) fn on_dial(&mut self, node: usize, worker: usize, dial: Dial) {
        let to = node_of(&dial.to).filter(|to| *to < self.nodes.len());
        let life = self.nodes[node].life;
        let Some(to) = to else {
            let error = unreached("no such address");
            return self.arrive(node, worker, Arrival::Undialled(dial.token, error));
        };
        let at = self.engine.now_us + self.delay();
        let until = self.engine.now_us + dial.within_us;
        let token = dial.token;
        let dialled = What::Dialled {
            node,
            worker,
            life,
            to,
            token,
            until,
        };
        self.push(at, None, dialled);
    }

    pub(super) fn on_dialled(
        &mut self,
        (node, worker, life): (usize, usize, u32),
        to: usize,
        token: u64,
        until: u64,
    ) {
        if self.parted(node, to).is_some() {
            let error = unreached("no answer in time");
            let late = What::Undialled {
                worker,
                token,
                error,
            };
            return self.push(until, Some((node, life)), late);
        }
        if self.nodes[to].power != Power::Up {
            let at = self.engine.now_us + self.delay();
            let error = DialError {
                is_refused: true,
                ..unreached("connection refused")
            };
            let refused = What::Undialled {
                worker,
                token,
                error,
            };
            return self.push(at, Some((node, life)), refused);
        }
        let acceptor = self.network.index(self.nodes[to].workers);
        let conn = self.nodes[to].seats[acceptor].new_connection();
        let accepted = Who::Worker {
            node: to,
            worker: acceptor,
            life: self.nodes[to].life,
            conn: Some(conn),
        };
        let dialler = Who::Worker {
            node,
            worker,
            life,
            conn: None,
        };
        let wire = self.new_wire([dialler, accepted]);
        let info = info(format!("node-{node}:{}", 10_000 + wire), Origin::Peer);
        self.arrive(to, acceptor, Arrival::Opened(conn, info));
        self.send(wire, 1, Piece::Made(token));
        self.push(until, Some((node, life)), What::GivenUp { wire, token });
    }

    pub(super) fn on_stranger(&mut self) {
        if self.calm {
            return;
        }
        let at = self.engine.now_us + self.strangers.pause_us();
        self.push(at, None, What::Stranger);
        let nodes = self.nodes.len();
        let (to, as_if) = (self.strangers.index(nodes), self.strangers.index(nodes));
        let (id, incarnation) = (self.nodes[as_if].id, self.nodes[as_if].incarnation);
        if self.nodes[to].power != Power::Up {
            return;
        }
        let worker = self.strangers.index(self.nodes[to].workers);
        let conn = self.nodes[to].seats[worker].new_connection();
        let (stranger, bytes) = self.strangers.next(id, incarnation, "world");
        let accepted = Who::Worker {
            node: to,
            worker,
            life: self.nodes[to].life,
            conn: Some(conn),
        };
        let wire = self.new_wire([Who::Stranger(stranger), accepted]);
        let info = info(format!("stranger:{}", 30_000 + wire), Origin::Peer);
        self.arrive(to, worker, Arrival::Opened(conn, info));
        self.send_bytes(wire, 0, bytes);
    }

    fn on_made(&mut self, wire: usize, to: usize, who: Who, token: u64) {
        let Who::Worker {
            node, worker, life, ..
        } = who
        else {
            return;
        };
        if self.nodes[node].life != life || !self.nodes[node].is_up() {
            self.wires[wire].open[to] = false;
            return self.send(wire, to, Piece::End);
        }
        let conn = self.nodes[node].seats[worker].new_connection();
        let who = Who::Worker {
            node,
            worker,
            life,
            conn: Some(conn),
        };
        self.wires[wire].who[to] = who;
        self.place(wire, to, who);
        let info = info(format!("node:{}", 20_000 + wire), Origin::Dialled { token });
        self.arrive(node, worker, Arrival::Opened(conn, info));
    }

    /// The time for making a connection is over.
    pub(super) fn on_given_up(&mut self, node: usize, wire: usize, token: u64) {
        let Who::Worker {
            worker, conn: None, ..
        } = self.wires[wire].who[0]
        else {
            return;
        };
        self.wires[wire].open[0] = false;
        self.send(wire, 0, Piece::End);
        let error = unreached("it took too long");
        self.arrive(node, worker, Arrival::Undialled(token, error));
    }
}

fn unreached(why: &str) -> DialError {
    DialError {
        is_refused: false,
        why: why.to_owned(),
    }
}

pub(super) fn info(peer: String, origin: Origin) -> ConnInfo {
    ConnInfo {
        peer,
        local: "here:1".into(),
        is_local: false,
        origin,
        certificate: None,
    }
}

/// Which node an address is of.
pub(super) fn node_of(address: &str) -> Option<usize> {
    let (host, _) = address.rsplit_once(':')?;
    host.strip_prefix("node-")?.parse().ok()
}
