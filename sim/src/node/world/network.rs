//! Bytes and messages on their way, and turns of workers.

use super::{Power, What, World};
use crate::engine::trace::show;
use crate::node::seat::{Arrival, Left};
use rufous_base::disk::{DiskDone, DiskOp, DiskRequest};
use rufous_base::{Close, ConnId, NodeEffect, WorkerId};
use rufous_server::front::Message;

/// What the commands of one step may add to the data of a worker: a pipeline
/// of the longest values.
const STEP_BYTES: u64 = 24 << 10;

/// The longest that the disk stays full.
const FULL_US: u64 = 20_000_000;

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: usize,
    pub(super) worker: usize,
    pub(super) conn: ConnId,
    pub(super) life: u32,
    /// Neither side has closed it.
    pub(super) open: bool,
    /// The client sends no more.
    pub(super) ended: bool,
    /// Sent to the node, and not there yet.
    pub(super) bytes_under_way: usize,
    /// When the last bytes each way arrive: they do so in order.
    to_node_us: u64,
    to_client_us: u64,
}

impl Link {
    pub(super) fn new(client: usize, worker: usize, conn: ConnId, life: u32) -> Self {
        Self {
            client,
            worker,
            conn,
            life,
            open: true,
            ended: false,
            bytes_under_way: 0,
            to_node_us: 0,
            to_client_us: 0,
        }
    }
}

impl World {
    pub(super) fn delay(&mut self) -> u64 {
        let (low, high) = self.plan.network_us;
        self.network.skewed(low, high)
    }

    /// Cuts bytes as networks do.
    fn cut(&mut self, mut bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut parts = Vec::new();
        while bytes.len() > 1 && self.network.chance(self.plan.split) {
            let rest = bytes.split_off(1 + self.network.index(bytes.len() - 1));
            parts.push(std::mem::replace(&mut bytes, rest));
            self.engine.reach("request split");
        }
        parts.push(bytes);
        parts
    }

    pub(super) fn send_to_node(&mut self, link: usize, bytes: Vec<u8>) {
        for bytes in self.cut(bytes) {
            let at = self.arrival_at_node(link);
            self.links[link].bytes_under_way += bytes.len();
            self.push(at, Some(self.life), What::BytesToNode { link, bytes });
        }
    }

    pub(super) fn arrival_at_node(&mut self, link: usize) -> u64 {
        let at = (self.engine.now_us + self.delay()).max(self.links[link].to_node_us);
        self.links[link].to_node_us = at;
        at
    }

    pub(super) fn arrival_at_client(&mut self, link: usize) -> u64 {
        let at = (self.engine.now_us + self.delay()).max(self.links[link].to_client_us);
        self.links[link].to_client_us = at;
        at
    }

    /// Has a worker take what has arrived.
    pub(super) fn arrive(&mut self, worker: usize, arrival: Arrival) {
        self.seats[worker].arrive(arrival);
        self.schedule(worker);
    }

    pub(super) fn schedule(&mut self, worker: usize) {
        let seat = &mut self.seats[worker];
        let Some(at) = seat.wants_turn_at(self.engine.now_us) else {
            return;
        };
        if seat.turn_at_us.is_none_or(|known| at < known) {
            seat.turn_at_us = Some(at);
            self.push(at, Some(self.life), What::Turn(worker));
        }
    }

    pub(super) fn on_turn(&mut self, worker: usize) {
        let now = self.time_of_turn();
        let seat = &mut self.seats[worker];
        if seat.turn_at_us != Some(self.engine.now_us) {
            return;
        }
        seat.turn_at_us = None;
        let left = seat.turn(now, &mut self.turns);
        let (low, high) = self.plan.turn_us;
        seat.busy_until_us = self.engine.now_us + self.turns.skewed(low, high);
        let inputs = left.inputs.join("; ");
        self.engine
            .note(format_args!("w{worker}"), format_args!("turn: {inputs}"));
        if left.inputs.len() > 2 {
            self.engine.reach("turn with many inputs");
        }
        self.compare_shapes();
        self.carry_out(worker, left);
        if worker < self.seats.len() {
            self.schedule(worker);
            self.check_memory();
        }
    }

