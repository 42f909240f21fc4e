//! One worker's part in chains: the state of its slots whose chains include its node.
//!
//! After every call the messages of [`Replica::take_messages`] have to be sent, and replies to
//! writes up to [`Replica::settled`] may be sent. [`Replica::tick`] has to be called at
//! [`Replica::wake_at`], and after a mapping was applied; [`Replica::work`] repeatedly while it has
//! something to do: copies for learners, and data that has to be dropped.

mod epoch;
#[cfg(test)]
mod former_tests;
#[cfg(test)]
mod learning_tests;
#[cfg(test)]
mod leaving_tests;
mod shown;
#[cfg(test)]
mod tests;

use crate::lease::Leases;
use crate::message::{Envelope, Message};
use crate::peer::Peer;
use crate::planted::{self, Planted};
use crate::slot::{Out, SlotChain};
use rufous_base::table::SlotTable;
use rufous_mapping::planner::Copy;
use rufous_mapping::{Mapping, NodeNo};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Slots that are dropped at a time: they share the walk over all keys.
const DROPPED_TOGETHER: usize = 1024;

/// The data of slots.
pub trait Store {
    /// Applies an effect of another member.
    fn apply(&mut self, slot: u16, effect: &[u8]);
    /// Drops a slot's data, or a part of it. True when nothing is left: until then it is called
    /// again.
    fn clear(&mut self, slot: u16) -> bool;
    /// Begins to copy a slot, from its first key; a copy in progress is started again.
    fn begin_copy(&mut self, slot: u16);
    /// The copy is no longer needed.
    fn end_copy(&mut self, slot: u16);
    /// This effect was applied while a copy is being made: a node that has loaded all parts of the
    /// copy must have the slot's state at its end.
    fn note(&mut self, slot: u16, effect: &[u8]);
    /// The next part of the copy; an empty one if none was found yet. `None` at its end.
    fn copy(&mut self, slot: u16) -> Option<Vec<u8>>;
    /// Loads a part of a copy, after all earlier parts.
    fn load(&mut self, slot: u16, chunk: &[u8]);
}

/// Why a node does not serve a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// This node serves it, as far as is known.
    Elsewhere(Option<NodeNo>),
    /// It will serve the slot when it knows the state of the other members, or is in contact with
    /// them again.
    NotYet,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Replica {
    me: NodeNo,
    /// The worker's index, and the number of workers of the node.
    worker: u16,
    workers: u16,
    /// The incarnation of the node.
    incarnation: u64,
    /// The mapping in force.
    mapping: Option<Arc<Mapping>>,
    slots: SlotTable<SlotChain>,
    /// Slots of which a copy is being made.
    copied: BTreeSet<u16>,
    /// Slots with data here that has to be dropped: some of them may not be among `slots` any more.
    cleared: BTreeSet<u16>,
    /// Slots whose chains have a learner.
    taught: Vec<u16>,
    /// Slots that wait for this node to be taken out of their chains.
    broken: BTreeSet<u16>,
    /// Slots of whose chains no node acts: the leader has to know what this one has.
    asked: BTreeSet<u16>,
    /// The node's files have all that it has logged since it exists.
    keeps_all: bool,
    /// Slots whose chain has changed, or become active, since the last query.
    changed: BTreeSet<u16>,
    /// Slots whose chain continued with loss at this node, since the last query.
    lossy: BTreeSet<u16>,
    leases: Leases,
    /// The peers that share a slot's chain with this worker.
    peers: BTreeSet<Peer>,
    /// The last epoch that each peer has named, since its node was up.
    heard: BTreeMap<Peer, u64>,
    /// Writes of this worker that are not acknowledged, with their positions.
    waiting: VecDeque<(u64, u16, u64)>,
    position: u64,
    settled: u64,
    /// Some of these writes may never be acknowledged: their slots have moved.
    lost: bool,
    /// Slots that the ring gives to other nodes, and that wait for this node's last writes: it is
    /// their last member.
    leaving: BTreeSet<u16>,
    out: Vec<(Peer, Envelope)>,
    /// Where [`Replica::work`] continues.
    next_worked: u16,
    /// When leases are asked for next, and activation is tried next.
    ask_at: u64,
    activate_at: Option<u64>,
}

