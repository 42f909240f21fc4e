//! Requests that were in transit while the table of keyspaces changed: they were checked and routed
//! by an outdated table.
//!
//! A request that waited at the worker of its own connection is executed over the workers that have
//! its keys now. A request from another worker whose keys that worker would now route elsewhere,
//! even to its own replicas, is not executed, and the client is told to send it again: if it were
//! sent back, a later request of the same connection could overtake it, and if it were executed
//! here, a connection would write to one replica and read another. A request that lattice keys do
//! not support is refused.

use super::spanning::Release;
use super::{Message, Work, Worker};
use crate::batch::{Batch, Header, ReplyRange};
use crate::lock::{KeyName, Scope, Ticket};
use crate::multi::{Gathered, Multi, Open};
use crate::program::Program;
use rufous_base::{Args, Now, Output, WorkerId};

const AGAIN: &str = "was on its way while the keyspaces were changed, and was not done: \
                     send it again";

impl<P: Program> Worker<P> {
    /// Distinguishes this table from earlier ones.
    #[inline]
    pub(super) fn table_mark(&self) -> u16 {
        self.lattice.table().version() as u16
    }

    /// Whether this worker serves a key for connections of `origin`, which may be this worker.
    fn is_here(&self, origin: WorkerId, key: &[u8]) -> bool {
        let placement = self.placement.clone().seen_by(origin);
        placement.owner(key) == self.id
    }

    /// Whether a request that was checked by another table must not be executed; then appends the
    /// reply.
    pub(super) fn refuses_stale(
        &self,
        origin: WorkerId,
        header: &Header,
        args: &Args<'_>,
        keys: &mut dyn Iterator<Item = &[u8]>,
        out: &mut Output,
    ) -> bool {
        if self.refuses_on_lattice(header, args, out) {
            return true;
        }
        let mut keys = keys;
        let is_elsewhere = Iterator::any(&mut keys, |key| !self.is_here(origin, key));
        if is_elsewhere {
            P::refuse(header.command, AGAIN, header.resp3, out);
        }
        is_elsewhere
    }

    pub(super) fn refuses_on_lattice(
        &self,
        header: &Header,
        args: &Args<'_>,
        out: &mut Output,
    ) -> bool {
        P::refuse_on_lattice(header.command, args, &self.placement, header.resp3, out)
    }

    /// A request of this worker's own connection has waited for keys, some of which have moved:
    /// executes it over the workers that have them.
    pub(super) fn sent_on(
        &mut self,
        now: Now,
        (ticket, origin): (Ticket, WorkerId),
        batch: Box<Batch>,
    ) -> Option<Box<Batch>> {
        let is_stale = batch.requests[0].table != self.table_mark();
        let Some(Scope::Keys(keys)) = self.locks.scope(ticket) else {
            return Some(batch);
        };
        if !is_stale || origin != self.id || keys.iter().all(|key| self.is_here(origin, &key.1)) {
            return Some(batch);
        }
        let keys = keys.clone();
        self.let_go(now, ticket);
        self.start_over(batch, keys, None);
        None
    }

    fn start_over(&mut self, mut batch: Box<Batch>, keys: Vec<KeyName>, open: Option<Open>) {
        batch.requests[0].reply = ReplyRange::default();
        let owned = keys
            .into_iter()
            .map(|key| (self.placement.owner(&key.1), key));
        let owned = owned.collect();
        self.start(match open {
            Some(open) => Multi::on_open(batch, owned, open.round, self.placement.workers()),
            None => Multi::on_keys(batch, owned),
        });
    }

    /// A command over several workers has its keys, some of them perhaps by an outdated table:
    /// returns it where that makes no difference.
    pub(super) fn not_stale(&mut self, now: Now, mut multi: Multi) -> Option<Multi> {
        let is_of_keys = multi.table.is_none() && multi.actions.is_empty();
        if multi.mark == self.table_mark() || !is_of_keys {
            return Some(multi);
        }
        let has_moved = |g: &Gathered| self.placement.owner(&g.key.1) != g.owner;
        // No client waits for a lattice key, and only those move.
        if multi.waiter.is_some() || !multi.gathered.iter().any(has_moved) {
            return Some(multi);
        }
        self.release_all(now, std::mem::take(&mut multi.held));
        if let Some(plan) = multi.plan {
            self.hold_all(*plan);
            return None;
        }
        let keys = multi.gathered.into_iter().map(|g| g.key).collect();
        self.start_over(multi.batch, keys, multi.open);
        None
    }

    pub(super) fn release_all(&mut self, now: Now, held: Vec<(WorkerId, Ticket)>) {
        for (owner, ticket) in held {
            let release = Release::of_nothing(ticket);
            if owner == self.id {
                self.on_release(now, self.id, release);
            } else {
                self.send(owner, Message::Release(release));
            }
        }
    }

    /// Executes work whose keys were granted.
    pub(super) fn run_granted(&mut self, now: Now, (ticket, work): (Ticket, Work)) {
        match work {
            Work::Run { batch, origin } => {
                let Some(batch) = self.sent_on(now, (ticket, origin), batch) else {
                    return;
                };
                let served = self.still_served(now, (ticket, origin), batch);
                let Some(batch) = served else {
                    return;
                };
                let batch = self.run_parked(now, ticket, batch, origin);
                self.let_go(now, ticket);
                self.answer(now, origin, batch);
            }
            Work::Hold {
                multi,
                coordinator,
                client,
                touch,
                part,
            } => {
                let hold = self.hold(ticket, (client, touch), part.as_deref(), now);
                let names = hold.gathered.iter().map(|gathered| &*gathered.key.1);
                let until = self.until(names);
                let acquired = Message::Acquired {
                    multi,
                    ticket,
                    hold,
                };
                self.send_committed(now, coordinator, (until, acquired));
            }
        }
    }
}
