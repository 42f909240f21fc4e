//! One slot's place in its chain.

use crate::message::{Item, Message};
use crate::planted::{self, Planted};
use crate::replica::Store;
use rufous_mapping::{Chain, NodeNo};
use std::collections::{BTreeSet, VecDeque};

/// How far somebody is who learns from this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Learning {
    /// Its copy is being made.
    Copying,
    /// It has the copy, and what follows is sent to it.
    Following,
    /// Nothing is acknowledged any more that it has not; it has all once it has
    /// what was acknowledged before.
    Syncing {
        until: u64,
    },
    Synced,
}

/// A learner that lacks no more writes than this is waited for.
const NEAR: u64 = 64;

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Slot {
    number: u16,
    me: NodeNo,
    pub(crate) chain: Chain,
    /// The last write that was applied here.
    pub(crate) seq: u64,
    /// The last that everybody from the head to here has. A member may have
    /// more for a while, where a chain has changed its order.
    confirmed: u64,
    /// The last that everybody from here on has.
    pub(crate) acked: u64,
    /// The writes after that.
    unacked: VecDeque<Item>,
    /// All of the slot's data is here.
    complete: bool,
    /// At the head of a new chain: who has not said yet what it has.
    awaited: BTreeSet<NodeNo>,
    /// Nobody answers by an earlier chain any more.
    active: bool,
    learning: Option<(NodeNo, Learning)>,
}

/// What is to be sent.
pub(crate) type Out = Vec<(NodeNo, Message)>;

impl Slot {
    pub(crate) fn new(number: u16, me: NodeNo) -> Self {
        Self {
            number,
            me,
            chain: Chain::default(),
            seq: 0,
            confirmed: 0,
            acked: 0,
            unacked: VecDeque::new(),
            complete: false,
            awaited: BTreeSet::new(),
            active: false,
            learning: None,
        }
    }