impl Replica {
    /// `worker`: its index and the number of workers of the node. `lease_us`: the length of a
    /// lease, and so the longest time that a slot is not served after its chain has lost a member.
    /// `started_us`: the current time, if the node has run before: then it does not know which
    /// leases it has granted.
    pub fn new(
        me: NodeNo,
        worker: u16,
        workers: u16,
        incarnation: u64,
        lease_us: u64,
        started_us: Option<u64>,
    ) -> Self {
        Self {
            me,
            worker,
            workers,
            incarnation,
            mapping: None,
            slots: SlotTable::default(),
            copied: BTreeSet::new(),
            cleared: BTreeSet::new(),
            taught: Vec::new(),
            broken: BTreeSet::new(),
            asked: BTreeSet::new(),
            keeps_all: false,
            changed: BTreeSet::new(),
            lossy: BTreeSet::new(),
            leases: Leases::new(lease_us, started_us),
            peers: BTreeSet::new(),
            heard: BTreeMap::new(),
            waiting: VecDeque::new(),
            position: 0,
            settled: 0,
            lost: false,
            leaving: BTreeSet::new(),
            out: Vec::new(),
            next_worked: 0,
            ask_at: 0,
            activate_at: None,
        }
    }

    pub fn epoch(&self) -> u64 {
        self.mapping.as_ref().map_or(0, |mapping| mapping.epoch)
    }

