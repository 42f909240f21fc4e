//! What a worker keeps of chains: which frames wait for them, and what waits
//! for frames.

use crate::durable::SlotMark;
use crate::planted::{self, Planted};
use crate::worker::leaving::Leaving;
use crate::worker::serving::Waiting;
use rufous_base::Now;
use rufous_chain::{Envelope, Message, Peer, Refused, Replica};
use rufous_mapping::{Mapping, NodeNo};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// What a worker is told of its node's part in chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSettings {
    /// As it was counted at this start of the node.
    pub incarnation: u64,
    /// How long leases last.
    pub lease_us: u64,
    /// The node may have granted leases before this start.
    pub has_run: bool,
    /// Bytes a second that all workers of the node send of copies of slots; 0: no bound.
    pub move_rate: u64,
}

/// What a worker counts of chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainFigures {
    /// Slots of this worker that this node answers for, is a member of the
    /// chains of, and has all data of.
    pub served: u64,
    pub member: u64,
    pub whole: u64,
    /// Slots whose data here is not what it ought to be: their chains wait until
    /// this node is taken out of them.
    pub broken: u64,
    /// Writes that went to chains.
    pub appended: u64,
    /// Frames that wait for them, messages for the log, requests for a slot.
    pub waiting: u64,
    pub held: u64,
    pub parked: u64,
    /// How often nobody knew what became of writes.
    pub lost: u64,
    /// Mappings that could not follow the one in force; effects of other
    /// nodes that could not be done; changes that no chain can have.
    pub refused_mappings: u64,
    pub refused_effects: u64,
    pub spread: u64,
}

impl ChainFigures {
    /// Of another worker of the same node.
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

/// Something for a worker of another node.
#[derive(Clone, Debug)]
pub struct Said {
    pub to: Peer,
    /// One of the two learns the slot that it is about.
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
    /// To be taken up, and who this node is in it.
    pub(in crate::worker) mapping: Option<(Arc<Mapping>, NodeNo)>,
    /// No slot of this worker has anybody but this node: no chain needs writes.
    pub(in crate::worker) is_alone: bool,
    /// How much of the open frame's journal the chains have, or it is theirs.
    pub(in crate::worker) taken: usize,
    /// How far the chains have to be for the open frame to be committed.
    pub(in crate::worker) appended: Option<u64>,
    /// Nobody knows what becomes of some writes. No gate opens before those who
    /// wait were told so, at the end of the turn: the replica does not wait for
    /// these writes any more.
    pub(in crate::worker) is_losing: bool,
    /// Frames that wait for the chains to have come so far.
    pub(in crate::worker) gates: VecDeque<(u64, u64)>,
    /// Messages that wait for the log.
    pub(in crate::worker) held: VecDeque<(u64, Said)>,
    pub(in crate::worker) out: Vec<Said>,
    /// Requests for slots that nobody answers for just now.
    pub(in crate::worker) waiting: Waiting,
    /// Slots that are waited for and have nobody.
    pub(in crate::worker) leaving: Leaving,
    /// Something is left to be copied or dropped.
    pub(in crate::worker) more: bool,
    /// When the next step of that is due.
    pub(in crate::worker) step_at: u64,
    pub(in crate::worker) figures: ChainFigures,
}

impl Chains {
    /// What is committed, as far as the log goes.
    pub(in crate::worker) fn committed_of(&self, logged: u64) -> u64 {
        let first = self.gates.front();
        match first.filter(|_| !planted::is(Planted::GatesOpen)) {
            Some((frame, _)) => logged.min(frame - 1),
            None => logged,
        }
    }

    /// A frame ends: it is committed once it is logged and the chains have what
    /// it has for them.
    pub(in crate::worker) fn end_frame(&mut self, frame: u64) {
        let settled = self.replica.as_ref().map_or(0, Replica::settled);
        let appended = self.appended.take();
        let waits = |position: &u64| *position > settled || self.is_losing;
        if let Some(position) = appended.filter(waits) {
            self.gates.push_back((frame, position));
        }
        self.taken = 0;
        self.collect(frame);
    }

    /// Takes what the replica has to say: it tells of everything up to this frame.
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

    /// What may be told, now that so much is logged.
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

    /// Whether a read is answered, also where another node is the head.
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
