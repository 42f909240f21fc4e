//! Requests for slots: executed where this node serves them, delayed where it is about to, and
//! refused where another node serves them.
//!
//! While its chain changes, no node serves a slot, for at most the duration of a lease. Requests
//! that arrive meanwhile wait, in order of arrival.

use super::several::SEVERAL;
use super::{Work, Worker};
use crate::batch::{Batch, Door, Header, Status};
use crate::lock::{KeyName, Scope, Ticket};
use crate::multi::Multi;
use crate::program::Program;
use rufous_base::limits::{COPY_PATIENCE_US, SLOT_PATIENCE_US};
use rufous_base::slot::slot_of;
use rufous_base::{Args, Now, Output, WorkerId};
use rufous_chain::Refused;
use std::collections::{BTreeMap, VecDeque};

/// The limit of waiting requests.
const MOST: usize = 4096;

pub(super) const NOBODY: &str = "CLUSTERDOWN Hash slot not served: its nodes do not reach one another, \
                      or have yet to say what they have; send it again";
const MOVED: &str = "TRYAGAIN The keys have just moved to another node; send it again";

/// The reply for [`Status::NotHere`].
const NOT_HERE: &str = "NOTHERE";

/// A request that waits for its slot.
#[derive(Debug)]
struct Parked {
    until_us: u64,
    slot: u16,
    keys: Vec<KeyName>,
    batch: Box<Batch>,
    origin: WorkerId,
}

/// The waiting requests of all slots.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    parked: VecDeque<Parked>,
    /// The number of requests by slot.
    slots: BTreeMap<u16, usize>,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.parked.len()
    }

    fn push(&mut self, parked: Parked) {
        *self.slots.entry(parked.slot).or_default() += 1;
        self.parked.push_back(parked);
    }

    fn forget(&mut self, slot: u16) {
        if let Some(count) = self.slots.get_mut(&slot) {
            *count -= 1;
            if *count == 0 {
                self.slots.remove(&slot);
            }
        }
    }
}

impl<P: Program> Worker<P> {
    /// Whether any member of the slot's chain may answer: reads of clients at the redirecting door.
    fn takes_copies(header: &Header) -> bool {
        header.door == Door::Redirected && !P::is_write(header.command)
    }

    /// How long a request waits until this node serves its slot. Lattice keys are not forwarded to
    /// other nodes.
    fn patience_us(&self, slot: u16, header: &Header, keys: &[KeyName]) -> u64 {
        let is_lattice = |(_, key): &KeyName| self.placement.lattice(key).is_some();
        let asks_copy = Self::takes_copies(header) && !keys.iter().any(is_lattice);
        match asks_copy && !self.is_head(slot) {
            true => COPY_PATIENCE_US,
            false => SLOT_PATIENCE_US,
        }
    }

    fn is_head(&self, slot: u16) -> bool {
        let replica = self.chains.as_ref().and_then(|c| c.replica.as_ref());
        replica.is_some_and(|replica| replica.is_head(slot))
    }

    /// For a slot that this node serves now: the epoch since which its chain is unchanged.
    pub fn answers_since(&self, slot: u16, now: Now) -> Option<u64> {
        let chains = self.chains.as_ref()?;
        chains.serves(slot, now).ok()?;
        let mapping = chains.replica.as_ref()?.mapping()?;
        Some(mapping.chains.of(slot).since)
    }

    /// Why this node does not serve a key now, if it does not.
    pub(super) fn unserved(&self, now: Now, key: &[u8], copies: bool) -> Option<Refused> {
        let chains = self.chains.as_ref()?;
        if self.placement.lattice(key).is_some() {
            return self.lattice.awaits_nodes().then_some(Refused::NotYet);
        }
        let slot = slot_of(key);
        match copies {
            true => chains.reads(slot, now).err(),
            false => chains.serves(slot, now).err(),
        }
    }

    /// Whether this node does not serve one of these keys.
    pub(super) fn is_any_unserved<'k>(
        &self,
        now: Now,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> bool {
        let mut keys = keys.into_iter();
        self.chains.is_some() && keys.any(|key| self.unserved(now, key, false).is_some())
    }

