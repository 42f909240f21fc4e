//! A start that may have lost the end of the slot's log, at all copies: other slots may have transactions that this one
//! lacks.
//!
//! It asks the heads of all other slots. What a later one has has passed this one: it is prepared here again before
//! anything else, at an unknown place, until the pass backward brings its stamp. What an earlier one has applied was
//! applied here: it gets that stamp, and is applied in its place among what is prepared. A transaction that its first
//! slot remembers as forgotten was in all logs, so it is not lost anywhere. Other messages wait until all have
//! answered: after the last loss of any of them, or what has passed two slots that lose it would be missing in the answers of both
//! and in the earlier answer of a third one.

use super::{Basis, Final, Head, State};
use crate::book::Entry;
use crate::message::{Message, Output, Record, To};
use crate::planted::{self, Off};
use crate::told;
use crate::txn::{Operation, Transaction, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Recovery<O> {
    /// Slots that have not answered, and the numbers of the questions that they were asked.
    asked: BTreeMap<u16, u64>,
    /// By the slot that has told them.
    facts: BTreeMap<u16, Facts<O>>,
    held: Vec<(Option<u16>, Message<O>)>,
    /// All other slots, and those that are known to have lost something, too.
    others: BTreeSet<u16>,
    lossy: BTreeSet<u16>,
}

/// What another slot has told.
#[derive(Clone, Debug)]
struct Facts<O> {
    known: Vec<Arc<Transaction<O>>>,
    redo: Vec<(TxnId, Final)>,
    aborted: Vec<TxnId>,
    /// Aborted, or forgotten by their first slots.
    over: Vec<TxnId>,
    /// How many they are.
    count: u64,
}

impl<O> Default for Facts<O> {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            redo: Vec::new(),
            aborted: Vec::new(),
            over: Vec::new(),
            count: 0,
        }
    }
}

impl<O> Facts<O> {
    /// Takes one. True if these are all.
    fn take(&mut self, fact: Message<O>) -> bool {
        match fact {
            Message::Known { txn, .. } => self.known.push(txn),
            Message::Redo {
                txn,
                stamp,
                after,
                told,
                alone,
                ..
            } => {
                let basis = if alone {
                    Basis::Alone(told.len())
                } else {
                    Basis::Kept
                };
                let last = Final {
                    stamp,
                    after,
                    told,
                    basis,
                };
                self.redo.push((txn.id, last));
                self.known.push(txn);
            }
            Message::Over { txn, aborted, .. } => {
                self.over.push(txn);
                self.aborted.extend(aborted.then_some(txn));
            }
            // With fewer it asks again when the link is looked at again.
            Message::Told { facts, .. } => return facts == self.count || planted::is(Off::Counted),
            _ => return false,
        }
        self.count += 1;
        false
    }
}

impl<O> Recovery<O> {
    /// Slots that have not answered.
    pub(super) fn asked(&self) -> impl Iterator<Item = u16> {
        self.asked.keys().copied()
    }
}

impl<O: Operation> Head<O> {
    /// The slot's log may have lost its end: called before [`Head::on_start`]. Each copy that may continue the slot has to
    /// know it from then on.
    pub fn on_loss(&mut self, out: &mut Vec<Output<O>>) {
        if !planted::is(Off::Redone) {
            self.record(Record::Lost, out);
        }
    }

    /// Asks all other slots for what may be lacking here.
    pub(super) fn begin_recovery(&mut self, others: BTreeSet<u16>, out: &mut Vec<Output<O>>) {
        self.recovery = Some(Recovery {
            asked: BTreeMap::new(),
            facts: BTreeMap::new(),
            held: Vec::new(),
            others: others.clone(),
            lossy: BTreeSet::new(),
        });
        for slot in others {
            self.ask(slot, out);
        }
    }

    fn ask(&mut self, slot: u16, out: &mut Vec<Output<O>>) {
        if let Some(recovery) = &mut self.recovery {
            self.round += 1;
            recovery.facts.remove(&slot);
            recovery.asked.insert(slot, self.round);
            let message = Message::Lost { round: self.round };
            out.push(Output::Send(To::Slot(slot), message));
        }
    }

