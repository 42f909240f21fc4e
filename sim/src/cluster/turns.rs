//! Workers take turns, and their disks carry out what they ask for.

use super::node::Power;
use super::wires::Piece;
use super::world::{What, World};
use crate::engine::probes::Probes;
use crate::node::seat::{Arrival, Left};
use rufous_base::disk::{DiskDone, DiskRequest};
use rufous_base::{ConnInfo, NodeEffect, Origin};
use rufous_mapping::Mapping;
use rufous_server::cluster::PeerMessage;
use rufous_server::front::Message;
use std::sync::Arc;

/// What a message between workers takes where that is long.
const SLOW_MESSAGE_US: (u64, u64) = (1_000, 100_000);

impl World {
    /// A node starts, and each worker as it really does: with a connection from
    /// inside that goes away at once.
    pub(super) fn start(&mut self, node: usize) {
        if !matches!(self.nodes[node].power, Power::New | Power::Down) {
            return;
        }
        let start = self.chance.word();
        self.places.retain(|(at, ..), _| *at != node);
        self.nodes[node].start(&self.plan, self.engine.now_us, start);
        let started = &self.nodes[node];
        let (life, workers, newest) = (started.life, started.workers, started.newest);
        let mut others = self.nodes.iter().filter(|other| other.is_up());
        if others.any(|other| other.newest != newest) {
            self.reach("two wire versions were spoken");
        }
        let who = format!("n{node}");
        self.note(
            &who,
            format_args!("starts, life {life}, {workers} workers, wire version {newest}"),
        );
        for worker in 0..workers {
            let info = ConnInfo {
                is_local: true,
                ..super::wires::info("inside".into(), Origin::Internal)
            };
            let conn = self.nodes[node].seats[worker].new_connection();
            self.arrive(node, worker, Arrival::Opened(conn, info));
            self.arrive(node, worker, Arrival::Closed(conn));
        }
    }

    pub(super) fn arrive(&mut self, node: usize, worker: usize, arrival: Arrival) {
        if !self.nodes[node].is_up() {
            return;
        }
        self.nodes[node].seats[worker].arrive(arrival);
        self.schedule(node, worker);
    }

    fn schedule(&mut self, node: usize, worker: usize) {
        let found = &mut self.nodes[node];
        let local = found.clock(self.engine.now_us);
        let Some(wanted) = found.seats[worker].wants_turn_at(local) else {
            return;
        };
        let at = found
            .when(wanted)
            .max(self.engine.now_us)
            .max(found.paused_until_us);
        let seat = &mut found.seats[worker];
        if seat.turn_at_us.is_none_or(|known| at < known) {
            seat.turn_at_us = Some(at);
            self.push_of(node, at, What::Turn(worker));
        }
    }

    pub(super) fn on_turn(&mut self, node: usize, worker: usize) {
        let found = &mut self.nodes[node];
        if found.seats.get(worker).and_then(|seat| seat.turn_at_us) != Some(self.engine.now_us) {
            return;
        }
        found.seats[worker].turn_at_us = None;
        if found.paused_until_us > self.engine.now_us {
            return self.schedule(node, worker);
        }
        let Some((left, leaves_us)) = self.take_turn(node, worker) else {
            return self.schedule(node, worker);
        };
        let found = &mut self.nodes[node];
        let (low, high) = self.plan.turn_us;
        let takes = self.turns.skewed(low, high);
        let takes = match found.slow {
            (times, until_us) if until_us > self.engine.now_us => takes * times,
            _ => takes,
        };
        let end_us = found.clock(leaves_us) + takes;
        let seat = &mut found.seats[worker];
        seat.busy_until_us = seat.busy_until_us.max(end_us);
        if left.overtook {
            self.reach("a reply about lattice keys passed replies that wait for copies");
        }
        let inputs = left.inputs.join("; ");
        let who = format!("n{node}w{worker}");
        self.note(&who, format_args!("turn: {inputs}"));
        if leaves_us > self.engine.now_us {
            self.push_of(node, leaves_us, What::Leaves(worker, Box::new(left)));
        } else {
            self.leave(node, worker, left);
        }
    }

    /// What a turn has left leaves.
    pub(super) fn leave(&mut self, node: usize, worker: usize, left: Left) {
        self.carry_out(node, worker, left);
        if self.nodes[node].is_up() {
            self.schedule(node, worker);
        }
    }

    fn carry_out(&mut self, node: usize, worker: usize, left: Left) {
        for (to, message) in left.messages {
            self.send_message(node, worker, to.index(), message);
        }
        if let Some(wrong) = self.nodes[node].seats[worker].writes_late(&left.disk) {
            self.fail(wrong);
        }
        for request in left.disk {
            let lane = request.lane.index();
            self.request(node, worker, lane, request);
        }
        for (conn, bytes) in left.sends.into_iter().chain(left.replies) {
            if let Some((wire, side)) = self.wire_of(node, worker, conn) {
                self.send_bytes(wire, side, bytes);
            }
        }
        for conn in left.drains {
            if let Some((wire, side)) = self.wire_of(node, worker, conn) {
                self.send(wire, side, Piece::Drain);
            }
        }
        for (conn, close) in left.closes {
            match self.wire_of(node, worker, conn) {
                Some((wire, side)) => self.close(wire, side, close),
                None => self.arrive(node, worker, Arrival::Closed(conn)),
            }
        }
        for dial in left.dials {
            self.on_dial(node, worker, dial);
        }
        for effect in left.node {
            self.on_node_effect(node, worker, effect);
        }
    }

