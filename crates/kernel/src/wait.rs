//! Clients whose commands wait for data: their order in queues, and the right to end a wait.
//!
//! The owner of a key keeps the waiters for it in order of arrival, with their requests, and
//! executes the first one's request again once the key has data. The worker of the client's
//! connection keeps the deadline. Both share the wait's [`Claim`]: the worker that takes it ends
//! the wait, and all others leave it alone. So a wait for keys of several workers is served once,
//! and a wait that timed out consumes no data.
//!
//! Invariants:
//! 1. A client has at most one wait: its connection executes nothing else meanwhile.
//! 2. A waiter is in the queue of each awaited key of this worker, and the shard reports changes of
//!    a key while its queue is not empty.
//! 3. Queues are served from the front; a waiter that cannot be served keeps its position.

use crate::batch::{Batch, Header};
use crate::lock::KeyName;
use rufous_base::{ConnId, Output, WorkerId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a command that found no data waits. Its reply so far is the one for a timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The arguments that name the keys it waits for.
    pub keys: Range<usize>,
    /// The timeout; `None`: no timeout.
    pub timeout_us: Option<u64>,
}

/// The right to end a wait. One of the owners of the keys, or the worker of the connection, takes
/// it once. Workers share nothing else of a wait, and do so without messages, because commands
/// could be executed before a message arrives.
#[derive(Debug, Default)]
pub struct Claim(AtomicBool);

impl Claim {
    /// True for the first caller.
    pub fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A client's identity on all workers: the worker of its connection, and the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    pub origin: WorkerId,
    slot: u32,
    generation: u32,
}

impl Client {
    pub fn new(origin: WorkerId, conn: ConnId) -> Self {
        Self {
            origin,
            slot: conn.slot,
            generation: conn.generation,
        }
    }
}

/// Where a waiter's request can be executed.
#[derive(Clone, Debug)]
pub enum Reach {
    /// Here: it needs these keys of this worker, and no others.
    Here(Vec<KeyName>),
    /// As a command over several workers: it needs these keys.
    Over(Vec<(WorkerId, KeyName)>),
}

/// A client that waits for keys of this worker.
#[derive(Debug)]
pub struct Waiter {
    pub client: Client,
    pub seq: u32,
    /// The request, alone in its batch; `None` while it runs as a command over several workers.
    pub batch: Option<Box<Batch>>,
    /// The keys of this worker that it waits for.
    pub keys: Vec<KeyName>,
    pub reach: Reach,
    pub claim: Arc<Claim>,
}

/// The identifier of a waiter of a worker; ascending in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaiterId(u64);

/// The waiters of a worker, by key.
#[derive(Debug, Default)]
pub struct Queues {
    waiters: BTreeMap<WaiterId, Waiter>,
    by_client: BTreeMap<Client, WaiterId>,
    queues: BTreeMap<KeyName, BTreeSet<WaiterId>>,
    next: u64,
}

impl Queues {
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub fn push(&mut self, waiter: Waiter) -> WaiterId {
        let id = WaiterId(self.next);
        self.next += 1;
        for key in &waiter.keys {
            self.queues.entry(key.clone()).or_default().insert(id);
        }
        let earlier = self.by_client.insert(waiter.client, id);
        debug_assert!(earlier.is_none(), "a client waits at most once");
        self.waiters.insert(id, waiter);
        id
    }

    /// The waiter behind `after` in the key's queue, or the first one.
    pub fn next_at(&self, key: &KeyName, after: Option<WaiterId>) -> Option<WaiterId> {
        let queue = self.queues.get(key)?;
        let from = after.map_or(WaiterId(0), |id| WaiterId(id.0 + 1));
        queue.range(from..).next().copied()
    }

    pub fn get_mut(&mut self, id: WaiterId) -> Option<&mut Waiter> {
        self.waiters.get_mut(&id)
    }

    /// All waiters, in order of arrival.
    pub fn all(&self) -> impl Iterator<Item = (WaiterId, &Waiter)> {
        self.waiters.iter().map(|(id, waiter)| (*id, waiter))
    }

    pub fn find(&self, client: Client, seq: u32) -> Option<WaiterId> {
        let id = *self.by_client.get(&client)?;
        (self.waiters.get(&id)?.seq == seq).then_some(id)
    }

    pub fn remove(&mut self, id: WaiterId) -> Option<Waiter> {
        let waiter = self.waiters.remove(&id)?;
        self.by_client.remove(&waiter.client);
        for key in &waiter.keys {
            if let Some(queue) = self.queues.get_mut(key) {
                queue.remove(&id);
                if queue.is_empty() {
                    self.queues.remove(key);
                }
            }
        }
        Some(waiter)
    }
}

