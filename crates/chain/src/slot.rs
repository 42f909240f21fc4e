//! The state of one slot in its chain.

mod learn;
mod unacked;
mod unsound;

use crate::message::{Item, Message};
use crate::planted::{self, Planted};
use crate::replica::Store;
use learn::Learning;
use rufous_mapping::planner::Copy;
use rufous_mapping::{Chain, NodeNo, Phase};
use std::collections::{BTreeMap, BTreeSet};
use unacked::Unacked;

/// See the module's description.
#[derive(Clone, Debug)]
pub(crate) struct SlotChain {
    number: u16,
    me: NodeNo,
    pub(crate) chain: Chain,
    /// The last write that was applied here.
    pub(crate) seq: u64,
    /// The last chain in which this node has had all of the slot, by its epoch.
    pub(crate) held_since: u64,
    /// The last write that all members from the head to this one have. A member may
    /// have more for a while after a chain has changed its order.
    confirmed: u64,
    /// The last write that all members from this one to the tail have.
    pub(crate) acked: u64,
    /// What the next member, and the learner, have acknowledged in this chain.
    next_acked: u64,
    /// `None` until the learner has reported that its copy is complete.
    learner_acked: Option<u64>,
    /// The writes after `acked`.
    unacked: Unacked,
    /// All of the slot's data is on this node.
    complete: bool,
    /// No data is left that has to be removed before a copy is taken.
    clear: bool,
    /// The next part of the copy that this node receives.
    loading: Option<u64>,
    /// No mapping named this node for the slot, and no data of it was on disk.
    fresh: bool,
    /// The first chain of this slot names this node; it becomes active when no old data
    /// is left. Until then `held_back` keeps the messages of others.
    born_here: bool,
    held_back: BTreeMap<NodeNo, Message>,
    /// The data contradicts the chain's writes; see `unsound`.
    broken: bool,
    /// At the head of a new chain: members that have not reported their state.
    awaited: BTreeSet<NodeNo>,
    /// The last write that the head of a new chain has adopted. Reads wait until it is
    /// acknowledged in this chain: before that, other members may not have it.
    taken_over: u64,
    /// No node serves requests by an earlier chain any more.
    active: bool,
    learning: Option<(NodeNo, Learning)>,
}

/// Limit on the writes that one message repeats.
const TOGETHER: usize = 4096;

/// Messages to send.
pub(crate) type Out = Vec<(NodeNo, Message)>;

impl SlotChain {
    pub(crate) fn new(number: u16, me: NodeNo) -> Self {
        Self {
            number,
            me,
            chain: Chain::default(),
            seq: 0,
            held_since: 0,
            confirmed: 0,
            acked: 0,
            next_acked: 0,
            learner_acked: None,
            unacked: Unacked::default(),
            complete: false,
            clear: true,
            loading: None,
            fresh: true,
            born_here: false,
            held_back: BTreeMap::new(),
            broken: false,
            awaited: BTreeSet::new(),
            taken_over: 0,
            active: false,
            learning: None,
        }
    }

    /// The slot's data was on disk when the node started.
    pub(crate) fn restore(&mut self, copy: Copy) {
        // Which of its writes others have is not known.
        (self.seq, self.acked) = (copy.seq, 0);
        self.held_since = copy.since;
        self.complete = true;
        self.fresh = false;
    }

    fn since(&self) -> u64 {
        self.chain.since
    }

    fn is_head(&self) -> bool {
        self.chain.head() == Some(self.me)
    }

    pub(crate) fn is_member(&self) -> bool {
        self.chain.members.contains(&self.me)
    }

    fn previous(&self) -> Option<NodeNo> {
        let at = self.chain.members.iter().position(|no| *no == self.me);
        match at {
            Some(at) => at.checked_sub(1).map(|at| self.chain.members[at]),
            // The one before a learner is the tail.
            None => self.chain.tail(),
        }
    }

    /// Whether this node, as the head, has every member's writes, and every member has them.
    pub(crate) fn is_open(&self) -> bool {
        let has_all = self.is_head() && self.complete && self.awaited.is_empty();
        let shared = self.acked >= self.taken_over || planted::is(Planted::TakenOverShown);
        has_all && self.active && shared
    }

