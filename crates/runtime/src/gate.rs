//! Replies that wait until what they tell of is on disk.
//!
//! Invariants:
//! - Turns leave in the order in which they came, each as soon as its gate and
//!   those of all before it are passed.
//! - A turn waits with its own buffers, swapped for others, so that waiting
//!   costs no copy; only where many wait does a small one get buffers of its
//!   size, as room that nobody uses is memory too.

use crate::sockets::Sockets;
use rufous_base::{Close, ConnId, Effects, Output, Write};
use std::collections::VecDeque;

/// While more bytes than this wait, the worker reads from no socket.
const HELD_BYTES: usize = 64 * 1024 * 1024;

/// Buffers kept for turns to come, and the largest of them.
const POOL: usize = 8;
const POOLED_BYTES: usize = 1024 * 1024;

#[derive(Default)]
pub(crate) struct Gate {
    waiting: VecDeque<Held>,
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

impl Gate {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether so much waits that no more should be taken in.
    pub(crate) fn is_full(&self) -> bool {
        self.held_bytes > HELD_BYTES
    }

    /// Lets go what waited for gates up to `passed`.
    pub(crate) fn release(&mut self, passed: u64, sockets: &mut Sockets) {
        while let Some(held) = self.waiting.pop_front_if(|held| held.gate <= passed) {
            sockets.send(&held.output, &held.writes);
            for (conn, close) in &held.closes {
                sockets.close(*conn, *close);
            }
            for conn in &held.drains {
                sockets.tell_when_drained(*conn);
            }
            self.recycle(held);
        }
    }

    /// Whether the replies of a turn have to wait: for its own gate, or behind
    /// others. Those that are about to be abandoned are no reason.
    pub(crate) fn holds(&self, gate: Option<u64>, passed: u64, abandon: bool) -> bool {
        (!self.waiting.is_empty() && !abandon) || gate.is_some_and(|gate| gate > passed)
    }

    /// Keeps the replies, closes and drains of a turn, and leaves empty ones
    /// to the next. A turn without any of them need not wait.
    pub(crate) fn hold<M>(&mut self, gate: Option<u64>, fx: &mut Effects<M>) {
        if fx.writes.is_empty() && fx.closes.is_empty() && fx.drains.is_empty() {
            return;
        }
        let before = self.waiting.back().map_or(0, |held| held.gate);
        let mut held = match self.pool.pop() {
            Some(mut held) => {
                std::mem::swap(&mut held.output, &mut fx.output);
                held
            }
            None => Held {
                output: take(&mut fx.output),
                ..Held::default()
            },
        };
        std::mem::swap(&mut held.writes, &mut fx.writes);
        std::mem::swap(&mut held.closes, &mut fx.closes);
        std::mem::swap(&mut held.drains, &mut fx.drains);
        held.gate = gate.unwrap_or(0).max(before);
        held.bytes = held.memory();
        self.held_bytes += held.bytes;
        self.waiting.push_back(held);
    }

    /// Drops what waits, and closes each connection that any of it was for.
    pub(crate) fn abandon(&mut self, sockets: &mut Sockets) {
        while let Some(held) = self.waiting.pop_front() {
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
        self.held_bytes -= held.bytes;
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
    fn memory(&self) -> usize {
        let values: usize = self
            .output
            .shared
            .iter()
            .map(|(_, value)| value.len())
            .sum();
        size_of::<Self>()
            + values
            + self.output.bytes.capacity()
            + self.output.shared.capacity() * size_of::<(usize, usize)>()
            + self.writes.capacity() * size_of::<Write>()
            + self.closes.capacity() * size_of::<(ConnId, Close)>()
            + self.drains.capacity() * size_of::<ConnId>()
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
    };
    output.clear();
    taken
}
