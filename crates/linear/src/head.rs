//! What the head of a slot does about transactions, as a machine: messages, links and the time of a start go in,
//! records and messages come out.
//!
//! What is not in its [`Book`] is lost with the head, and made again by messages that are sent again: the transactions
//! that wait to be admitted, final stamps that cannot be applied yet, and what is known to be settled.
//!
//! A waiting transaction waits for ones that are prepared at the same slot, or for requests that do; these go on at later
//! slots, or wait for smaller stamps. So no circle can wait for itself.
//!
//! - here: the events, and the passes forward and backward
//! - `order`: admission and application
//! - `index`: open transactions by key
//! - `again`: what is sent again, as it may be lost
//! - `ahead`: slots beside this one, whose messages need not be waited for
//! - `settling`: predecessors, outcomes, and forgetting
//! - `recovery`: a start that may have lost the end of the log

mod again;
mod ahead;
#[cfg(test)]
mod ahead_tests;
#[cfg(test)]
mod driven;
mod index;
#[cfg(test)]
mod many_tests;
mod order;
mod recovery;
mod settling;
mod state;
#[cfg(test)]
mod stored_tests;
#[cfg(test)]
mod tests;

use crate::book::{Book, Entry};
use crate::message::{Ahead, Message, Output, Predecessor, Record, To};
use crate::planted::{self, Off};
use crate::told;
use crate::txn::{Operation, Stamp, Transaction, TxnId};
use again::Again;
use ahead::Beside;
use index::Index;
pub use order::OTHER_ORDER;
use settling::{Ends, Settling};
pub use state::{Later, Others, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The end of a prepared transaction, as the slot after has told it.
#[derive(Clone, Debug)]
struct Final {
    stamp: Stamp,
    after: Vec<Predecessor>,
    /// What that slot and the later ones tell the client.
    told: Arc<[u8]>,
    basis: Basis,
}

/// Where a stamp comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// It is made of a proposal that is not kept: no other slot may use it yet.
    Unkept,
    /// The slot after, or this one as the last, keeps what it was made of.
    Kept,
    /// The slot after has applied it, and is not known to keep that. So many bytes are told by it and later ones.
    Alone(usize),
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Head<O: Operation> {
    book: Book<O>,
    /// By key, and those that are not admitted yet.
    index: Index<O>,
    /// Of prepared transactions: what the slot after has said.
    finals: BTreeMap<TxnId, Final>,
    /// Of those that were prepared ahead of the message forward: the largest time proposed up to here, as that has told.
    maxima: BTreeMap<TxnId, u64>,
    settling: Settling,
    /// Transactions whose stamps a recovery has brought, and that are not applied yet.
    redone: BTreeSet<TxnId>,
}

impl<O: Operation> Head<O> {
    /// The head of a slot with this book. Call [`Head::on_start`] then, or [`Head::on_surveyed`].
    pub fn new(book: Book<O>) -> Self {
        Self {
            index: Index::new(&book),
            book,
            finals: BTreeMap::new(),
            maxima: BTreeMap::new(),
            settling: Settling::default(),
            redone: BTreeSet::new(),
        }
    }

    /// It goes on where the head before it has ended. Call [`Head::on_link`] for each other head and
    /// [`Head::on_origin_link`] for each origin then. Where the book may lack what the log has lost, use
    /// [`Head::on_surveyed`].
    pub fn on_start(&mut self, state: &mut impl State<O>, out: &mut Vec<Output<O>>) {
        let slot = self.book.slot();
        for (id, txn) in self.entries() {
            match self.book.get(id) {
                Some(Entry::Prepared { .. }) if txn.last() == slot => {
                    self.pass_on(id, Basis::Kept, out);
                }
                Some(Entry::Applied { .. }) if txn.first() == slot => self.back(id, out),
                Some(Entry::Aborted { .. }) if txn.first() == slot => self.undo(id, out),
                _ => {}
            }
        }
        self.go_on(state, out);
    }

    fn entries(&self) -> Vec<(TxnId, Arc<Transaction<O>>)> {
        let all = self.book.iter();
        all.map(|(id, entry)| (*id, Arc::clone(entry.txn())))
            .collect()
    }

    pub fn book(&self) -> &Book<O> {
        &self.book
    }

    /// Transactions of which something may have to be sent again, and whether these only have yet to be forgotten.
    pub fn open(&self) -> impl Iterator<Item = (TxnId, bool)> {
        let (at, known) = (&self.settling, self.book.iter());
        let known = known.map(|(id, entry)| (*id, at.is_over(*id, entry)));
        known.chain(at.past.keys().map(|id| (*id, true)))
    }

    /// Transactions that wait for others to be admitted.
    pub fn waiting(&self) -> usize {
        self.index.waiting().len()
    }

    /// Whether a prepared transaction has a part on the key. Nothing else may change the key then.
    pub fn holds(&self, key: &[u8]) -> bool {
        self.index.holds(key)
    }

    /// How many transactions were admitted, since this was asked last, to write a key that others had.
    pub fn take_shared(&mut self) -> u64 {
        self.index.take_shared()
    }

    /// Whether it has no transaction, and none waits.
    pub fn is_idle(&self) -> bool {
        let is_over = self.book.is_empty() && self.settling.past.is_empty();
        is_over && self.index.waiting().len() == 0
    }

    /// All transactions here that it has not forgotten.
    pub fn known(&self) -> impl Iterator<Item = &Arc<Transaction<O>>> {
        let known = self.book.iter().map(|(_, entry)| entry.txn());
        known.chain(self.index.waiting().map(|waiting| &waiting.txn))
    }

    /// Slots for which [`Head::on_link`] is to be called from time to time: it sends again what they may lack.
    pub fn peers(&self) -> BTreeSet<u16> {
        let (slot, mut all) = (self.book.slot(), BTreeSet::new());
        for txn in self.known() {
            let (before, after) = (txn.before(slot), txn.after(slot));
            let is_peer = |of: &u16| txn.first() == slot || [before, after].contains(&Some(*of));
            all.extend(txn.slots().iter().copied().filter(is_peer));
        }
        all.extend(self.settling.asked());
        all.extend(self.settling.past.values());
        all.remove(&self.book.slot());
        all
    }

    /// Nodes, with their starts, of transactions that begin at this slot: [`Head::on_origin_link`] for each, from time to
    /// time, sends outcomes again that they may lack.
    pub fn origins(&self) -> BTreeSet<(u16, u64)> {
        let slot = self.book.slot();
        let theirs = self.known().filter(|txn| txn.first() == slot);
        theirs.map(|txn| (txn.id.node, txn.id.start)).collect()
    }

    /// Keys may be free that were not: looks again at what waits for that.
    pub fn on_free(&mut self, state: &mut impl State<O>, out: &mut Vec<Output<O>>) {
        if self.index.on_free() {
            self.go_on(state, out);
        }
    }

    /// Whether a transaction that this slot has had, or that was applied at another one, is settled as far as it is
    /// known here. What it has written may not be shown before.
    pub fn is_settled(&self, txn: TxnId) -> bool {
        settling::is_settled(&self.settling, &self.book, txn)
    }

    fn ends<'a>(&'a mut self, out: &'a mut Vec<Output<O>>) -> Ends<'a, O> {
        Ends {
            at: &mut self.settling,
            book: &mut self.book,
            index: &mut self.index,
            out,
        }
    }

    fn beside<'a>(&'a mut self, out: &'a mut Vec<Output<O>>) -> Beside<'a, O> {
        Beside { head: self, out }
    }

    /// The head of a slot beside this one has put this out for it just now ([`Output::Beside`]).
    pub fn on_ahead(
        &mut self,
        ahead: Ahead<O>,
        state: &mut impl State<O>,
        out: &mut Vec<Output<O>>,
    ) {
        self.beside(out).on_ahead(ahead, state);
    }

    /// Messages to and from a head may have been lost, or it is another one: what it may lack is sent again.
    pub fn on_link(&mut self, peer: u16, out: &mut Vec<Output<O>>) {
        if !planted::is(Off::SentAgain) {
            Again { head: self, out }.send(peer);
        }
    }

    /// Messages to and from an origin may have been lost.
    pub fn on_origin_link(&mut self, origin: (u16, u64), out: &mut Vec<Output<O>>) {
        self.ends(out).on_origin_link(origin);
    }

    /// A message has arrived from the head of a slot, or, where `from` is `None`, from an origin.
    pub fn on_message(
        &mut self,
        from: Option<u16>,
        message: Message<O>,
        state: &mut impl State<O>,
        out: &mut Vec<Output<O>>,
    ) {
        match message {
            Message::Forward { txn, max } => self.on_forward(from, (txn, max), state, out),
            Message::Backward {
                txn,
                stamp,
                after,
                told,
            } => {
                let basis = Basis::Kept;
                let last = Final {
                    stamp,
                    after,
                    told,
                    basis,
                };
                self.on_backward(from, txn, last, state, out);
            }
            Message::Undo { txn, told } => self.on_undo(from, (txn, told), state, out),
            Message::Ask { txn, before } => self.ends(out).on_ask(from, txn, before),
            Message::Later { stamp } => self.ends(out).on_later(stamp),
            Message::Settled { txn } => self.ends(out).on_settled(from, txn),
            Message::Safe { txn } => self.ends(out).on_safe(from, txn),
            Message::Forget { txn, slots } => {
                self.forget_final(txn);
                self.ends(out).on_forget(txn, &slots);
            }
            Message::Unknown { txn } => {
                self.forget_final(txn);
                let slots = self.book.get(txn).map(|entry| entry.txn().slots().into());
                if let Some(slots) = slots {
                    self.ends(out).on_forget(txn, &slots);
                }
            }
            Message::Gone { txn } => self.ends(out).on_gone(txn),
            Message::Heard { txn } => self.ends(out).on_heard(txn),
            Message::IsPrepared { txn } => self.beside(out).on_is_prepared(from, txn),
            Message::Proposed { txn, max } => {
                self.beside(out).on_max(from, (txn, max));
                self.go_on(state, out);
            }
            Message::Unprepared { txn } => self.beside(out).on_unprepared(from, txn, state),
            Message::IsApplied { txn } => self.beside(out).on_is_applied(from, txn),
            // No book is concerned.
            Message::Outcome { .. } | Message::Read { .. } | Message::Values { .. } => {}
            Message::Survey { .. }
            | Message::Surveyed { .. }
            | Message::Recall { .. }
            | Message::Recalled { .. } => {}
        }
    }

    fn on_forward(
        &mut self,
        from: Option<u16>,
        (txn, max): (Arc<Transaction<O>>, u64),
        state: &mut impl State<O>,
        out: &mut Vec<Output<O>>,
    ) {
        let id = txn.id;
        match self.book.get(id) {
            Some(Entry::Aborted { .. }) if !planted::is(Off::Aborts) => self.undo(id, out),
            Some(Entry::Applied { .. }) => self.back(id, out),
            Some(Entry::Prepared { max: None, .. }) => self.beside(out).on_max(from, (id, max)),
            // It was passed on: each slot sends again by itself what the next one may lack.
            Some(Entry::Prepared { .. }) => {}
            Some(Entry::Forgotten { .. }) => return,
            // It has ended since this was sent.
            None if from == Some(self.book.slot()) || self.settling.is_past(id) => return,
            Some(Entry::Aborted { .. }) | None => self.index.wait(txn, max),
        }
        self.go_on(state, out);
    }

    /// The next slot, or the final stamp at the last one.
    fn pass_on(&mut self, id: TxnId, basis: Basis, out: &mut Vec<Output<O>>) {
        let Some(Entry::Prepared { txn, max, .. }) = self.book.get(id) else {
            return;
        };
        let Some(max) = max.or_else(|| self.maxima.get(&id).copied()) else {
            return;
        };
        let txn = Arc::clone(txn);
        match txn.after(self.book.slot()) {
            Some(next) => out.push(Output::Send(To::Slot(next), Message::Forward { txn, max })),
            None => {
                let stamp = Stamp { time: max, txn: id };
                let (after, told) = (Vec::new(), told::nothing());
                let last = Final {
                    stamp,
                    after,
                    told,
                    basis,
                };
                self.learn_final(id, last);
            }
        }
    }

    fn on_backward(
        &mut self,
        from: Option<u16>,
        id: TxnId,
        said: Final,
        state: &mut impl State<O>,
        out: &mut Vec<Output<O>>,
    ) {
        match self.book.get(id) {
            Some(Entry::Prepared { txn, .. }) => {
                if let Some(before) = txn.before(self.book.slot())
                    && planted::is(Off::AppliedFirst)
                {
                    let Final {
                        stamp, after, told, ..
                    } = said.clone();
                    let early = Message::Backward {
                        txn: id,
                        stamp,
                        after,
                        told,
                    };
                    out.push(Output::Send(To::Slot(before), early));
                }
                self.learn_final(id, said);
                self.go_on(state, out);
            }
            // The slot after keeps it by now.
            Some(Entry::Applied { alone: true, .. }) => {
                if self.settling.learn_rest(id, (said.after, said.told)) {
                    self.back(id, out);
                }
            }
            Some(Entry::Applied { .. } | Entry::Aborted { .. }) => {}
            Some(Entry::Forgotten { .. }) | None => self.ends(out).tell_unknown(from, id),
        }
    }

    /// Passes an applied transaction on to the slot before; the first slot settles it.
    fn back(&mut self, id: TxnId, out: &mut Vec<Output<O>>) {
        let Some(Entry::Applied { txn, stamp, .. }) = self.book.get(id) else {
            return;
        };
        let Some(before) = txn.before(self.book.slot()) else {
            return self.ends(out).begin_to_settle(id);
        };
        let Some((after, told)) = self.settling.whole(&self.book, id) else {
            return;
        };
        let (txn, stamp) = (id, *stamp);
        let message = Message::Backward {
            txn,
            stamp,
            after,
            told,
        };
        out.push(Output::Send(To::Slot(before), message));
    }

    fn on_undo(
        &mut self,
        from: Option<u16>,
        (id, told): (TxnId, Arc<[u8]>),
        state: &mut impl State<O>,
        out: &mut Vec<Output<O>>,
    ) {
        match self.book.get(id) {
            Some(Entry::Prepared { txn, .. }) => {
                let txn = Arc::clone(txn);
                self.abort(txn, told, out);
                self.go_on(state, out);
            }
            Some(Entry::Aborted { .. } | Entry::Applied { .. }) => {}
            Some(Entry::Forgotten { .. }) | None => self.ends(out).tell_unknown(from, id),
        }
    }

    fn abort(&mut self, txn: Arc<Transaction<O>>, told: Arc<[u8]>, out: &mut Vec<Output<O>>) {
        let id = txn.id;
        self.forget_final(id);
        self.record(Record::Aborted { txn, told }, out);
        self.undo(id, out);
    }

    /// Tells the slot before of an abort; the first slot tells the client.
    fn undo(&mut self, id: TxnId, out: &mut Vec<Output<O>>) {
        let Some(Entry::Aborted { txn, told }) = self.book.get(id) else {
            return;
        };
        match txn.before(self.book.slot()) {
            Some(before) => {
                let (txn, told) = (id, Arc::clone(told));
                out.push(Output::Send(To::Slot(before), Message::Undo { txn, told }));
            }
            None => self.ends(out).on_aborted(id),
        }
    }

    /// A node runs this start of it, or has ended before it: nothing arrives from an earlier one any more, and none
    /// waits for an outcome.
    pub fn on_origin_start(&mut self, (node, start): (u16, u64), out: &mut Vec<Output<O>>) {
        self.settling.learn_start(node, start);
        self.ends(out).on_origin_start(node);
    }

    /// The slot after has told the end of a prepared transaction.
    fn learn_final(&mut self, id: TxnId, last: Final) {
        self.index.set_least(id, last.stamp, true);
        self.finals.insert(id, last);
    }

    fn forget_final(&mut self, id: TxnId) {
        if self.finals.remove(&id).is_some()
            && let Some(Entry::Prepared { proposal, .. }) = self.book.get(id)
        {
            let (time, txn) = (*proposal, id);
            self.index.set_least(id, Stamp { time, txn }, false);
        }
    }

    fn record(&mut self, record: Record<O>, out: &mut Vec<Output<O>>) {
        if let Some(id) = record.txn() {
            self.maxima.remove(&id);
        }
        self.index.on_record(&record);
        self.book.on_record(record.clone());
        out.push(Output::Record(record));
    }
}