    fn on_node_effect(&mut self, node: usize, worker: usize, effect: NodeEffect) {
        match effect {
            NodeEffect::Stopped => {
                self.nodes[node].seats[worker].has_stopped = true;
                if let Power::Stopping(left) = &mut self.nodes[node].power {
                    *left -= 1;
                    if *left == 0 {
                        self.reach("a node has stopped in order");
                        self.end(node, false);
                        let down_us = self.chance.skewed(10_000, 6_000_000);
                        self.push(self.engine.now_us + down_us, None, What::Start(node));
                    }
                }
            }
            NodeEffect::Stall(us) => self.nodes[node].seats[worker].busy_until_us += us,
            NodeEffect::Shutdown => {
                let shared = self.nodes[node].shared.as_ref();
                let why = shared.and_then(|shared| shared.start_error());
                self.fail(format!("node {node} stopped by itself: {why:?}"));
            }
            NodeEffect::MaxClients(_) | NodeEffect::Progress => {}
        }
    }

    fn send_message(&mut self, node: usize, from: usize, to: usize, message: Message) {
        let (low, high) = if self.plan.has_slow_messages() {
            SLOW_MESSAGE_US
        } else {
            self.plan.message_us
        };
        let wanted = self.engine.now_us + self.network.skewed(low, high);
        let last = &mut self.nodes[node].last_message_us;
        let last = last.entry((from, to)).or_default();
        let at = wanted.max(*last);
        *last = at;
        self.push_of(node, at, What::Message { from, to, message });
    }

    pub(super) fn on_tell(&mut self, node: usize, worker: usize, mapping: Arc<Mapping>) {
        let who = format!("n{node}w{worker}");
        self.note(&who, format_args!("is told of epoch {}", mapping.epoch));
        let message = Message::Peer(PeerMessage::Mapping(mapping));
        self.arrive(node, worker, Arrival::Told(message));
    }

    /// A request to the disk: it waits for those before it in its lane.
    fn request(&mut self, node: usize, worker: usize, lane: usize, request: DiskRequest) {
        let queue = &mut self.nodes[node].seats[worker].lanes[lane];
        queue.requests.push_back(request);
        self.begin(node, worker, lane);
    }

    fn begin(&mut self, node: usize, worker: usize, lane: usize) {
        let found = &mut self.nodes[node];
        let queue = &mut found.seats[worker].lanes[lane];
        let Some(request) = queue.requests.front().filter(|_| queue.begun.is_none()) else {
            return;
        };
        queue.begun = Some(found.disk.begin(&request.op, self.engine.now_us));
        if found.disk.hangs {
            return;
        }
        let at = self.engine.now_us + found.disk.takes_us(&request.op);
        self.push_of(node, at, What::DiskDone { worker, lane });
    }

    pub(super) fn on_disk_done(&mut self, node: usize, worker: usize, lane: usize) {
        let found = &mut self.nodes[node];
        let queue = &mut found.seats[worker].lanes[lane];
        let (Some(request), Some(begun)) = (queue.requests.pop_front(), queue.begun.take()) else {
            return;
        };
        let id = request.id;
        let mut probes = Probes::default();
        let result = found
            .disk
            .finish(request.op, begun, self.engine.now_us, &mut probes);
        self.arrive(node, worker, Arrival::Disk(DiskDone { id, result }));
        self.begin(node, worker, lane);
    }

    /// The disk answers again.
    pub(super) fn disk_answers(&mut self, node: usize) {
        for worker in 0..self.nodes[node].seats.len() {
            let lanes = self.nodes[node].seats[worker].lanes.len();
            let hung = |lane: &usize| self.nodes[node].seats[worker].lanes[*lane].begun.is_some();
            for lane in (0..lanes).filter(hung).collect::<Vec<_>>() {
                let at = self.engine.now_us;
                self.push_of(node, at, What::DiskDone { worker, lane });
            }
        }
    }

    /// The node is gone at once.
    pub(super) fn end(&mut self, node: usize, power_lost: bool) {
        let who = format!("n{node}");
        self.note(&who, format_args!("ends, power lost: {power_lost}"));
        self.note_end_of_loose(node);
        self.note_passed_on(node);
        self.lose_wires(node, power_lost);
        self.nodes[node].end(power_lost);
        if self.nodes[node].drains && self.coordinator.has_left(self.nodes[node].id) {
            self.nodes[node].power = Power::Gone;
        }
    }
}
