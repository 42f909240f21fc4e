//! This worker's part in chains: the effects in its shard's journal that chains replicate, what
//! waits for chains, and the messages of workers of other nodes.
//!
//! Invariants:
//! 1. Effects of commands are passed to the chains before any message of a chain is applied to the
//!    shard: effects from chains follow in the journal, and are already in the chain.
//! 2. A frame records, for each slot that it changes, the last write of the slot's chain that it
//!    contains.
//! 3. A write is not acknowledged before the log has committed it. Messages along the chain wait
//!    for that too: no successor may have a write that this node could lose. Leases wait for
//!    nothing.
//! 4. No request is executed for a slot that this node does not serve.
//!
//! `state` has the data for this.

mod state;

pub(super) use state::Chains;
use state::slot_of;
pub use state::{ChainFigures, ChainSettings, Said};

use super::Worker;
use super::serving::Waiting;
use crate::chains::{BySlot, Slots, items_of};
use crate::durable::SlotMark;
use crate::planted::{self, Planted};
use crate::program::Program;
use rufous_base::Now;
use rufous_base::limits::SLOTS;
use rufous_base::slot::{slots_of_worker, worker_of_slot};
use rufous_chain::{Envelope, Peer, Replica};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Records examined in a step of a long operation.
const LOOKS: usize = 2048;
/// Slots copied in a step.
const MOST_SLOTS: usize = 16;
/// The delay between steps: most of a worker's time is for requests.
const STEP_US: u64 = 4_000;
const SECOND_US: u64 = 1_000_000;

impl<P: Program> Worker<P> {
    /// The node is one of several: no slot of strict keys is served before a mapping assigns it.
    /// Call it before data is loaded.
    pub fn join_chains(&mut self, settings: ChainSettings) {
        self.shard.invite_all();
        self.lattice.on_join();
        self.commit.on_join();
        self.chains = Some(Box::new(Chains {
            settings,
            slots: self.own_slots(),
            replica: None,
            mapping: None,
            is_alone: true,
            taken: 0,
            appended: None,
            held: VecDeque::new(),
            out: Vec::new(),
            waiting: Waiting::default(),
            more: false,
            step_at: 0,
            figures: ChainFigures::default(),
        }));
    }

    /// A mapping has come into force, in which this node has the number `own`. A mapping without
    /// this node takes its slots away.
    pub fn on_mapping(&mut self, now: Now, mapping: &Arc<Mapping>, own: Option<NodeNo>) {
        if let Some(chains) = &mut self.chains {
            let before = chains.replica.as_ref().map(Replica::me);
            chains.mapping = own.or(before).map(|own| (Arc::clone(mapping), own));
        }
        self.take_up(now);
    }

    /// Puts the newest mapping in force, once the data on disk is known.
    fn take_up(&mut self, now: Now) {
        if !self.is_serving() {
            return;
        }
        let Some(chains) = &mut self.chains else {
            return;
        };
        let Some((mapping, own)) = chains.mapping.take() else {
            return;
        };
        let known = chains.replica.as_ref();
        let is_new = known.is_none_or(|known| known.me() != own);
        if is_new {
            let (settings, is_first) = (chains.settings, chains.replica.is_none());
            let replica = self.new_replica(now, own, settings, is_first);
            self.shard.observers_mut().set_journaling(true);
            if let Some(chains) = &mut self.chains {
                chains.replica = Some(replica);
            }
        }
        let taken = self.with_replica(now, |replica, store| {
            replica.take_up(&mapping, store, now.mono_us)
        });
        if matches!(taken, Some(Ok(_))) {
            self.lattice
                .on_mapping(now, (&mapping, own), &mut store!(self));
        }
        let Some(chains) = &mut self.chains else {
            return;
        };
        match taken {
            Some(Ok(true)) => {
                let mut named = chains.slots.clone().map(|slot| mapping.chains.of(slot));
                chains.is_alone = !named.any(|chain| chain.names(own) && chain.named().count() > 1);
            }
            Some(Err(_)) => chains.figures.refused_mappings += 1,
            // It may contain this node as it was before its start: a later one will not.
            Some(Ok(false)) | None => {}
        }
        match is_new {
            true => self.note_slots(self.own_slots()),
            false => self.note_changed(),
        }
        self.end_waits_elsewhere(now);
        self.settle_chains(now);
    }

    /// `is_first`: this node has had no other number since its start.
    fn new_replica(
        &self,
        now: Now,
        own: NodeNo,
        settings: ChainSettings,
        is_first: bool,
    ) -> Replica {
        let started_us = (settings.has_run || !is_first).then_some(now.mono_us);
        let workers = self.placement.workers() as u16;
        let mut replica = Replica::new(
            own,
            self.id.0,
            workers,
            settings.incarnation,
            settings.lease_us,
            started_us,
        );
        for (slot, mark) in self.shard.marks().slots() {
            match mark {
                // Under another number it was a different node.
                SlotMark::Whole(seq) if is_first => replica.restore(*slot, *seq),
                SlotMark::Whole(_) | SlotMark::Part => replica.found_incomplete(*slot),
            }
        }
        replica
    }