    /// The memory limit holds, but for what one step of each worker may add.
    fn check_memory(&mut self) {
        let (Some(limit), Some(shared)) = (self.plan.maxmemory, &self.shared) else {
            return;
        };
        let (total, workers) = (shared.ledger.total() as u64, self.seats.len() as u64);
        // Replicas accept what others send, whatever the limit.
        let copies = if self.plan.lattice { workers } else { 1 };
        if total > copies * (limit + STEP_BYTES * workers) {
            self.fail(format!(
                "the data is charged with {total} bytes, the limit is {limit}"
            ));
        }
    }

    fn carry_out(&mut self, worker: usize, left: Left) {
        let probes = [
            (left.waited, "reply waited for gate"),
            (left.abandoned, "replies abandoned"),
            (left.held, "read held"),
        ];
        for (_, probe) in probes.into_iter().filter(|(hit, _)| *hit) {
            self.engine.reach(probe);
        }
        assert!(left.dials.is_empty(), "this world has one node");
        for (to, message) in left.messages {
            self.send_message(worker, to.index(), message);
        }
        if let Some(wrong) = self.seats[worker].writes_late(&left.disk) {
            self.fail(wrong);
        }
        for request in left.disk {
            self.request(worker, request);
        }
        let mut leave = Vec::new();
        for (conn, bytes) in left.replies {
            let served = bytes.first() == Some(&b'*') && bytes.get(1) != Some(&b'-');
            leave.extend(self.link_of(worker, conn).map(|link| (link, served)));
            self.reply(worker, conn, bytes);
        }
        let closed = left.closes.iter();
        leave.extend(closed.filter_map(|(conn, _)| Some((self.link_of(worker, *conn)?, false))));
        self.judge_order(worker, &leave);
        for (conn, close) in left.closes {
            self.close(worker, conn, close);
        }
        for effect in left.node {
            self.on_node_effect(worker, effect);
        }
    }

    fn on_node_effect(&mut self, worker: usize, effect: NodeEffect) {
        self.engine
            .note(format_args!("w{worker}"), format_args!("asks: {effect:?}"));
        match effect {
            NodeEffect::Stopped => {
                self.seats[worker].has_stopped = true;
                if let Power::Stopping(left) = &mut self.power {
                    *left -= 1;
                }
            }
            NodeEffect::Stall(us) => self.seats[worker].busy_until_us += us,
            NodeEffect::Shutdown => self.on_shutdown(),
            _ => {}
        }
    }

    fn send_message(&mut self, from: usize, to: usize, message: Message) {
        if self.loses(&message) {
            return;
        }
        let (low, high) = self.plan.message_us;
        let wanted = self.engine.now_us + self.network.skewed(low, high);
        let last = self.last_message_us.entry((from, to)).or_default();
        let at = wanted.max(*last);
        *last = at;
        let overtakes = |((f, t), other): (&(usize, usize), &u64)| {
            (*f, *t) != (from, to) && *t == to && *other > at
        };
        if self.last_message_us.iter().any(overtakes) {
            self.engine.reach("messages overtook");
        }
        self.push(at, Some(self.life), What::Message { from, to, message });
    }

    pub(super) fn on_message(&mut self, from: usize, to: usize, message: Message) {
        self.arrive(to, Arrival::Message(WorkerId(from as u16), message));
    }

    fn reply(&mut self, worker: usize, conn: ConnId, bytes: Vec<u8>) {
        let Some(link) = self.link_of(worker, conn) else {
            return;
        };
        for bytes in self.cut(bytes) {
            let at = self.arrival_at_client(link);
            self.push(at, None, What::BytesToClient { link, bytes });
        }
    }

    fn link_of(&self, worker: usize, conn: ConnId) -> Option<usize> {
        let place = (worker, conn.slot, conn.generation);
        let link = *self.places.get(&place)?;
        self.links[link].open.then_some(link)
    }

