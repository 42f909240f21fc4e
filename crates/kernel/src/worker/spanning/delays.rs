//! Commands and transactions over several workers that have keys of slots which this node does not serve now: while a
//! slot moves, or a lease of a member that was lost has to run out. They wait, for as long as requests of one worker do
//! ([`super::super::parking`]), until this node serves the slots or another node has them.
//!
//! A slot's state is known to its owner alone. A command that waits therefore begins again from time to time.
//!
//! Invariants:
//! 1. A command that waits holds nothing: requests for other slots and for lattice keys go on.
//! 2. A transaction of which a watched key was touched does not wait: it will not be executed.

use super::held::{begin_again, release_all};
use super::{Call, Gap, Site};
use crate::batch::Status;
use crate::lock::KeyName;
use crate::multi::Multi;
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::worker::chains::{Kept, Needs, SlotView, too_spread};
use crate::worker::parking::{MOST, MOST_BYTES};
use rufous_base::limits::{COPY_PATIENCE_US, SLOT_PATIENCE_US};
use rufous_base::slot::slot_of;
use rufous_base::{Now, Output};
use rufous_chain::Refused;

/// The pause before a command begins again: doubled each time, from the first to the last.
const FIRST_PAUSE_US: u64 = 1_000;
const LAST_PAUSE_US: u64 = 32_000;

/// The state of a command that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// When it was not served for the first time.
    since_us: u64,
    /// The pause before its next attempt.
    pause_us: u64,
}

#[derive(Debug)]
struct Delayed {
    at_us: u64,
    bytes: usize,
    multi: Multi,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(in crate::worker) struct Delays {
    waiting: Vec<Delayed>,
    bytes: usize,
    refused: u64,
    /// The node stops: no command waits any more.
    stops: bool,
}

impl Delays {
    pub(in crate::worker) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A command is not served, and may wait for so long since its first attempt: that changes with the
    /// slot's chain. Returns it if it
    /// has waited for too long, or if too many wait.
    fn on_unserved(&mut self, now: Now, patience_us: u64, mut multi: Multi) -> Option<Multi> {
        let delay = multi.delay.unwrap_or(Delay {
            since_us: now.mono_us,
            pause_us: FIRST_PAUSE_US,
        });
        let bytes = bytes_of(&multi);
        let until_us = delay.since_us + patience_us;
        let is_late = now.mono_us >= until_us || planted::is(Planted::SlotsNotAwaited);
        let is_full = self.waiting.len() >= MOST || self.bytes + bytes > MOST_BYTES;
        if is_late || is_full || self.stops {
            self.refused += 1;
            return Some(multi);
        }
        // They are read again.
        for gathered in &mut multi.gathered {
            (gathered.entry, gathered.context) = (None, None);
        }
        multi.delay = Some(Delay {
            pause_us: (delay.pause_us * 2).min(LAST_PAUSE_US),
            ..delay
        });
        self.bytes += bytes;
        self.waiting.push(Delayed {
            at_us: (now.mono_us + delay.pause_us).min(until_us),
            bytes,
            multi,
        });
        None
    }

    /// The commands to begin again.
    fn due(&mut self, now: Now) -> Vec<Multi> {
        let stops = self.stops;
        let is_due = |one: &mut Delayed| stops || one.at_us <= now.mono_us;
        let due = self.waiting.extract_if(.., is_due);
        let due: Vec<_> = due.collect();
        self.bytes -= due.iter().map(|one| one.bytes).sum::<usize>();
        due.into_iter().map(|one| one.multi).collect()
    }
}

fn bytes_of(multi: &Multi) -> usize {
    let keys = multi.gathered.iter().map(|g| g.key.1.len() + 64);
    multi.batch.size() + keys.sum::<usize>()
}

impl Delays {
    /// Commands that were refused because they waited too long, or because too many waited.
    pub(in crate::worker) fn refused(&self) -> u64 {
        self.refused
    }

    /// When the next one begins again.
    pub(in crate::worker) fn wake_us(&self) -> Option<u64> {
        self.waiting.iter().map(|one| one.at_us).min()
    }

    /// The node stops, and has waited long enough.
    pub(super) fn on_stop(&mut self) {
        self.stops = true;
    }

    /// Time has passed.
    pub(super) fn on_time(&mut self, site: &mut Site<'_>) {
        for multi in self.due(site.now) {
            let again = begin_again(multi, site.store.placement);
            site.call(Call::Begin(Box::new(again)));
        }
    }

