//! A worker's state of chains: the frames that wait for chains, and the messages that wait for
//! frames.

use crate::durable::SlotMark;
use crate::planted::{self, Planted};
use crate::worker::serving::Waiting;
use rufous_base::Now;
use rufous_chain::{Envelope, Message, Peer, Refused, Replica};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A worker's settings for its node's part in chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSettings {
    /// The number of this start of the node.
    pub incarnation: u64,
    /// The duration of leases.
    pub lease_us: u64,
    /// The node may have granted leases before this start.
    pub has_run: bool,
    /// The limit of all the node's workers for copies of slots, in bytes per second; 0: no limit.
    pub move_rate: u64,
}

/// A worker's counters of chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainFigures {
    /// Slots of this worker that this node serves, is a member of the chains of, and has all data
    /// of.
    pub served: u64,
    pub member: u64,
    pub whole: u64,
    /// Slots whose data here is not as it should be: their chains wait until this node is removed
    /// from them.
    pub broken: u64,
    /// Writes passed to chains.
    pub appended: u64,
    /// Frames that wait for chains, messages that wait for the log, requests that wait for a slot.
    pub waiting: u64,
    pub held: u64,
    pub parked: u64,
    /// How often the outcome of writes became unknown.
    pub lost: u64,
    /// Mappings that could not follow the one in force; effects of other nodes that could not be
    /// applied; changes that no chain can carry.
    pub refused_mappings: u64,
    pub refused_effects: u64,
    pub spread: u64,
}

impl ChainFigures {
    /// Adds the counters of another worker of the same node.
    pub fn add(&mut self, other: &Self) {
        for (sum, n) in [
            (&mut self.served, other.served),
            (&mut self.member, other.member),
            (&mut self.whole, other.whole),
            (&mut self.broken, other.broken),
            (&mut self.appended, other.appended),
            (&mut self.waiting, other.waiting),
            (&mut self.held, other.held),
            (&mut self.parked, other.parked),
            (&mut self.lost, other.lost),
            (&mut self.refused_mappings, other.refused_mappings),
            (&mut self.refused_effects, other.refused_effects),
            (&mut self.spread, other.spread),
        ] {
            *sum += n;
        }
    }
}

/// A message for a worker of another node.
#[derive(Clone, Debug)]
pub struct Said {
    pub to: Peer,
    /// Sender or receiver is a learner of the slot concerned.
    pub learning: bool,
    pub envelope: Envelope,
}

/// See the module's description.
#[derive(Debug)]
pub(in crate::worker) struct Chains {
    pub(in crate::worker) settings: ChainSettings,
    /// Slots of this worker.
    pub(in crate::worker) slots: Range<u16>,
    pub(in crate::worker) replica: Option<Replica>,
    /// The mapping to put in force, and this node's number in it.
    pub(in crate::worker) mapping: Option<(Arc<Mapping>, NodeNo)>,
    /// No slot of this worker has other members than this node: no chain needs writes.
    pub(in crate::worker) is_alone: bool,
    /// The length of the open frame's journal that chains have, or that came from them.
    pub(in crate::worker) taken: usize,
    /// The write that chains must have committed for the open frame to be committed.
    pub(in crate::worker) appended: Option<u64>,
    /// Messages that wait for the log.
    pub(in crate::worker) held: VecDeque<(u64, Said)>,
    pub(in crate::worker) out: Vec<Said>,
    /// Requests for slots that no node serves now.
    pub(in crate::worker) waiting: Waiting,
    /// Awaited slots that no node serves.
    /// Copying or dropping is not finished.
    pub(in crate::worker) more: bool,
    /// When its next step is due.
    pub(in crate::worker) step_at: u64,
    pub(in crate::worker) figures: ChainFigures,
}

impl Chains {
    /// The last write of the ending frame, and the writes that are committed.
    pub(in crate::worker) fn take_written(&mut self) -> (Option<u64>, u64) {
        let settled = self.replica.as_ref().map_or(0, Replica::settled);
        (self.appended.take(), settled)
    }

    /// Ends a frame.
    pub(in crate::worker) fn end_frame(&mut self, frame: u64) {
        self.taken = 0;
        self.collect(frame);
    }

    /// Collects the replica's messages: they concern everything up to this frame.
    pub(in crate::worker) fn collect(&mut self, frame: u64) {
        let Some(replica) = &mut self.replica else {
            return;
        };
        for (to, envelope) in replica.take_messages() {
            let slot = slot_of(&envelope.message);
            let learner = slot.and_then(|slot| replica.mapping()?.chains.of(slot).learner);
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

    /// Releases the messages that need no more of the log than this.
    pub(in crate::worker) fn release(&mut self, logged: u64) {
        let logged = match planted::is(Planted::SaidBeforeLogged) {
            true => u64::MAX,
            false => logged,
        };
        while self
            .held
            .front()
            .is_some_and(|(frame, ..)| *frame <= logged)
        {
            let released = self.held.pop_front();
            self.out.extend(released.map(|(_, said)| said));
        }
    }

    pub(in crate::worker) fn serves(&self, slot: u16, now: Now) -> Result<(), Refused> {
        match &self.replica {
            Some(replica) => replica.serves(slot, now.mono_us),
            None => Err(Refused::NotYet),
        }
    }

    /// Whether this node may answer a read, also where another node is the head.
    pub(in crate::worker) fn reads(&self, slot: u16, now: Now) -> Result<(), Refused> {
        match &self.replica {
            Some(replica) => replica.reads(slot, now.mono_us),
            None => Err(Refused::NotYet),
        }
    }

    pub(in crate::worker) fn mark_of(&self, slot: u16) -> Option<SlotMark> {
        let replica = self.replica.as_ref()?;
        match replica.complete_seq(slot) {
            Some(seq) => Some(SlotMark::Whole(seq)),
            None => replica.has_part(slot).then_some(SlotMark::Part),
        }
    }
}

pub(super) fn slot_of(message: &Message) -> Option<u16> {
    message.chain().map(|(slot, _)| slot)
}
