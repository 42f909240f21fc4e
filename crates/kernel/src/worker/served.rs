//! The worker's part in clients that wait for data (`waiting`): it executes their requests, and
//! sends the reports to the workers of their clients.

use super::chains::{Kept, Needs, UNSERVED};
use super::waiting::{Clients, NoData, Serve, Told, Unserved};
use super::{Message, WaitEnd, Worker};
use crate::batch::Batch;
use crate::lock::Ticket;
use crate::multi::Multi;
use crate::program::Program;
use rufous_base::slot::slot_of;
use rufous_base::{ConnId, Now, Output, Until};
use rufous_chain::Refused;

impl<P: Program> Worker<P> {
    /// Clients of this worker that wait.
    pub fn waiting_clients(&self) -> &Clients {
        self.waits.clients()
    }

    /// Ends the waits whose deadline has passed.
    pub fn end_due_waits(&mut self, now: Now) {
        while let Some(conn) = self.waiting_clients().next_due(now.mono_us) {
            self.end_wait(conn, WaitEnd::TimedOut);
        }
    }

    /// Ends the wait of a connection of this worker. False if it does not wait or was served
    /// meanwhile. The reply is an ordinary outcome.
    pub fn end_wait(&mut self, conn: ConnId, how: WaitEnd) -> bool {
        let is_answered = !matches!(how, WaitEnd::Gone);
        let store = &mut store!(self);
        let Some(header) = self.waits.on_end(conn, how, store, &mut self.out) else {
            return false;
        };
        if is_answered {
            self.note(header.command, true);
        }
        true
    }

    #[cold]
    pub(super) fn begin_wait(&mut self, now: Now, found: NoData) {
        self.waits
            .on_no_data(now, found, &mut store!(self), &mut self.out);
    }

    /// While `hold` is set, no waiter is served. Call [`Worker::settle`] after it ends.
    pub fn hold_waiters(&mut self, hold: bool) {
        self.waits.hold(hold);
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
        self.waits.on_release(&mut store!(self));
        if self.shard.observers().has_touched() {
            self.serve(now, Some(ticket));
        }
        self.lattice.redeem(ticket.number());
        self.locks.release(ticket);
    }

    /// Executes the requests of waiters for touched keys. `own` is a hold about to end.
    #[cold]
    fn serve(&mut self, now: Now, own: Option<Ticket>) {
        loop {
            let locks = &self.locks;
            let is_held = |key: &_| locks.is_held_beside(own, key);
            let next = self.waits.next::<P>(now, is_held, &mut store!(self));
            match next {
                None => return,
                Some(Serve::Here(id, mut batch)) => {
                    let wait = self.run_one(now, &mut batch, true);
                    self.waits.on_ran::<P>(id, batch, wait, &mut store!(self));
                }
                Some(Serve::Over(id, mut batch, keys)) => {
                    let (header, _, out) = batch.parts(0);
                    if self.may_run(now, &header, out) {
                        let mut multi = Multi::on_keys(batch, keys);
                        multi.waiter = Some(id);
                        self.start(multi);
                    } else {
                        batch.requests[0].reply.end = batch.replies.mark();
                        self.waits.on_refused(id, batch, &mut store!(self));
                    }
                }
            }
        }
    }

    /// Ends waits for slots that this node does not serve: their clients are redirected, instead of
    /// waiting for their timeouts.
    pub(super) fn end_waits_elsewhere(&mut self, now: Now) {
        let Some(view) = slot_view!(self, now) else {
            return;
        };
        let keys = self.waits.keys();
        let unserved = keys.filter_map(|(waiter, key)| {
            Some(Unserved {
                waiter,
                slot: slot_of(key),
                refused: view.unserved(key, Needs::Head)?,
            })
        });
        let unserved = unserved.collect();
        for key in self.waits.on_unserved(now, unserved) {
            let Some(header) = self.waits.request(key.waiter) else {
                continue;
            };
            let mut reply = Output::default();
            match key.refused {
                Refused::Elsewhere(_) => {
                    view.refuse_elsewhere::<P>(key.slot, &header, Kept::Reply, &mut reply);
                }
                Refused::NotYet => P::refuse_slot(UNSERVED, header.resp3, &mut reply),
            }
            let mut batch = Box::<Batch>::default();
            batch.push_reply(header, reply);
            self.waits.on_refused(key.waiter, batch, &mut store!(self));
        }
    }

    /// Reports waits that began or were served to the workers of their clients.
    pub(super) fn tell_clients(&mut self, now: Now) {
        while let Some((to, told)) = self.waits.next_told() {
            match told {
                Told::Served(batch) => self.answer(now, to, batch),
                Told::Waits(note) if to == self.id => self.waits.on_began(*note, &mut self.out),
                Told::Waits(note) => {
                    let waits = (Until::Passed, Message::Waits(note));
                    self.send_committed(now, to, waits);
                }
            }
        }
    }

    /// Replies to waiters that the current message served and that had waited before it: their
    /// replies leave before those to the requests in the message.
    #[inline]
    pub(super) fn answer_served(&mut self, now: Now) {
        if self.waits.has_told() {
            for (to, batch) in self.waits.take_served() {
                self.answer(now, to, batch);
            }
        }
    }
}
