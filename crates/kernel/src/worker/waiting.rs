//! Clients whose commands wait for data, such as `BLPOP`.
//!
//! The owner of a key keeps the waiters for it in order of arrival, with their requests. After a
//! command that touches an awaited key, the worker executes the requests that [`Waits::next`]
//! returns, before any other command: waiters see the result of the command before any other
//! client. The worker of the client's connection keeps the deadline. All of them share the wait's
//! [`queues::Claim`]: the worker that takes it ends the wait, and all others leave it alone.
//!
//! Invariants:
//! 1. A client has at most one wait: its connection executes nothing else meanwhile.
//! 2. A waiter is in the queue of each awaited key of this worker, and the shard reports changes of
//!    a key while its queue is not empty.
//! 3. Queues are served from the front; a waiter that cannot be served keeps its position.
//! 4. A write is executed for a waiter only by the worker that has taken its claim: a wait for keys
//!    of several workers is served once, and one that timed out, or whose client has gone,
//!    consumes no data.
//! 5. No wake-up is lost: a touched key stays on a list, the shard's or `held`, until its queue was
//!    processed while no other command holds the key; and the command of a client that enters a
//!    queue found no data while it had the key.

mod clients;
mod queues;
mod serve;
mod slots;
#[cfg(test)]
mod tests;

pub use clients::{Clients, WaitNote};
pub use queues::WaiterId;
pub(super) use queues::{Client, Reach};
pub(super) use serve::Serve;