    /// What is here was on disk when the node started.
    pub(crate) fn restore(&mut self, seq: u64) {
        // What others have of it is not known.
        (self.seq, self.acked) = (seq, 0);
        self.complete = true;
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
            // The learner's is the tail.
            None => self.chain.tail(),
        }
    }

    /// Whether this node, as the head, has what every member has.
    pub(crate) fn is_open(&self) -> bool {
        self.is_head() && self.complete && self.awaited.is_empty() && self.active
    }

    /// Whether what is here is what is acknowledged.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_member() && self.complete && self.active && self.acked == self.seq
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// A chain comes into force that has this node in it.
    pub(crate) fn set_chain(&mut self, chain: Chain, store: &mut impl Store, out: &mut Out) {
        let first = chain.born == chain.since;
        self.chain = chain;
        if !self.is_member() {
            // What is here may be of a chain that has gone on without it.
            self.forget(store);
        }
        self.active = false;
        self.confirmed = 0;
        self.learning = None;
        // Who owns a slot first owns all that is in it: nothing.
        self.complete |= first && self.is_member();
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

    /// Says what is here to who has to know; to one node alone where `to` says.
    pub(crate) fn tell(&self, to: Option<NodeNo>, out: &mut Out) {
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

    /// Nobody answers by an earlier chain any more.
    pub(crate) fn activate(&mut self, out: &mut Out) {
        self.active = true;
        self.open(out);
        self.acknowledge(out);
        self.repeat(out);
    }

    /// Says again what was acknowledged: nobody may have heard it.
    fn repeat(&self, out: &mut Out) {
        if let Some(previous) = self.previous()
            && self.active
            && self.acked > 0
        {
            let (slot, since, seq) = (self.number, self.since(), self.acked);
            out.push((previous, Message::Ack { slot, since, seq }));
        }
    }

    /// The head has done a write.
    pub(crate) fn append(
        &mut self,
        effect: std::sync::Arc<[u8]>,
        store: &mut impl Store,
        out: &mut Out,
    ) {
        let item = Item {
            seq: self.seq + 1,
            effect,
        };
        self.take(item, self.seq + 1, store, out);
        self.acknowledge(out);
    }

    /// Notes a write that is applied, and passes it on.
    fn take(&mut self, item: Item, all: u64, store: &mut impl Store, out: &mut Out) {
        self.seq = item.seq;
        self.confirmed = self.confirmed.max(all.min(item.seq));
        let (slot, since, all) = (self.number, self.since(), self.confirmed);
        let items = vec![item.clone()];
        if let Some(next) = self.chain.next(self.me) {
            out.push((
                next,
                Message::Items {
                    slot,
                    since,
                    all,
                    items: items.clone(),
                },
            ));
        }
        if let Some((learner, learning)) = self.learning
            && (learning != Learning::Copying
                || store.is_copied(slot, &item.effect)
                || planted::is(Planted::CopyNotFiltered))
        {
            out.push((
                learner,
                Message::Items {
                    slot,
                    since,
                    all,
                    items,
                },
            ));
        }
        self.unacked.push_back(item);
    }

    /// Where this node is the last that has to have a write, it acknowledges.
    fn acknowledge(&mut self, out: &mut Out) {
        let waits = self.chain.next(self.me).is_some() && !planted::is(Planted::AckedEarly)
            || matches!(
                self.learning,
                Some((_, Learning::Syncing { .. } | Learning::Synced))
            );
        if !waits && self.active && self.complete {
            self.settle(self.confirmed, out);
        }
    }

    /// Everybody behind this node has all up to this.
    fn settle(&mut self, seq: u64, out: &mut Out) {
        if seq <= self.acked || !self.active {
            return;
        }
        self.acked = seq.min(self.seq);
        while self
            .unacked
            .front()
            .is_some_and(|item| item.seq <= self.acked)
        {
            self.unacked.pop_front();
        }
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
        if self.previous() != Some(from) {
            return;
        }
        for item in items {
            if !self.complete {
                // Beside its copy, which may not have all before it.
                store.apply(self.number, &item.effect);
                continue;
            }
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
            self.settle(seq, out);
        }
        let Some((learner, learning)) = &mut self.learning else {
            return;
        };
        if *learner != from || !self.active {
            return;
        }
        if *learning == Learning::Following && self.seq - seq.min(self.seq) <= NEAR {
            *learning = Learning::Syncing { until: self.acked };
        }
        if let Learning::Syncing { until } = *learning
            && seq >= until
        {
            *learning = Learning::Synced;
        }
        if *learning == Learning::Synced {
            self.settle(seq, out);
        }
    }

    /// The learner that has all.
    pub(crate) fn synced(&self) -> Option<NodeNo> {
        let (learner, learning) = self.learning?;
        let early = planted::is(Planted::LearnedEarly) && learning != Learning::Copying;
        ((learning == Learning::Synced || early) && self.active).then_some(learner)
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
            // What it lacks may not be here one by one any more.
            let kept = self.seq - self.unacked.len() as u64;
            if seq < kept || seq > self.seq {
                let (slot, since) = (self.number, self.since());
                return out.push((from, Message::Behind { slot, since }));
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
        let items: Vec<Item> = items.cloned().collect();
        let all = self.confirmed;
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

    /// Everybody from the head to here has all up to this; so others are told.
    fn confirm(&mut self, all: u64, out: &mut Out) {
        if all.min(self.seq) <= self.confirmed {
            return;
        }
        self.confirmed = all.min(self.seq);
        let learner = self
            .learning
            .filter(|(_, learning)| *learning != Learning::Copying);
        let learner = learner.map(|(learner, _)| learner);
        for to in [self.chain.next(self.me), learner].into_iter().flatten() {
            self.resend(to, u64::MAX, out);
        }
    }

    /// As the head, knows what every member has.
    fn open(&mut self, out: &mut Out) {
        if self.is_head() && self.complete && self.awaited.is_empty() {
            self.confirm(self.seq, out);
        }
    }

    /// The tail cannot send this learner what it lacks write by write.
    pub(crate) fn on_behind(&mut self, from: NodeNo, store: &mut impl Store, out: &mut Out) {
        if self.previous() == Some(from) && !self.is_member() {
            self.forget(store);
            self.tell(Some(from), out);
        }
    }

    /// What is here is of no use any more.
    pub(crate) fn forget(&mut self, store: &mut impl Store) {
        (self.seq, self.acked) = (0, 0);
        self.unacked.clear();
        self.complete = false;
        store.clear(self.number);
    }

    /// The learner begins anew.
    pub(crate) fn on_learn(&mut self, from: NodeNo, store: &mut impl Store) {
        let learns = self.chain.learner == Some(from) && self.chain.tail() == Some(self.me);
        if learns && self.complete {
            self.learning = Some((from, Learning::Copying));
            store.begin_copy(self.number);
        }
    }

    /// Sends a part of the copy that is being made. False where there is none.
    pub(crate) fn copy(&mut self, store: &mut impl Store, out: &mut Out) -> bool {
        let (slot, since, seq) = (self.number, self.since(), self.seq);
        let all = self.confirmed;
        let Some((learner, learning)) = &mut self.learning else {
            return false;
        };
        if *learning != Learning::Copying {
            return false;
        }
        let message = match store.copy(slot) {
            Some(chunk) => Message::Copy { slot, since, chunk },
            None => {
                *learning = Learning::Following;
                Message::Copied {
                    slot,
                    since,
                    all,
                    seq,
                }
            }
        };
        out.push((*learner, message));
        true
    }

    pub(crate) fn on_copy(&mut self, from: NodeNo, chunk: &[u8], store: &mut impl Store) {
        if self.previous() == Some(from) && !self.complete {
            store.load(self.number, chunk);
        }
    }

    pub(crate) fn on_copied(&mut self, from: NodeNo, all: u64, seq: u64, out: &mut Out) {
        if self.previous() == Some(from) && !self.complete {
            self.seq = seq;
            self.complete = true;
            self.confirm(all, out);
            self.acknowledge(out);
        }
    }
}
