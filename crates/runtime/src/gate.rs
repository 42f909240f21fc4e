//! Replies that wait until the changes they report are on disk or replicated.
//!
//! Invariants:
//! - Turns leave in the order of arrival, each as soon as its gate and those of
//!   all earlier turns are passed. Replies that only need the log leave before
//!   the rest of their turn, from a queue of their own.
//! - Replies of one connection keep their order: while a connection has replies
//!   in the queue that waits for more than the log, its other replies join them.
//! - A turn waits with its own buffers, swapped for others, so that waiting
//!   costs no copy. If many turns wait, a small one gets buffers of its size,
//!   because unused capacity costs memory too. If a turn has both kinds of
//!   replies, those that only need the log are copied.

use crate::sockets::Sockets;
use rufous_base::{Apart, Close, ConnId, Effects, Output, Until, Write};
use std::collections::VecDeque;

/// While more bytes than this wait, the worker reads from no socket.
const HELD_BYTES: usize = 64 * 1024 * 1024;

/// Buffers kept for turns to come, and the largest of them.
const POOL: usize = 8;
const POOLED_BYTES: usize = 1024 * 1024;

#[derive(Default)]
pub(crate) struct Gate {
    /// What waits for the log alone.
    logging: VecDeque<Held>,
    waiting: VecDeque<Held>,
    behind: Behind,
    /// Memory of all that waits; large values count whole.
    held_bytes: usize,
    pool: Vec<Held>,
}

/// What of a turn waits. Its gate is at least that of the turn before.
#[derive(Default)]
struct Held {
    gate: u64,
    bytes: usize,
    output: Output,
    writes: Vec<Write>,
    closes: Vec<(ConnId, Close)>,
    drains: Vec<ConnId>,
}

/// How much of `Gate::waiting` is for each connection, by its place. One that takes the
/// place of another waits for what is left of that, which is soon gone.
#[derive(Default)]
struct Behind(Vec<u32>);

impl Gate {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.logging.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.logging.len()
    }

    /// Whether so much waits that no more should be taken in.
    pub(crate) fn is_full(&self) -> bool {
        self.held_bytes > HELD_BYTES
    }

    /// Whether output waits for a connection.
    pub(crate) fn awaits(&self, conn: ConnId) -> bool {
        let all = self.logging.iter().chain(&self.waiting);
        all.flat_map(|held| &held.writes)
            .any(|write| write.conn == conn)
    }

    /// Lets go what waited for gates up to `passed`, and for the log up to `logged`.
    pub(crate) fn release(&mut self, passed: u64, logged: u64, sockets: &mut Sockets) {
        let logged = logged.max(passed);
        while let Some(held) = self.logging.pop_front_if(|held| held.gate <= logged) {
            self.send(held, sockets);
        }
        while let Some(held) = self.waiting.pop_front_if(|held| held.gate <= passed) {
            self.behind.forget(&held);
            self.send(held, sockets);
        }
    }

    fn send(&mut self, held: Held, sockets: &mut Sockets) {
        sockets.hold_for_end(&held.closes);
        sockets.send(&held.output, &held.writes);
        for (conn, close) in &held.closes {
            sockets.close(*conn, *close);
        }
        for conn in &held.drains {
            sockets.tell_when_drained(*conn);
        }
        self.recycle(held);
    }

    /// Whether the replies of a turn have to wait: for its own gate, or behind others.
    pub(crate) fn holds(&self, gate: Option<u64>, passed: u64) -> bool {
        !self.is_empty() || gate.is_some_and(|gate| gate > passed)
    }

    /// Keeps what has to wait of the replies, closes and drains of a turn, and leaves
    /// to `fx` what may go at once. A turn without any of them need not wait.
    pub(crate) fn hold<M>(&mut self, gate: Option<u64>, fx: &mut Effects<M>) {
        let last = |line: &VecDeque<Held>| line.back().map_or(0, |held| held.gate);
        let before = last(&self.waiting).max(last(&self.logging));
        let gate = gate.unwrap_or(0).max(before);
        let is_logged = gate <= fx.logged.max(fx.passed);
        let (early, late) = self.behind.take_turn(fx);
        if late == 0 && (early == 0 || is_logged) {
            return;
        }
        let mut held = self.pool.pop().unwrap_or_default();
        held.take(fx);
        if late == 0 {
            return self.keep(held, gate, Until::Logged);
        }
        if early > 0 {
            let mut apart = self.pool.pop().unwrap_or_default();
            held.split(&self.behind, &mut apart);
            match is_logged {
                true => {
                    apart.swap_with(fx);
                    self.recycle(apart);
                }
                false => self.keep(apart, gate, Until::Logged),
            }
        }
        self.keep(held, gate, Until::Passed);
    }

    fn keep(&mut self, mut held: Held, gate: u64, until: Until) {
        held.gate = gate;
        held.bytes = held.memory();
        self.held_bytes += held.bytes;
        match until {
            Until::Passed => self.waiting.push_back(held),
            Until::Logged => self.logging.push_back(held),
        }
    }

    /// Drops what waits for copies, or also for the log, and closes each connection that
    /// any of it was for.
    pub(crate) fn abandon(&mut self, until: Until, sockets: &mut Sockets) {
        self.behind = Behind::default();
        let mut all = std::mem::take(&mut self.waiting);
        if until == Until::Logged {
            all.append(&mut self.logging);
        }
        for held in all {
            for write in &held.writes {
                sockets.close(write.conn, Close::Now);
            }
            for (conn, _) in &held.closes {
                sockets.close(*conn, Close::Now);
            }
            // Those that nothing else waited for go on.
            for conn in &held.drains {
                sockets.tell_when_drained(*conn);
            }
            self.recycle(held);
        }
    }

    fn recycle(&mut self, mut held: Held) {
        self.held_bytes -= std::mem::take(&mut held.bytes);
        if self.pool.len() == POOL {
            return;
        }
        held.output.clear();
        held.output.bytes.shrink_to(POOLED_BYTES);
        held.writes.clear();
        held.writes.shrink_to(POOLED_BYTES / size_of::<Write>());
        held.closes.clear();
        held.drains.clear();
        self.pool.push(held);
    }
}