use super::Message;
use super::out::Out;
use super::store::Store;
use crate::batch::{Batch, Header};
use crate::lock::KeyName;
use crate::program::Wait;
use queues::{Claim, Queues, Waiter};
use rufous_base::{ConnId, Now, Output, WorkerId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How a wait ends without being served.
#[derive(Debug)]
pub enum WaitEnd {
    /// As by its timeout.
    TimedOut,
    Reply(Output),
    /// The client has disconnected.
    Gone,
}

/// A waiter that is sent to the owner of the keys that it waits for.
#[derive(Debug)]
pub struct Arrival {
    batch: Box<Batch>,
    keys: Vec<KeyName>,
    reach: Reach,
    claim: Arc<Claim>,
}

/// A request that found no data.
#[derive(Debug)]
pub(super) struct NoData {
    /// The worker that sent the request.
    pub(super) origin: WorkerId,
    /// The request, alone in its batch, with its reply for a timeout.
    pub(super) batch: Box<Batch>,
    pub(super) wait: Wait,
    /// All keys that it needs.
    pub(super) reach: Reach,
}

/// A report to the worker of a client.
#[derive(Debug)]
pub(super) enum Told {
    Waits(Box<WaitNote>),
    Served(Box<Batch>),
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Waits {
    queues: Queues,
    clients: Clients,
    /// Touched keys that cannot be inspected before a hold ends.
    held: BTreeSet<KeyName>,
    /// No waiter is served yet.
    on_hold: bool,
    /// The key whose waiters are being served, and the last of them that was considered.
    serving: Option<(KeyName, WaiterId)>,
    /// Waits that began or were served, to report to their clients' workers.
    told: VecDeque<(WorkerId, Told)>,
    /// The awaited slots that this node does not serve, and since when.
    unserved_us: BTreeMap<u16, u64>,
    looked_us: u64,
}

/// At the worker of the client's connection.
impl Waits {
    pub(super) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// A client begins to wait, unless the embedder ends it.
    pub(super) fn on_began(&mut self, note: WaitNote, out: &mut Out) {
        out.begins_to_wait(note.header);
        self.clients.insert(note);
    }

    /// A client was answered: owners that still have its wait forget it.
    #[cold]
    pub(super) fn on_answered(&mut self, header: &Header, store: &mut Store<'_>, out: &mut Out) {
        let conn = header.conn;
        let waits = self.clients.get(conn);
        if waits.is_some_and(|note| note.header.seq == header.seq)
            && let Some(note) = self.clients.remove(conn)
            && (note.owners.len() > 1 || !note.claim.is_taken())
        {
            self.forget_at_owners(&note, store, out);
        }
    }

    /// Ends the wait of a client. `None` if it does not wait or was served meanwhile.
    pub(super) fn on_end(
        &mut self,
        conn: ConnId,
        how: WaitEnd,
        store: &mut Store<'_>,
        out: &mut Out,
    ) -> Option<Header> {
        let note = self.clients.remove(conn)?;
        let won = note.claim.take();
        self.forget_at_owners(&note, store, out);
        let WaitNote {
            header, timed_out, ..
        } = note;
        if !won {
            return None;
        }
        let reply = match how {
            WaitEnd::TimedOut => timed_out,
            WaitEnd::Reply(reply) => reply,
            WaitEnd::Gone => return Some(header),
        };
        let mut batch = Box::<Batch>::default();
        batch.push_reply(header, reply);
        self.told.push_back((store.id, Told::Served(batch)));
        Some(header)
    }

    fn forget_at_owners(&mut self, note: &WaitNote, store: &mut Store<'_>, out: &mut Out) {
        let (conn, seq) = (note.header.conn, note.header.seq);
        for &owner in &note.owners {
            if owner == store.id {
                self.on_forget(Client::new(owner, conn), seq, store);
            } else {
                out.send(owner, Message::Forget { conn, seq });
            }
        }
    }
}

/// Entering and leaving the queues.
impl Waits {
    /// A request found no data while it had its keys: its client waits.
    #[cold]
    pub(super) fn on_no_data(
        &mut self,
        now: Now,
        found: NoData,
        store: &mut Store<'_>,
        out: &mut Out,
    ) {
        let NoData {
            origin,
            mut batch,
            wait,
            reach,
        } = found;
        let timed_out = std::mem::take(&mut batch.replies);
        let (header, args, _) = batch.parts(0);
        let names = wait.keys.map(|index| args.get(index));
        let keys: Vec<KeyName> = names.map(|name| (header.db, name.into())).collect();
        let claim = Arc::<Claim>::default();
        let owners = match reach {
            Reach::Here(_) => {
                let arrival = Arrival {
                    batch,
                    keys,
                    reach,
                    claim: Arc::clone(&claim),
                };
                self.on_arrival(origin, arrival, store);
                vec![store.id]
            }
            Reach::Over(all) => {
                let arrivals = arrivals(&mut batch, keys, &all, &claim, store);
                let owners = arrivals.keys().copied().collect();
                for (owner, arrival) in arrivals {
                    if owner == store.id {
                        self.on_arrival(origin, arrival, store);
                    } else {
                        out.send(owner, Message::Await(Box::new(arrival)));
                    }
                }
                owners
            }
        };
        let note = WaitNote {
            header,
            timed_out,
            deadline_us: wait.timeout_us.map(|us| now.mono_us.saturating_add(us)),
            claim,
            owners,
        };
        let told = Told::Waits(Box::new(note));
        self.told.push_back((origin, told));
    }

    /// A client of `origin` waits for keys of this worker.
    pub(super) fn on_arrival(&mut self, origin: WorkerId, arrival: Arrival, store: &mut Store<'_>) {
        let Arrival {
            batch,
            mut keys,
            reach,
            claim,
        } = arrival;
        let Some(header) = batch.requests.first().map(|r| r.header) else {
            return;
        };
        keys.sort_unstable();
        keys.dedup();
        for (db, bytes) in &keys {
            let key = store.shard.key(bytes);
            store.shard.observers_mut().await_key(*db, key);
        }
        self.queues.push(Waiter {
            client: Client::new(origin, header.conn),
            seq: header.seq,
            batch: Some(batch),
            keys,
            reach,
            claim,
        });
    }

    /// A client no longer waits.
    pub(super) fn on_forget(&mut self, client: Client, seq: u32, store: &mut Store<'_>) {
        if let Some(id) = self.queues.find(client, seq) {
            self.remove(id, store);
        }
    }

    fn remove(&mut self, id: WaiterId, store: &mut Store<'_>) -> Option<Waiter> {
        let waiter = self.queues.remove(id)?;
        for (db, bytes) in &waiter.keys {
            let key = store.shard.key(bytes);
            store.shard.observers_mut().forget_key(*db, key);
        }
        Some(waiter)
    }
}

/// The waiter to send to each owner of awaited keys; `all` are the keys that its request needs.
fn arrivals(
    batch: &mut Batch,
    awaited: Vec<KeyName>,
    all: &[(WorkerId, KeyName)],
    claim: &Arc<Claim>,
    store: &Store<'_>,
) -> BTreeMap<WorkerId, Arrival> {
    let only_awaited = all.iter().all(|(_, key)| awaited.contains(key));
    let mut by_owner = BTreeMap::<WorkerId, Vec<KeyName>>::new();
    for key in awaited {
        let owner = store.placement.owner(&key.1);
        by_owner.entry(owner).or_default().push(key);
    }
    let mut arrival = |keys: Vec<KeyName>| Arrival {
        batch: batch.copy_of(0),
        reach: if only_awaited {
            Reach::Here(keys.clone())
        } else {
            Reach::Over(all.to_vec())
        },
        keys,
        claim: Arc::clone(claim),
    };
    let by_owner = by_owner.into_iter();
    by_owner.map(|(to, keys)| (to, arrival(keys))).collect()
}

/// Reports for the workers of clients.
impl Waits {
    #[inline]
    pub(super) fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    pub(super) fn next_told(&mut self) -> Option<(WorkerId, Told)> {
        self.told.pop_front()
    }

    /// The replies to waiters of whose waits the worker of the client knows.
    #[cold]
    pub(super) fn take_served(&mut self) -> Vec<(WorkerId, Box<Batch>)> {
        let (mut begun, mut served) = (Vec::new(), Vec::new());
        for (to, told) in std::mem::take(&mut self.told) {
            let client = |header: &Header| Client::new(to, header.conn);
            let is_begun = |batch: &Batch| {
                let mut requests = batch.requests.iter();
                requests.any(|r| begun.contains(&client(&r.header)))
            };
            match told {
                Told::Served(batch) if !is_begun(&batch) => served.push((to, batch)),
                Told::Served(_) => self.told.push_back((to, told)),
                Told::Waits(ref note) => {
                    begun.push(client(&note.header));
                    self.told.push_back((to, told));
                }
            }
        }
        served
    }
}
