//! The clients that wait for keys of a worker: a queue for each key, in order of arrival, and the
//! right to end a wait.

use crate::batch::Batch;
use crate::lock::KeyName;
use rufous_base::{ConnId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The right to end a wait. One of the owners of the keys, or the worker of the connection, takes
/// it once. Workers share nothing else of a wait, and do so without messages, because commands
/// could be executed before a message arrives.
#[derive(Debug, Default)]
pub(super) struct Claim(AtomicBool);

impl Claim {
    /// True for the first caller.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A client's identity on all workers: the worker of its connection, and the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::worker) struct Client {
    pub(super) origin: WorkerId,
    slot: u32,
    generation: u32,
}

impl Client {
    pub(in crate::worker) fn new(origin: WorkerId, conn: ConnId) -> Self {
        Self {
            origin,
            slot: conn.slot,
            generation: conn.generation,
        }
    }
}

/// Where a waiter's request can be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Reach {
    /// Here: it needs these keys of this worker, and no others.
    Here(Vec<KeyName>),
    /// As a command over several workers: it needs these keys.
    Over(Vec<(WorkerId, KeyName)>),
}

/// A client that waits for keys of this worker.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) client: Client,
    pub(super) seq: u32,
    /// The request, alone in its batch; `None` while it is executed.
    pub(super) batch: Option<Box<Batch>>,
    /// The keys of this worker that it waits for.
    pub(super) keys: Vec<KeyName>,
    pub(super) reach: Reach,
    pub(super) claim: Arc<Claim>,
}

/// The identifier of a waiter of a worker; ascending in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaiterId(u64);

/// The waiters of a worker, by key.
#[derive(Debug, Default)]
pub(super) struct Queues {
    waiters: BTreeMap<WaiterId, Waiter>,
    by_client: BTreeMap<Client, WaiterId>,
    queues: BTreeMap<KeyName, BTreeSet<WaiterId>>,
    next: u64,
}

impl Queues {
    pub(super) fn push(&mut self, waiter: Waiter) -> WaiterId {
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
    pub(super) fn next_at(&self, key: &KeyName, after: Option<WaiterId>) -> Option<WaiterId> {
        let queue = self.queues.get(key)?;
        let from = after.map_or(WaiterId(0), |id| WaiterId(id.0 + 1));
        queue.range(from..).next().copied()
    }

    pub(super) fn get_mut(&mut self, id: WaiterId) -> Option<&mut Waiter> {
        self.waiters.get_mut(&id)
    }

    /// All waiters, in order of arrival.
    pub(super) fn all(&self) -> impl Iterator<Item = (WaiterId, &Waiter)> {
        self.waiters.iter().map(|(id, waiter)| (*id, waiter))
    }

    pub(super) fn find(&self, client: Client, seq: u32) -> Option<WaiterId> {
        let id = *self.by_client.get(&client)?;
        (self.waiters.get(&id)?.seq == seq).then_some(id)
    }

    pub(super) fn remove(&mut self, id: WaiterId) -> Option<Waiter> {
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
        assert!(queues.all().next().is_none());
        assert!(queues.queues.is_empty() && queues.by_client.is_empty());
    }

    #[test]
    fn a_claim_is_taken_once() {
        let claim = Claim::default();
        assert!(!claim.is_taken() && claim.take());
        assert!(!claim.take() && claim.is_taken());
    }
}
