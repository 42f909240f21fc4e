//! Requests that were on their way while the table of keyspaces changed: they
//! were judged, and sent to where they are, by a table that is no longer.
//!
//! What waited at the worker of its own connection is run over whichever
//! workers have its keys now. What came from another worker that goes elsewhere
//! with these keys now, be it to its own replicas, is not done, and the client is
//! told to send it again: to send it back would let a later request of the same
//! connection overtake it, and to do it here would have a connection write to
//! one replica and read another. What a lattice key refuses is refused.

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
    /// Tells this table from those before it.
    #[inline]
    pub(super) fn table_mark(&self) -> u16 {
        self.lattice.table.version() as u16
    }

    /// Whether this worker answers for a key to the connections of another, or
    /// its own.
    fn is_here(&self, origin: WorkerId, key: &[u8]) -> bool {
        let placement = self.placement.clone().seen_by(origin);
        placement.owner(key) == self.id
    }

    /// Whether a request that was judged by another table is not to be run; its
    /// reply was appended then.
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

    /// A request of this worker's own connection has waited for keys that are
    /// not all here any more: runs it over those who have them.
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

    /// A command over workers has its keys, or some of them by a table that is
    /// no longer: gives it back where that makes no difference.
    pub(super) fn not_stale(&mut self, now: Now, mut multi: Multi) -> Option<Multi> {
        let is_of_keys = multi.table.is_none() && multi.actions.is_empty();
        if multi.mark == self.table_mark() || !is_of_keys {
            return Some(multi);
        }
        let has_moved = |g: &Gathered| self.placement.owner(&g.key.1) != g.owner;
        // Nobody waits for a lattice key, and only those move.
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

    /// Takes work off the queue of those who have waited for their keys.
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
