//! Bounded rings between every pair of workers of a node.
//!
//! - One single-producer single-consumer ring per ordered pair; a turn pushes
//!   any number of messages and wakes each receiver at most once, and not at
//!   all while it is running ([`sleep_flag`]).
//! - A full ring is back-pressure. What does not fit waits in the sender's
//!   overflow, in order; meanwhile the worker reads from no socket, but keeps
//!   draining its own rings. So two workers with full rings towards each other
//!   free each other's, and a cycle of full rings always has a member that runs.
//! - Bound of the overflow towards one receiver: what one turn sent there,
//!   plus the answers to messages that came meanwhile. Each turn takes in at
//!   most one ring of messages per sender, and where every message has at most
//!   one answer, a receiver that sends another ring of them has drained one
//!   first. So it holds one turn's messages and `workers` rings at most.

mod sleep_flag;

mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
}

use crate::stats::WorkerStats;
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use rufous_base::WorkerId;
use sleep_flag::SleepFlag;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

/// How others wake one worker.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Bell {
    asleep: SleepFlag,
    /// Set once, by the worker, before it announces sleep for the first time.
    waker: OnceLock<Waker>,
}

impl Bell {
    pub(crate) fn new() -> Self {
        Self {
            asleep: SleepFlag::new(),
            waker: OnceLock::new(),
        }
    }

    /// Called by the worker itself before anything can be missed. It runs as
    /// the one future of its thread's `block_on`, which has one waker for life.
    pub(crate) fn attach(&self, waker: &Waker) {
        self.waker.get_or_init(|| waker.clone());
    }

    /// Wakes the worker, asleep or not.
    pub(crate) fn ring(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Wakes the worker where it has announced sleep. Returns whether it had.
    pub(crate) fn ring_if_asleep(&self) -> bool {
        let asleep = self.asleep.must_wake();
        if asleep {
            self.ring();
        }
        asleep
    }
}

/// One worker's end of all the rings.
pub(crate) struct Post<M> {
    me: usize,
    outgoing: Vec<Outgoing<M>>,
    incoming: Vec<Incoming<M>>,
    bells: Arc<[Bell]>,
    stats: Arc<WorkerStats>,
    /// Outgoing rings with messages in their overflow.
    overflowing: usize,
    /// Where the next round of receiving starts, so that no sender is always first.
    first: usize,
    /// Others may see this worker's bell say that it sleeps.
    announced: bool,
}

struct Outgoing<M> {
    to: usize,
    ring: Producer<M>,
    overflow: VecDeque<M>,
    /// Set while this end sleeps with an overflow: the receiver wakes it when
    /// it has made room.
    starved: Arc<SleepFlag>,
    /// Pushed to since the last wake-up.
    pushed: bool,
}

struct Incoming<M> {
    from: usize,
    ring: Consumer<M>,
    starved: Arc<SleepFlag>,
}

/// Messages of one sender, which have all arrived.
pub(crate) struct Arrived<'a, M> {
    ring: &'a mut Consumer<M>,
    left: usize,
}

impl<M> Iterator for Arrived<'_, M> {
    type Item = M;

    fn next(&mut self) -> Option<M> {
        self.left = self.left.checked_sub(1)?;
        self.ring.pop().ok()
    }
}

/// Makes the rings of a node with one worker per bell, each ring with room
/// for `capacity` messages.
pub(crate) fn mesh<M>(
    bells: &Arc<[Bell]>,
    stats: &[Arc<WorkerStats>],
    capacity: usize,
) -> Vec<Post<M>> {
    let workers = bells.len();
    let mut posts: Vec<Post<M>> = (0..workers)
        .map(|me| Post {
            me,
            outgoing: Vec::with_capacity(workers),
            incoming: Vec::with_capacity(workers),
            bells: Arc::clone(bells),
            stats: Arc::clone(&stats[me]),
            overflowing: 0,
            first: 0,
            announced: false,
        })
        .collect();
    for from in 0..workers {
        for to in (0..workers).filter(|&to| to != from) {
            let (producer, consumer) = RingBuffer::new(capacity.max(1));
            let starved = Arc::new(SleepFlag::new());
            posts[from].outgoing.push(Outgoing {
                to,
                ring: producer,
                overflow: VecDeque::new(),
                starved: Arc::clone(&starved),
                pushed: false,
            });
            posts[to].incoming.push(Incoming {
                from,
                ring: consumer,
                starved,
            });
        }
    }
    posts
}