    fn close(&mut self, worker: usize, conn: ConnId, close: Close) {
        let Some(link) = self.link_of(worker, conn) else {
            return;
        };
        self.engine.note(
            format_args!("w{worker}"),
            format_args!("closes {conn:?}: {close:?}"),
        );
        self.links[link].open = false;
        let at = self.arrival_at_client(link);
        self.push(at, None, What::ClientLost { link });
        self.arrive(worker, Arrival::Closed(conn));
    }

    pub(super) fn on_bytes_to_node(&mut self, link: usize, bytes: Vec<u8>) {
        let link = &mut self.links[link];
        link.bytes_under_way -= bytes.len();
        let (worker, conn) = (link.worker, link.conn);
        if link.open && self.power == Power::Up {
            self.arrive(worker, Arrival::Bytes(conn, bytes));
        }
    }

    pub(super) fn on_left_node(&mut self, link: usize, gone: bool) {
        self.queues.order.forget(link);
        let found = &mut self.links[link];
        if !found.open {
            return;
        }
        let (worker, conn) = (found.worker, found.conn);
        if gone {
            found.open = false;
            self.arrive(worker, Arrival::Closed(conn));
        } else {
            self.arrive(worker, Arrival::Ended(conn));
        }
    }

    /// A request to the disk: it waits for those before it in its lane.
    fn request(&mut self, worker: usize, request: DiskRequest) {
        let lane = request.lane.index();
        self.engine.note(
            format_args!("w{worker}"),
            format_args!(
                "disk {} {:?}: {}",
                request.id,
                request.lane,
                show_op(&request.op)
            ),
        );
        self.seats[worker].lanes[lane].requests.push_back(request);
        self.begin(worker, lane);
    }

    fn begin(&mut self, worker: usize, lane: usize) {
        let queue = &mut self.seats[worker].lanes[lane];
        let Some(request) = queue.requests.front() else {
            return;
        };
        if queue.begun.is_some() {
            return;
        }
        queue.begun = Some(self.disk.begin(&request.op, self.engine.now_us));
        let at = self.engine.now_us + self.disk.takes_us(&request.op);
        self.push(at, Some(self.life), What::DiskDone { worker, lane });
    }

    pub(super) fn on_disk_done(&mut self, worker: usize, lane: usize) {
        let queue = &mut self.seats[worker].lanes[lane];
        let (Some(request), Some(begun)) = (queue.requests.pop_front(), queue.begun.take()) else {
            return;
        };
        let id = request.id;
        if self
            .full_since_us
            .is_some_and(|us| self.engine.now_us > us + FULL_US)
        {
            // The operator makes room, at last.
            self.plan.disk.full.clear();
            self.disk.full = false;
        }
        self.note_files(&request.op);
        let result = self.disk.finish(
            request.op,
            begun,
            self.engine.now_us,
            &mut self.engine.probes,
        );
        self.arrive(worker, Arrival::Disk(DiskDone { id, result }));
        self.begin(worker, lane);
    }

    /// Counts the events in the life of logs and snapshots.
    fn note_files(&mut self, op: &DiskOp) {
        match op {
            DiskOp::Rename { to, .. } if &**to == "manifest" => {
                self.engine.reach("manifest replaced");
            }
            DiskOp::Create { file, .. }
                if file.starts_with("log-") && !file.ends_with("-0") && !file.ends_with("-1") =>
            {
                self.engine.reach("segment rotated");
            }
            _ => {}
        }
    }
}

fn show_op(op: &DiskOp) -> String {
    match op {
        DiskOp::Write {
            file,
            at,
            bytes,
            sync,
        } => {
            let synced = if *sync { ", synced" } else { "" };
            let head = show(&bytes[..bytes.len().min(12)]);
            format!(
                "write {file} at {at}, {} bytes{synced} ({head})",
                bytes.len()
            )
        }
        other => format!("{other:?}"),
    }
}
