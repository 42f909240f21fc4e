//! Clients whose commands wait for data: who stands where, and who may end a
//! wait.
//!
//! The owner of a key keeps those who wait for it in order of arrival, with
//! their requests, and runs the request of the first again once there is
//! something. The worker of the client's connection keeps when the wait ends
//! by itself. Both share the wait's [`Claim`]: whoever takes it ends the wait,
//! everybody else leaves it alone. So a wait for keys of several workers is
//! served once, and a wait that timed out takes nothing.
//!
//! Invariants:
//! 1. A client waits at most once: its connection runs nothing else meanwhile.
//! 2. A waiter stands in the queue of each awaited key of this worker, and the
//!    shard tells of what becomes of a key while its queue is not empty.
//! 3. Queues are served from the front; who is passed over keeps its place.

use crate::batch::{Batch, Header};
use crate::lock::KeyName;
use rufous_base::{ConnId, Output, WorkerId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a command says that found nothing and would wait. Its reply so far is
/// the one for when nothing comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The arguments that name the keys it waits for.
    pub keys: Range<usize>,
    /// For how long; `None`: for ever.
    pub timeout_us: Option<u64>,
}

/// The right to end a wait. It is taken once, by one of the owners of the
/// keys or by the worker of the connection. This word is all that workers
/// share of a wait: a message would let commands in between.
#[derive(Debug, Default)]
pub struct Claim(AtomicBool);

impl Claim {
    /// True for the first who asks.
    pub fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A client as all workers know it: by the worker of its connection and that.
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

/// Where a waiter's request can run.
#[derive(Clone, Debug)]
pub enum Reach {
    /// Here: it needs these keys of this worker, and no others.
    Here(Vec<KeyName>),
    /// Over workers: it needs these keys.
    Over(Vec<(WorkerId, KeyName)>),
}

/// A client that waits for keys of this worker.
#[derive(Debug)]
pub struct Waiter {
    pub client: Client,
    pub seq: u32,
    /// The request, alone in its batch; away while it runs over workers.
    pub batch: Option<Box<Batch>>,
    /// What it waits for here.
    pub keys: Vec<KeyName>,
    pub reach: Reach,
    pub claim: Arc<Claim>,
}

/// Says which of the waiters of a worker; in order of arrival.
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

    /// Who stands behind `after` at the key, or first.
    pub fn next_at(&self, key: &KeyName, after: Option<WaiterId>) -> Option<WaiterId> {
        let queue = self.queues.get(key)?;
        let from = after.map_or(WaiterId(0), |id| WaiterId(id.0 + 1));
        queue.range(from..).next().copied()
    }

    pub fn get_mut(&mut self, id: WaiterId) -> Option<&mut Waiter> {
        self.waiters.get_mut(&id)
    }

    /// All of them, in order of arrival.
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

/// A wait, as the worker of the client's connection is told of it.
#[derive(Debug)]
pub struct Note {
    pub header: Header,
    /// The reply for when it ends without anything.
    pub timed_out: Output,
    pub deadline_us: Option<u64>,
    pub claim: Arc<Claim>,
    /// Whose keys it waits for.
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

    /// How many of them end by themselves.
    pub fn in_time(&self) -> usize {
        self.deadlines.len()
    }

    pub fn next_deadline_us(&self) -> Option<u64> {
        self.deadlines.first().map(|d| d.0)
    }

    /// Somebody whose time has come.
    pub fn next_due(&self, now_us: u64) -> Option<ConnId> {
        let &(at, slot, generation) = self.deadlines.first()?;
        (at <= now_us).then_some(ConnId { slot, generation })
    }
}

/// What a worker keeps of waits.
#[derive(Debug, Default)]
pub struct Waits {
    pub queues: Queues,
    pub clients: Clients,
    /// Touched keys that cannot be looked at before a hold ends.
    pub held: BTreeSet<KeyName>,
    /// Nobody is served as yet.
    pub on_hold: bool,
    /// Word of waits that began or were served, for their clients' workers.
    pub told: VecDeque<(WorkerId, Told)>,
}

/// Word to the worker of a client.
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
