//! A worker as its driver sees it: what has arrived for its front, and what
//! waits to leave. Keeps the promises of `rufous_base::actor`.

mod gate;

use crate::engine::disk::Begun;
use crate::engine::random::Random;
use crate::engine::trace::show;
use gate::{Gate, Turn};
use rufous_base::disk::{DiskDone, DiskOp, DiskRequest, Lane};
use rufous_base::{
    Actor, Close, ConnId, ConnInfo, Dial, DialError, Effects, Input, NodeEffect, Now, Output, Read,
    Until, WorkerId,
};
use rufous_kernel::planted::{self, Planted};
use rufous_server::front::{Front, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Something for a front.
pub enum Arrival {
    Opened(ConnId, ConnInfo),
    Bytes(ConnId, Vec<u8>),
    Message(WorkerId, Message),
    /// From a thread of the node that is no worker.
    Told(Message),
    Undialled(u64, DialError),
    Drained(ConnId),
    Ended(ConnId),
    Closed(ConnId),
    Disk(DiskDone),
    Stop,
}

/// Requests of one lane; the first is in progress if `begun` is set.
#[derive(Default)]
pub struct Queue {
    pub requests: VecDeque<DiskRequest>,
    pub begun: Option<Begun>,
}

/// What left after a turn.
#[derive(Default)]
pub struct Left {
    pub replies: Vec<(ConnId, Vec<u8>)>,
    pub closes: Vec<(ConnId, Close)>,
    pub messages: Vec<(WorkerId, Message)>,
    /// To other nodes.
    pub sends: Vec<(ConnId, Vec<u8>)>,
    /// Connections for which `Drained` is wanted once that has left.
    pub drains: Vec<ConnId>,
    pub dials: Vec<Dial>,
    pub node: Vec<NodeEffect>,
    pub disk: Vec<DiskRequest>,
    /// What went in, for the trace.
    pub inputs: Vec<String>,
    pub waited: bool,
    /// What waits for the log alone left before what waits for more.
    pub overtook: bool,
    pub abandoned: bool,
    pub held: bool,
}

/// One worker.
pub struct Seat {
    pub front: Front,
    fx: Effects<Message>,
    inbox: VecDeque<Arrival>,
    /// Connections that are not to be read from, and what they sent.
    holds: BTreeSet<u32>,
    kept_back: BTreeMap<u32, (ConnId, Vec<u8>)>,
    gate: Gate,
    wake_at_us: Option<u64>,
    pub lanes: [Queue; 3],
    pub busy_until_us: u64,
    /// What the turn that was interrupted has done so far.
    open: Left,
    /// The time that it goes by, where the fault is planted that it keeps that.
    kept_time: Option<Now>,
    /// When the scheduled turn starts, so that there is only one.
    pub turn_at_us: Option<u64>,
    /// It has done all that there was to do before its node stops.
    pub has_stopped: bool,
    next_slot: u32,
    free_slots: Vec<(u32, u32)>,
    /// Closed connections of which nothing may arrive any more.
    gone: BTreeSet<(u32, u32)>,
    /// A fault to be found: replies do not wait.
    pub ignore_gate: bool,
}

impl Seat {
    pub fn new(front: Front) -> Self {
        Self {
            front,
            fx: Effects::default(),
            inbox: VecDeque::new(),
            holds: BTreeSet::new(),
            kept_back: BTreeMap::new(),
            gate: Gate::default(),
            wake_at_us: None,
            lanes: Default::default(),
            busy_until_us: 0,
            open: Left::default(),
            kept_time: None,
            turn_at_us: None,
            has_stopped: false,
            next_slot: 0,
            free_slots: Vec::new(),
            gone: BTreeSet::new(),
            ignore_gate: false,
        }
    }

    /// A place for a new connection.
    pub fn new_connection(&mut self) -> ConnId {
        let (slot, generation) = self.free_slots.pop().unwrap_or_else(|| {
            self.next_slot += 1;
            (self.next_slot - 1, 0)
        });
        ConnId {
            slot,
            generation: generation + 1,
        }
    }

    /// What it has the disk write although it has stopped. It may go on to remove what nothing needs.
    pub fn writes_late(&self, requests: &[DiskRequest]) -> Option<String> {
        let removes = |of: &&DiskRequest| {
            use DiskOp::{List, Remove, SyncNames};
            matches!(of.op, List | Remove { .. } | SyncNames)
        };
        let mut late = requests.iter().filter(|_| self.has_stopped);
        let late = late.find(|request| !removes(request))?;
        Some(format!(
            "a worker that has stopped has the disk do {late:?}"
        ))
    }

    pub fn arrive(&mut self, arrival: Arrival) {
        self.inbox.push_back(arrival);
    }

    /// When the next turn is wanted, at the earliest.
    pub fn wants_turn_at(&self, now_us: u64) -> Option<u64> {
        if !self.inbox.is_empty() {
            return Some(now_us.max(self.busy_until_us));
        }
        Some(self.wake_at_us?.max(self.busy_until_us).max(now_us))
    }

    /// Whether nothing waits anywhere.
    pub fn is_idle(&self) -> bool {
        self.inbox.is_empty()
            && self.gate.is_empty()
            && self.lanes.iter().all(|lane| lane.requests.is_empty())
    }

    /// Whether there are bytes of a connection that its front was not given.
    pub fn keeps_bytes_of(&self, conn: ConnId) -> bool {
        let of = |a: &Arrival| matches!(a, Arrival::Bytes(c, _) if *c == conn);
        self.kept_back.contains_key(&conn.slot) || self.inbox.iter().any(of)
    }

    /// What waits, as text for debugging.
    pub fn describe(&self) -> String {
        let lanes: Vec<_> = Lane::ALL
            .iter()
            .map(|l| self.lanes[l.index()].requests.len())
            .collect();
        format!(
            "{} arrivals, {} turns of replies wait (gate {:?}, passed {}), {} held connections, lanes {lanes:?}, kernel waits for {}",
            self.inbox.len(),
            self.gate.len(),
            self.gate.first(),
            self.fx.passed,
            self.holds.len(),
            self.front.kernel.waiting(),
        )
    }

    /// The first part of a turn, until bytes are read: [`Seat::turn`] is the rest of it.
    pub fn begin_turn(&mut self, now: Now) {
        let mut left = std::mem::take(&mut self.open);
        let is_first = |arrival: &mut Arrival| {
            use Arrival::{Disk, Drained, Opened, Told};
            matches!(arrival, Opened(..) | Disk(_) | Drained(_) | Told(_))
        };
        while let Some(arrival) = self.inbox.pop_front_if(is_first) {
            self.take(now, arrival, &mut left);
        }
        self.open = left;
        self.kept_time = planted::is(Planted::TurnTimeKept).then_some(now);
    }

    /// One turn with some or all of what has arrived.
    pub fn turn(&mut self, now: Now, random: &mut Random) -> Left {
        let now = self.kept_time.take().unwrap_or(now);
        let mut left = std::mem::take(&mut self.open);
        let most = if random.chance(0.7) {
            usize::MAX
        } else {
            random.index(3) + 1
        };
        let taken: Vec<_> = self.inbox.drain(..self.inbox.len().min(most)).collect();
        let (mut bytes, mut reads) = (Vec::new(), Vec::new());
        let (mut later, mut again) = (Vec::new(), Vec::new());
        for arrival in taken {
            match arrival {
                // One read of each connection in a turn.
                Arrival::Bytes(conn, _) if reads.iter().any(|r: &Read| r.conn == conn) => {
                    again.push(arrival);
                }
                Arrival::Bytes(conn, part) => self.receive(conn, &part, &mut bytes, &mut reads),
                Arrival::Opened(..) | Arrival::Drained(_) | Arrival::Stop => {
                    self.take(now, arrival, &mut left);
                }
                other => later.push(other),
            }
        }
        self.take_bytes(now, bytes, reads, &mut left);
        for arrival in later {
            if let Arrival::Ended(conn) = arrival
                && again
                    .iter()
                    .any(|a| matches!(a, Arrival::Bytes(c, _) if *c == conn))
            {
                again.push(arrival);
            } else {
                self.take(now, arrival, &mut left);
            }
        }
        for arrival in again.into_iter().rev() {
            self.inbox.push_front(arrival);
        }
        self.take_wish();
        if self.wake_at_us.is_some_and(|due| due <= now.mono_us) {
            self.wake_at_us = None;
            left.inputs.push("tick".into());
            self.step(now, Input::Tick, &[]);
        }
        self.front.end_turn(now, &mut self.fx);
        self.carry_out(&mut left);
        left
    }

    /// Collects what a connection sent, unless it is held.
    fn receive(&mut self, conn: ConnId, part: &[u8], bytes: &mut Vec<u8>, reads: &mut Vec<Read>) {
        if self.gone.contains(&(conn.slot, conn.generation)) {
            return;
        }
        if self.holds.contains(&conn.slot) {
            let kept = self
                .kept_back
                .entry(conn.slot)
                .or_insert((conn, Vec::new()));
            kept.1.extend_from_slice(part);
            return;
        }
        let start = bytes.len();
        if let Some((_, kept)) = self.kept_back.remove(&conn.slot) {
            bytes.extend(kept);
        }
        bytes.extend_from_slice(part);
        let end = bytes.len();
        reads.push(Read { conn, start, end });
    }

    fn take_bytes(&mut self, now: Now, bytes: Vec<u8>, reads: Vec<Read>, left: &mut Left) {
        if reads.is_empty() {
            return;
        }
        for read in &reads {
            let part = show(&bytes[read.start..read.end]);
            left.inputs.push(format!("{:?} sent {part}", read.conn));
        }
        let input = Input::Received {
            bytes: &bytes,
            reads: &reads,
        };
        self.step(now, input, &bytes);
    }

    fn take(&mut self, now: Now, arrival: Arrival, left: &mut Left) {
        let (text, input) = match arrival {
            Arrival::Opened(conn, info) => {
                (format!("{conn:?} opened"), Input::Opened { conn, info })
            }
            Arrival::Drained(conn) => (format!("{conn:?} drained"), Input::Drained { conn }),
            Arrival::Stop => ("stop".into(), Input::Stop),
            Arrival::Message(from, message) => (
                format!("message of {from:?}"),
                Input::Message { from, message },
            ),
            Arrival::Told(message) => ("told".into(), Input::Told { message }),
            Arrival::Undialled(token, error) => (
                format!("undialled {token}: {}", error.why),
                Input::Undialled { token, error },
            ),
            Arrival::Disk(done) => (
                format!("disk {} {}", done.id, outcome(&done)),
                Input::Disk(done),
            ),
            Arrival::Ended(conn) => {
                if self.kept_back.contains_key(&conn.slot) {
                    // What it sent comes first.
                    return self.inbox.push_back(Arrival::Ended(conn));
                }
                (format!("{conn:?} ended"), Input::Ended { conn })
            }
            Arrival::Closed(conn) => {
                if !self.gone.insert((conn.slot, conn.generation)) {
                    return;
                }
                self.holds.remove(&conn.slot);
                self.kept_back.remove(&conn.slot);
                self.free_slots.push((conn.slot, conn.generation));
                (format!("{conn:?} closed"), Input::Closed { conn })
            }
            Arrival::Bytes(..) => return,
        };
        left.inputs.push(text);
        self.step(now, input, &[]);
    }

    /// Steps, and again for as long as there is work left over.
    fn step(&mut self, now: Now, input: Input<'_, Message>, bytes: &[u8]) {
        self.fx.more = false;
        self.front.step(now, input, &mut self.fx);
        let mut steps = 0;
        while self.fx.more {
            self.fx.more = false;
            self.front.step(now, Input::Resume { bytes }, &mut self.fx);
            steps += 1;
            assert!(steps < 1_000_000, "the front never rests");
        }
    }

    fn take_wish(&mut self) {
        if let Some(at) = self.fx.wake_at_us.take() {
            self.wake_at_us = Some(at);
        }
    }

    fn carry_out(&mut self, left: &mut Left) {
        self.take_wish();
        let fx = &mut self.fx;
        fx.backlogs.clear();
        fx.garbage.clear();
        left.dials.append(&mut fx.dials);
        left.drains.append(&mut fx.at_once.drains);
        for write in fx.at_once.writes.drain(..) {
            let mut part = Output::default();
            part.append_range(&fx.at_once.output, write.start, write.end);
            left.sends.push((write.conn, part.to_vec()));
        }
        fx.at_once.output.clear();
        left.closes.append(&mut fx.at_once.closes);
        left.node.append(&mut fx.node);
        left.messages.append(&mut fx.messages);
        left.disk.append(&mut fx.disk);
        let mut turn = Turn {
            gate: fx.gate.take().unwrap_or(0),
            replies: Vec::new(),
            closes: std::mem::take(&mut fx.closes),
            drains: std::mem::take(&mut fx.drains),
        };
        for write in fx.writes.drain(..) {
            let mut part = Output::default();
            part.append_range(&fx.output, write.start, write.end);
            turn.replies.push((write.conn, part.to_vec(), write.until));
        }
        fx.output.clear();
        let holds = std::mem::take(&mut fx.holds);
        let (at, abandon) = ((fx.passed, fx.logged), fx.abandon.take());
        if self.ignore_gate {
            turn.gate = 0;
        }
        self.release(at, left);
        if let Some(until) = abandon {
            self.abandon(until, left);
        }
        let own = turn.gate;
        left.waited |= self.gate.take(turn, at);
        self.release(at, left);
        if let Some(until) = abandon.filter(|_| own > at.0) {
            self.abandon(until, left);
        }
        for (conn, hold) in holds {
            self.hold(conn, hold, left);
        }
    }

    fn release(&mut self, at: (u64, u64), left: &mut Left) {
        let released = self.gate.release(at);
        left.overtook |= self.gate.overtaken_by(&released);
        for turn in released {
            let replies = turn.replies.into_iter();
            left.replies
                .extend(replies.map(|(conn, bytes, _)| (conn, bytes)));
            left.closes.extend(turn.closes);
            self.inbox
                .extend(turn.drains.into_iter().map(Arrival::Drained));
        }
    }

    fn abandon(&mut self, until: Until, left: &mut Left) {
        for turn in self.gate.abandon(until) {
            left.abandoned = true;
            let conns = turn.replies.iter().map(|(conn, ..)| *conn);
            let conns = conns.chain(turn.closes.iter().map(|(conn, _)| *conn));
            left.closes.extend(conns.map(|conn| (conn, Close::Now)));
            self.inbox
                .extend(turn.drains.into_iter().map(Arrival::Drained));
        }
    }

    fn hold(&mut self, conn: ConnId, hold: bool, left: &mut Left) {
        if self.gone.contains(&(conn.slot, conn.generation)) {
            return;
        }
        if hold {
            left.held = true;
            self.holds.insert(conn.slot);
            return;
        }
        self.holds.remove(&conn.slot);
        if self.kept_back.contains_key(&conn.slot) {
            self.inbox.push_front(Arrival::Bytes(conn, Vec::new()));
        }
    }
}

fn outcome(done: &DiskDone) -> String {
    match &done.result {
        Ok(_) => "done".into(),
        Err(error) => format!("failed: {error}"),
    }
}
