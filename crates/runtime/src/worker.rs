//! One worker: a loop of turns on a thread of its own.
//!
//! A turn takes what has arrived (answers of the disk, orders, closed or
//! drained connections, bytes, messages, the time), steps the actor with each, and
//! then carries out all effects together. Replies that wait for the disk are released
//! as soon as the disk has answered, before the turn continues. The reactor is polled between any two turns,
//! with one system call, which blocks only if there is no work.

#[cfg(test)]
mod clock_tests;
mod timer;

use crate::clock::Clock;
use crate::disk::Disk;
use crate::gate::Gate;
use crate::inbox::{Inbox, Incoming, Order};
use crate::mail::Teller;
use crate::reaper::Reaper;
use crate::ring::Post;
use crate::shared::{Report, Shared};
use crate::sockets::{Event, Sockets};
use crate::stats::WorkerStats;
use rufous_base::disk::DiskDone;
use rufous_base::{
    Actor, ConnId, ConnInfo, Effects, Input, NodeEffect, Now, Read, Sends, WorkerId,
};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use timer::Timer;

/// Memory for replies that is kept from one turn to the next.
const KEPT_OUTPUT: usize = 4 * 1024 * 1024;

/// What a worker is made of, besides its actor.
pub(crate) struct Parts<M> {
    pub(crate) id: WorkerId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) stats: Arc<WorkerStats>,
    pub(crate) sockets: Sockets,
    pub(crate) post: Post<M>,
    pub(crate) teller: Teller<M>,
    pub(crate) disk: Disk,
    pub(crate) reaper: Reaper,
    pub(crate) clock: Clock,
    pub(crate) turn_bytes: usize,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// The actor received the stop; nothing more is read.
    Stopping,
    /// Waiting replies may leave until then.
    Finishing(Instant),
}

pub(crate) struct Worker<A: Actor> {
    parts: Parts<A::Message>,
    driven: Driven<A>,
    /// What a turn reads; used again by the next one.
    buf: Box<[u8]>,
    reads: Vec<Read>,
    woken: Vec<u32>,
    orders: Vec<Order>,
    answers: Vec<DiskDone>,
    events: Vec<Event>,
    gate: Gate,
    stage: Stage,
    /// The actor has finished; said once no reply waits for the disk any more.
    stopped: bool,
    /// When the actor wants its `Tick`.
    wake_at_us: Option<u64>,
    timer: Timer,
    /// When the last poll ended.
    idle_since_us: u64,
}

/// The actor and its effects, so that stepping borrows nothing else.
struct Driven<A: Actor> {
    actor: A,
    fx: Effects<A::Message>,
    clock: Clock,
    /// The time of the last step. It is read when everything that the step is given has arrived,
    /// and before each `Resume`: see [`Driven::step`].
    now: Now,
    steps: u64,
}

impl<A: Actor> Driven<A> {
    /// Steps with `input`, which is here already, and then with `Resume` and `bytes` for as long as
    /// the actor has work left over.
    ///
    /// The clock is read after `input` has arrived, whatever came before in the turn: gathering, a
    /// long step, a write that blocked, a process that was stopped. An actor may promise something
    /// from this time on (it grants a lease), or rely on what it was promised until then (it reads
    /// under one): at this time, which is between the request's arrival and its reply, the promise
    /// holds.
    fn step(&mut self, input: Input<'_, A::Message>, bytes: &[u8]) {
        self.look_at_clock();
        self.step_now(input, bytes);
    }

    fn look_at_clock(&mut self) {
        self.now = self.clock.now();
    }

    /// Likewise, where the clock was read after `input` had arrived.
    fn step_now(&mut self, input: Input<'_, A::Message>, bytes: &[u8]) {
        self.fx.more = false;
        self.actor.step(self.now, input, &mut self.fx);
        self.steps += 1;
        while self.fx.more {
            self.fx.more = false;
            self.look_at_clock();
            let resume = Input::Resume { bytes };
            self.actor.step(self.now, resume, &mut self.fx);
            self.steps += 1;
        }
    }
}