/// A wait, as sent to the worker of the client's connection.
#[derive(Debug)]
pub struct Note {
    pub header: Header,
    /// The reply when the wait times out.
    pub timed_out: Output,
    pub deadline_us: Option<u64>,
    pub claim: Arc<Claim>,
    /// The owners of the keys that it waits for.
    pub owners: Vec<WorkerId>,
}

/// The waits of this worker's clients.
#[derive(Debug, Default)]
pub struct Clients {
    waits: BTreeMap<(u32, u32), Note>,
    deadlines: BTreeSet<(u64, u32, u32)>,
}

impl Clients {
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waits.len()
    }

    pub fn insert(&mut self, note: Note) {
        let conn = note.header.conn;
        if let Some(at) = note.deadline_us {
            self.deadlines.insert((at, conn.slot, conn.generation));
        }
        let earlier = self.waits.insert((conn.slot, conn.generation), note);
        debug_assert!(earlier.is_none(), "a client waits at most once");
    }

    pub fn remove(&mut self, conn: ConnId) -> Option<Note> {
        let note = self.waits.remove(&(conn.slot, conn.generation))?;
        if let Some(at) = note.deadline_us {
            self.deadlines.remove(&(at, conn.slot, conn.generation));
        }
        Some(note)
    }

    pub fn get(&self, conn: ConnId) -> Option<&Note> {
        self.waits.get(&(conn.slot, conn.generation))
    }

    pub fn conns(&self) -> impl Iterator<Item = ConnId> + '_ {
        let all = self.waits.keys();
        all.map(|&(slot, generation)| ConnId { slot, generation })
    }

    /// The number of waits with a deadline.
    pub fn in_time(&self) -> usize {
        self.deadlines.len()
    }

    pub fn next_deadline_us(&self) -> Option<u64> {
        self.deadlines.first().map(|d| d.0)
    }

    /// A client whose deadline has passed.
    pub fn next_due(&self, now_us: u64) -> Option<ConnId> {
        let &(at, slot, generation) = self.deadlines.first()?;
        (at <= now_us).then_some(ConnId { slot, generation })
    }
}

/// A worker's state of waits.
#[derive(Debug, Default)]
pub struct Waits {
    pub queues: Queues,
    pub clients: Clients,
    /// Touched keys that cannot be inspected before a hold ends.
    pub held: BTreeSet<KeyName>,
    /// No waiter is served yet.
    pub on_hold: bool,
    /// Waits that began or were served, to report to their clients' workers.
    pub told: VecDeque<(WorkerId, Told)>,
}

/// A report to the worker of a client.
#[derive(Debug)]
pub enum Told {
    Waits(Box<Note>),
    Served(Box<Batch>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(slot: u32, keys: &[&str]) -> Waiter {
        let conn = ConnId {
            slot,
            generation: 0,
        };
        let keys: Vec<KeyName> = keys.iter().map(|k| (0, k.as_bytes().into())).collect();
        Waiter {
            client: Client::new(WorkerId(0), conn),
            seq: 7,
            batch: None,
            reach: Reach::Here(keys.clone()),
            keys,
            claim: Arc::default(),
        }
    }

    #[test]
    fn each_key_has_its_waiters_in_order_of_arrival() {
        let mut queues = Queues::default();
        let (x, y): (KeyName, KeyName) = ((0, b"x"[..].into()), (0, b"y"[..].into()));
        let a = queues.push(waiter(1, &["x", "y"]));
        let b = queues.push(waiter(2, &["y"]));
        let c = queues.push(waiter(3, &["x"]));
        assert_eq!(queues.next_at(&x, None), Some(a));
        assert_eq!(queues.next_at(&x, Some(a)), Some(c));
        assert_eq!(queues.next_at(&x, Some(c)), None);
        assert_eq!(queues.next_at(&y, Some(a)), Some(b));
        let client = waiter(1, &[]).client;
        assert_eq!(queues.find(client, 7), Some(a));
        assert_eq!(queues.find(client, 8), None);
        assert!(queues.remove(a).is_some() && queues.remove(a).is_none());
        assert_eq!(queues.next_at(&y, None), Some(b));
        queues.remove(b);
        queues.remove(c);
        assert!(queues.is_empty() && queues.queues.is_empty() && queues.by_client.is_empty());
    }

    #[test]
    fn a_claim_is_taken_once() {
        let claim = Claim::default();
        assert!(!claim.is_taken() && claim.take());
        assert!(!claim.take() && claim.is_taken());
    }
}