    /// Whether it waits for other slots before it serves.
    pub fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    /// What a slot has said before its head has changed may be lost there.
    pub(super) fn ask_again(&mut self, peer: u16, out: &mut Vec<Output<O>>) {
        if let Some(recovery) = &mut self.recovery {
            recovery.held.retain(|(from, _)| *from != Some(peer));
            recovery.others.insert(peer);
            // It may lose something once more.
            recovery.lossy.remove(&peer);
            self.ask(peer, out);
        }
    }

    /// Another slot has lost something, too. What others have told before need not have what had passed it since, so all
    /// are asked again. True if that was not known.
    fn learn_loss(&mut self, from: Option<u16>, out: &mut Vec<Output<O>>) -> bool {
        let (Some(recovery), Some(from)) = (&mut self.recovery, from) else {
            return false;
        };
        if planted::is(Off::Together) || !recovery.lossy.insert(from) {
            return false;
        }
        for slot in recovery.others.clone() {
            self.ask(slot, out);
        }
        true
    }

    /// Another link to a node begins: what its origin had sent before is sent again, or not wanted any more.
    pub(super) fn drop_held_of(&mut self, node: u16) {
        let is_theirs = |message: &Message<O>| match message {
            Message::Forward { txn, .. } => txn.id.node == node,
            Message::Heard { txn } => txn.node == node,
            _ => false,
        };
        if let Some(recovery) = &mut self.recovery {
            let held = &mut recovery.held;
            held.retain(|(from, message)| from.is_some() || !is_theirs(message));
        }
    }

    /// Answers a slot that may lack something.
    pub(super) fn on_lost(&self, from: Option<u16>, round: u64, out: &mut Vec<Output<O>>) {
        let Some(from) = from else {
            return;
        };
        let slot = self.book.slot();
        let queued = self.index.waiting().map(|waiting| &waiting.txn);
        let theirs = queued.filter(|txn| txn.is_after(slot, from) && txn.slots().contains(&from));
        let mut facts: Vec<Message<O>> = theirs.map(|txn| known(round, txn)).collect();
        let theirs = self.book.iter();
        let theirs = theirs.filter(|(_, entry)| entry.txn().slots().contains(&from));
        facts.extend(theirs.filter_map(|(id, entry)| match entry {
            Entry::Applied {
                txn,
                stamp,
                after,
                told,
                ..
            } if txn.is_after(from, slot) => {
                let whole = self.settling.whole(&self.book, *id);
                let alone = whole.is_none();
                let (after, told) = whole.unwrap_or_else(|| (after.clone(), Arc::clone(told)));
                Some(Message::Redo {
                    round,
                    txn: Arc::clone(txn),
                    stamp: *stamp,
                    after,
                    told,
                    alone,
                })
            }
            // With a stamp it was applied at all later slots. Without one it will be sent forward again, and may not have come
            // to that slot before.
            Entry::Prepared { txn, .. } if txn.is_after(from, slot) => {
                let known = self.finals.get(id).cloned();
                known.map(|last| Message::Redo {
                    round,
                    txn: Arc::clone(txn),
                    stamp: last.stamp,
                    after: last.after,
                    told: last.told,
                    alone: matches!(last.basis, Basis::Alone(_)),
                })
            }
            Entry::Prepared { txn, .. } | Entry::Applied { txn, .. } => Some(known(round, txn)),
            Entry::Aborted { .. } => Some(over(round, *id, true)),
            Entry::Forgotten { .. } => Some(over(round, *id, false)),
        }));
        let count = facts.len() as u64;
        facts.push(Message::Told {
            round,
            facts: count,
            recovers: self.recovery.is_some(),
        });
        let to = To::Slot(from);
        out.extend(facts.into_iter().map(|fact| Output::Send(to, fact)));
    }

