//! What reaches a worker other than through rings: connections whose sockets
//! became ready, new connections, orders of the control thread, and answers of
//! disk threads.
//!
//! One short lock per event. Readiness events are pushed by the worker's own
//! thread, between two turns, so the lock is hardly ever contended.

use crate::ring::Bell;
use rufous_base::disk::DiskDone;
use rufous_base::{ConnInfo, DialError};
use rustls::Connection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Instant;
use tokio::io::DuplexStream;

/// A connection that no worker has taken yet; sockets do not block.
pub(crate) enum Incoming {
    Tcp(std::net::TcpStream),
    /// After its handshake.
    Tls(std::net::TcpStream, Box<Connection>),
    Unix(std::os::unix::net::UnixStream),
    Local(DuplexStream),
}

/// Orders to a worker.
pub(crate) enum Order {
    Open(Incoming, ConnInfo),
    /// Tell the actor.
    Undialled {
        token: u64,
        error: DialError,
    },
    /// Take what waits in the worker's [`crate::mail::Mail`].
    Mail,
    /// Give the actor `Input::Stop`.
    Stop,
    /// Send what waits, until then at the latest, and end.
    Finish(Instant),
}

#[derive(Default)]
struct Waiting {
    ready: Vec<u32>,
    orders: Vec<Order>,
    answers: Vec<DiskDone>,
    closed: bool,
}

pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    bells: Arc<[Bell]>,
    worker: usize,
}

impl Inbox {
    pub(crate) fn new(bells: Arc<[Bell]>, worker: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            bells,
            worker,
        }
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bells[self.worker]
    }

    pub(crate) fn order(&self, order: Order) {
        self.push(|waiting| {
            if !waiting.closed {
                waiting.orders.push(order);
            }
        });
    }

    /// Nothing is taken from here any more; connections that come still are closed.
    pub(crate) fn close(&self) {
        let left = {
            let mut waiting = self.lock();
            waiting.closed = true;
            std::mem::take(&mut waiting.orders)
        };
        drop(left);
    }

    fn ready(&self, slot: u32) {
        self.push(|waiting| waiting.ready.push(slot));
    }

    /// Wakes the worker only where it sleeps: before it does so, it asks
    /// [`Inbox::is_answered`] after having announced it.
    pub(crate) fn answer(&self, done: DiskDone) {
        self.lock().answers.push(done);
        self.bell().ring_if_asleep();
    }

    /// Whether an answer of the disk waits.
    pub(crate) fn is_answered(&self) -> bool {
        !self.lock().answers.is_empty()
    }

    /// Takes everything that waits; the vectors must be empty and are swapped
    /// in, so that no memory is allocated once they have grown.
    pub(crate) fn take(
        &self,
        ready: &mut Vec<u32>,
        orders: &mut Vec<Order>,
        answers: &mut Vec<DiskDone>,
    ) {
        let mut waiting = self.lock();
        std::mem::swap(&mut waiting.ready, ready);
        std::mem::swap(&mut waiting.orders, orders);
        std::mem::swap(&mut waiting.answers, answers);
    }

    /// Only the first push since the last `take` wakes: the worker takes
    /// everything at once, after that wake-up or an earlier one. Answers of the
    /// disk do not count, as they do not always wake.
    fn push(&self, push: impl FnOnce(&mut Waiting)) {
        let first = {
            let mut waiting = self.lock();
            let first = waiting.ready.is_empty() && waiting.orders.is_empty();
            push(&mut waiting);
            first
        };
        if first {
            self.bell().ring();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the worker when the connection in `slot` may be read or written. A
/// slot keeps its waker for all connections that ever occupy it; a late wake-up
/// makes the next connection poll once in vain.
struct SlotWaker {
    inbox: Arc<Inbox>,
    slot: u32,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.inbox.ready(self.slot);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.inbox.ready(self.slot);
    }
}

pub(crate) fn slot_waker(inbox: &Arc<Inbox>, slot: u32) -> Waker {
    Waker::from(Arc::new(SlotWaker {
        inbox: Arc::clone(inbox),
        slot,
    }))
}