impl<A: Actor> Worker<A> {
    pub(crate) fn new(actor: A, parts: Parts<A::Message>) -> Self {
        Self {
            driven: Driven {
                actor,
                fx: Effects::default(),
                clock: parts.clock,
                now: parts.clock.now(),
                steps: 0,
            },
            buf: vec![0; parts.turn_bytes].into(),
            reads: Vec::new(),
            woken: Vec::new(),
            orders: Vec::new(),
            answers: Vec::new(),
            events: Vec::new(),
            gate: Gate::default(),
            stage: Stage::Running,
            stopped: false,
            wake_at_us: None,
            timer: Timer::new(),
            idle_since_us: parts.clock.mono_us(),
            parts,
        }
    }

    /// Runs until the node has stopped.
    pub(crate) async fn run(mut self) {
        // One poll may use thousands of sockets: tokio's budget per task is meant
        // for tasks that share a thread, and this one has the thread to itself.
        tokio::task::unconstrained(poll_fn(|cx| self.poll(cx))).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.parts.inbox.bell().attach(cx.waker());
        self.parts.post.awake();
        let now = self.parts.clock.now();
        let idle = now.mono_us - self.idle_since_us;
        self.driven.now = now;
        self.turn();
        let end_us = self.parts.clock.mono_us();
        self.idle_since_us = end_us;
        let stats = &self.parts.stats;
        stats.turns.add(1);
        stats.steps.add(std::mem::take(&mut self.driven.steps));
        stats.idle_us.add(idle);
        stats.busy_us.add(end_us - now.mono_us);
        if self.is_finished() {
            self.end();
            return Poll::Ready(());
        }
        let due = self.due_us();
        let busy = self.parts.sockets.has_work(self.reading())
            || due.is_some_and(|due| due <= end_us)
            || !self.may_sleep();
        if busy || !self.timer.arm(&self.parts.clock, end_us, due, cx) {
            // Costs no system call; the reactor is polled without blocking.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn may_sleep(&mut self) -> bool {
        let Parts {
            post, disk, inbox, ..
        } = &mut self.parts;
        post.may_sleep(disk.is_awaited().then_some(|| inbox.is_answered()))
    }

    fn turn(&mut self) {
        self.parts.post.push_overflow();
        let (woken, orders) = (&mut self.woken, &mut self.orders);
        self.parts.inbox.take(woken, orders, &mut self.answers);
        self.parts.sockets.woken(self.woken.drain(..));
        self.take_answers();
        self.take_orders();
        self.take_events();
        self.take_bytes();
        let driven = &mut self.driven;
        self.parts.post.receive(|from, messages| {
            driven.look_at_clock();
            for message in messages {
                driven.step_now(Input::Message { from, message }, &[]);
            }
        });
        self.take_wish();
        if self
            .wake_at_us
            .is_some_and(|due| due <= self.driven.now.mono_us)
        {
            self.wake_at_us = None;
            self.driven.step(Input::Tick, &[]);
        }
        self.end_turn();
        self.parts.disk.take_done_here(&mut self.answers);
        // A turn of its own, which waits for nothing.
        while !self.answers.is_empty() {
            self.take_answers();
            self.end_turn();
            self.parts.disk.take_done_here(&mut self.answers);
        }
        self.parts.post.wake_receivers();
    }

    /// Takes the disk's answers first, so that replies which waited for them
    /// wait for nothing else, and the next requests start meanwhile.
    fn take_answers(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        for done in self.answers.drain(..) {
            self.parts.disk.answered(&done);
            self.driven.step(Input::Disk(done), &[]);
        }
        let (passed, logged) = (self.driven.fx.passed, self.driven.fx.logged);
        self.gate.release(passed, logged, &mut self.parts.sockets);
        self.ask_disk();
    }

    fn ask_disk(&mut self) {
        for request in self.driven.fx.disk.drain(..) {
            self.parts.disk.request(request);
        }
    }

    fn take_orders(&mut self) {
        let mut orders = std::mem::take(&mut self.orders);
        for order in orders.drain(..) {
            match order {
                Order::Open(incoming, info) => self.open(incoming, info),
                Order::Undialled { token, error } => {
                    self.driven.step(Input::Undialled { token, error }, &[]);
                }
                Order::Mail => {
                    for message in self.parts.teller.of(self.parts.id).take() {
                        self.driven.step(Input::Told { message }, &[]);
                    }
                }
                Order::Stop => {
                    self.stage = Stage::Stopping;
                    self.driven.step(Input::Stop, &[]);
                }
                Order::Finish(until) => self.stage = Stage::Finishing(until),
            }
        }
        self.orders = orders;
    }

    fn open(&mut self, incoming: Incoming, info: ConnInfo) {
        // Counted for the worker before it was handed over.
        let origin = info.origin;
        if self.stage != Stage::Running {
            self.parts.shared.left(self.parts.id, origin);
            return;
        }
        match self.parts.sockets.open(incoming, origin) {
            Ok(conn) => self.driven.step(Input::Opened { conn, info }, &[]),
            Err(error) => {
                tracing::warn!(%error, peer = info.peer, "cannot watch a new connection");
                self.parts.shared.left(self.parts.id, origin);
            }
        }
    }

    fn take_events(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        self.parts.sockets.take_events(&mut events);
        for event in events.drain(..) {
            match event {
                Event::Drained(conn) => self.driven.step(Input::Drained { conn }, &[]),
                Event::Ended(conn) => self.driven.step(Input::Ended { conn }, &[]),
                Event::Gone(conn) => self.gone(conn),
            }
        }
        self.events = events;
    }

    fn gone(&mut self, conn: ConnId) {
        self.driven.step(Input::Closed { conn }, &[]);
        let origin = self.parts.sockets.release(conn);
        self.parts.shared.left(self.parts.id, origin);
    }

    fn take_bytes(&mut self) {
        let reading = self.reading();
        let sockets = &mut self.parts.sockets;
        sockets.gather(reading, &mut self.buf, &mut self.reads);
        let Some(last) = self.reads.last() else {
            return;
        };
        let bytes = &self.buf[..last.end];
        let reads = &self.reads;
        self.driven.step(Input::Received { bytes, reads }, bytes);
        self.reads.clear();
    }

    fn reading(&self) -> bool {
        self.stage == Stage::Running
            && !self.parts.post.is_overflowing()
            && !self.gate.is_full()
            && !self.parts.disk.is_behind()
            && !self.driven.fx.congested
    }

    /// The last time asked for holds, also against one that is due just now.
    fn take_wish(&mut self) {
        if let Some(at) = self.driven.fx.wake_at_us.take() {
            self.wake_at_us = Some(at);
        }
    }

    /// Does what the steps of this turn have asked for.
    fn end_turn(&mut self) {
        let driven = &mut self.driven;
        driven.actor.end_turn(driven.now, &mut driven.fx);
        self.take_wish();
        self.ask_disk();
        let fx = &mut self.driven.fx;
        let parts = &mut self.parts;
        for (conn, backlog) in fx.backlogs.drain(..) {
            parts.sockets.set_backlog(conn, backlog);
        }
        for effect in fx.node.drain(..) {
            match effect {
                // Before the replies leave: the client waits for the end of the stall.
                NodeEffect::Stall(us) => std::thread::sleep(Duration::from_micros(us)),
                // At once: no worker ends before the replies that wait for
                // its disk have left, and a disk that fails stops no node from
                // stopping.
                NodeEffect::Shutdown => parts.shared.stop(),
                NodeEffect::Stopped => self.stopped = true,
                NodeEffect::Progress => parts.shared.report(Report::Progress),
                NodeEffect::MaxClients(most) => parts.shared.set_max_clients(most),
            }
        }
        for (to, message) in fx.messages.drain(..) {
            parts.post.send(to, message);
        }
        for (conn, hold) in fx.holds.drain(..) {
            parts.sockets.hold(conn, hold);
        }
        for dial in fx.dials.drain(..) {
            parts.shared.report(Report::Dial(parts.id, dial));
        }
        for garbage in fx.garbage.drain(..) {
            parts.reaper.drop_later(garbage);
        }
        for garbage in parts.sockets.take_garbage() {
            parts.reaper.drop_later(garbage);
        }
        self.reply();
        if self.stopped && self.gate.is_empty() {
            self.stopped = false;
            let report = Report::Stopped(self.parts.id);
            self.parts.shared.report(report);
        }
    }

    /// Sends what this turn answers and closes what it closes, or keeps both
    /// until the gate opens.
    fn reply(&mut self) {
        let (fx, sockets) = (&mut self.driven.fx, &mut self.parts.sockets);
        send_at_once(&mut fx.at_once, sockets);
        let gate = fx.gate.take();
        self.gate.release(fx.passed, fx.logged, sockets);
        let abandon = fx.abandon.take();
        if let Some(until) = abandon {
            self.gate.abandon(until, sockets);
        }
        if self.gate.holds(gate, fx.passed) {
            self.gate.hold(gate, fx);
        }
        // Its own as well, where they wait for it.
        if let Some(until) = abandon.filter(|_| gate.is_some_and(|gate| gate > fx.passed)) {
            self.gate.abandon(until, sockets);
        }
        self.parts.stats.held_turns.set(self.gate.len() as u64);
        sockets.hold_for_end(&fx.closes);
        if !fx.writes.is_empty() {
            sockets.send(&fx.output, &fx.writes);
            fx.writes.clear();
        }
        fx.output.clear();
        if fx.output.bytes.capacity() > KEPT_OUTPUT {
            fx.output.bytes.shrink_to(KEPT_OUTPUT);
        }
        for (conn, close) in fx.closes.drain(..) {
            sockets.close(conn, close);
        }
        for conn in fx.drains.drain(..) {
            sockets.tell_when_drained(conn);
        }
        for conn in fx.idle_closes.drain(..) {
            if !self.gate.awaits(conn) {
                sockets.close_if_idle(conn);
            }
        }
    }

    fn due_us(&self) -> Option<u64> {
        let Stage::Finishing(until) = self.stage else {
            return self.wake_at_us;
        };
        let until = self.parts.clock.us_of(until);
        Some(self.wake_at_us.map_or(until, |at| at.min(until)))
    }

    fn is_finished(&self) -> bool {
        let Stage::Finishing(until) = self.stage else {
            return false;
        };
        // Messages are not waited for: no actor has pending work.
        let left = self.gate.is_empty()
            && !self.parts.disk.is_awaited()
            && self.parts.sockets.is_flushed();
        left || Instant::now() >= until
    }

    /// Closes all open connections and ends the actor.
    fn end(&mut self) {
        self.parts.sockets.close_all();
        self.take_events();
        self.end_turn();
        self.parts.disk.end();
        self.parts.inbox.close();
        self.parts.teller.of(self.parts.id).close();
        self.parts.shared.report(Report::Ended);
    }
}

/// What waits for no gate.
fn send_at_once(sends: &mut Sends, sockets: &mut Sockets) {
    if !sends.writes.is_empty() {
        sockets.send(&sends.output, &sends.writes);
        sends.writes.clear();
    }
    sends.output.clear();
    if sends.output.bytes.capacity() > KEPT_OUTPUT {
        sends.output.bytes.shrink_to(KEPT_OUTPUT);
    }
    for conn in sends.drains.drain(..) {
        sockets.tell_when_drained(conn);
    }
    for (conn, close) in sends.closes.drain(..) {
        sockets.close(conn, close);
    }
}