    /// Whether all writes here are acknowledged.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_member() && self.complete && self.active && self.acked == self.seq
    }

    /// The size of the writes that wait for acknowledgement.
    pub(crate) fn unacked_bytes(&self) -> usize {
        self.unacked.bytes()
    }

    pub(crate) fn is_clear(&self) -> bool {
        self.clear
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// The copy of this node, if it has all of the slot.
    pub(crate) fn copy_here(&self) -> Option<Copy> {
        self.complete.then_some(Copy {
            since: self.held_since,
            seq: self.seq,
        })
    }

    /// Whether this node has never acted in the slot's chain, which is its first one.
    pub(crate) fn never_acted(&self) -> bool {
        self.fresh && !self.complete && self.clear && self.chain.born == self.chain.since
    }

    /// A chain that includes this node takes effect. `is_clear`: no data is left from an earlier
    /// time in the slot's chain.
    pub(crate) fn set_chain(
        &mut self,
        chain: Chain,
        is_clear: bool,
        store: &mut impl Store,
        out: &mut Out,
    ) {
        self.clear &= is_clear;
        let first = chain.born == chain.since;
        self.chain = chain;
        if !self.is_member() {
            // The data here may be of a chain that has continued without this node.
            self.forget(store);
        }
        self.active = false;
        self.confirmed = 0;
        (self.next_acked, self.learner_acked) = (0, None);
        self.end_copy(store);
        self.learning = None;
        // The first owner of a slot has all of its data: none. So does a member that no mapping
        // named before: nothing was acknowledged without it.
        let owns = (first || self.fresh) && self.is_member();
        self.complete |= owns && self.clear;
        if !planted::is(Planted::OldMarkKept) || self.held_since == 0 {
            self.held_since = self.since();
        }
        self.born_here |= first && self.is_member();
        self.held_back.clear();
        self.fresh = false;
        self.awaited = match self.is_head() {
            true if planted::is(Planted::NotHandedOver) => BTreeSet::new(),
            true => self
                .chain
                .members
                .iter()
                .copied()
                .filter(|no| *no != self.me)
                .collect(),
            false => BTreeSet::new(),
        };
        self.tell(None, out);
    }

    /// Sends the slot's state to the nodes that need it; only to `to` if that is set.
    pub(crate) fn tell(&self, to: Option<NodeNo>, out: &mut Out) {
        if self.broken || self.is_idle() {
            return;
        }
        let previous = self.previous();
        let head = self
            .chain
            .head()
            .filter(|head| self.is_member() && *head != self.me);
        let mut told = None;
        for node in [head, previous].into_iter().flatten() {
            if to.is_some_and(|to| to != node) || told == Some(node) {
                continue;
            }
            told = Some(node);
            if !self.complete && !self.clear {
                // This node asks when it can take the copy.
                continue;
            }
            if !self.complete {
                out.push((
                    node,
                    Message::Learn {
                        slot: self.number,
                        since: self.since(),
                    },
                ));
                continue;
            }
            let items = match Some(node) == head {
                true => self.unacked.iter().cloned().collect(),
                false => Vec::new(),
            };
            out.push((
                node,
                Message::State {
                    slot: self.number,
                    since: self.since(),
                    seq: self.seq,
                    items,
                },
            ));
            if Some(node) == previous {
                self.repeat(out);
            }
        }
    }

    /// Whether this node only keeps its copy, until it is decided which one continues.
    pub(crate) fn is_idle(&self) -> bool {
        self.chain.is_idle(self.me)
    }

    /// Whether it can become active.
    pub(crate) fn may_act(&self) -> bool {
        !self.active && self.chain.phase == Phase::Acts
    }

    /// No node serves requests by an earlier chain any more.
    pub(crate) fn activate(&mut self, out: &mut Out) {
        self.active = true;
        self.open(out);
        self.acknowledge(out);
        // Acknowledgements that came before it was active.
        self.settle(self.next_acked, out);
        self.sync(out);
        self.repeat(out);
    }

    /// Repeats acknowledgements, which may have been lost. A learner repeats them also for a slot
    /// that was never written: it has all of it.
    fn repeat(&self, out: &mut Out) {
        if let Some(previous) = self.previous()
            && self.active
            && !self.broken
            && (self.acked > 0 || self.complete && !self.is_member())
        {
            let (slot, since, seq) = (self.number, self.since(), self.acked);
            out.push((previous, Message::Ack { slot, since, seq }));
        }
    }

    /// The head has executed a write.
    pub(crate) fn append(
        &mut self,
        effect: std::sync::Arc<[u8]>,
        store: &mut impl Store,
        out: &mut Out,
    ) {
        if self.broken {
            // No member receives it, and it is never acknowledged.
            self.seq += 1;
            return;
        }
        let item = Item {
            seq: self.seq + 1,
            effect,
        };
        self.take(item, self.seq + 1, store, out);
        self.acknowledge(out);
    }

    /// Records a write that is applied, and forwards it.
    fn take(&mut self, item: Item, all: u64, store: &mut impl Store, out: &mut Out) {
        self.seq = item.seq;
        self.confirmed = self.confirmed.max(all.min(item.seq));
        let (slot, since, all) = (self.number, self.since(), self.confirmed);
        let items = vec![item.clone()];
        let learner = match &mut self.learning {
            Some((_, learning)) if learning.is_copying() => {
                store.note(slot, &item.effect);
                learning.on_write(item.effect.len());
                None
            }
            learning => learning
                .filter(|(_, learning)| learning.follows())
                .map(|(learner, _)| learner),
        };
        for to in [self.chain.next(self.me), learner].into_iter().flatten() {
            let items = items.clone();
            out.push((
                to,
                Message::Items {
                    slot,
                    since,
                    all,
                    items,
                },
            ));
        }
        self.unacked.push(item);
    }

    /// Acknowledges, if this node is the last that has to have a write.
    fn acknowledge(&mut self, out: &mut Out) {
        let waits = self.chain.next(self.me).is_some() && !planted::is(Planted::AckedEarly)
            || self.waits_for_learner();
        if !waits && self.active && self.complete {
            self.settle(self.confirmed, out);
        }
    }

    /// All members behind this node have all writes up to `seq`.
    fn settle(&mut self, seq: u64, out: &mut Out) {
        if seq <= self.acked || !self.active || self.broken {
            return;
        }
        self.acked = seq.min(self.seq);
        self.unacked.settle(self.acked);
        self.repeat(out);
    }

    pub(crate) fn on_items(
        &mut self,
        from: NodeNo,
        all: u64,
        items: Vec<Item>,
        store: &mut impl Store,
        out: &mut Out,
    ) {
        if self.previous() != Some(from) || !self.complete {
            return;
        }
        for item in items {
            if item.seq <= self.seq {
                continue;
            }
            if item.seq > self.seq + 1 {
                self.tell(Some(from), out);
                return;
            }
            store.apply(self.number, &item.effect);
            self.take(item, all, store, out);
        }
        self.confirm(all, out);
        self.acknowledge(out);
    }

    pub(crate) fn on_ack(&mut self, from: NodeNo, seq: u64, out: &mut Out) {
        if self.chain.next(self.me) == Some(from) {
            self.next_acked = self.next_acked.max(seq);
            self.settle(self.next_acked, out);
        }
        if self.learning.is_some_and(|(learner, _)| learner == from) {
            self.learner_acked = self.learner_acked.max(Some(seq));
            self.sync(out);
        }
    }

    pub(crate) fn on_state(
        &mut self,
        from: NodeNo,
        seq: u64,
        items: Vec<Item>,
        store: &mut impl Store,
        out: &mut Out,
    ) {
        if !self.complete {
            return;
        }
        if self.awaited.contains(&from) {
            for item in items
                .into_iter()
                .filter(|item| item.seq > self.seq)
                .collect::<Vec<_>>()
            {
                debug_assert_eq!(
                    item.seq,
                    self.seq + 1,
                    "a member has all before what it keeps"
                );
                store.apply(self.number, &item.effect);
                self.take(item, 0, store, out);
            }
            debug_assert!(seq <= self.seq, "a member keeps what is not acknowledged");
            self.awaited.remove(&from);
            self.open(out);
        }
        if self.chain.next(self.me) == Some(from) {
            self.resend(from, seq, out);
        }
        if self.chain.learner == Some(from) && self.chain.tail() == Some(self.me) {
            // The writes that it lacks may not be kept individually any more.
            let kept = self.seq - self.unacked.len() as u64;
            let told = matches!(self.learning, Some((_, Learning::Behind)));
            if seq < kept || seq > self.seq || told {
                // It is about to drop the writes that it acknowledged meanwhile: what it sends until
                // it asks for a copy tells nothing.
                self.end_copy(store);
                let behind = Some((from, Learning::Behind));
                self.learning = behind.filter(|_| !planted::is(Planted::BehindForgotten));
                self.learner_acked = None;
                let (slot, since) = (self.number, self.since());
                out.push((from, Message::Behind { slot, since }));
                return self.acknowledge(out);
            }
            if self.learning.is_none() {
                self.learning = Some((from, Learning::Following));
            }
            self.resend(from, seq, out);
        }
        self.acknowledge(out);
    }

    fn resend(&mut self, to: NodeNo, seq: u64, out: &mut Out) {
        let (slot, since) = (self.number, self.since());
        let items = self.unacked.iter().filter(|item| item.seq > seq);
        let mut rest: Vec<Item> = items.cloned().collect();
        let all = self.confirmed;
        // A message without writes still tells which writes all members have.
        loop {
            let behind = rest.split_off(rest.len().min(TOGETHER));
            let items = std::mem::replace(&mut rest, behind);
            out.push((
                to,
                Message::Items {
                    slot,
                    since,
                    all,
                    items,
                },
            ));
            if rest.is_empty() {
                return;
            }
        }
    }

    /// All members from the head to this one have all writes up to `all`; others are notified.
    fn confirm(&mut self, all: u64, out: &mut Out) {
        if all.min(self.seq) <= self.confirmed {
            return;
        }
        self.confirmed = all.min(self.seq);
        let learner = self.learning.filter(|(_, learning)| learning.follows());
        let learner = learner.map(|(learner, _)| learner);
        for to in [self.chain.next(self.me), learner].into_iter().flatten() {
            self.resend(to, u64::MAX, out);
        }
    }

    /// Opens the slot, if this node is the head and knows the state of every member.
    fn open(&mut self, out: &mut Out) {
        if self.is_head() && self.complete && self.awaited.is_empty() {
            self.taken_over = self.seq;
            self.confirm(self.seq, out);
        }
    }
}
