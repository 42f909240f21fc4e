//! The host of chains: this worker's replica of the chains of its slots, the effects in its shard's journal
//! that chains replicate, and the messages to workers of other nodes that wait for the log.
//!
//! Invariants:
//! 1. Effects of commands are passed to the chains before any message of a chain is applied to the
//!    shard: effects from chains follow in the journal, and are already in the chain.
//! 2. A frame records, for each slot that it changes, the last write of the slot's chain that it
//!    contains.
//! 3. A write is not acknowledged before the log has committed it. Messages along the chain wait
//!    for that too: no successor may have a write that this node could lose. Leases wait for
//!    nothing.
//! 4. No request is executed for a slot that this node does not serve: [`SlotView`] says which
//!    slots these are.

mod dependence;
mod figures;
mod late;
mod marks;
#[macro_use]
mod view;
#[cfg(test)]
pub(super) mod tests;
mod withheld;

pub use figures::{ChainFigures, ChainSettings, Said};
pub use view::{Gap, SEVERAL};
pub(super) use view::{Kept, Needs, SlotView, too_spread};
#[cfg(test)]
pub(super) use view::{UNMAPPED, UNSERVED};
pub(super) use withheld::{Fate, Item};

use super::out::{Call, Out};
use super::store::Store;
use crate::chains::{BySlot, Slots, writes_of};
use crate::durable::SlotMark;
use crate::planted::{self, Planted};
use crate::worker::lattice::Past;
use crate::worker::linear::mark_loss;
use late::Late;
use marks::Marks;
use rufous_base::slot::slots_of_worker;
use rufous_base::{Now, WorkerId};
use rufous_chain::{Envelope, Message, Peer, Replica};
use rufous_mapping::planner::Copy;
use rufous_mapping::{Mapping, NodeNo};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use withheld::Withheld;

/// Records examined in a step of a long operation.
const LOOKS: usize = 2048;
/// Slots copied in a step.
const MOST_SLOTS: usize = 16;
/// The delay between steps: most of a worker's time is for requests.
const STEP_US: u64 = 4_000;
const SECOND_US: u64 = 1_000_000;

/// See the module's description.
#[derive(Debug)]
pub(super) struct ChainHost {
    settings: ChainSettings,
    /// Slots of this worker.
    slots: Range<u16>,
    replica: Option<Replica>,
    /// The mapping to put in force, and this node's number in it.
    mapping: Option<(Arc<Mapping>, NodeNo)>,
    /// No slot of this worker has other members than this node: no chain needs writes.
    is_alone: bool,
    /// The length of the open frame's journal that chains have, or that came from them.
    taken: usize,
    /// The write that chains must have committed for the open frame to be committed.
    appended: Option<u64>,
    /// What waits for copies.
    withheld: Withheld,
    late: Late,
    /// Why the log takes nothing, if that is so.
    trouble: Option<String>,
    /// The nodes that cannot write, and why.
    ailing: BTreeMap<NodeNo, String>,
    /// Messages that wait for the log, each with the last frame that it concerns.
    held: VecDeque<(u64, Said)>,
    out: Vec<Said>,
    marks: Marks,
    /// Copying or dropping is not finished.
    more: bool,
    /// When its next step is due.
    step_at: u64,
    figures: ChainFigures,
}

impl ChainHost {
    pub(super) fn new(settings: ChainSettings, id: WorkerId, workers: usize) -> Self {
        Self {
            settings,
            slots: slots_of_worker(id.index(), workers),
            replica: None,
            mapping: None,
            is_alone: true,
            taken: 0,
            appended: None,
            withheld: Withheld::default(),
            late: Late::default(),
            trouble: None,
            ailing: BTreeMap::new(),
            held: VecDeque::new(),
            out: Vec::new(),
            marks: Marks::default(),
            more: false,
            step_at: 0,
            figures: ChainFigures::default(),
        }
    }

    /// A mapping has come into force, in which this node has the number `own`. A mapping without
    /// this node takes its slots away. [`ChainHost::take_up`] applies it.
    pub(super) fn on_mapping(&mut self, mapping: &Arc<Mapping>, own: Option<NodeNo>) {
        let before = self.replica.as_ref().map(Replica::me);
        self.mapping = own.or(before).map(|own| (Arc::clone(mapping), own));
    }