    /// Everything is held: returns a command unless some of its keys are of slots that this node
    /// does not serve. Such a command waits, or is refused. A request that waits for data at these
    /// keys was executed before.
    pub(super) fn on_all_held<P: Program>(
        &mut self,
        mut multi: Multi,
        site: &mut Site<'_>,
    ) -> Option<Multi> {
        let spread = match (multi.batch.requests.first(), &site.slots) {
            // A waiter has waited since before the slots had copies.
            (Some(request), Some(slots)) if multi.waiter.is_none() => {
                let keys = multi.gathered.iter().map(|gathered| &*gathered.key.1);
                slots.is_too_spread::<P>(request.header.command, keys)
            }
            _ => false,
        };
        if multi.dirty {
            multi.unserved = None;
        }
        let gap = gap_of::<P>(&multi).filter(|_| multi.waiter.is_none());
        if gap.is_none() && !spread {
            return Some(multi);
        }
        release_all(std::mem::take(&mut multi.held), site);
        if let (Some(gap), Some(slots)) = (gap.filter(|_| !spread), &site.slots)
            && let Some(patience_us) = patience_us::<P>(&multi, gap, slots)
        {
            multi = self.on_unserved(site.now, patience_us, multi)?;
        }
        if multi.exec.is_some() {
            multi.gathered.clear();
            site.call(Call::Ready(Box::new(multi)));
            return None;
        }
        let (reply, status) = refusal::<P>(&multi, spread, site);
        multi.batch.set_refusal(reply, status);
        site.call(Call::Answer(site.store.id, multi.batch));
        None
    }
}

/// What the requests of a command need of this node; a transaction needs its head.
fn needs_of<P: Program>(multi: &Multi) -> Needs {
    let first = multi.batch.requests.first();
    let request = first.filter(|_| multi.exec.is_none());
    request.map_or(Needs::Head, |request| Needs::of::<P>(&request.header))
}

/// The slot that keeps a command from being executed. Any copy executes reads of clients that know
/// the cluster.
fn gap_of<P: Program>(multi: &Multi) -> Option<Gap> {
    match needs_of::<P>(multi) {
        Needs::Member => multi.unread,
        Needs::Write | Needs::Head => multi.unserved,
    }
}

/// Whether other nodes have a slot of a command's keys: lattice keys are at each node.
fn is_elsewhere(multi: &Multi, slot: u16, slots: &SlotView<'_>) -> bool {
    let keys = multi.gathered.iter().map(|gathered| &*gathered.key.1);
    let mut strict = keys.filter(|key| !slots.is_lattice(key));
    strict.any(|key| slot_of(key) == slot) && !slots.chains.leads(slot)
}

/// For how long a command waits for a slot; `None` if another node has it. The owner of the slot and
/// this worker may know different mappings for a moment: then the command waits too.
fn patience_us<P: Program>(multi: &Multi, gap: Gap, slots: &SlotView<'_>) -> Option<u64> {
    let elsewhere = is_elsewhere(multi, gap.slot, slots);
    match (needs_of::<P>(multi), gap.why) {
        _ if !elsewhere => Some(SLOT_PATIENCE_US),
        // A copy with writes that are not acknowledged.
        (Needs::Member, Refused::NotYet) => Some(COPY_PATIENCE_US),
        _ => None,
    }
}

/// What the sender of a command with keys that this node does not serve is told.
fn refusal<P: Program>(multi: &Multi, spread: bool, site: &Site<'_>) -> (Output, Status) {
    let mut reply = Output::default();
    let Some(header) = multi.batch.requests.first().map(|request| request.header) else {
        return (reply, Status::Ready);
    };
    if spread {
        P::refuse_slot(too_spread::<P>(header.command), header.resp3, &mut reply);
        return (reply, Status::Ready);
    }
    let (Some(slots), Some(gap)) = (&site.slots, gap_of::<P>(multi)) else {
        debug_assert!(false, "a command is refused for a slot");
        return (reply, Status::Ready);
    };
    if is_elsewhere(multi, gap.slot, slots) {
        let status = slots.refuse_elsewhere::<P>(gap.slot, &header, Kept::Request, &mut reply);
        return (reply, status);
    }
    let keys: Vec<KeyName> = multi.gathered.iter().map(|g| g.key.clone()).collect();
    let why = slots.why_unserved(gap.slot, &keys);
    P::refuse_slot(&why, header.resp3, &mut reply);
    (reply, Status::Ready)
}