    /// Checks a request before it is executed, and keeps or refuses it if this node does not serve
    /// the slot of its first key. `None`: it may be executed.
    #[inline]
    pub(super) fn holds_back(
        &mut self,
        now: Now,
        header: &Header,
        args: &mut Args<'_>,
        (origin, named): (WorkerId, impl FnOnce(&Args<'_>) -> Vec<KeyName>),
        out: &mut Output,
    ) -> Option<Status> {
        let chains = self.chains.as_ref().filter(|_| header.key > 0)?;
        let key = args.get(usize::from(header.key));
        let slot = slot_of(key);
        let refused = match self.unserved(now, key, Self::takes_copies(header)) {
            // Requests that already wait go first.
            None if chains.waiting.slots.contains_key(&slot) => Refused::NotYet,
            refused => refused?,
        };
        if refused == Refused::NotYet {
            let keys = named(args);
            let batch = self.batch_of(header, args.reborrow());
            return Some(self.park_for_slot(now, (slot, keys), batch, origin, out));
        }
        let is_kept = origin != self.id;
        Some(self.refuse_elsewhere(slot, header, is_kept, out))
    }

    /// Refuses a request whose slot another node has. `is_kept`: the request is returned with its
    /// reply, so that it can be forwarded.
    pub(super) fn refuse_elsewhere(
        &self,
        slot: u16,
        header: &Header,
        is_kept: bool,
        out: &mut Output,
    ) -> Status {
        let chains = self.chains.as_ref();
        let replica = chains.and_then(|chains| chains.replica.as_ref());
        let mapping = replica.and_then(|replica| replica.mapping());
        let member = mapping.and_then(|mapping| {
            let head = mapping.chains.of(slot).head()?;
            mapping.members.get(&head)
        });
        let redirected;
        let (why, status) = match (member, header.door) {
            (Some(member), Door::Redirected) => {
                let (host, port) = member.for_clients();
                redirected = format!("MOVED {slot} {host}:{port}");
                (&*redirected, Status::Ready)
            }
            (_, Door::Forwarded) => (NOT_HERE, Status::NotHere),
            (_, Door::Plain) if is_kept => (NOT_HERE, Status::NotHere),
            _ => (MOVED, Status::Ready),
        };
        P::refuse_slot(why, header.resp3, out);
        status
    }

    /// Lets a request wait, or replies with an error where too many do.
    fn park_for_slot(
        &mut self,
        now: Now,
        (slot, keys): (u16, Vec<KeyName>),
        batch: Box<Batch>,
        origin: WorkerId,
        out: &mut Output,
    ) -> Status {
        let header = batch.requests[0].header;
        let resp3 = header.resp3;
        let patience_us = self.patience_us(slot, &header, &keys);
        let Some(chains) = self.chains.as_mut().filter(|c| c.waiting.len() < MOST) else {
            P::refuse_slot(NOBODY, resp3, out);
            return Status::Ready;
        };
        let parked = Parked {
            until_us: now.mono_us + patience_us,
            slot,
            keys,
            batch,
            origin,
        };
        chains.waiting.push(parked);
        Status::Later
    }

    /// Executes the waiting requests whose slots are served now, and refuses those that have waited
    /// too long or whose slots are elsewhere.
    pub(super) fn look_after_parked(&mut self, now: Now) {
        let Some(chains) = &mut self.chains else {
            return;
        };
        if chains.waiting.len() == 0 {
            return;
        }
        let parked = std::mem::take(&mut chains.waiting.parked);
        for parked in parked {
            let slot = parked.slot;
            let copies = Self::takes_copies(&parked.batch.requests[0].header);
            let is_lattice = |key: &[u8]| self.placement.lattice(key).is_some();
            let lattice = parked.keys.iter().any(|(_, key)| is_lattice(key));
            let awaits = lattice && self.lattice.awaits_nodes();
            let all = parked.keys.iter().all(|(_, key)| is_lattice(key));
            let Some(chains) = &mut self.chains else {
                return;
            };
            let serves = match (awaits, all) {
                (true, _) => Err(Refused::NotYet),
                // No chain has any data of these.
                (false, true) => Ok(()),
                (false, false) if copies => chains.reads(slot, now),
                (false, false) => chains.serves(slot, now),
            };
            if serves == Err(Refused::NotYet) && now.mono_us < parked.until_us {
                chains.waiting.parked.push_back(parked);
                continue;
            }
            chains.waiting.forget(slot);
            let Parked {
                keys,
                mut batch,
                origin,
                ..
            } = parked;
            let header = batch.requests[0].header;
            let mut reply = Output::default();
            let status = match serves {
                Ok(()) => {
                    let work = Work::Run { batch, origin };
                    self.locks.acquire(Scope::keys(keys), work);
                    continue;
                }
                Err(Refused::NotYet) if !copies || awaits || self.is_head(slot) => {
                    P::refuse_slot(NOBODY, header.resp3, &mut reply);
                    Status::Ready
                }
                Err(_) => self.refuse_elsewhere(slot, &header, true, &mut reply),
            };
            batch.set_refusal(reply, status);
            self.answer(now, origin, batch);
        }
    }

    /// When the first of them is refused.
    pub(super) fn parked_until_us(&self) -> Option<u64> {
        let chains = self.chains.as_ref()?;
        let parked = chains.waiting.parked.iter();
        parked.map(|parked| parked.until_us).min()
    }

    /// Called when a request has its keys: returns it if it may be executed.
    pub(super) fn still_served(
        &mut self,
        now: Now,
        (ticket, origin): (Ticket, WorkerId),
        mut batch: Box<Batch>,
    ) -> Option<Box<Batch>> {
        if self.chains.is_none() {
            return Some(batch);
        }
        let Some(Scope::Keys(keys)) = self.locks.scope(ticket) else {
            return Some(batch);
        };
        let header = batch.requests[0].header;
        let copies = Self::takes_copies(&header);
        if keys.len() > 1 && self.is_too_spread(header.command, keys.iter().map(|k| &*k.1)) {
            self.let_go(now, ticket);
            let mut reply = Output::default();
            P::refuse_slot(SEVERAL, header.resp3, &mut reply);
            batch.set_reply(reply);
            self.answer(now, origin, batch);
            return None;
        }
        let mut refused = keys.iter().filter_map(|(_, key)| {
            let refused = self.unserved(now, key, copies)?;
            Some((slot_of(key), refused))
        });
        let Some((slot, refused)) = refused.next() else {
            return Some(batch);
        };
        let keys = keys.clone();
        self.let_go(now, ticket);
        let mut reply = Output::default();
        let status = if refused == Refused::NotYet {
            let again = batch.copy_of(0);
            self.park_for_slot(now, (slot, keys), again, origin, &mut reply)
        } else {
            self.refuse_elsewhere(slot, &header, true, &mut reply)
        };
        if status == Status::Later {
            return None;
        }
        batch.set_refusal(reply, status);
        self.answer(now, origin, batch);
        None
    }

    /// Called when a command over several workers has its keys: returns it, unless some are of
    /// slots that this node does not serve. A request that waits for data at these keys was
    /// executed before.
    pub(super) fn all_served(&mut self, now: Now, mut multi: Multi) -> Option<Multi> {
        let spread = match multi.batch.requests.first() {
            // A waiter has waited since before the slots had copies.
            Some(request) if multi.waiter.is_none() => {
                let keys = multi.gathered.iter().map(|gathered| &*gathered.key.1);
                self.is_too_spread(request.header.command, keys)
            }
            _ => false,
        };
        if (!multi.unserved || multi.waiter.is_some()) && !spread {
            return Some(multi);
        }
        self.release_all(now, std::mem::take(&mut multi.held));
        if let Some(exec) = multi.exec {
            multi.gathered.clear();
            self.ready_exec(now, exec, multi);
            return None;
        }
        let header = multi.batch.requests.first().map(|request| request.header);
        let mut reply = Output::default();
        let (why, status) = match header.map(|header| header.door) {
            _ if spread => (SEVERAL, Status::Ready),
            Some(Door::Forwarded | Door::Plain) => (NOT_HERE, Status::NotHere),
            _ => (NOBODY, Status::Ready),
        };
        P::refuse_slot(why, header.is_some_and(|header| header.resp3), &mut reply);
        multi.batch.set_refusal(reply, status);
        self.answer(now, self.id, multi.batch);
        None
    }
}