    /// Applies the newest mapping, now that the data on disk is known. False if there is none.
    pub(super) fn take_up(&mut self, now: Now, store: &mut Store<'_>, out: &mut Out) -> bool {
        let Some((mapping, own)) = self.mapping.take() else {
            return false;
        };
        let known = self.replica.as_ref();
        let is_new = known.is_none_or(|known| known.me() != own);
        if is_new {
            self.replica = Some(self.new_replica(now, own, store));
            store.shard.observers_mut().set_journaling(true);
        }
        let taken = self.with_replica(now, store, |replica, slots| {
            replica.take_up(&mapping, slots, now.mono_us)
        });
        match taken {
            Some(Ok(true)) => {
                let mut named = self.slots.clone().map(|slot| mapping.chains.of(slot));
                self.is_alone = !named.any(|chain| chain.names(own) && chain.named().count() > 1);
            }
            Some(Err(_)) => self.figures.refused_mappings += 1,
            // It may contain this node as it was before its start: a later one will not.
            Some(Ok(false)) | None => {}
        }
        self.release_all();
        let lossy = self.replica.as_mut().map(Replica::take_lossy);
        for slot in lossy.into_iter().flatten() {
            // Before the mark of the chain, in one frame with it.
            mark_loss(slot, store.shard, now);
        }
        if is_new {
            self.mark_slots(self.slots.clone(), store);
        } else {
            self.mark_changed(store);
        }
        if matches!(taken, Some(Ok(_))) {
            out.call(Call::MappingTaken(mapping, own));
        }
        true
    }

    fn new_replica(&self, now: Now, own: NodeNo, store: &Store<'_>) -> Replica {
        let settings = self.settings;
        // The node has had no other number since its start.
        let is_first = self.replica.is_none();
        let started_us = (settings.has_run || !is_first).then_some(now.mono_us);
        let mut replica = Replica::new(
            own,
            store.id.0,
            store.workers() as u16,
            settings.incarnation,
            settings.lease_us,
            started_us,
        );
        replica.set_keeps_all(is_first && settings.past == Past::Whole);
        for (slot, mark) in store.shard.marks().slots() {
            match mark {
                // Under another number it was a different node.
                SlotMark::Whole { seq, since } if is_first => {
                    let (seq, since) = (*seq, *since);
                    replica.restore(*slot, Copy { since, seq });
                }
                SlotMark::Whole { .. } | SlotMark::Part => replica.found_incomplete(*slot),
            }
        }
        replica
    }