    /// During a recovery: takes what belongs to it and keeps the rest. Otherwise gives the message back.
    pub(super) fn held_back(
        &mut self,
        from: Option<u16>,
        message: Message<O>,
        state: &mut impl State<O>,
        out: &mut Vec<Output<O>>,
    ) -> Option<Message<O>> {
        if self.recovery.is_none() {
            return Some(message);
        }
        let (round, message) = match message {
            Message::Lost { round } => {
                self.on_lost(from, round, out);
                self.learn_loss(from, out);
                return None;
            }
            Message::Told { recovers: true, .. } if self.learn_loss(from, out) => return None,
            Message::Known { round, .. }
            | Message::Redo { round, .. }
            | Message::Over { round, .. }
            | Message::Told { round, .. } => (round, message),
            message => {
                let recovery = self.recovery.as_mut()?;
                recovery.held.push((from, message));
                return None;
            }
        };
        let recovery = self.recovery.as_mut()?;
        // Of earlier questions, something may be missing.
        let asked = recovery.asked.iter();
        let mut asked = asked.filter(|(slot, of)| from == Some(**slot) && **of == round);
        let from = asked.next().map(|(slot, _)| *slot)?;
        if recovery.facts.entry(from).or_default().take(message) {
            recovery.asked.remove(&from);
            if recovery.asked.is_empty() {
                self.recover(state, out);
            }
        }
        None
    }

    fn recover(&mut self, state: &mut impl State<O>, out: &mut Vec<Output<O>>) {
        let Some(recovery) = self.recovery.take() else {
            return;
        };
        let facts = recovery.facts.into_values();
        let all = facts.reduce(|mut all, facts| {
            all.known.extend(facts.known);
            all.redo.extend(facts.redo);
            all.aborted.extend(facts.aborted);
            all.over.extend(facts.over);
            all
        });
        let all = all.unwrap_or_default();
        for id in &all.aborted {
            if let Some(Entry::Prepared { txn, .. }) = self.book.get(*id) {
                self.abort(Arc::clone(txn), told::nothing(), out);
            }
        }
        for txn in &all.known {
            if !all.over.contains(&txn.id) && self.book.get(txn.id).is_none() {
                self.know(txn, out);
            }
        }
        for (id, said) in all.redo {
            if let Some(Entry::Prepared { txn, .. }) = self.book.get(id) {
                let txn = Arc::clone(txn);
                let slot = self.book.slot();
                let is_alone = |last: &Final| matches!(last.basis, Basis::Alone(_));
                let known = self.finals.get(&id).cloned();
                let known = known.filter(|known| !is_alone(known));
                let mut last = known.unwrap_or(Final {
                    after: Vec::new(),
                    told: told::after(&said.told, |of| txn.is_after(of, slot)),
                    ..said
                });
                if is_alone(&last) && txn.last() == slot {
                    last.basis = Basis::Kept;
                } else if is_alone(&last) {
                    last.told = told::nothing();
                }
                last.after.extend(said.after);
                self.learn_final(id, last);
                self.redone.insert(id);
            }
        }
        self.go_on_from_book(state, out);
        let all = self.entries();
        let peers: BTreeSet<u16> = all
            .iter()
            .flat_map(|(_, txn)| txn.slots().to_vec())
            .collect();
        let slot = self.book.slot();
        for peer in peers.into_iter().filter(|peer| *peer != slot) {
            self.on_link(peer, out);
        }
        for (from, message) in recovery.held {
            self.on_message(from, message, state, out);
        }
        self.end_recovery(out);
    }

    /// What was lost is here again once all is applied that was: another head before that has to ask for its stamps.
    pub(super) fn end_recovery(&mut self, out: &mut Vec<Output<O>>) {
        if !self.book.is_lost() || self.recovery.is_some() {
            return;
        }
        let book = &self.book;
        self.redone
            .retain(|id| matches!(book.get(*id), Some(Entry::Prepared { .. })));
        if self.redone.is_empty() {
            self.record(Record::Recovered, out);
        }
    }

    /// Prepares a transaction again that is known at another slot: it may end anywhere.
    fn know(&mut self, txn: &Arc<Transaction<O>>, out: &mut Vec<Output<O>>) {
        if planted::is(Off::Known) {
            return;
        }
        let is_first = txn.first() == self.book.slot();
        let record = Record::Prepared {
            txn: Arc::clone(txn),
            proposal: 0,
            max: is_first.then(|| self.book.clock() + 1),
        };
        self.record(record, out);
    }
}

fn over<O>(round: u64, txn: TxnId, aborted: bool) -> Message<O> {
    Message::Over {
        round,
        txn,
        aborted,
    }
}

fn known<O>(round: u64, txn: &Arc<Transaction<O>>) -> Message<O> {
    Message::Known {
        round,
        txn: Arc::clone(txn),
    }
}
