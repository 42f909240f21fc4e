//! The end of a transaction: when its outcome may be told, and when it is forgotten.

use super::index::Index;
use crate::book::{Book, Entry};
use crate::message::{Ahead, Message, Outcome, Output, Predecessor, Record, To};
use crate::planted::{self, Off};
use crate::told;
use crate::txn::{Operation, Stamp, TxnId, after};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the first slot of an ended transaction knows.
#[derive(Clone, Debug, Default)]
pub(super) struct First {
    /// Predecessors that are not known to be settled, with the slots that settle them; `None`: not looked for yet.
    after: Option<BTreeMap<TxnId, u16>>,
    /// Slots whose logs have it.
    safe: BTreeSet<u16>,
    pub(super) heard: bool,
}

/// What waits for a transaction to be settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiter {
    /// A transaction of this slot.
    Here(Stamp),
    /// The head of a slot, for one with this stamp.
    Slot(u16, Stamp),
}

impl Waiter {
    fn stamp(self) -> Stamp {
        match self {
            Self::Here(stamp) | Self::Slot(_, stamp) => stamp,
        }
    }
}

/// The state of a slot about ended transactions.
#[derive(Clone, Debug, Default)]
pub(super) struct Settling {
    /// Applied transactions that are known to be settled.
    settled: BTreeSet<TxnId>,
    /// Ended transactions whose first slot this is.
    pub(super) firsts: BTreeMap<TxnId, First>,
    /// By predecessor.
    waiters: BTreeMap<TxnId, BTreeSet<Waiter>>,
    /// By predecessor: the transactions that have it in `after`.
    behind: BTreeMap<TxnId, BTreeSet<TxnId>>,
    /// The start that each node runs, as far as it is known: origins of earlier ones are gone.
    starts: BTreeMap<u16, u64>,
    /// Of what was applied alone: what the slot after has told since.
    rests: BTreeMap<TxnId, Rest>,
    /// What was forgotten ahead of the slot before, which this is: messages about it may still come from there.
    pub(super) past: BTreeMap<TxnId, u16>,
}

/// Predecessors at the later slots, and what these tell the client.
type Rest = (Vec<Predecessor>, Arc<[u8]>);

impl Settling {
    /// Whether an applied transaction is known to be settled.
    pub(super) fn has(&self, txn: TxnId) -> bool {
        self.settled.contains(&txn)
    }

    /// Predecessors of a transaction of this slot that are not known to be settled, with their first slots.
    pub(super) fn open_predecessors(&self, txn: TxnId) -> Option<&BTreeMap<TxnId, u16>> {
        self.firsts.get(&txn)?.after.as_ref()
    }

    /// Whether the log of another slot is known to have the end of a transaction of this one.
    pub(super) fn is_safe(&self, txn: TxnId, slot: u16) -> bool {
        let first = self.firsts.get(&txn);
        first.is_some_and(|first| first.safe.contains(&slot))
    }

    /// First slots of predecessors that are not known to be settled.
    pub(super) fn asked(&self) -> impl Iterator<Item = u16> {
        let open = self
            .firsts
            .values()
            .filter_map(|first| first.after.as_ref());
        open.flat_map(|after| after.values().copied())
    }

    pub(super) fn is_past(&self, txn: TxnId) -> bool {
        self.past.contains_key(&txn) && !planted::is(Off::Past)
    }

    /// The slot after has told of a transaction that is applied here. True if that is new.
    pub(super) fn learn_rest(&mut self, txn: TxnId, rest: Rest) -> bool {
        self.rests.insert(txn, rest).is_none()
    }

    /// Whether the slot after has told of one that was applied alone.
    pub(super) fn has_rest(&self, txn: TxnId) -> bool {
        self.rests.contains_key(&txn)
    }

    /// The predecessors of an applied transaction, and what its client is told, of this slot and all later ones; `None`
    /// as long as the slot after has not said that it keeps it.
    pub(super) fn whole<O: Operation>(&self, book: &Book<O>, id: TxnId) -> Option<Rest> {
        let Some(Entry::Applied {
            after, told, alone, ..
        }) = book.get(id)
        else {
            return None;
        };
        if !alone {
            return Some((after.clone(), Arc::clone(told)));
        }
        let (more, rest) = self.rests.get(&id)?;
        let all: BTreeSet<Predecessor> = after.iter().chain(more).copied().collect();
        Some((all.into_iter().collect(), told::together(told, rest)))
    }

    /// A node runs this start of it.
    pub(super) fn learn_start(&mut self, node: u16, start: u64) {
        let known = self.starts.entry(node).or_default();
        *known = start.max(*known);
    }
}