    /// Calls `act` on the replica, after the effects of all commands.
    fn with_replica<R>(
        &mut self,
        now: Now,
        store: &mut Store<'_>,
        act: impl FnOnce(&mut Replica, &mut Slots<'_>) -> R,
    ) -> Option<R> {
        self.append(store);
        let replica = self.replica.as_mut()?;
        let mut slots = Slots::new(store.shard, now, LOOKS);
        let result = act(replica, &mut slots);
        self.figures.refused_effects += u64::from(slots.refused);
        self.note_applied(store);
        Some(result)
    }

    /// Marks slots whose chain has changed or become active.
    fn mark_changed(&mut self, store: &mut Store<'_>) {
        let changed = self.replica.as_mut().map(Replica::take_changed);
        self.mark_slots(changed.unwrap_or_default(), store);
    }

    /// Marks slots in the log with what is here of them, and sets their ownership.
    fn mark_slots(&mut self, slots: impl IntoIterator<Item = u16>, store: &mut Store<'_>) {
        for slot in slots {
            self.marks.on_mark();
            store.shard.mark_slot(slot, self.mark_of(slot));
            let is_own = self.replica.as_ref().is_some_and(|r| r.is_open(slot));
            store.shard.set_guest(slot, !is_own);
        }
        self.note_applied(store);
    }

    fn mark_of(&self, slot: u16) -> Option<SlotMark> {
        let replica = self.replica.as_ref()?;
        match replica.copy_of(slot) {
            Some(Copy { since, seq }) => Some(SlotMark::Whole { seq, since }),
            None => replica.has_part(slot).then_some(SlotMark::Part),
        }
    }

    /// The journal so far does not go to chains.
    fn note_applied(&mut self, store: &mut Store<'_>) {
        if !planted::is(Planted::CarriedAsOwn) {
            self.taken = store.shard.journal().len();
        }
    }

    /// Handles a message of a worker of another node.
    pub(super) fn on_peer(
        &mut self,
        now: Now,
        from: Peer,
        envelope: Envelope,
        store: &mut Store<'_>,
    ) {
        let slot = slot_of(&envelope.message);
        if slot.is_some_and(|slot| !self.slots.contains(&slot)) {
            return;
        }
        let waited = slot.map_or(0, |slot| self.waiting_bytes(slot));
        let received = self.with_replica(now, store, |replica, slots| {
            replica.receive(from, envelope, slots, now.mono_us);
            if let Some(slot) = slot.filter(|_| slots.refused) {
                replica.learn_anew(slot);
            }
        });
        // Without a replica, the marks on disk are still needed.
        if received.is_some() {
            self.mark_slots(slot, store);
        }
        if let Some(slot) = slot {
            self.release(slot, waited);
        }
    }

    /// A session with a node begins.
    pub(super) fn on_peer_up(&mut self, now: Now, node: NodeNo, store: &mut Store<'_>) {
        self.with_replica(now, store, |replica, _| replica.peer_up(node));
    }

    /// Performs work that is due by the clock, and a part of long operations. `has_room`: nodes to
    /// which parts of copies may be sent now.
    pub(super) fn on_tick(
        &mut self,
        now: Now,
        has_room: impl Fn(NodeNo) -> bool,
        store: &mut Store<'_>,
    ) {
        let replica = self.replica.as_ref();
        if replica.is_some_and(|replica| replica.wake_at() <= now.mono_us) {
            self.with_replica(now, store, |replica, _| replica.tick(now.mono_us));
            self.mark_changed(store);
            self.release_all();
            self.look_at_late(now);
            self.withheld.on_time(now.mono_us);
        }
        if !self.more || now.mono_us < self.step_at {
            return;
        }
        let worked = self.with_replica(now, store, |replica, slots| {
            let more = replica.work(slots, MOST_SLOTS, has_room);
            (more, slots.copied, std::mem::take(&mut slots.cleared))
        });
        let (more, copied, cleared) = worked.unwrap_or_default();
        // Dropped slots leave no mark.
        self.mark_slots(cleared, store);
        self.release_all();
        let sent = (copied * store.workers()) as u64 * SECOND_US;
        let pause_us = sent.checked_div(self.settings.move_rate).unwrap_or(0);
        (self.more, self.step_at) = (more, now.mono_us + pause_us.max(STEP_US));
    }

    /// The chains may have progressed. False where no mapping was applied yet.
    pub(super) fn on_progress(&mut self, out: &mut Out) -> bool {
        let Some(replica) = &mut self.replica else {
            return false;
        };
        self.more |= replica.has_work();
        if replica.take_lost() {
            self.figures.lost += 1;
            out.call(Call::ChainsLost);
        }
        true
    }

    /// Passes the open frame's effects to the chains, unless they have them.
    fn append(&mut self, store: &mut Store<'_>) {
        let (from, journaled) = (self.taken, store.shard.journal().len());
        let replica = self.replica.as_mut().filter(|_| !self.is_alone);
        let Some(replica) = replica.filter(|_| from < journaled) else {
            self.taken = journaled;
            return self.note_appended();
        };
        let journal = std::mem::take(store.shard.journal());
        let mut parts = BySlot::default();
        let placement = store.placement;
        let whole = parts.take((&journal, from), &|key| placement.lattice(key).is_some());
        debug_assert!(whole.is_ok(), "a journal has entries");
        self.figures.spread += parts.spread;
        for (slot, group) in &parts.slots {
            let mut slots = Slots::new(store.shard, Now::default(), 0);
            for write in writes_of(group) {
                self.appended = Some(replica.append(*slot, write.into(), &mut slots));
                self.figures.appended += 1;
                if replica.awaits_copies(*slot) {
                    self.late.on_write(write.len());
                }
            }
        }
        *store.shard.journal() = journal;
        self.figures.spread += u64::from(parts.together.iter().any(|slot| self.is_shared(*slot)));
        for slot in parts.slots.into_keys() {
            store.shard.mark_slot(slot, self.mark_of(slot));
        }
        self.taken = store.shard.journal().len();
        self.note_appended();
    }

    /// The open frame ends. Returns the last write of chains in it, if any.
    pub(super) fn on_frame_ends(&mut self, store: &mut Store<'_>) -> Option<u64> {
        self.append(store);
        self.appended.take()
    }

    /// The open frame was logged at this position.
    pub(super) fn on_frame(&mut self, frame: u64) {
        self.taken = 0;
        self.collect(frame);
    }

    /// Collects the replica's messages: they concern everything up to this frame.
    fn collect(&mut self, frame: u64) {
        let Some(replica) = &mut self.replica else {
            return;
        };
        for (to, envelope) in replica.take_messages() {
            let slot = slot_of(&envelope.message);
            let learner = slot.and_then(|slot| replica.learner(slot));
            let said = Said {
                learning: learner.is_some_and(|no| no == to.node || no == replica.me()),
                to,
                envelope,
            };
            match slot {
                Some(_) => self.held.push_back((frame, said)),
                None => self.out.push(said),
            }
        }
    }

    /// The log has committed this position; `open` is that of the open frame. Releases the messages
    /// that need no more.
    pub(super) fn on_log(&mut self, open: u64, logged: u64) {
        self.collect(open);
        self.marks.on_log(open, logged);
        let is_due = |(frame, _): &mut (u64, Said)| {
            *frame <= logged || planted::is(Planted::SaidBeforeLogged)
        };
        while let Some((_, said)) = self.held.pop_front_if(is_due) {
            self.out.push(said);
        }
    }

    /// Messages for workers of other nodes.
    pub(super) fn take_messages(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.out)
    }
}

