//! A start that may have lost the end of the slot's log, at all copies: other slots may have transactions that this one
//! lacks.
//!
//! They are asked before ([`crate::Survey`]). What a later one has has passed this one: it is prepared here again before
//! anything else, at an unknown place, until the pass backward brings its stamp. What an earlier one has applied was
//! applied here: it gets that stamp, and is applied in its place among what is prepared. A transaction that its first
//! slot remembers as forgotten was in all logs, so it is not lost anywhere.

use super::{Basis, Final, Head, State};
use crate::book::Entry;
use crate::fact::{Ending, Fact, Stage};
use crate::message::{Output, Record};
use crate::planted::{self, Off};
use crate::told;
use crate::txn::{Operation, Transaction, TxnId};
use std::collections::BTreeSet;
use std::sync::Arc;

impl From<&Ending> for Final {
    fn from(ending: &Ending) -> Self {
        let Ending {
            stamp,
            after,
            told,
            alone,
        } = ending.clone();
        let basis = if alone {
            Basis::Alone(told.len())
        } else {
            Basis::Kept
        };
        Self {
            stamp,
            after,
            told,
            basis,
        }
    }
}

impl<O: Operation> Head<O> {
    /// The slot's log may have lost its end: called before [`Head::on_surveyed`]. Each copy that may continue the slot has to
    /// know it from then on.
    pub fn on_loss(&mut self, out: &mut Vec<Output<O>>) {
        if !planted::is(Off::Redone) {
            self.record(Record::Lost, out);
        }
    }

    /// What a slot that may have lost something is to know of a transaction here.
    pub fn stage(&self, id: TxnId) -> Option<(Arc<Transaction<O>>, Stage)> {
        let Some(entry) = self.book.get(id) else {
            let mut waiting = self.index.waiting();
            let txn = &waiting.find(|waiting| waiting.txn.id == id)?.txn;
            return Some((Arc::clone(txn), Stage::Passed));
        };
        let stage = match entry {
            Entry::Prepared { .. } => match self.finals.get(&id) {
                Some(last) => Stage::Ended(Ending {
                    stamp: last.stamp,
                    after: last.after.clone(),
                    told: Arc::clone(&last.told),
                    alone: matches!(last.basis, Basis::Alone(_)),
                }),
                None if self.is_only_ahead(id) => return None,
                None => Stage::Passed,
            },
            Entry::Applied {
                stamp, after, told, ..
            } => {
                let whole = self.settling.whole(&self.book, id);
                let alone = whole.is_none();
                let (after, told) = whole.unwrap_or_else(|| (after.clone(), Arc::clone(told)));
                Stage::Ended(Ending {
                    stamp: *stamp,
                    after,
                    told,
                    alone,
                })
            }
            Entry::Aborted { .. } => Stage::Aborted,
            Entry::Forgotten { .. } => Stage::Forgotten,
        };
        Some((Arc::clone(entry.txn()), stage))
    }

    /// Whether it was prepared ahead of the message of the slot before, which may never have kept that it passed there, or
    /// since another one had told of it, which tells it others, too, if it has it still.
    fn is_only_ahead(&self, id: TxnId) -> bool {
        let is_ahead = matches!(self.book.get(id), Some(Entry::Prepared { max: None, .. }));
        is_ahead && !self.maxima.contains_key(&id) && !planted::is(Off::AheadNotTold)
    }

    /// Goes on from a book that may lack what the log has lost, in place of [`Head::on_start`]: with all that other slots
    /// have of what it lacks or has prepared. They have told it since the last loss of any of them, and since this slot's
    /// head before has ended.
    pub fn on_surveyed(
        &mut self,
        facts: &[Arc<Fact<O>>],
        state: &mut impl State<O>,
        out: &mut Vec<Output<O>>,
    ) {
        for fact in facts {
            self.learn(fact, out);
        }
        let slot = self.book.slot();
        for (fact, at, ending) in facts.iter().flat_map(|fact| ends(fact, slot)) {
            if fact.txn.is_after(slot, at) {
                self.redo(&fact.txn, ending);
            }
        }
        self.on_start(state, out);
        let all = self.entries();
        let slots = all.iter().flat_map(|(_, txn)| txn.slots().to_vec());
        let peers: BTreeSet<u16> = slots.filter(|peer| *peer != slot).collect();
        for peer in peers {
            self.on_link(peer, out);
        }
        self.end_recovery(out);
    }

    /// Aborts what was aborted, and prepares what it lacks.
    fn learn(&mut self, fact: &Fact<O>, out: &mut Vec<Output<O>>) {
        let (slot, txn) = (self.book.slot(), &fact.txn);
        let is = |what: fn(&Stage) -> bool| fact.others(slot).any(|(_, stage)| what(stage));
        let is_aborted = is(|stage| matches!(stage, Stage::Aborted));
        let is_over = is_aborted || is(|stage| matches!(stage, Stage::Forgotten));
        let is_known = fact.others(slot).any(|(at, stage)| match stage {
            Stage::Passed => txn.is_after(at, slot),
            Stage::Ended(_) => true,
            Stage::Aborted | Stage::Forgotten => false,
        });
        match self.book.get(txn.id) {
            Some(Entry::Prepared { txn, .. }) if is_aborted => {
                self.abort(Arc::clone(txn), told::nothing(), out);
            }
            None if is_known && !is_over => self.know(txn, out),
            _ => {}
        }
    }

    /// An earlier slot has applied it, with this stamp.
    fn redo(&mut self, txn: &Arc<Transaction<O>>, ending: &Ending) {
        let (id, slot) = (txn.id, self.book.slot());
        if !matches!(self.book.get(id), Some(Entry::Prepared { .. })) {
            return;
        }
        let said = Final::from(ending);
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

    /// What was lost is here again once all is applied that was: another head before that has to ask for its stamps.
    pub(super) fn end_recovery(&mut self, out: &mut Vec<Output<O>>) {
        if !self.book.is_lost() {
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

/// The ends of a transaction that other slots have told.
fn ends<O>(fact: &Fact<O>, slot: u16) -> impl Iterator<Item = (&Fact<O>, u16, &Ending)> {
    fact.others(slot)
        .filter_map(move |(at, stage)| match stage {
            Stage::Ended(ending) => Some((fact, at, ending)),
            _ => None,
        })
}
