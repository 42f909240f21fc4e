//! The worker's side of the memory limit; see [`crate::evict`].
//!
//! A key of a lattice keyspace is evicted as if a client had deleted it at this worker: all replicas receive the deletion, and
//! additions elsewhere that it has not seen stay. Of the replicas of a node the primary decides, so that a node does not
//! delete several times as many keys as it needs to. To drop one replica alone would free nothing for long: reads go to the
//! connection's own replica and would miss the key, and a comparison of replicas would bring it back.

use super::{Message, Worker};
use crate::batch::Header;
use crate::evict::{self, Ledger, May, Room, Settings};
use crate::program::Program;
use rufous_base::{Now, Output, WorkerId};
use std::sync::Arc;

/// Which keys may be evicted: see [`evict::Judged`].
macro_rules! judge {
    ($worker:expr) => {{
        let (locks, placement) = (&$worker.locks, &$worker.placement);
        let (table, serves) = ($worker.lattice.table(), !$worker.lattice.awaits_nodes());
        move |db: u8, key: &[u8]| {
            if !locks.is_idle() && locks.blocks(db, key) {
                return None;
            }
            let Some(keyspace) = table.of(key) else {
                return Some(May::Evict);
            };
            let (evict, is_lattice) = (keyspace.evict, keyspace.is_lattice());
            if !is_lattice {
                return evict.then_some(May::Evict);
            }
            let is_ours = evict && serves && placement.is_primary(key);
            is_ours.then(|| May::Retire(keyspace.spread(placement.workers())))
        }
    }};
}

impl<P: Program> Worker<P> {
    /// Sets the ledger that all workers of a node share, before any request is executed.
    pub fn set_ledger(&mut self, ledger: Arc<Ledger>) {
        self.evictor.set_ledger(ledger);
    }

    pub fn set_limit(&mut self, settings: Settings) {
        self.evictor.configure(settings, &self.shard);
    }

    pub fn evictions(&self) -> evict::Counters {
        self.evictor.counters()
    }

    /// Call it when a step begins: determines how much memory is free.
    #[inline]
    pub fn look_at_limit(&mut self) {
        if self.evictor.is_armed() {
            self.evictor.look();
        }
    }

    /// Call it when a step ends, before its messages are taken.
    #[inline]
    pub fn publish_charge(&mut self) {
        if self.evictor.is_armed() {
            self.evictor.publish(&self.shard);
            if self.evictor.take_asks() {
                self.ask_for_room();
            }
        }
    }

    /// Evicts a bounded slice where the node exceeds its limit and this worker is to evict. True
    /// where there is more to do.
    pub fn evict_step(&mut self, now: Now) -> bool {
        if !self.evictor.is_armed() {
            return false;
        }
        self.evictor.settle(now, self.lattice.forgotten());
        let more = self.evictor.step(&mut self.shard, now, judge!(self));
        self.retire(now);
        more
    }

    /// Deletes replicated keys that are to be evicted.
    fn retire(&mut self, now: Now) {
        let chosen = self.evictor.take_chosen();
        if chosen.is_empty() {
            return;
        }
        if self.lattice.excess(now).is_some() {
            // Clocks lead too far: nothing is written.
            return self.evictor.on_kept();
        }
        self.lattice.delete(now, &chosen, &mut self.shard);
        self.evictor.on_deleted(now, self.lattice.time());
    }

    /// Makes room, with bounded work, if `command` may grow. False where there is none: then the
    /// command must not be executed. Also for a command that is only queued yet, for any keys.
    #[inline]
    pub fn admits(&mut self, now: Now, command: u16) -> bool {
        !self.evictor.is_armed() || !P::may_grow(command) || self.make_room(now) == Room::Enough
    }

    /// Whether a command may be executed now; otherwise appends the refusal.
    #[inline]
    pub(super) fn may_run(&mut self, now: Now, header: &Header, out: &mut Output) -> bool {
        if self.refuses_writes().is_some() && P::is_write(header.command) {
            self.refuse_write(header, out);
            return false;
        }
        if !self.admits(now, header.command) {
            self.refuse_growth(header, out);
            return false;
        }
        true
    }

    #[cold]
    fn refuse_write(&mut self, header: &Header, out: &mut Output) {
        self.stats[usize::from(header.command)].rejected += 1;
        if let Some(why) = self.refuses_writes() {
            P::refuse_write(why, header.resp3, out);
        }
    }

    #[cold]
    fn refuse_growth(&mut self, header: &Header, out: &mut Output) {
        self.stats[usize::from(header.command)].rejected += 1;
        P::refuse_growth(header.resp3, out);
    }

    /// Keys that are held for a command are not evicted until it has ended.
    #[inline(never)]
    pub(super) fn make_room(&mut self, now: Now) -> Room {
        if !self.evictor.is_armed() {
            return Room::Enough;
        }
        self.evictor.settle(now, self.lattice.forgotten());
        let room = self.evictor.make_room(&mut self.shard, now, judge!(self));
        self.retire(now);
        room
    }

    pub(super) fn on_make_room(&mut self, now: Now) {
        self.evictor.on_asked();
        self.evict_step(now);
    }

    #[cold]
    fn ask_for_room(&mut self) {
        for worker in 0..self.placement.workers() as u16 {
            if WorkerId(worker) != self.id {
                let to = WorkerId(worker);
                self.out.mail.send_early(to, Message::MakeRoom);
            }
        }
    }
}
