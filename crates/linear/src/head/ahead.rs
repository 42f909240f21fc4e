//! Slots beside this one: one worker heads them, so what is recorded for them in one turn is kept at the same time, and
//! each step of a transaction need not wait for the message that orders it.
//!
//! What is done ahead is not relied upon before the message comes, which is sent when the slot before it keeps its own part:
//!
//! - *Prepared* ahead, a transaction has a proposal and no maximum. Its conditions hold and its keys are taken from then on.
//!   The message brings the maximum, which is made again of what is kept, each time that it arrives. If the slot before
//!   has lost its part, it says so when it is asked, and the transaction is given up here as if it had never come.
//! - *Applied* ahead, a transaction has its final stamp, which no slot can lose: all of them keep what it was made of. It
//!   is not passed back before the message says that the slot after keeps that it was applied.
//! - *Forgotten* ahead, it may still be on its way here, sent twice. This slot passes over it until the message that
//!   orders it to forget has come, or the slot before has said that it has nothing of it. If the slot before has not kept
//!   that it has forgotten it, it asks, and is told that it is unknown. The first slot does nothing ahead here: as long
//!   as it remembers that it has forgotten it, no slot that loses the end of its log takes it for lost.
//!
//! A slot that has lost the end of its log is not told of what is prepared ahead and has not come yet.
//!
//! A transaction is prepared ahead only where it need not wait. So transactions take keys in the order of their slots as ever.

use super::settling::Ends;
use super::{Basis, Final, Head, State};
use crate::book::Entry;
use crate::message::{Ahead, Message, Output, Record, To};
use crate::planted::{self, Off};
use crate::told;
use crate::txn::{Operation, Stamp, Transaction, TxnId};
use std::sync::Arc;

/// A head, for what is done ahead of messages.
pub(super) struct Beside<'a, O: Operation> {
    pub(super) head: &'a mut Head<O>,
    pub(super) out: &'a mut Vec<Output<O>>,
}

