//! The worker's part in commands that wait for data; see [`crate::wait`].
//!
//! After a command that touches an awaited key, the requests of the key's waiters are executed at
//! once, before any other command of this worker ([`Worker::serve`]): they see its result before
//! any other client. For a key that a command over several workers still holds, this happens
//! directly before the hold ends ([`Worker::let_go`]).
//!
//! No wake-up is lost: a touched key stays on a list, the shard's or `held`, until its queue was
//! processed while no other command holds the key; and the command of a client that enters a queue
//! found no data while it had the key.

use super::{Message, Worker};
use crate::batch::{Batch, Header};
use crate::lock::{KeyName, Ticket};
use crate::multi::{Gathered, Multi};
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::wait::{Claim, Client, Note, Reach, Told, Wait, Waiter, WaiterId};
use rufous_base::{Args, ConnId, Now, Output, WorkerId};
use std::collections::BTreeMap;
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

/// Whether the waiters behind one may be considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Next,
    Stop,
}

impl<P: Program> Worker<P> {
    /// When [`Worker::end_due_waits`] must be called.
    pub fn next_wait_us(&self) -> Option<u64> {
        self.waits.clients.next_deadline_us()
    }

    /// Clients of this worker that wait.
    pub fn waiting_clients(&self) -> usize {
        self.waits.clients.len()
    }

    /// Those of them that have a timeout.
    pub fn waiting_in_time(&self) -> usize {
        self.waits.clients.in_time()
    }

    pub fn waiting_conns(&self) -> Vec<ConnId> {
        self.waits.clients.conns().collect()
    }

    /// Ends the waits whose deadline has passed.
    pub fn end_due_waits(&mut self, now: Now) {
        while let Some(conn) = self.waits.clients.next_due(now.mono_us) {
            self.end_wait(conn, WaitEnd::TimedOut);
        }
    }

    /// Ends the wait of a connection of this worker. False if it does not wait or was served
    /// meanwhile. The reply is an ordinary outcome.
    pub fn end_wait(&mut self, conn: ConnId, how: WaitEnd) -> bool {
        let Some(note) = self.waits.clients.remove(conn) else {
            return false;
        };
        let won = note.claim.take();
        self.forget_at_owners(&note);
        let Note {
            header, timed_out, ..
        } = note;
        let reply = match how {
            WaitEnd::TimedOut => timed_out,
            WaitEnd::Reply(reply) => reply,
            WaitEnd::Gone => return won,
        };
        if won {
            self.note(header.command, true);
            let mut batch = Box::<Batch>::default();
            batch.push_reply(header, reply);
            self.waits.told.push_back((self.id, Told::Served(batch)));
        }
        won
    }

    /// Tells the owners of its keys to forget a wait.
    fn forget_at_owners(&mut self, note: &Note) {
        let (conn, seq) = (note.header.conn, note.header.seq);
        for &owner in &note.owners {
            if owner == self.id {
                self.on_forget(self.id, conn, seq);
            } else {
                self.send(owner, Message::Forget { conn, seq });
            }
        }
    }

    /// A client no longer waits.
    pub(super) fn on_forget(&mut self, origin: WorkerId, conn: ConnId, seq: u32) {
        let found = self.waits.queues.find(Client::new(origin, conn), seq);
        if let Some(id) = found {
            self.remove_waiter(id);
        }
    }

    /// A request of `origin`, which names only keys of this worker, found no data: it waits. Its
    /// reply so far begins at `start`.
    #[cold]
    pub(super) fn begin_wait(
        &mut self,
        now: Now,
        header: &Header,
        args: Args<'_>,
        wait: &Wait,
        (origin, named): (WorkerId, Vec<KeyName>),
        (out, start): (&mut Output, (usize, usize)),
    ) {
        let mut timed_out = Output::default();
        timed_out.append_range(out, start, out.mark());
        out.truncate(start);
        let claim = Arc::<Claim>::default();
        let keys = awaited(header, &args, wait);
        let batch = self.batch_of(header, args);
        let arrival = Arrival {
            batch,
            keys,
            reach: Reach::Here(named),
            claim: Arc::clone(&claim),
        };
        self.on_arrival(origin, arrival);
        let note = Note {
            header: *header,
            timed_out,
            deadline_us: wait.timeout_us.map(|us| now.mono_us.saturating_add(us)),
            claim,
            owners: vec![self.id],
        };
        let told = Told::Waits(Box::new(note));
        self.waits.told.push_back((origin, told));
    }

