//! The worker's side of the memory limit; see [`crate::evict`].

use super::{Message, Worker};
use crate::batch::Header;
use crate::evict::{self, Ledger, Room, Settings};
use crate::program::Program;
use rufous_base::{Now, Output, WorkerId};
use std::sync::Arc;

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
        let locks = &self.locks;
        self.evictor.step(&mut self.shard, now, |db, key| {
            !locks.is_idle() && locks.blocks(db, key)
        })
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
        let locks = &self.locks;
        self.evictor.make_room(&mut self.shard, now, |db, key| {
            !locks.is_idle() && locks.blocks(db, key)
        })
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