    pub fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.mapping.as_ref()
    }

    /// The node's files have all that its earlier starts have logged.
    pub fn set_keeps_all(&mut self, keeps_all: bool) {
        self.keeps_all = keeps_all;
    }

    /// This copy of a slot was on disk when the node started.
    pub fn restore(&mut self, slot: u16, copy: Copy) {
        self.entry(slot).restore(copy);
    }

    /// A part of a slot was on disk when the node started: it has to be dropped before the slot is
    /// learnt, or owned.
    pub fn found_incomplete(&mut self, slot: u16) {
        self.entry(slot).find_incomplete();
        self.cleared.insert(slot);
    }

    /// The store could not apply what [`Replica::receive`] gave it for a slot. To be called before
    /// any other call, and before messages are taken: pending messages about the slot are not sent.
    /// False if it cannot learn the slot again: then its chain waits until this node is taken out
    /// of it, and the embedder has to ensure that (`slot/unsound.rs` says why).
    pub fn learn_anew(&mut self, slot: u16) -> bool {
        let me = self.me;
        let known = self.slots.get_mut(slot);
        let Some(known) = known.filter(|slot| slot.chain.names(me)) else {
            return true;
        };
        let about = |of: &Envelope| of.message.chain().map(|(slot, _)| slot);
        self.out.retain(|(_, of)| about(of) != Some(slot));
        let can = known.learn_anew_or_break();
        match can {
            true => self.cleared.insert(slot),
            false => self.broken.insert(slot),
        };
        can
    }

    fn entry(&mut self, slot: u16) -> &mut SlotChain {
        let make = || SlotChain::new(slot, self.me);
        self.slots.get_or_insert_with(slot, make)
    }

    /// Position of a write that the head has executed: its reply may be sent when
    /// [`Replica::settled`] has reached it.
    pub fn append(&mut self, slot: u16, effect: Arc<[u8]>, store: &mut impl Store) -> u64 {
        let mut out = Out::new();
        if let Some(known) = self.slots.get_mut(slot) {
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

    /// Whether writes have become in doubt since the last call.
    pub fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Whether this node serves a slot, as its head.
    pub fn serves(&self, slot: u16, mono_us: u64) -> Result<(), Refused> {
        if self.mapping.is_none() {
            // Since the node's start, the cluster has not taken it back yet.
            return Err(Refused::NotYet);
        }
        let Some(known) = self.slots.get(slot) else {
            return Err(Refused::Elsewhere(None));
        };
        if known.chain.head() != Some(self.me) {
            return Err(Refused::Elsewhere(known.chain.head()));
        }
        match known.is_open() && self.is_granted(slot, known, mono_us) {
            true => Ok(()),
            false => Err(Refused::NotYet),
        }
    }

    /// Whether the peers that have the slot at the other nodes have granted a lease.
    fn is_granted(&self, number: u16, slot: &SlotChain, mono_us: u64) -> bool {
        let others = slot.chain.named().filter(|no| *no != self.me);
        let mut others = others.map(|no| self.peer_at(no, number));
        planted::is(Planted::NoLease) || others.all(|peer| self.leases.holds(peer, mono_us))
    }

    /// The peer that has a slot at a node.
    fn peer_at(&self, node: NodeNo, slot: u16) -> Peer {
        let (worker, mapping) = (0, self.mapping.as_deref());
        mapping.map_or(Peer { node, worker }, |mapping| {
            Peer::at(node, slot, mapping)
        })
    }

    /// The position of the last write.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Takes a message.
    pub fn receive(
        &mut self,
        from: Peer,
        envelope: Envelope,
        store: &mut impl Store,
        mono_us: u64,
    ) {
        // Messages of different classes may arrive out of order.
        let heard = self.heard.entry(from).or_default();
        let before = std::mem::replace(heard, envelope.epoch.max(*heard));
        self.leases.on_epoch(from, envelope.epoch);
        let mut out = Out::new();
        if envelope.epoch > before {
            // The sender may be the last peer that had to know an epoch.
            self.activate_at = self.activate_at.map(|_| mono_us);
            // It could not take messages about these epochs before.
            for (number, slot) in self.slots.iter() {
                let news = (before + 1..=envelope.epoch).contains(&slot.chain.since);
                if news && self.peer_at(from.node, number) == from {
                    slot.tell(Some(from.node), &mut out);
                }
            }
        }
        match envelope.message {
            Message::Ask { asked_us } => self.on_ask(from, asked_us, mono_us),
            // A peer that knows a later epoch has granted nothing in it.
            Message::Grant { asked_us } if envelope.epoch <= self.epoch() => {
                self.leases.on_grant(from, asked_us);
            }
            Message::Grant { .. } => (),
            message => self.take(from.node, message, store, &mut out),
        }
        self.send(out);
        self.settle();
    }

    fn on_ask(&mut self, from: Peer, asked_us: u64, mono_us: u64) {
        // Before the first mapping after a start it is not known which chains are over: a lease
        // would revive them.
        let epoch = self.epoch();
        let knows = epoch > 0 || planted::is(Planted::GrantsUnknowing);
        if knows && self.leases.on_ask(from, epoch, asked_us, mono_us) {
            let message = Message::Grant { asked_us };
            self.out.push((from, Envelope { epoch, message }));
        }
    }

    /// Takes a message about a slot.
    fn take(&mut self, from: NodeNo, message: Message, store: &mut impl Store, out: &mut Out) {
        let Some((number, since)) = message.chain() else {
            return;
        };
        let Some(slot) = self.slots.get_mut(number).filter(|slot| {
            slot.chain.since == since || planted::is(Planted::OldChainTaken) && slot.is_member()
        }) else {
            return;
        };
        if slot.is_broken() || slot.is_idle() {
            return;
        }
        if slot.waits_to_own() {
            return slot.hold_back(from, message);
        }
        match message {
            Message::Items { all, items, .. } => slot.on_items(from, all, items, store, out),
            Message::Ack { seq, .. } => slot.on_ack(from, seq, out),
            Message::State { seq, items, .. } => slot.on_state(from, seq, items, store, out),
            Message::Behind { .. } => slot.on_behind(from, store, out),
            Message::Learn { .. } => {
                slot.on_learn(from, store);
                if slot.learns().is_some() {
                    self.copied.insert(number);
                }
            }
            Message::Copy { part, chunk, .. } => slot.on_copy(from, (part, &chunk), store, out),
            Message::Copied {
                parts, all, seq, ..
            } => slot.on_copied(from, (parts, all, seq), store, out),
            Message::Ask { .. } | Message::Grant { .. } => (),
        }
        match slot.is_clear() {
            true => self.cleared.remove(&number),
            false => self.cleared.insert(number),
        };
    }

    /// Messages to a node may have been lost, to any of its workers; from now on they arrive.
    pub fn peer_up(&mut self, peer: NodeNo) {
        if planted::is(Planted::NotRepeated) {
            return;
        }
        // The node may have restarted, and know nothing yet.
        self.heard.retain(|known, _| known.node != peer);
        // Missing leases are asked for now: slots wait for them.
        self.ask_at = 0;
        let mut out = Out::new();
        for (_, slot) in self.slots.iter() {
            slot.tell(Some(peer), &mut out);
        }
        self.send(out);
    }

    pub fn wake_at(&self) -> u64 {
        self.activate_at
            .map_or(self.ask_at, |at| at.min(self.ask_at))
    }

    /// Runs what is due at this time.
    pub fn tick(&mut self, mono_us: u64) {
        if mono_us >= self.ask_at {
            self.ask(mono_us);
        }
        let mut out = Out::new();
        self.activate_at = None;
        for (number, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.may_act()) {
            let until = self.leases.outwait(slot.chain.since, mono_us);
            match until.filter(|_| !planted::is(Planted::NotOutwaited)) {
                None => {
                    slot.activate(&mut out);
                    self.changed.insert(number);
                }
                Some(until) => {
                    let at = self.activate_at.get_or_insert(until);
                    *at = until.min(*at);
                }
            }
        }
        self.send(out);
        self.settle();
    }

    /// Continues long work: drops data, and sends the next part of copies, of a limited number of
    /// slots, to nodes with room for it. Returns whether anything is left to do.
    pub fn work(
        &mut self,
        store: &mut impl Store,
        most: usize,
        has_room: impl Fn(NodeNo) -> bool,
    ) -> bool {
        let mut out = Out::new();
        for number in some_from(&self.cleared, 0, DROPPED_TOGETHER) {
            if !store.clear(number) {
                continue;
            }
            self.cleared.remove(&number);
            if let Some(slot) = self.slots.get_mut(number) {
                slot.on_clear(store, &mut out);
                if slot.learns().is_some() {
                    self.copied.insert(number);
                }
            }
        }
        let mut last = self.next_worked;
        for number in some_from(&self.copied, self.next_worked, most) {
            last = number;
            let slot = self.slots.get_mut(number);
            let slot = slot.and_then(|slot| slot.learns().map(|to| (slot, to)));
            let goes_on =
                slot.is_some_and(|(slot, to)| !has_room(to) || slot.copy(store, &mut out));
            if !goes_on {
                self.copied.remove(&number);
            }
        }
        self.next_worked = last.wrapping_add(1);
        self.send(out);
        self.settle();
        !self.copied.is_empty() || !self.cleared.is_empty()
    }

    fn ask(&mut self, mono_us: u64) {
        self.ask_at = mono_us + self.leases.period_us();
        let (epoch, asked_us) = (self.epoch(), mono_us);
        for peer in &self.peers {
            let message = Message::Ask { asked_us };
            self.out.push((*peer, Envelope { epoch, message }));
        }
    }

    /// Tells the epoch to peers that this worker shares no slot with any more: they wait for its
    /// leases, and it does not ask them again.
    fn tell_former(&mut self, mono_us: u64) {
        if planted::is(Planted::FormerNotTold) {
            return;
        }
        let epoch = self.epoch();
        let recent = self.leases.recent(mono_us);
        let former = recent.filter(|(peer, _)| !self.peers.contains(peer));
        let said = former.map(|(peer, asked_us)| {
            let message = Message::Grant { asked_us };
            (peer, Envelope { epoch, message })
        });
        self.out.extend(said);
    }

    /// A message about a slot goes to the worker that has it at the other node.
    fn send(&mut self, out: Out) {
        let epoch = self.epoch();
        for (to, message) in out {
            let slot = message.chain().map_or(0, |(slot, _)| slot);
            let to = self.peer_at(to, slot);
            self.out.push((to, Envelope { epoch, message }));
        }
    }

    pub fn take_messages(&mut self) -> Vec<(Peer, Envelope)> {
        std::mem::take(&mut self.out)
    }

    fn settle(&mut self) {
        while let Some(&(position, slot, seq)) = self.waiting.front() {
            if self.slots.get(slot).is_some_and(|slot| slot.acked < seq) {
                self.settled = position - 1;
                return;
            }
            self.waiting.pop_front();
        }
        self.settled = self.position;
    }
}

/// At most `most` elements of a set, starting at `from` and wrapping around.
fn some_from(set: &BTreeSet<u16>, from: u16, most: usize) -> Vec<u16> {
    let all = set.range(from..).chain(set.range(..from));
    all.copied().take(most).collect()
}