    /// A request of this worker found no data at several workers, whose keys it still holds.
    fn begin_wait_over(&mut self, now: Now, mut batch: Batch, gathered: &[Gathered], wait: &Wait) {
        let timed_out = std::mem::take(&mut batch.replies);
        let (header, args, _) = batch.parts(0);
        let keys = awaited(&header, &args, wait);
        let only_awaited = gathered.iter().all(|g| keys.contains(&g.key));
        let mut by_owner = BTreeMap::<WorkerId, Vec<KeyName>>::new();
        for key in keys {
            let owner = self.placement.owner(&key.1);
            by_owner.entry(owner).or_default().push(key);
        }
        let claim = Arc::<Claim>::default();
        let owners: Vec<WorkerId> = by_owner.keys().copied().collect();
        for (owner, keys) in by_owner {
            let all = || gathered.iter().map(|g| (g.owner, g.key.clone()));
            let arrival = Arrival {
                batch: batch.copy_of(0),
                reach: match only_awaited {
                    true => Reach::Here(keys.clone()),
                    false => Reach::Over(all().collect()),
                },
                keys,
                claim: Arc::clone(&claim),
            };
            if owner == self.id {
                self.on_arrival(self.id, arrival);
            } else {
                self.send(owner, Message::Await(Box::new(arrival)));
            }
        }
        let note = Note {
            header,
            timed_out,
            deadline_us: wait.timeout_us.map(|us| now.mono_us.saturating_add(us)),
            claim,
            owners,
        };
        let told = Told::Waits(Box::new(note));
        self.waits.told.push_back((self.id, told));
    }

