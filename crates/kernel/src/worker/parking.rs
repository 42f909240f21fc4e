//! Requests for slots that no node serves now: while the chain of a slot changes, for at most the
//! duration of a lease. They wait until this node serves the slot, until another node does, or until
//! they have waited too long.
//!
//! Invariants:
//! 1. Requests for a slot are executed in order of arrival: later ones wait behind those that wait.
//! 2. A request that has its keys is checked again: while it waited for them, the slot may have
//!    moved.

#[cfg(test)]
mod tests;

use super::Work;
use super::chains::{Gap, Kept, Needs, SlotView, too_spread};
use super::out::{Call, Out};
use crate::batch::{Batch, Header, Status};
use crate::lock::{KeyName, Scope, Ticket};
use crate::program::Program;
use rufous_base::limits::{COPY_PATIENCE_US, SLOT_PATIENCE_US};
use rufous_base::slot::slot_of;
use rufous_base::{Output, Until, WorkerId};
use rufous_chain::Refused;
use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};

/// The limit of waiting requests, and of their bytes.
pub(super) const MOST: usize = 4096;
pub(super) const MOST_BYTES: usize = 64 << 20;

/// For how long a request waits; `has_other`: the head can execute it.
fn patience_us(has_other: bool) -> u64 {
    if has_other {
        COPY_PATIENCE_US
    } else {
        SLOT_PATIENCE_US
    }
}

/// A request of a worker, alone in its batch, with all its keys.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) origin: WorkerId,
    pub(super) batch: Box<Batch>,
    pub(super) keys: Vec<KeyName>,
}

impl Request {
    fn header(&self) -> Header {
        self.batch.requests[0].header
    }

    /// The call that answers it with a refusal.
    fn refused(mut self, reply: Output, status: Status) -> Call {
        self.batch.set_refusal(reply, status);
        // It tells of no data.
        self.batch.until = Until::Logged;
        Call::Answer(self.origin, self.batch)
    }
}

/// A request that has its keys.
#[derive(Debug)]
pub(super) struct Granted<'k> {
    pub(super) ticket: Ticket,
    pub(super) keys: &'k [KeyName],
    pub(super) origin: WorkerId,
    pub(super) batch: Box<Batch>,
}

#[derive(Debug)]
struct Parked {
    slot: u16,
    since_us: u64,
    /// As the slot's chain was at the last look.
    until_us: u64,
    request: Request,
}

/// The keys of a request, if all are of this slot.
fn keys_of_one(slot: u16, request: &Request) -> impl Iterator<Item = &[u8]> {
    let names = request.keys.iter().map(|(_, key)| &**key);
    let is_one = names.clone().all(|key| slot_of(key) == slot);
    names.filter(move |_| is_one)
}

fn count_down<K: Ord + Borrow<Q>, Q: Ord + ?Sized>(counts: &mut BTreeMap<K, usize>, key: &Q) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Parking {
    parked: VecDeque<Parked>,
    /// The number of requests by slot.
    slots: BTreeMap<u16, usize>,
    /// Likewise, by key, of those whose keys are all of one slot.
    keys: BTreeMap<Box<[u8]>, usize>,
    bytes: usize,
    refused: u64,
    /// The node stops: no request waits any more.
    stops: bool,
}

impl Parking {
    pub(super) fn len(&self) -> usize {
        self.parked.len()
    }

    /// Requests that were refused because they waited too long, or because too many waited.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// When the first request has waited too long.
    pub(super) fn until_us(&self) -> Option<u64> {
        self.parked.iter().map(|parked| parked.until_us).min()
    }

    /// Why a request on a key may not be executed now, if it may not.
    #[inline]
    pub(super) fn unserved<P: Program>(
        &self,
        header: &Header,
        key: &[u8],
        view: &SlotView<'_>,
    ) -> Option<Refused> {
        let unserved = view.unserved(key, Needs::of::<P>(header));
        if unserved.is_none() && self.has(key) {
            return Some(Refused::NotYet);
        }
        unserved
    }

    /// Whether requests wait for the slot of a key.
    fn has(&self, key: &[u8]) -> bool {
        !self.slots.is_empty() && self.slots.contains_key(&slot_of(key))
    }

    /// Whether a request waits for a key, and for none of another slot. A transaction that is prepared later waits for such
    /// requests: if these could wait for other slots, too, the two could wait for each other.
    pub(super) fn awaits(&self, key: &[u8]) -> bool {
        !self.keys.is_empty() && self.keys.contains_key(key)
    }

