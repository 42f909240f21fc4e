//! A worker's connections: readable ones are read, pending output is sent, and
//! idle connections cost nothing.
//!
//! This is the whole interface between a worker and the sockets; another way
//! to drive them would take this module's place. Invariants:
//! - A connection that is neither ended, closing, held nor over its high-water
//!   mark (where that matters) is in the ready queue, or its waker is registered for reading.
//! - A connection with waiting replies is in the ready queue, or its waker is
//!   registered for writing.
//! - A connection that is gone causes one [`Event::Gone`] and no later event; its
//!   slot is reused only after [`Sockets::release`].
//! - An idle connection owns no buffer.

mod pending;
mod pieces;
mod send;
mod stream;
mod tls;

use crate::inbox::{Inbox, Incoming, slot_waker};
use crate::stats::WorkerStats;
use pending::{Flushed, Pending};
use rufous_base::limits::{FEED_HARD_LIMIT, STRANGER_HARD_LIMIT, STRANGER_HIGH_WATER};
use rufous_base::{Backlog, Close, ConnId, Garbage, Origin, Read};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use stream::Stream;

/// Reading stops for this turn when less than this is left of its buffer.
const LEAST_READ: usize = 4 * 1024;

/// Turns between two looks at what the replies to a connection keep.
const TURNS_BETWEEN_LOOKS: u32 = 64;

/// An event that the actor has to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Drained(ConnId),
    /// The peer sends no more.
    Ended(ConnId),
    Gone(ConnId),
}

/// Bounds of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) read_bytes: usize,
    pub(crate) output_high_water: usize,
    pub(crate) output_hard_limit: usize,
    /// Of all connections together.
    pub(crate) output_total_limit: usize,
}

impl Bounds {
    fn high_water(&self, backlog: Backlog) -> usize {
        match backlog {
            Backlog::Stranger => self.output_high_water.min(STRANGER_HIGH_WATER),
            Backlog::Client | Backlog::Feed | Backlog::Node => self.output_high_water,
        }
    }

    fn hard_limit(&self, backlog: Backlog) -> usize {
        let most = match backlog {
            Backlog::Stranger => STRANGER_HARD_LIMIT,
            Backlog::Client => usize::MAX,
            Backlog::Feed | Backlog::Node => FEED_HARD_LIMIT,
        };
        self.output_hard_limit.min(most)
    }
}

pub(crate) struct Sockets {
    slots: Vec<SocketEntry>,
    free: Vec<u32>,
    /// Connections to look at, each at most once.
    ready: VecDeque<u32>,
    /// Ready to be read, but reading has stopped for all.
    parked: Vec<u32>,
    events: Vec<Event>,
    bounds: Bounds,
    /// What the connections have `counted`.
    copied: usize,
    /// Connections with replies that are still to be made.
    with_sources: BTreeSet<u32>,
    /// The connection and the turn of the last look at what these replies keep.
    looked: (u32, u32),
    garbage: Vec<Garbage>,
    inbox: Arc<Inbox>,
    stats: Arc<WorkerStats>,
    scratch: send::Scratch,
}

struct SocketEntry {
    generation: u32,
    waker: Waker,
    conn: Option<Conn>,
    /// Of the connection that it has, or had.
    origin: Origin,
}

struct Conn {
    stream: Stream,
    pending: Pending,
    /// Of what waits, the bytes that were last counted for all connections.
    counted: usize,
    /// In the ready queue.
    queued: bool,
    /// Among those to be read when reading resumes.
    parked: bool,
    /// The actor wants nothing more from it for now.
    held: bool,
    /// Too many replies wait; reading resumes when they have drained.
    over: bool,
    /// The peer sends no more.
    ended: bool,
    /// To be closed once its replies have left.
    closing: bool,
    backlog: Backlog,
    /// This turn's chain of writes.
    chain: (u32, u32),
}

impl Conn {
    fn is_read(&self) -> bool {
        let full = self.over && self.backlog != Backlog::Node;
        !self.held && !full && !self.ended && !self.closing
    }

    /// Whether the kernel has got all replies.
    fn is_sent(&self) -> bool {
        self.pending.is_empty() && !self.stream.has_unsent()
    }
}