impl<O: Operation> Beside<'_, O> {
    pub(super) fn on_ahead(&mut self, ahead: Ahead<O>, state: &mut impl State<O>) {
        match ahead {
            Ahead::Prepared { txn } => self.prepare(txn, state),
            Ahead::Applied { txn, stamp, bytes } => {
                self.apply((txn, stamp), bytes, state);
            }
            Ahead::Forgotten { txn, slots } => self.head.ends(self.out).forget_ahead(txn, &slots),
        }
    }

    fn prepare(&mut self, txn: Arc<Transaction<O>>, state: &mut impl State<O>) {
        let slot = self.head.book.slot();
        let is_new = self.head.book.get(txn.id).is_none();
        let standing = |key: &[u8]| state.standing(key);
        let may_admit = is_new
            && self
                .head
                .index
                .may_admit(&txn, standing, |key| state.others(key));
        let as_expected = |part: &crate::txn::Part<O>| {
            let version = || state.version(&part.key);
            part.expects.is_none_or(|expected| expected == version())
        };
        if !may_admit || !txn.at(slot).all(as_expected) || state.refuses(&txn, slot).is_some() {
            return;
        }
        let record = Record::Prepared {
            txn: Arc::clone(&txn),
            proposal: self.head.book.clock() + 1,
            max: None,
        };
        self.head.record(record, self.out);
        if let Some(next) = txn.after(slot) {
            self.out.push(Output::Beside(next, Ahead::Prepared { txn }));
        }
    }

    fn apply(&mut self, (id, stamp): (TxnId, Stamp), bytes: usize, state: &mut impl State<O>) {
        let Some(Entry::Prepared { .. }) = self.head.book.get(id) else {
            return;
        };
        if !self.head.finals.contains_key(&id) {
            let last = Final {
                stamp,
                after: Vec::new(),
                told: told::nothing(),
                basis: Basis::Alone(bytes),
            };
            self.head.learn_final(id, last);
            self.head.go_on(state, self.out);
        }
    }

    /// The slot before has told the largest time proposed up to there, of what was prepared without it.
    pub(super) fn on_max(&mut self, from: Option<u16>, (id, max): (TxnId, u64)) {
        // With a stamp, the slot after has applied it.
        let has_final = self.head.finals.contains_key(&id);
        match self.head.book.get(id) {
            // It was lost, and has its place before anything else.
            Some(Entry::Prepared {
                txn,
                proposal: 0,
                max: None,
            }) if !has_final => {
                let txn = Arc::clone(txn);
                self.head.propose(txn, (0, max), self.out);
            }
            Some(Entry::Prepared { max: None, .. }) if !has_final => {
                self.on_awaited(from, (id, max));
            }
            _ => {}
        }
    }

    fn on_awaited(&mut self, from: Option<u16>, (id, max): (TxnId, u64)) {
        let slot = self.head.book.slot();
        let Some(Entry::Prepared { txn, proposal, .. }) = self.head.book.get(id) else {
            return;
        };
        let (is_last, txn) = (txn.last() == slot, Arc::clone(txn));
        let is_new = !self.head.maxima.contains_key(&id);
        let max = *self.head.maxima.entry(id).or_insert(max.max(*proposal));
        // The stamp is made of what is recorded here, too: it waits for that, like a message.
        if is_last && from != Some(slot) && !planted::is(Off::DecidedKept) {
            let again = Message::Forward { txn, max };
            self.out.push(Output::Send(To::Slot(slot), again));
        } else if is_new || is_last {
            self.head.pass_on(id, Basis::Kept, self.out);
        }
    }

    /// The slot after has prepared it ahead of the message: it is told what that would have brought, or gives it up.
    pub(super) fn on_is_prepared(&mut self, from: Option<u16>, id: TxnId) {
        let Some(from) = from else {
            return;
        };
        match self.head.book.get(id) {
            Some(entry @ (Entry::Prepared { .. } | Entry::Applied { .. })) => {
                let proposed = match entry {
                    Entry::Prepared { max, .. } => max.or(self.head.maxima.get(&id).copied()),
                    _ => None,
                };
                let last = self.head.finals.get(&id).map(|last| last.stamp);
                let time = entry.stamp().or(last).map(|stamp| stamp.time);
                if let Some(max) = time.or(proposed) {
                    let proposed = Message::Proposed { txn: id, max };
                    self.out.push(Output::Send(To::Slot(from), proposed));
                }
            }
            Some(Entry::Aborted { .. }) | None => {
                let unprepared = Message::Unprepared { txn: id };
                self.out.push(Output::Send(To::Slot(from), unprepared));
            }
            Some(Entry::Forgotten { .. }) => {}
        }
    }

    /// The slot before has not prepared it.
    pub(super) fn on_unprepared(
        &mut self,
        from: Option<u16>,
        id: TxnId,
        state: &mut impl State<O>,
    ) {
        self.head.settling.past.remove(&id);
        let Some(Entry::Prepared { txn, max: None, .. }) = self.head.book.get(id) else {
            return;
        };
        let slot = self.head.book.slot();
        let (is_before, next) = (from.is_some() && from == txn.before(slot), txn.after(slot));
        let is_awaited = !self.head.maxima.contains_key(&id) && !self.head.finals.contains_key(&id);
        if is_before && is_awaited && !planted::is(Off::Withdrawn) {
            self.head.record(Record::Dropped { txn: id }, self.out);
            // It may be there, too.
            let unprepared = Message::Unprepared { txn: id };
            self.out
                .extend(next.map(|next| Output::Send(To::Slot(next), unprepared)));
            self.head.go_on(state, self.out);
        }
    }

    /// The slot before has applied it alone.
    pub(super) fn on_is_applied(&mut self, from: Option<u16>, id: TxnId) {
        match self.head.book.get(id) {
            Some(Entry::Applied { .. }) => self.head.back(id, self.out),
            Some(Entry::Prepared { .. } | Entry::Aborted { .. }) => {}
            Some(Entry::Forgotten { .. }) | None => self.head.ends(self.out).tell_unknown(from, id),
        }
    }
}

impl<O: Operation> Ends<'_, O> {
    fn forget_ahead(&mut self, id: TxnId, slots: &Arc<[u16]>) {
        let slot = self.book.slot();
        let has_ended = |entry: &Entry<O>| !matches!(entry, Entry::Prepared { .. });
        let before = crate::txn::before(slots, slot);
        if let Some(before) = before.filter(|_| self.book.get(id).is_some_and(has_ended)) {
            self.drop_ended(id, slots);
            self.at.past.insert(id, before);
        }
    }
}