    /// A request arrives for a slot that is not served yet: it waits. Where too many wait, appends
    /// the reply.
    pub(super) fn on_request<P: Program>(
        &mut self,
        slot: u16,
        request: Request,
        view: &SlotView<'_>,
        reply: &mut Output,
    ) -> Status {
        let header = request.header();
        if self.stops || self.parked.len() >= MOST || self.bytes >= MOST_BYTES {
            self.refused += 1;
            P::refuse_slot(&view.why_unserved(slot, &request.keys), header.resp3, reply);
            return Status::Ready;
        }
        let has_other = view.has_other(slot, &request.keys, Needs::of::<P>(&header));
        let since_us = view.now.mono_us;
        *self.slots.entry(slot).or_default() += 1;
        for key in keys_of_one(slot, &request) {
            *self.keys.entry(key.into()).or_default() += 1;
        }
        self.bytes += request.batch.size();
        self.parked.push_back(Parked {
            slot,
            since_us,
            until_us: since_us + patience_us(has_other),
            request,
        });
        Status::Later
    }

    /// The node stops, and has waited long enough: refuses what waits, and what would wait later.
    pub(super) fn on_stop<P: Program>(&mut self, view: &SlotView<'_>, out: &mut Out) {
        self.stops = true;
        self.on_progress::<P>(view, out);
    }

    /// Slots may be served now, and time has passed: lets requests run whose slots are served, and
    /// refuses those that have waited too long or whose slots are elsewhere. True if one waits no more.
    pub(super) fn on_progress<P: Program>(&mut self, view: &SlotView<'_>, out: &mut Out) -> bool {
        let before = self.parked.len();
        for _ in 0..self.parked.len() {
            let Some(mut parked) = self.parked.pop_front() else {
                break;
            };
            let slot = parked.slot;
            let header = parked.request.header();
            let needs = Needs::of::<P>(&header);
            let keys = &parked.request.keys;
            let has_other = view.has_other(slot, keys, needs);
            let serves = view.serves(slot, keys, needs);
            // A copy may have become the head meanwhile: then no other node can tell.
            parked.until_us = parked.since_us + patience_us(has_other);
            let is_late = self.stops || view.now.mono_us >= parked.until_us;
            if serves == Err(Refused::NotYet) && !is_late {
                self.parked.push_back(parked);
                continue;
            }
            self.forget(slot, &parked.request);
            self.bytes -= parked.request.batch.size();
            self.refused += u64::from(serves == Err(Refused::NotYet));
            let request = parked.request;
            let mut reply = Output::default();
            out.call(match serves {
                Ok(()) => {
                    let Request {
                        origin,
                        batch,
                        keys,
                    } = request;
                    Call::Acquire(Scope::keys(keys), Work::Run { batch, origin })
                }
                Err(Refused::NotYet) if !has_other => {
                    P::refuse_slot(
                        &view.why_unserved(slot, &request.keys),
                        header.resp3,
                        &mut reply,
                    );
                    request.refused(reply, Status::Ready)
                }
                Err(_) => {
                    let status =
                        view.refuse_elsewhere::<P>(slot, &header, Kept::Request, &mut reply);
                    request.refused(reply, status)
                }
            });
        }
        self.parked.len() < before
    }

    fn forget(&mut self, slot: u16, request: &Request) {
        count_down(&mut self.slots, &slot);
        for key in keys_of_one(slot, request) {
            count_down(&mut self.keys, key);
        }
    }

    /// A request has its keys: returns it if it may be executed. Otherwise ends the hold, and lets
    /// the request wait or refuses it.
    pub(super) fn on_granted<P: Program>(
        &mut self,
        granted: Granted<'_>,
        view: &SlotView<'_>,
        out: &mut Out,
    ) -> Option<Box<Batch>> {
        let Granted {
            ticket,
            keys,
            origin,
            mut batch,
        } = granted;
        let header = batch.requests[0].header;
        let names = || keys.iter().map(|(_, key)| &**key);
        let mut reply = Output::default();
        let status = if keys.len() > 1 && view.is_too_spread::<P>(header.command, names()) {
            let why = too_spread::<P>(header.command);
            P::refuse_slot(why, header.resp3, &mut reply);
            Status::Ready
        } else {
            match view.first_unserved(names(), Needs::of::<P>(&header)) {
                None => return Some(batch),
                Some(Gap {
                    slot,
                    why: Refused::NotYet,
                }) => {
                    let request = Request {
                        origin,
                        batch: batch.copy_of(0),
                        keys: keys.to_vec(),
                    };
                    self.on_request::<P>(slot, request, view, &mut reply)
                }
                Some(Gap {
                    slot,
                    why: Refused::Elsewhere(_),
                }) => view.refuse_elsewhere::<P>(slot, &header, Kept::Request, &mut reply),
            }
        };
        out.call(Call::LetGo(ticket));
        if status != Status::Later {
            batch.set_refusal(reply, status);
            batch.until = Until::Logged;
            out.call(Call::Answer(origin, batch));
        }
        None
    }
}