    /// Calls `act` on the replica, after the effects of all commands.
    fn with_replica<R>(
        &mut self,
        now: Now,
        act: impl FnOnce(&mut Replica, &mut Slots<'_>) -> R,
    ) -> Option<R> {
        self.append_to_chains();
        let chains = self.chains.as_mut()?;
        let replica = chains.replica.as_mut()?;
        let mut store = Slots::new(&mut self.shard, now, LOOKS);
        let result = act(replica, &mut store);
        chains.figures.refused_effects += u64::from(store.refused);
        if !planted::is(Planted::CarriedAsOwn) {
            chains.taken = self.shard.journal().len();
        }
        Some(result)
    }

    fn own_slots(&self) -> Range<u16> {
        slots_of_worker(self.id.index(), self.placement.workers())
    }

    /// Notes slots whose chain has changed or become active.
    fn note_changed(&mut self) {
        let chains = self.chains.as_mut();
        let replica = chains.and_then(|chains| chains.replica.as_mut());
        let changed = replica.map(Replica::take_changed).unwrap_or_default();
        if !changed.is_empty() {
            self.note_slots(changed);
        }
    }

    /// Marks slots in the log with what is here of them, and sets their ownership.
    fn note_slots(&mut self, slots: impl IntoIterator<Item = u16>) {
        let Some(chains) = &self.chains else {
            return;
        };
        for slot in slots {
            self.shard.mark_slot(slot, chains.mark_of(slot));
            let is_own = chains.replica.as_ref().is_some_and(|r| r.is_open(slot));
            self.shard.set_guest(slot, !is_own);
        }
        if !planted::is(Planted::CarriedAsOwn) {
            self.note_taken();
        }
    }

    /// Later additions to the journal do not go to chains.
    fn note_taken(&mut self) {
        let taken = self.shard.journal().len();
        if let Some(chains) = &mut self.chains {
            chains.taken = taken;
        }
    }

    /// Handles a message of a worker of another node.
    pub fn on_peer(&mut self, now: Now, from: Peer, envelope: Envelope) {
        let slot = slot_of(&envelope.message);
        let is_here = |slot: u16| worker_of_slot(slot, self.placement.workers()) == self.id;
        if slot.is_some_and(|slot| usize::from(slot) >= SLOTS || !is_here(slot)) {
            return;
        }
        let refused = self.with_replica(now, |replica, store| {
            replica.receive(from, envelope, store, now.mono_us);
            if let Some(slot) = slot.filter(|_| store.refused) {
                replica.learn_anew(slot);
            }
        });
        if refused.is_some() {
            if slot.is_some() {
                self.note_slots(slot);
            }
            self.want_steps();
            self.settle_chains(now);
        }
    }

    /// A session with a node begins.
    pub fn on_peer_up(&mut self, now: Now, node: NodeNo) {
        self.lattice.on_peer_up(node);
        self.with_replica(now, |replica, _| replica.peer_up(node));
        self.send_what_waits();
    }

    /// Performs work that is due by the clock, and a part of long operations. `has_room`: nodes to
    /// which parts of copies may be sent now.
    pub fn step_chains(&mut self, now: Now, has_room: impl Fn(NodeNo) -> bool) {
        if self.chains.is_none() {
            return;
        }
        self.take_up(now);
        self.look_after_waiters(now);
        self.lattice.take_part(now, &mut store!(self));
        let is_due = |chains: &Chains| {
            let replica = chains.replica.as_ref();
            replica.is_some_and(|replica| replica.wake_at() <= now.mono_us)
        };
        if self.chains.as_deref().is_some_and(is_due) {
            self.with_replica(now, |replica, _| replica.tick(now.mono_us));
            self.note_changed();
        }
        let works = |chains: &Chains| chains.more && now.mono_us >= chains.step_at;
        if self.chains.as_deref().is_some_and(works) {
            let worked = self.with_replica(now, |replica, store| {
                let more = replica.work(store, MOST_SLOTS, has_room);
                (
                    more,
                    store.copied as u64,
                    std::mem::take(&mut store.cleared),
                )
            });
            let (more, copied, cleared) = worked.unwrap_or_default();
            self.note_cleared(&cleared);
            let workers = self.placement.workers() as u64;
            if let Some(chains) = &mut self.chains {
                let per_byte = |rate| (copied * workers * SECOND_US).checked_div(rate);
                let pause_us = per_byte(chains.settings.move_rate).unwrap_or(0);
                (chains.more, chains.step_at) = (more, now.mono_us + pause_us.max(STEP_US));
            }
        }
        self.settle_chains(now);
    }

    /// Dropped slots leave no mark.
    fn note_cleared(&mut self, slots: &[u16]) {
        let Some(chains) = &self.chains else {
            return;
        };
        for slot in slots {
            self.shard.mark_slot(*slot, chains.mark_of(*slot));
        }
        self.note_taken();
    }

    fn want_steps(&mut self) {
        if let Some(chains) = &mut self.chains {
            chains.more |= chains.replica.as_ref().is_some_and(Replica::has_work);
        }
    }

    /// Reports the progress of chains to all that wait for it.
    fn settle_chains(&mut self, now: Now) {
        self.want_steps();
        let Some(chains) = &mut self.chains else {
            return;
        };
        let Some(replica) = &mut chains.replica else {
            return;
        };
        if replica.take_lost() {
            chains.figures.lost += 1;
            self.commit.on_chains_lost(&mut self.out);
            self.carry_out(now);
        }
        self.send_what_waits();
        self.log_moved_on(now);
        self.look_after_parked(now);
        self.tell_clients(now);
    }

    /// Sends the messages that no longer wait, and opens gates.
    pub(super) fn send_what_waits(&mut self) {
        let (frame, logged) = (self.commit.open_frame(&mut self.shard), self.logged());
        let Some(chains) = &mut self.chains else {
            return;
        };
        let settled = chains.replica.as_ref().map_or(0, Replica::settled);
        self.commit.on_settled(settled);
        chains.collect(frame);
        chains.release(logged);
    }

    /// Passes the open frame's effects to the chains, unless they have them.
    pub(super) fn append_to_chains(&mut self) {
        let Some(chains) = &mut self.chains else {
            return;
        };
        let (from, journaled) = (chains.taken, self.shard.journal().len());
        let replica = chains.replica.as_mut().filter(|_| !chains.is_alone);
        let Some(replica) = replica.filter(|_| from < journaled) else {
            chains.taken = journaled;
            return;
        };
        let journal = std::mem::take(self.shard.journal());
        let mut parts = BySlot::default();
        let placement = &self.placement;
        let whole = parts.take(&journal[from..], &|key| placement.lattice(key).is_some());
        debug_assert!(whole.is_ok(), "a journal has entries");
        chains.figures.spread += parts.spread;
        let mut slots = Vec::with_capacity(parts.slots.len());
        for (slot, bytes) in parts.slots {
            let mut store = Slots::new(&mut self.shard, Now::default(), 0);
            for item in items_of(&bytes) {
                chains.appended = Some(replica.append(slot, item.into(), &mut store));
                chains.figures.appended += 1;
            }
            slots.push(slot);
        }
        *self.shard.journal() = journal;
        for slot in slots {
            self.shard.mark_slot(slot, chains.mark_of(slot));
        }
        self.note_taken();
    }

    /// Messages for workers of other nodes.
    pub fn take_peer_messages(&mut self) -> Vec<Said> {
        match &mut self.chains {
            Some(chains) => std::mem::take(&mut chains.out),
            None => Vec::new(),
        }
    }

    /// Whether replies wait for other nodes.
    pub fn awaits_chains(&self) -> bool {
        self.commit.gates() > 0
    }

    /// The latest time at which [`Worker::step_chains`] must be called.
    pub(super) fn chains_wake_us(&self) -> Option<u64> {
        let chains = self.chains.as_ref()?;
        let replica = chains.replica.as_ref()?;
        let step = chains.more.then_some(chains.step_at);
        let parked = self.parked_until_us();
        let passed = self.commit.has_passed().then_some(0);
        step.into_iter()
            .chain(parked)
            .chain(passed)
            .chain([replica.wake_at()])
            .min()
    }

    /// Slots whose learners have all data, with the epochs of their chains.
    pub fn learned(&self) -> Vec<(u16, NodeNo, u64)> {
        let replica = self
            .chains
            .as_ref()
            .and_then(|chains| chains.replica.as_ref());
        replica.map_or_else(Vec::new, |replica| replica.synced().collect())
    }

    /// Slots whose data here is not as it should be.
    pub fn broken_slots(&self) -> Vec<u16> {
        let chains = self.chains.as_ref();
        let replica = chains.and_then(|chains| chains.replica.as_ref());
        replica.map_or_else(Vec::new, |replica| replica.broken().collect())
    }

    pub fn chain_figures(&self) -> Option<ChainFigures> {
        let chains = self.chains.as_ref()?;
        let mut figures = chains.figures;
        figures.waiting = self.commit.gates() as u64;
        figures.held = chains.held.len() as u64;
        figures.parked = chains.waiting.len() as u64;
        if let Some(replica) = &chains.replica {
            figures.broken = replica.broken().count() as u64;
            let counts = replica.counts();
            (figures.served, figures.member, figures.whole) =
                (counts.open, counts.member, counts.whole);
        }
        Some(figures)
    }
}