/// What others ask.
impl ChainHost {
    /// The writes that chains have committed.
    pub(super) fn settled(&self) -> u64 {
        self.replica.as_ref().map_or(0, Replica::settled)
    }

    /// The latest time of the next [`ChainHost::on_tick`].
    pub(super) fn wake_us(&self) -> Option<u64> {
        let wake_at = self.replica.as_ref()?.wake_at();
        let step_at = self.more.then_some(self.step_at);
        Some(step_at.map_or(wake_at, |step_at| step_at.min(wake_at)))
    }

    /// Whether no slot of this worker has other members than this node.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    pub(super) fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.replica.as_ref()?.mapping()
    }

    pub(super) fn is_head(&self, slot: u16) -> bool {
        let replica = self.replica.as_ref();
        replica.is_some_and(|replica| replica.is_head(slot))
    }

    /// Slots whose learners have all data, with the epochs of their chains.
    pub(super) fn learned(&self) -> Vec<(u16, NodeNo, u64)> {
        let replica = self.replica.as_ref();
        replica.map_or_else(Vec::new, |replica| replica.synced().collect())
    }

    /// What this worker's log has of slots of whose chains no node acts, and by the mapping of which epoch.
    pub(super) fn held(&self) -> (u64, Vec<(u16, Option<Copy>)>) {
        let replica = self.replica.as_ref().filter(|_| self.marks.are_logged());
        replica.map_or_else(Default::default, |replica| {
            (replica.epoch(), replica.held().collect())
        })
    }

    /// Whether there are slots of whose chains no node acts.
    pub(super) fn waits_to_act(&self) -> bool {
        let replica = self.replica.as_ref();
        replica.is_some_and(|replica| replica.held().next().is_some())
    }

    /// Slots whose data here is not as it should be.
    pub(super) fn broken(&self) -> Vec<u16> {
        let replica = self.replica.as_ref();
        replica.map_or_else(Vec::new, |replica| replica.broken().collect())
    }

    /// The number of slots of which this node is the head and which it does not serve.
    pub(super) fn unserved(&self, now: Now) -> usize {
        let replica = self.replica.as_ref();
        replica.map_or(0, |replica| replica.unserved(now.mono_us))
    }

    /// The counters, without those of frames and requests that wait.
    pub(super) fn figures(&self) -> ChainFigures {
        let mut figures = self.figures;
        figures.held = self.held.len() as u64;
        figures.withheld = self.withheld.len() as u64;
        figures.late = self.late.len() as u64;
        figures.unacknowledged = self.late.bytes() as u64;
        if let Some(replica) = &self.replica {
            figures.broken = replica.broken().count() as u64;
            let counts = replica.counts();
            (figures.served, figures.member, figures.whole) =
                (counts.open, counts.member, counts.whole);
        }
        figures
    }
}

fn slot_of(message: &Message) -> Option<u16> {
    message.chain().map(|(slot, _)| slot)
}