impl Held {
    /// Takes a turn's buffers and leaves it others.
    fn take<M>(&mut self, fx: &mut Effects<M>) {
        if self.output.bytes.capacity() == 0 {
            self.output = take(&mut fx.output);
            std::mem::swap(&mut self.output, &mut fx.output);
        }
        self.swap_with(fx);
    }

    fn swap_with<M>(&mut self, fx: &mut Effects<M>) {
        std::mem::swap(&mut self.output, &mut fx.output);
        std::mem::swap(&mut self.writes, &mut fx.writes);
        std::mem::swap(&mut self.closes, &mut fx.closes);
        std::mem::swap(&mut self.drains, &mut fx.drains);
    }

    /// Takes what waits for the log alone apart.
    fn split(&mut self, behind: &Behind, apart: &mut Held) {
        let Self {
            output,
            writes,
            closes,
            drains,
            ..
        } = self;
        for write in writes.extract_if(.., |write| write.until == Until::Logged) {
            let start = apart.output.mark();
            apart.output.append_range(output, write.start, write.end);
            let end = apart.output.mark();
            apart.writes.push(Write {
                start,
                end,
                ..write
            });
        }
        let early = closes.extract_if(.., |(conn, _)| !behind.has(*conn));
        apart.closes.extend(early);
        let early = drains.extract_if(.., |conn| !behind.has(*conn));
        apart.drains.extend(early);
    }

    fn memory(&self) -> usize {
        // Of a source no byte exists yet.
        let value = |apart: &Apart| match apart {
            Apart::Value(value) => value.len(),
            Apart::Made(_) => 0,
        };
        let apart = self.output.shared.iter();
        let values: usize = apart.map(|(_, apart)| value(apart)).sum();
        size_of::<Self>()
            + values
            + self.output.bytes.capacity()
            + self.output.shared.capacity() * size_of::<(usize, Apart)>()
            + self.writes.capacity() * size_of::<Write>()
            + self.closes.capacity() * size_of::<(ConnId, Close)>()
            + self.drains.capacity() * size_of::<ConnId>()
    }
}

impl Behind {
    fn has(&self, conn: ConnId) -> bool {
        self.0.get(conn.index()).is_some_and(|count| *count > 0)
    }

    fn add(&mut self, conn: ConnId) {
        if conn.index() >= self.0.len() {
            self.0.resize(conn.index() + 1, 0);
        }
        self.0[conn.index()] += 1;
    }

    /// How much of a turn waits for the log alone, and how much for more; that is noted, and
    /// said of each reply that is behind others of its connection.
    fn take_turn<M>(&mut self, fx: &mut Effects<M>) -> (usize, usize) {
        let mut late = 0;
        for write in &mut fx.writes {
            if write.until == Until::Passed || self.has(write.conn) {
                write.until = Until::Passed;
                self.add(write.conn);
                late += 1;
            }
        }
        let closes = fx.closes.iter().map(|(conn, _)| *conn);
        for conn in closes.chain(fx.drains.iter().copied()) {
            if self.has(conn) {
                self.add(conn);
                late += 1;
            }
        }
        let all = fx.writes.len() + fx.closes.len() + fx.drains.len();
        (all - late, late)
    }

    /// It does not wait any more.
    fn forget(&mut self, held: &Held) {
        let writes = held.writes.iter().map(|write| write.conn);
        let closes = held.closes.iter().map(|(conn, _)| *conn);
        for conn in writes.chain(closes).chain(held.drains.iter().copied()) {
            self.0[conn.index()] -= 1;
        }
    }
}

/// Takes the output away; its buffer stays where most of it is unused.
fn take(output: &mut Output) -> Output {
    if output.bytes.len() >= output.bytes.capacity() / 4 {
        return std::mem::take(output);
    }
    let taken = Output {
        bytes: output.bytes.as_slice().to_vec(),
        shared: std::mem::take(&mut output.shared),
        errors: std::mem::take(&mut output.errors),
    };
    output.clear();
    taken
}