impl Sockets {
    pub(crate) fn new(bounds: Bounds, inbox: Arc<Inbox>, stats: Arc<WorkerStats>) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            parked: Vec::new(),
            events: Vec::new(),
            bounds,
            copied: 0,
            with_sources: BTreeSet::new(),
            looked: (0, 0),
            garbage: Vec::new(),
            inbox,
            stats,
            scratch: send::Scratch::default(),
        }
    }

    /// Takes a new connection in.
    pub(crate) fn open(&mut self, incoming: Incoming, origin: Origin) -> io::Result<ConnId> {
        let stream = Stream::new(incoming)?;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = self.slots.len() as u32;
                self.slots.push(SocketEntry {
                    generation: 0,
                    waker: slot_waker(&self.inbox, slot),
                    conn: None,
                    origin,
                });
                slot
            }
        };
        let place = &mut self.slots[slot as usize];
        assert!(place.conn.is_none(), "a free slot holds no connection");
        place.origin = origin;
        place.conn = Some(Conn {
            stream,
            pending: Pending::default(),
            counted: 0,
            queued: false,
            parked: false,
            held: false,
            over: false,
            ended: false,
            closing: false,
            backlog: Backlog::default(),
            chain: (pieces::NONE, pieces::NONE),
        });
        let generation = place.generation;
        self.stats.connections.add(1);
        self.stats.connections_total.add(1);
        // The first read registers the waker.
        self.queue(slot);
        Ok(ConnId { slot, generation })
    }

    /// Notes that these slots were woken.
    pub(crate) fn woken(&mut self, slots: impl Iterator<Item = u32>) {
        for slot in slots {
            self.queue(slot);
        }
    }

    /// Reads from the connections that are ready, each at most once, as far as
    /// `buf` goes; and sends what waited for those that were full. Where
    /// `reading` is false, nothing is read.
    pub(crate) fn gather(&mut self, reading: bool, buf: &mut [u8], reads: &mut Vec<Read>) {
        self.look_at_sources();
        if reading {
            while let Some(slot) = self.parked.pop() {
                if let Some(conn) = self.slots[slot as usize].conn.as_mut() {
                    conn.parked = false;
                }
                self.queue(slot);
            }
        }
        let mut at = 0;
        for _ in 0..self.ready.len() {
            if buf.len() - at < LEAST_READ {
                break;
            }
            let Some(slot) = self.ready.pop_front() else {
                break;
            };
            let Some(conn) = self.slots[slot as usize].conn.as_mut() else {
                continue;
            };
            conn.queued = false;
            if !conn.is_sent() && !self.flush(slot) {
                continue;
            }
            let place = &mut self.slots[slot as usize];
            let Some(conn) = place.conn.as_mut().filter(|conn| conn.is_read()) else {
                continue;
            };
            if !reading && !place.origin.is_of_nodes() {
                if !conn.parked {
                    conn.parked = true;
                    self.parked.push(slot);
                }
                continue;
            }
            let cx = &mut Context::from_waker(&place.waker);
            let size = (buf.len() - at).min(self.bounds.read_bytes);
            match conn.stream.poll_read(cx, &mut buf[at..at + size]) {
                Poll::Pending => {}
                Poll::Ready(Err(_)) => self.drop_now(slot),
                Poll::Ready(Ok(n)) => {
                    let id = ConnId {
                        slot,
                        generation: place.generation,
                    };
                    if n == 0 {
                        conn.ended = true;
                        self.events.push(Event::Ended(id));
                        continue;
                    }
                    reads.push(Read {
                        conn: id,
                        start: at,
                        end: at + n,
                    });
                    at += n;
                    // A full buffer means that more may wait, without another wake-up.
                    if n == size || conn.stream.may_read_more(cx) {
                        self.queue(slot);
                    }
                }
            }
        }
        self.stats.reads.add(reads.len() as u64);
        self.stats.bytes_in.add(at as u64);
    }

    /// Stops reading from a connection, or resumes it.
    pub(crate) fn hold(&mut self, id: ConnId, hold: bool) {
        if let Some(conn) = self.get(id) {
            conn.held = hold;
            if !hold {
                self.queue(id.slot);
            }
        }
    }

    /// How much may wait for a connection from now on.
    pub(crate) fn set_backlog(&mut self, id: ConnId, backlog: Backlog) {
        if let Some(conn) = self.get(id) {
            conn.backlog = backlog;
        }
    }

    /// Gives `Event::Drained` once little waits for a connection.
    pub(crate) fn tell_when_drained(&mut self, id: ConnId) {
        // One that is over its mark gives the event anyway.
        if self.get(id).is_some_and(|conn| !conn.over) {
            self.events.push(Event::Drained(id));
        }
    }

    /// Prepares connections for the replies that they are closed after.
    pub(crate) fn hold_for_end(&mut self, closes: &[(ConnId, Close)]) {
        for (conn, close) in closes {
            if *close == Close::AfterReplies
                && let Some(conn) = self.get(*conn)
            {
                conn.stream.hold_for_end();
            }
        }
    }

    /// Closes a connection; `Event::Gone` follows.
    pub(crate) fn close(&mut self, id: ConnId, close: Close) {
        let Some(conn) = self.get(id) else { return };
        match close {
            Close::Now => self.drop_now(id.slot),
            Close::AfterReplies if conn.is_sent() => self.finish(id.slot),
            Close::AfterReplies => conn.closing = true,
        }
    }

    /// Closes a connection if nothing is to be sent to it and nothing that the peer has sent is unread.
    pub(crate) fn close_if_idle(&mut self, id: ConnId) {
        let idle = |conn: &mut Conn| conn.is_sent() && !conn.stream.has_unread();
        if self.get(id).is_some_and(idle) {
            self.finish(id.slot);
        }
    }

    /// Whether a connection in the ready queue needs work for which no wake-up will come.
    pub(crate) fn has_work(&self, reading: bool) -> bool {
        !self.ready.is_empty() || !self.events.is_empty() || (reading && !self.parked.is_empty())
    }

    /// What happened, in order; `events` must be empty and is swapped in.
    pub(crate) fn take_events(&mut self, events: &mut Vec<Event>) {
        std::mem::swap(&mut self.events, events);
    }

    /// The actor has received that `id` is gone: its slot may be reused.
    /// Returns the connection's origin.
    pub(crate) fn release(&mut self, id: ConnId) -> Origin {
        let slot = &mut self.slots[id.index()];
        assert!(slot.conn.is_none(), "still open");
        assert_eq!(slot.generation, id.generation, "told once");
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        slot.origin
    }

    /// Looks at one of the connections with replies that are still to be made: what these keep
    /// grows while others change the data, whether the client reads or not.
    fn look_at_sources(&mut self) {
        if self.with_sources.is_empty() {
            return;
        }
        let (last, turn) = self.looked;
        self.looked.1 = turn.wrapping_add(1);
        if !turn.is_multiple_of(TURNS_BETWEEN_LOOKS) {
            return;
        }
        let next = self.with_sources.range(last.saturating_add(1)..).next();
        let Some(&slot) = next.or_else(|| self.with_sources.first()) else {
            return;
        };
        self.looked.0 = slot;
        let conn = self.slots[slot as usize].conn.as_ref();
        if conn.is_some_and(|conn| conn.pending.has_sources()) {
            self.bound(slot);
        } else {
            self.with_sources.remove(&slot);
        }
    }

    /// What is to be dropped by a thread that serves no requests.
    pub(crate) fn take_garbage(&mut self) -> impl Iterator<Item = Garbage> {
        self.garbage.drain(..)
    }

    /// Whether no replies wait anywhere.
    pub(crate) fn is_flushed(&self) -> bool {
        let mut open = self.slots.iter().filter_map(|slot| slot.conn.as_ref());
        open.all(Conn::is_sent)
    }

    /// Closes every connection that is still open.
    pub(crate) fn close_all(&mut self) {
        for slot in 0..self.slots.len() as u32 {
            if let Some(conn) = &self.slots[slot as usize].conn {
                if conn.is_sent() {
                    self.finish(slot);
                } else {
                    self.drop_now(slot);
                }
            }
        }
    }

    fn get(&mut self, id: ConnId) -> Option<&mut Conn> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.generation != id.generation {
            return None;
        }
        slot.conn.as_mut()
    }

    fn queue(&mut self, slot: u32) {
        if let Some(conn) = self.slots[slot as usize].conn.as_mut()
            && !conn.queued
        {
            conn.queued = true;
            self.ready.push_back(slot);
        }
    }

    /// Sends a connection's pending output and handles the result. Returns
    /// false if the connection must not be read now: it is gone, or it has just
    /// drained and the actor has to receive that first.
    fn flush(&mut self, slot: u32) -> bool {
        let place = &mut self.slots[slot as usize];
        let Some(conn) = place.conn.as_mut() else {
            return false;
        };
        let cx = &mut Context::from_waker(&place.waker);
        let stats = &self.stats;
        let flushed = conn.pending.flush(&mut conn.stream, cx, |n| {
            stats.sends.add(1);
            stats.bytes_out.add(n as u64);
        });
        stats.pieces_made.add(conn.pending.take_made());
        conn.pending.take_used(&mut self.garbage);
        let again = match flushed {
            Err(_) => {
                self.drop_now(slot);
                return false;
            }
            Ok(Flushed::All) if conn.closing => {
                self.finish(slot);
                return false;
            }
            Ok(flushed) => flushed == Flushed::More,
        };
        self.copied += conn.pending.copied();
        self.copied -= std::mem::replace(&mut conn.counted, conn.pending.copied());
        // Half-way down, so that a connection at the mark does not flutter.
        if conn.over && conn.pending.len() <= self.bounds.high_water(conn.backlog) / 2 {
            conn.over = false;
            self.events.push(Event::Drained(ConnId {
                slot,
                generation: place.generation,
            }));
            self.queue(slot);
            return false;
        }
        if again {
            self.queue(slot);
        }
        true
    }

    /// Closes a connection whose replies have all been handed to the kernel.
    fn finish(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        if let Some(conn) = place.conn.take() {
            self.copied -= conn.counted;
            conn.stream.finish(&mut Context::from_waker(&place.waker));
            self.gone(slot);
        }
    }

    /// Closes a connection with whatever waits for it.
    fn drop_now(&mut self, slot: u32) {
        if let Some(conn) = self.slots[slot as usize].conn.take() {
            self.copied -= conn.counted;
            conn.pending.take_all(&mut self.garbage);
            self.gone(slot);
        }
    }

    fn gone(&mut self, slot: u32) {
        self.stats.connections.sub(1);
        let generation = self.slots[slot as usize].generation;
        self.events.push(Event::Gone(ConnId { slot, generation }));
    }
}