impl<M> Post<M> {
    /// Sends, or keeps the message until the ring has room.
    ///
    /// # Panics
    /// Where `to` is this worker or none of the node: an actor keeps what is
    /// its own.
    pub(crate) fn send(&mut self, to: WorkerId, message: M) {
        assert_ne!(to.index(), self.me, "a message to oneself");
        // The rings leave out this worker itself.
        let place = to.index() - usize::from(to.index() > self.me);
        let out = &mut self.outgoing[place];
        debug_assert_eq!(out.to, to.index());
        self.stats.messages_sent.add(1);
        if out.overflow.is_empty() {
            match out.ring.push(message) {
                Ok(()) => out.pushed = true,
                Err(PushError::Full(message)) => {
                    self.stats.ring_full.add(1);
                    self.overflowing += 1;
                    out.overflow.push_back(message);
                }
            }
        } else {
            out.overflow.push_back(message);
        }
        self.stats.overflow_peak.raise(out.overflow.len() as u64);
    }

    /// Moves what waits in overflows into rings that have room again.
    pub(crate) fn push_overflow(&mut self) {
        if self.overflowing == 0 {
            return;
        }
        for out in &mut self.outgoing {
            if out.overflow.is_empty() {
                continue;
            }
            while out.ring.slots() > 0
                && let Some(message) = out.overflow.pop_front()
            {
                let pushed = out.ring.push(message).is_ok();
                assert!(pushed, "this end alone fills the ring");
                out.pushed = true;
            }
            if out.overflow.is_empty() {
                self.overflowing -= 1;
            }
        }
    }

    /// Whether messages wait for room; the worker must not read from sockets then.
    pub(crate) fn is_overflowing(&self) -> bool {
        self.overflowing > 0
    }

    /// Wakes every receiver that sleeps and was sent something.
    pub(crate) fn wake_receivers(&mut self) {
        for out in &mut self.outgoing {
            if out.pushed {
                out.pushed = false;
                if self.bells[out.to].ring_if_asleep() {
                    self.stats.wakes.add(1);
                }
            }
        }
    }

    /// Hands over what has arrived: of each ring what was in it at first, so
    /// that a fast sender cannot keep the worker here. Returns how many. What is not taken is
    /// handed over the next time.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(WorkerId, Arrived<'_, M>)) -> usize {
        let rings = self.incoming.len();
        let mut total = 0;
        for n in 0..rings {
            let place = (self.first + n) % rings;
            let incoming = &mut self.incoming[place];
            let waiting = incoming.ring.slots();
            if waiting == 0 {
                continue;
            }
            let from = WorkerId(incoming.from as u16);
            let ring = &mut incoming.ring;
            let left = waiting;
            take(from, Arrived { ring, left });
            total += waiting;
            if incoming.starved.must_wake() {
                self.bells[incoming.from].ring();
            }
        }
        if rings > 0 {
            self.first = (self.first + 1) % rings;
        }
        self.stats.messages_received.add(total as u64);
        total
    }

    /// The last check before sleep: of the rings and of `other`, if anything is
    /// expected there. If it returns false there is work, and no wake-up will
    /// come for it.
    pub(crate) fn may_sleep(&mut self, other: Option<impl FnOnce() -> bool>) -> bool {
        if self.incoming.is_empty() && other.is_none() {
            return true;
        }
        let bell = &self.bells[self.me];
        self.announced = true;
        bell.asleep.announce();
        for out in &self.outgoing {
            if !out.overflow.is_empty() {
                out.starved.announce();
            }
        }
        let arrived = self.incoming.iter().any(|i| i.ring.slots() > 0)
            || other.is_some_and(|arrived| arrived());
        let room = self.overflowing > 0
            && self
                .outgoing
                .iter()
                .any(|out| !out.overflow.is_empty() && out.ring.slots() > 0);
        if arrived || room {
            self.awake();
            return false;
        }
        true
    }

    /// The worker runs again and needs no wake-up.
    pub(crate) fn awake(&mut self) {
        if !self.announced {
            return;
        }
        self.announced = false;
        self.bells[self.me].asleep.withdraw();
        if self.overflowing > 0 {
            for out in &self.outgoing {
                out.starved.withdraw();
            }
        }
    }
}