    /// A client of `origin` waits for keys of this worker.
    pub(super) fn on_arrival(&mut self, origin: WorkerId, arrival: Arrival) {
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
            let key = self.shard.key(bytes);
            self.shard.observers_mut().await_key(*db, key);
        }
        self.waits.queues.push(Waiter {
            client: Client::new(origin, header.conn),
            seq: header.seq,
            batch: Some(batch),
            keys,
            reach,
            claim,
        });
    }

    pub(super) fn remove_waiter(&mut self, id: WaiterId) -> Option<Waiter> {
        let waiter = self.waits.queues.remove(id)?;
        for (db, bytes) in &waiter.keys {
            let key = self.shard.key(bytes);
            self.shard.observers_mut().forget_key(*db, key);
        }
        Some(waiter)
    }

    /// A client of this worker begins to wait, unless the embedder ends it.
    pub(super) fn on_waits(&mut self, note: Note) {
        self.out.begins_to_wait(note.header);
        self.waits.clients.insert(note);
    }

    /// A client of this worker was answered: owners that still have its wait forget it.
    #[cold]
    pub(super) fn waited_enough(&mut self, header: &Header) {
        let conn = header.conn;
        let waits = self.waits.clients.get(conn);
        if waits.is_some_and(|note| note.header.seq == header.seq)
            && let Some(note) = self.waits.clients.remove(conn)
            && (note.owners.len() > 1 || !note.claim.is_taken())
        {
            self.forget_at_owners(&note);
        }
    }

    /// While `hold` is set, no waiter is served; the keys that they wait for stay on the shard's
    /// list. Call [`Worker::settle`] after it ends.
    pub fn hold_waiters(&mut self, hold: bool) {
        self.waits.on_hold = hold;
    }

    /// Call it after the commands of [`Worker::run_now`].
    #[inline]
    pub fn serve_waiters(&mut self, now: Now) {
        if self.shard.observers().has_touched() {
            self.serve(now, None);
        }
    }

    /// Ends a hold; clients that wait for data at its keys are served before commands that wait to
    /// hold them.
    pub(super) fn let_go(&mut self, now: Now, ticket: Ticket) {
        for (db, bytes) in std::mem::take(&mut self.waits.held) {
            let key = self.shard.key(&bytes);
            self.shard.observers_mut().touch_awaited(db, key);
        }
        if self.shard.observers().has_touched() {
            self.serve(now, Some(ticket));
        }
        self.redeem(ticket);
        self.locks.release(ticket);
    }

    /// Serves the waiters for touched keys, until no touched keys are left. `own` is a hold about
    /// to end.
    #[cold]
    fn serve(&mut self, now: Now, own: Option<Ticket>) {
        if self.waits.on_hold {
            return;
        }
        while let Some(key) = self.shard.observers_mut().next_touched() {
            if planted::is(Planted::LostWakeUp) && self.rng.below(8) == 0 {
                continue;
            }
            self.serve_key(now, &key, own);
        }
    }

    fn is_held(&self, key: &KeyName, own: Option<Ticket>) -> bool {
        match own {
            Some(ticket) => self.locks.holds_beside(ticket, key),
            None => !self.locks.is_idle() && self.locks.blocks(key.0, &key.1),
        }
    }

    fn serve_key(&mut self, now: Now, key: &KeyName, own: Option<Ticket>) {
        let mut after = None;
        while let Some(mut id) = self.waits.queues.next_at(key, after) {
            if planted::is(Planted::LaterFirst) {
                id = self.waits.queues.next_at(key, Some(id)).unwrap_or(id);
            }
            if self.is_held(key, own) {
                // Even whether the key exists may not be checked.
                self.waits.held.insert(key.clone());
                return;
            }
            let name = self.shard.key(&key.1);
            if !self.shard.contains(usize::from(key.0), name, now)
                || self.serve_one(now, id, key, own) == Then::Stop
            {
                return;
            }
            after = Some(id);
        }
    }

    fn serve_one(&mut self, now: Now, id: WaiterId, key: &KeyName, own: Option<Ticket>) -> Then {
        let Some(waiter) = self.waits.queues.get_mut(id) else {
            return Then::Next;
        };
        let Some(batch) = &mut waiter.batch else {
            // It runs as a command over several workers, after which the key is touched again.
            return Then::Stop;
        };
        let (header, args, _) = batch.parts(0);
        let name = self.shard.key(&key.1);
        let place = (usize::from(key.0), name);
        if waiter.claim.is_taken()
            || !P::is_ready(header.command, &mut self.shard, place, &args, now)
        {
            return Then::Next;
        }
        match &waiter.reach {
            Reach::Over(keys) => {
                let keys = keys.clone();
                self.serve_over(now, id, keys);
                Then::Stop
            }
            Reach::Here(keys) => {
                let keys = keys.clone();
                if keys.iter().any(|key| self.is_held(key, own)) {
                    self.waits.held.insert(key.clone());
                    return Then::Stop;
                }
                self.serve_here(now, id);
                Then::Next
            }
        }
    }

    /// Executes a waiter's request here. A write takes the claim first; a read may find no data,
    /// and then waits on.
    fn serve_here(&mut self, now: Now, id: WaiterId) {
        let Some(waiter) = self.waits.queues.get_mut(id) else {
            return;
        };
        let Some(mut batch) = waiter.batch.take() else {
            return;
        };
        let claim = Arc::clone(&waiter.claim);
        let origin = waiter.client.origin;
        let command = batch.requests.first().map_or(0, |r| r.header.command);
        let writes = P::is_write(command);
        if writes && !claim.take() {
            self.remove_waiter(id);
            return;
        }
        let waits = self.run_one(now, &mut batch, true).is_some();
        debug_assert!(!waits || !writes, "what is ready does not wait");
        if waits && !writes {
            batch.replies.clear();
            if let Some(waiter) = self.waits.queues.get_mut(id) {
                waiter.batch = Some(batch);
            }
            return;
        }
        let served = writes || claim.take();
        self.remove_waiter(id);
        if served {
            self.waits.told.push_back((origin, Told::Served(batch)));
        }
    }

    /// Executes a waiter's request as a command over several workers.
    fn serve_over(&mut self, now: Now, id: WaiterId, keys: Vec<(WorkerId, KeyName)>) {
        let Some(waiter) = self.waits.queues.get_mut(id) else {
            return;
        };
        let (origin, claim) = (waiter.client.origin, Arc::clone(&waiter.claim));
        let Some(mut batch) = waiter.batch.take() else {
            return;
        };
        let (header, _, out) = batch.parts(0);
        if !self.may_run(now, &header, out) {
            batch.requests[0].reply.end = batch.replies.mark();
            self.remove_waiter(id);
            if claim.take() {
                self.waits.told.push_back((origin, Told::Served(batch)));
            }
            return;
        }
        let mut multi = Multi::on_keys(batch, keys);
        multi.waiter = Some(id);
        self.start(multi);
    }

    /// Every key is held: executes the request of a command over several workers, a waiter's or a
    /// new one. The owners' data is unchanged if there is no reply yet. Returns the worker to reply
    /// to.
    pub(super) fn run_gathered(
        &mut self,
        now: Now,
        batch: &mut Box<Batch>,
        gathered: &[Gathered],
        waiter: Option<WaiterId>,
    ) -> Option<WorkerId> {
        if batch.is_empty() {
            // A cut of the logs has no request.
            return Some(self.id);
        }
        std::mem::swap(&mut self.shard, &mut self.scratch);
        let wait = self.run_one(now, batch, false);
        std::mem::swap(&mut self.shard, &mut self.scratch);
        let Some(id) = waiter else {
            let Some(wait) = wait else {
                return Some(self.id);
            };
            let batch = std::mem::take(batch);
            self.begin_wait_over(now, *batch, gathered, &wait);
            return None;
        };
        // Whatever the result, the waiters behind it may be considered.
        for g in gathered.iter().filter(|g| g.owner == self.id) {
            let key = self.shard.key(&g.key.1);
            self.shard.observers_mut().touch_awaited(g.key.0, key);
        }
        let waiter = self.waits.queues.get_mut(id)?;
        if wait.is_some() {
            batch.replies.clear();
            waiter.batch = Some(std::mem::take(batch));
            return None;
        }
        let origin = waiter.client.origin;
        let won = waiter.claim.take();
        self.remove_waiter(id);
        won.then_some(origin)
    }
}

/// The keys that a request waits for.
fn awaited(header: &Header, args: &Args<'_>, wait: &Wait) -> Vec<KeyName> {
    let names = wait.keys.clone().map(|index| args.get(index));
    names.map(|name| (header.db, name.into())).collect()
}