/// What it takes to end transactions of a slot.
pub(super) struct Ends<'a, O: Operation> {
    pub(super) at: &'a mut Settling,
    pub(super) book: &'a mut Book<O>,
    pub(super) index: &'a mut Index<O>,
    pub(super) out: &'a mut Vec<Output<O>>,
}

impl<O: Operation> Ends<'_, O> {
    /// A transaction is applied everywhere, and this is its first slot.
    pub(super) fn begin_to_settle(&mut self, id: TxnId) {
        let (Some(stamp), Some((after, _))) = (self.stamp_of(id), self.at.whole(self.book, id))
        else {
            return;
        };
        self.release_earlier(stamp);
        if self.at.settled.contains(&id) {
            self.tell_ended(id);
            return self.tell_outcome(id);
        }
        let slot = self.book.slot();
        let is_open = |of: &Predecessor| {
            if of.first == slot {
                let is_earlier = self.stamp_of(of.txn).is_none_or(|of| of < stamp);
                return is_earlier && !self.is_settled(of.txn);
            }
            // Unknown here does not say that it is settled.
            !self.at.settled.contains(&of.txn)
        };
        let after: BTreeMap<TxnId, u16> = after
            .into_iter()
            .filter(is_open)
            .map(|of| (of.txn, of.first))
            .collect();
        for (txn, first) in &after {
            if *first == slot {
                let waiters = self.at.waiters.entry(*txn).or_default();
                waiters.insert(Waiter::Here(stamp));
            } else {
                let (txn, before) = (*txn, stamp);
                self.out
                    .push(Output::Send(To::Slot(*first), Message::Ask { txn, before }));
            }
        }
        self.wait_for(id, after);
        self.settle(id);
    }

    /// A transaction has these open predecessors, and no others.
    fn wait_for(&mut self, id: TxnId, after: BTreeMap<TxnId, u16>) {
        let first = self.at.firsts.entry(id).or_default();
        for before in first.after.iter().flatten() {
            if let Some(behind) = self.at.behind.get_mut(before.0) {
                behind.remove(&id);
            }
        }
        for before in after.keys() {
            self.at.behind.entry(*before).or_default().insert(id);
        }
        first.after = Some(after);
    }

    /// Settles a transaction if no predecessor is open, and what waits for it.
    fn settle(&mut self, id: TxnId) {
        let mut ready = vec![id];
        while let Some(id) = ready.pop() {
            let after = self.at.open_predecessors(id);
            let waits = after.is_none_or(|after| !after.is_empty());
            if (waits && !planted::is(Off::Predecessors)) || !self.at.settled.insert(id) {
                continue;
            }
            self.index.on_settled(id);
            self.at.behind.remove(&id);
            self.tell_ended(id);
            self.tell_outcome(id);
            for waiter in self.at.waiters.remove(&id).into_iter().flatten() {
                match waiter {
                    Waiter::Slot(slot, _) => {
                        self.out
                            .push(Output::Send(To::Slot(slot), Message::Settled { txn: id }));
                    }
                    Waiter::Here(Stamp { txn, .. }) => {
                        let first = self.at.firsts.get_mut(&txn);
                        if let Some(after) = first.and_then(|first| first.after.as_mut()) {
                            after.remove(&id);
                            ready.push(txn);
                        }
                    }
                }
            }
            self.forget(id);
        }
    }

    /// Tells the other slots that a transaction has ended.
    pub(super) fn tell_ended(&mut self, id: TxnId) {
        let Some(entry) = self.book.get(id) else {
            return;
        };
        let others = entry.txn().slots().iter();
        for other in others.filter(|other| **other != self.book.slot()) {
            self.out
                .push(Output::Send(To::Slot(*other), Message::Settled { txn: id }));
        }
    }

    /// Tells the client the outcome of an ended transaction.
    fn tell_outcome(&mut self, id: TxnId) {
        let TxnId { node, start, .. } = id;
        let Some(entry) = self.book.get(id) else {
            return;
        };
        let (outcome, told) = match entry {
            Entry::Applied { .. } => {
                let Some((_, told)) = self.at.whole(self.book, id) else {
                    return;
                };
                (Outcome::Committed, told::plain(&told))
            }
            Entry::Aborted { told, .. } => (Outcome::Aborted, Arc::clone(told)),
            _ => return,
        };
        let (to, message) = (
            To::Origin { node, start },
            Message::Outcome {
                txn: id,
                outcome,
                told,
            },
        );
        let is_prepared_elsewhere = entry.txn().slots().len() > 1;
        let has_to_last = outcome == Outcome::Aborted && is_prepared_elsewhere;
        let waits = has_to_last && !planted::is(Off::AbortsSynced);
        self.out.push(message.gated(to, waits));
    }

    pub(super) fn tell_unknown(&mut self, from: Option<u16>, txn: TxnId) {
        if let Some(from) = from {
            self.out
                .push(Output::SendSynced(To::Slot(from), Message::Unknown { txn }));
        }
    }

    pub(super) fn on_ask(&mut self, from: Option<u16>, txn: TxnId, before: Stamp) {
        let Some(from) = from else {
            return;
        };
        if self.is_settled(txn) {
            self.out
                .push(Output::Send(To::Slot(from), Message::Settled { txn }));
        } else if let Some(stamp) = self.stamp_of(txn).filter(|stamp| *stamp > before) {
            self.out
                .push(Output::Send(To::Slot(from), Message::Later { stamp }));
        } else {
            let waiters = self.at.waiters.entry(txn).or_default();
            waiters.insert(Waiter::Slot(from, before));
        }
    }

    fn is_settled(&self, txn: TxnId) -> bool {
        is_settled(self.at, self.book, txn)
    }

    fn stamp_of(&self, txn: TxnId) -> Option<Stamp> {
        self.book.get(txn).and_then(Entry::stamp)
    }

    /// A transaction has this stamp: what waits for it and has a smaller one does not come after it.
    pub(super) fn release_earlier(&mut self, stamp: Stamp) {
        let txn = stamp.txn;
        let Some(waiters) = self.at.waiters.remove(&txn) else {
            return;
        };
        let (earlier, later) = waiters.into_iter().partition(|of| of.stamp() < stamp);
        let (earlier, later): (BTreeSet<Waiter>, BTreeSet<Waiter>) = (earlier, later);
        if !later.is_empty() {
            self.at.waiters.insert(txn, later);
        }
        for waiter in earlier {
            match waiter {
                Waiter::Here(_) => self.on_later(stamp),
                Waiter::Slot(slot, _) => {
                    self.out
                        .push(Output::Send(To::Slot(slot), Message::Later { stamp }));
                }
            }
        }
    }

    /// What has a smaller stamp does not wait for this one.
    pub(super) fn on_later(&mut self, stamp: Stamp) {
        self.do_not_wait(stamp.txn, Some(stamp));
    }

    /// Transactions, or those below a stamp, do not wait for another one.
    fn do_not_wait(&mut self, of: TxnId, below: Option<Stamp>) {
        for txn in self.at.behind.remove(&of).into_iter().flatten() {
            let stamp = self.stamp_of(txn);
            if below.is_some_and(|below| stamp.is_none_or(|stamp| stamp >= below)) {
                self.at.behind.entry(of).or_default().insert(txn);
                continue;
            }
            let first = self.at.firsts.get_mut(&txn);
            let after = first.and_then(|first| first.after.as_mut());
            if after.is_some_and(|after| after.remove(&of).is_some()) {
                self.settle(txn);
            }
        }
    }

    pub(super) fn on_settled(&mut self, from: Option<u16>, id: TxnId) {
        let is_open = match self.book.get(id) {
            Some(Entry::Applied { .. }) => {
                self.at.settled.insert(id);
                self.index.on_settled(id);
                false
            }
            // It waits for its place again, after a loss.
            Some(Entry::Prepared { .. }) => true,
            // An aborted one may not have come to this slot.
            _ => false,
        };
        if let Some(from) = from.filter(|_| !is_open) {
            self.out.push(Output::SendSynced(
                To::Slot(from),
                Message::Safe { txn: id },
            ));
        }
        self.do_not_wait(id, None);
    }

    pub(super) fn on_safe(&mut self, from: Option<u16>, txn: TxnId) {
        if let (Some(from), Some(first)) = (from, self.at.firsts.get_mut(&txn)) {
            first.safe.insert(from);
            self.forget(txn);
        }
    }

    /// The node that it came from has its outcome.
    pub(super) fn on_heard(&mut self, txn: TxnId) {
        if let Some(first) = self.at.firsts.get_mut(&txn) {
            first.heard = true;
            self.forget(txn);
        }
    }

    /// A node runs this start of it, or has ended before it: nothing arrives from an earlier one any more, and none
    /// waits for an outcome.
    pub(super) fn on_origin_start(&mut self, node: u16) {
        let theirs = self.at.firsts.keys().filter(|txn| txn.node == node);
        let all: Vec<TxnId> = theirs.copied().collect();
        all.into_iter().for_each(|txn| self.forget(txn));
    }

    /// Messages to and from an origin may have been lost.
    pub(super) fn on_origin_link(&mut self, (node, start): (u16, u64)) {
        let theirs = self.at.firsts.keys();
        let theirs = theirs.filter(|txn| (txn.node, txn.start) == (node, start));
        for txn in theirs.copied().collect::<Vec<_>>() {
            match self.book.get(txn) {
                Some(Entry::Aborted { .. }) => self.tell_outcome(txn),
                Some(Entry::Applied { .. }) if self.at.settled.contains(&txn) => {
                    self.tell_outcome(txn);
                }
                _ => {}
            }
        }
    }

    /// The first slot forgets an ended transaction once nothing is to be said about it any more.
    pub(super) fn forget(&mut self, id: TxnId) {
        let (Some(first), Some(entry)) = (self.at.firsts.get(&id), self.book.get(id)) else {
            return;
        };
        let slots: Arc<[u16]> = entry.txn().slots().into();
        let is_over = match entry {
            Entry::Applied { .. } => self.at.settled.contains(&id),
            Entry::Aborted { .. } => true,
            _ => false,
        };
        let mut others = slots.iter().filter(|slot| **slot != self.book.slot());
        let all = others.all(|slot| first.safe.contains(slot)) || planted::is(Off::Safe);
        let is_gone = self
            .at
            .starts
            .get(&id.node)
            .is_some_and(|start| id.start < *start);
        let heard = first.heard || is_gone || planted::is(Off::Heard);
        if !is_over || !all || !heard {
            return;
        }
        self.at.firsts.remove(&id);
        self.on_forget(id, &slots);
    }

    /// The slot before has forgotten it.
    pub(super) fn on_forget(&mut self, id: TxnId, slots: &Arc<[u16]>) {
        let slot = self.book.slot();
        self.at.past.remove(&id);
        self.drop_ended(id, slots);
        if slots[..] == [slot] {
            return;
        }
        let (next, first) = (after(slots, slot), slots.first());
        let (to, message) = match (next, first) {
            (Some(next), _) => {
                let slots = Arc::clone(slots);
                (next, Message::Forget { txn: id, slots })
            }
            (None, Some(first)) if *first != slot => (*first, Message::Gone { txn: id }),
            _ => return,
        };
        let waits = !planted::is(Off::Forgetting);
        self.out.push(message.gated(To::Slot(to), waits));
    }

    /// There is nothing more to say of it here.
    pub(super) fn drop_ended(&mut self, id: TxnId, slots: &Arc<[u16]>) {
        let slot = self.book.slot();
        self.at.settled.remove(&id);
        self.at.rests.remove(&id);
        match self.book.get(id) {
            Some(Entry::Forgotten { .. }) | None => return,
            // No slot may lack what was applied nowhere.
            Some(Entry::Aborted { .. }) => self.record(Record::Dropped { txn: id }),
            Some(_) if slots[..] == [slot] => self.record(Record::Dropped { txn: id }),
            Some(_) => self.record(Record::Forgotten { txn: id }),
        }
        if let Some(next) = after(slots, slot).filter(|_| slots.first() != Some(&slot)) {
            let (txn, slots) = (id, Arc::clone(slots));
            let ahead = Ahead::Forgotten { txn, slots };
            self.out.push(Output::Beside(next, ahead));
        }
    }

    pub(super) fn on_gone(&mut self, txn: TxnId) {
        if matches!(self.book.get(txn), Some(Entry::Forgotten { .. })) {
            self.record(Record::Dropped { txn });
        }
    }

    /// An abort has come to the first slot.
    pub(super) fn on_aborted(&mut self, id: TxnId) {
        self.at.firsts.entry(id).or_default();
        // After a loss something may wait for it.
        let (time, txn) = (u64::MAX, id);
        self.release_earlier(Stamp { time, txn });
        self.tell_ended(id);
        self.tell_outcome(id);
        self.forget(id);
    }

    fn record(&mut self, record: Record<O>) {
        self.index.on_record(&record);
        self.book.on_record(record.clone());
        self.out.push(Output::Record(record));
    }
}

/// Whether a transaction that a slot has had, or that was applied at another one, is settled as far as it is known
/// there.
pub(super) fn is_settled<O: Operation>(at: &Settling, book: &Book<O>, txn: TxnId) -> bool {
    match book.get(txn) {
        Some(Entry::Forgotten { .. } | Entry::Aborted { .. }) | None => true,
        Some(Entry::Prepared { .. } | Entry::Applied { .. }) => at.has(txn),
    }
}
