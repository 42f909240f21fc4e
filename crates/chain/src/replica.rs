//! What one worker has to do with chains: all slots that it is named for.
//!
//! After every call what is in [`Replica::take_messages`] is to be sent, and
//! what [`Replica::settled`] says may be told. [`Replica::tick`] wants to be
//! called at [`Replica::wake_at`], and after a chain was set.

use crate::lease::Leases;
use crate::message::{Envelope, Message};
use crate::planted::{self, Planted};
use crate::slot::{Out, Slot};
use rufous_mapping::{Chain, NodeNo};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What slots hold.
pub trait Store {
    /// Does what another member has done.
    fn apply(&mut self, slot: u16, effect: &[u8]);
    /// Drops all of a slot.
    fn clear(&mut self, slot: u16);
    /// Begins to copy a slot, from its first key on.
    fn begin_copy(&mut self, slot: u16);
    /// The next part of the copy, as it is now. Nothing at its end.
    fn copy(&mut self, slot: u16) -> Option<Vec<u8>>;
    /// Whether the copy has got to what this effect changes.
    fn is_copied(&mut self, slot: u16, effect: &[u8]) -> bool;
    fn load(&mut self, slot: u16, chunk: &[u8]);
}

/// Why a node does not answer for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// This one does, as far as is known.
    Elsewhere(Option<NodeNo>),
    /// It will, when it knows what the others have, or has heard of them again.
    NotYet,
}

/// See the module's description.
#[derive(Debug)]
pub struct Replica {
    me: NodeNo,
    epoch: u64,
    slots: BTreeMap<u16, Slot>,
    leases: Leases,
    /// Nodes that share a chain with this one.
    peers: BTreeSet<NodeNo>,
    /// The epoch that each said last, since it was up.
    heard: BTreeMap<NodeNo, u64>,
    /// Writes of this worker that are not acknowledged, by their positions.
    waiting: VecDeque<(u64, u16, u64)>,
    position: u64,
    settled: u64,
    /// Some of these writes may never be: their slots went elsewhere.
    lost: bool,
    out: Vec<(NodeNo, Envelope)>,
    /// When leases are asked for next, and activation is tried next.
    ask_at: u64,
    activate_at: Option<u64>,
}

impl Replica {
    /// `lease_us`: how long a lease lasts, and so how long a slot may be
    /// without an answer after its chain has lost a member. `started_us`: now,
    /// where the node has run before: it does not know whom it has granted
    /// leases then.
    pub fn new(me: NodeNo, lease_us: u64, started_us: Option<u64>) -> Self {
        Self {
            me,
            epoch: 0,
            slots: BTreeMap::new(),
            leases: Leases::new(lease_us, started_us),
            peers: BTreeSet::new(),
            heard: BTreeMap::new(),
            waiting: VecDeque::new(),
            position: 0,
            settled: 0,
            lost: false,
            out: Vec::new(),
            ask_at: 0,
            activate_at: None,
        }
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What was on disk of a slot when the node started.
    pub fn restore(&mut self, slot: u16, seq: u64) {
        let entry = self.slots.entry(slot);
        entry
            .or_insert_with(|| Slot::new(slot, self.me))
            .restore(seq);
    }

    /// Chains of a new epoch; those that did not change may be left out. Not to
    /// be called while the mapping has this node with another incarnation than
    /// its own: then these chains count on what it has lost by starting again.
    pub fn set_chains<'a>(
        &mut self,
        epoch: u64,
        chains: impl Iterator<Item = (u16, &'a Chain)>,
        store: &mut impl Store,
        mono_us: u64,
    ) {
        if epoch <= self.epoch {
            return;
        }
        self.epoch = epoch;
        let mut out = Out::new();
        for (number, chain) in chains {
            let known = self.slots.get(&number).map(|slot| slot.chain.since);
            if known == Some(chain.since) {
                continue;
            }
            if !chain.members.contains(&self.me) {
                // Others may go on without what was written here last.
                let before = self.waiting.len();
                self.waiting.retain(|(_, slot, _)| *slot != number);
                self.lost |= self.waiting.len() < before;
            }
            if chain.names(self.me) {
                let slot = self.slots.entry(number);
                let slot = slot.or_insert_with(|| Slot::new(number, self.me));
                slot.set_chain(*chain, store, &mut out);
            } else if self.slots.remove(&number).is_some() {
                store.clear(number);
            }
        }
        self.peers = self
            .slots
            .values()
            .flat_map(|slot| slot.chain.named())
            .filter(|no| *no != self.me)
            .collect();
        self.send(out);
        self.ask(mono_us);
        self.tick(mono_us, store);
    }

    /// Position of a write that the head has done: it may be told of when
    /// [`Replica::settled`] has got there.
    pub fn append(&mut self, slot: u16, effect: Arc<[u8]>, store: &mut impl Store) -> u64 {
        let mut out = Out::new();
        if let Some(known) = self.slots.get_mut(&slot) {
            known.append(effect, store, &mut out);
            self.position += 1;
            self.waiting.push_back((self.position, slot, known.seq));
        }
        self.send(out);
        self.settle();
        self.position
    }

    /// All writes up to this position are acknowledged.
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// Whether nobody knows any more what becomes of some writes; asked once.
    pub fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Whether this node answers for a slot, as its head.
    pub fn serves(&self, slot: u16, mono_us: u64) -> Result<(), Refused> {
        let Some(known) = self.slots.get(&slot) else {
            return Err(Refused::Elsewhere(None));
        };
        if known.chain.head() != Some(self.me) {
            return Err(Refused::Elsewhere(known.chain.head()));
        }
        match known.is_open() && self.is_granted(known, mono_us) {
            true => Ok(()),
            false => Err(Refused::NotYet),
        }
    }

    /// Whether what any member has here is what is acknowledged, so that it may
    /// be read.
    pub fn may_read(&self, slot: u16, mono_us: u64) -> bool {
        let slot = self.slots.get(&slot);
        slot.is_some_and(|slot| slot.is_clean() && self.is_granted(slot, mono_us))
    }

    fn is_granted(&self, slot: &Slot, mono_us: u64) -> bool {
        let mut others = slot.chain.named().filter(|no| *no != self.me);
        planted::is(Planted::NoLease) || others.all(|no| self.leases.holds(no, mono_us))
    }

    /// Whether a slot waits for leases that were granted in earlier epochs.
    pub fn outwaits(&self) -> bool {
        self.activate_at.is_some()
    }

    /// Slots whose learners have all, with the epochs of their chains.
    pub fn synced(&self) -> impl Iterator<Item = (u16, NodeNo, u64)> {
        let slots = self.slots.iter();
        slots.filter_map(|(number, slot)| Some((*number, slot.synced()?, slot.chain.since)))
    }

    /// The last write of a slot that is here with all before it.
    pub fn complete_seq(&self, slot: u16) -> Option<u64> {
        let slot = self.slots.get(&slot)?;
        slot.is_complete().then_some(slot.seq)
    }

    /// That of the last write.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Takes a message.
    pub fn receive(
        &mut self,
        from: NodeNo,
        envelope: Envelope,
        store: &mut impl Store,
        mono_us: u64,
    ) {
        let before = self.heard.insert(from, envelope.epoch).unwrap_or(0);
        self.leases.on_epoch(from, envelope.epoch);
        let mut out = Out::new();
        if envelope.epoch > before {
            // What it was told in these epochs it could not take then.
            for slot in self.slots.values() {
                if (before + 1..=envelope.epoch).contains(&slot.chain.since) {
                    slot.tell(Some(from), &mut out);
                }
            }
        }
        self.take(from, envelope, store, mono_us, &mut out);
        self.send(out);
        self.settle();
    }

    fn take(
        &mut self,
        from: NodeNo,
        envelope: Envelope,
        store: &mut impl Store,
        mono_us: u64,
        out: &mut Out,
    ) {
        let (slot, since) = match envelope.message {
            Message::Ask { asked_us } => {
                // Before the first mapping after a start it is not known which
                // chains are over: a lease would bring them to life again.
                let knows = self.epoch > 0 || planted::is(Planted::GrantsUnknowing);
                if knows && self.leases.on_ask(from, self.epoch, mono_us) {
                    out.push((from, Message::Grant { asked_us }));
                }
                return;
            }
            Message::Grant { asked_us } => {
                // One that knows of a later epoch has granted nothing in it.
                if envelope.epoch <= self.epoch {
                    self.leases.on_grant(from, asked_us);
                }
                return;
            }
            Message::Items { slot, since, .. }
            | Message::Ack { slot, since, .. }
            | Message::State { slot, since, .. }
            | Message::Behind { slot, since }
            | Message::Learn { slot, since }
            | Message::Copy { slot, since, .. }
            | Message::Copied { slot, since, .. } => (slot, since),
        };
        let Some(slot) = self.slots.get_mut(&slot).filter(|slot| {
            slot.chain.since == since || planted::is(Planted::OldChainTaken) && slot.is_member()
        }) else {
            return;
        };
        match envelope.message {
            Message::Items { all, items, .. } => slot.on_items(from, all, items, store, out),
            Message::Ack { seq, .. } => slot.on_ack(from, seq, out),
            Message::State { seq, items, .. } => slot.on_state(from, seq, items, store, out),
            Message::Behind { .. } => slot.on_behind(from, store, out),
            Message::Learn { .. } => slot.on_learn(from, store),
            Message::Copy { chunk, .. } => slot.on_copy(from, &chunk, store),
            Message::Copied { all, seq, .. } => slot.on_copied(from, all, seq, out),
            Message::Ask { .. } | Message::Grant { .. } => (),
        }
    }

    /// Messages to a node may have been lost; from now on they arrive.
    pub fn peer_up(&mut self, peer: NodeNo) {
        if planted::is(Planted::NotRepeated) {
            return;
        }
        // It may have started again, and know nothing yet.
        self.heard.remove(&peer);
        let mut out = Out::new();
        for slot in self.slots.values() {
            slot.tell(Some(peer), &mut out);
        }
        self.send(out);
    }

    pub fn wake_at(&self) -> u64 {
        self.activate_at
            .map_or(self.ask_at, |at| at.min(self.ask_at))
    }

    pub fn tick(&mut self, mono_us: u64, store: &mut impl Store) {
        if mono_us >= self.ask_at {
            self.ask(mono_us);
        }
        let mut out = Out::new();
        self.activate_at = None;
        for slot in self.slots.values_mut().filter(|slot| !slot.is_active()) {
            let until = self.leases.outwait(slot.chain.since, mono_us);
            match until.filter(|_| !planted::is(Planted::NotOutwaited)) {
                None => slot.activate(&mut out),
                Some(until) => {
                    let at = self.activate_at.get_or_insert(until);
                    *at = until.min(*at);
                }
            }
        }
        for slot in self.slots.values_mut() {
            slot.copy(store, &mut out);
        }
        self.send(out);
        self.settle();
    }

    fn ask(&mut self, mono_us: u64) {
        self.ask_at = mono_us + self.leases.period_us();
        let ask = |peer: &NodeNo| (*peer, Message::Ask { asked_us: mono_us });
        self.send(self.peers.iter().map(ask).collect());
    }

    fn send(&mut self, out: Out) {
        let epoch = self.epoch;
        let envelopes = out
            .into_iter()
            .map(|(to, message)| (to, Envelope { epoch, message }));
        self.out.extend(envelopes);
    }

    pub fn take_messages(&mut self) -> Vec<(NodeNo, Envelope)> {
        std::mem::take(&mut self.out)
    }

    fn settle(&mut self) {
        while let Some(&(position, slot, seq)) = self.waiting.front() {
            if self.slots.get(&slot).is_some_and(|slot| slot.acked < seq) {
                self.settled = position - 1;
                return;
            }
            self.waiting.pop_front();
        }
        self.settled = self.position;
    }
}
