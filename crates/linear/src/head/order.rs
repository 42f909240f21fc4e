//! Admission, and application in the order of final stamps.

use super::{Final, Head, State};
use crate::book::Entry;
use crate::message::{Output, Predecessor, Record};
use crate::planted::{self, Off};
use crate::txn::{Operation, Relation, Stamp, Transaction, TxnId};
use std::sync::Arc;

/// A transaction that is not admitted yet.
#[derive(Clone, Debug)]
pub(super) struct Waiting<O> {
    pub(super) txn: Arc<Transaction<O>>,
    pub(super) max: u64,
}

impl<O: Operation> Head<O> {
    /// A transaction has arrived: it waits for those before it.
    pub(super) fn wait(&mut self, txn: Arc<Transaction<O>>, max: u64) {
        if !self.queue.iter().any(|waiting| waiting.txn.id == txn.id) {
            self.queue.push(Waiting { txn, max });
        }
    }

    /// Admits and applies what can be.
    pub(super) fn go_on(&mut self, state: &mut impl State<O>, out: &mut Vec<Output<O>>) {
        while self.admit(state, out) || self.apply(state, out) {}
        self.end_recovery(out);
    }

    /// Admits one transaction that conflicts with nothing prepared and with nothing that waits before it.
    fn admit(&mut self, state: &mut impl State<O>, out: &mut Vec<Output<O>>) -> bool {
        let slot = self.book.slot();
        let may_go = |(at, waiting): (usize, &Waiting<O>)| {
            let conflicts = |other: &Arc<Transaction<O>>| {
                waiting.txn.relation(other, slot) == Relation::Conflicting
                    && !planted::is(Off::Waiting)
            };
            let earlier = self.queue[..at].iter().map(|earlier| &earlier.txn);
            !self
                .prepared()
                .map(|(txn, _)| txn)
                .chain(earlier)
                .any(conflicts)
        };
        let Some(at) = self.queue.iter().enumerate().position(may_go) else {
            return false;
        };
        let Waiting { txn, max } = self.queue.remove(at);
        let as_expected = |expects: Option<Option<Stamp>>, key: &[u8]| {
            expects.is_none_or(|version| version == state.version(key))
        };
        let holds = txn
            .at(slot)
            .all(|part| as_expected(part.expects, &part.key));
        if !holds && !planted::is(Off::Conditions) {
            self.abort(txn, out);
            return true;
        }
        let proposal = self.book.clock() + 1;
        self.propose(txn, (proposal, max), out);
        true
    }

    /// Prepares a transaction that ends at or above `least`, and passes it on with a new proposal.
    pub(super) fn propose(
        &mut self,
        txn: Arc<Transaction<O>>,
        (least, max): (u64, u64),
        out: &mut Vec<Output<O>>,
    ) {
        let id = txn.id;
        let record = Record::Prepared {
            txn,
            proposal: least,
            max: Some(max.max(self.book.clock() + 1)),
        };
        self.record(record, out);
        self.pass_on(id, out);
    }

    fn prepared(&self) -> impl Iterator<Item = (&Arc<Transaction<O>>, Stamp)> {
        self.book.iter().filter_map(|(id, entry)| match entry {
            // It cannot end below this.
            Entry::Prepared { txn, proposal, .. } => {
                let time = *proposal;
                let known = self.finals.get(id).map(|last| last.stamp);
                Some((txn, known.unwrap_or(Stamp { time, txn: *id })))
            }
            _ => None,
        })
    }

    /// Applies one transaction with a final stamp, if no dependent one may still end below it.
    fn apply(&mut self, state: &mut impl State<O>, out: &mut Vec<Output<O>>) -> bool {
        let slot = self.book.slot();
        let mut ready: Vec<(Stamp, TxnId)> = self
            .finals
            .iter()
            .map(|(id, last)| (last.stamp, *id))
            .collect();
        ready.sort_unstable();
        let is_next = |(stamp, id): &(Stamp, TxnId)| {
            let Some(entry) = self.book.get(*id) else {
                return false;
            };
            let comes_first = |other: Stamp| {
                let is_tie = other.time == stamp.time;
                other < *stamp && !(is_tie && planted::is(Off::Ties))
            };
            let mut others = self.prepared().filter(|(other, _)| other.id != *id);
            planted::is(Off::Stamps)
                || !others.any(|(other, least)| {
                    comes_first(least) && entry.txn().relation(other, slot) != Relation::Independent
                })
        };
        let Some((stamp, id)) = ready.into_iter().find(is_next) else {
            return false;
        };
        let (Some(entry), Some(Final { mut after, .. })) =
            (self.book.get(id), self.finals.remove(&id))
        else {
            return false;
        };
        let txn = Arc::clone(entry.txn());
        after.extend(self.predecessors(&txn));
        after.sort_unstable();
        after.dedup();
        for part in txn.at(slot) {
            state.apply(part, stamp);
        }
        self.record(Record::Applied { txn, stamp, after }, out);
        self.back(id, out);
        true
    }

    /// Dependent transactions that were applied here before and may not be settled.
    fn predecessors(&self, txn: &Transaction<O>) -> Vec<Predecessor> {
        let slot = self.book.slot();
        let is_before = |other: &Transaction<O>| {
            let relation = txn.relation(other, slot);
            let is_reader = other
                .at(slot)
                .all(|part| !part.ops.iter().any(Operation::writes));
            relation != Relation::Independent && !(is_reader && planted::is(Off::Readers))
        };
        let applied = self.book.iter().filter_map(|(id, entry)| match entry {
            Entry::Applied { txn, .. } if !self.settling.has(*id) && is_before(txn) => Some(txn),
            _ => None,
        });
        applied
            .map(|txn| Predecessor {
                txn: txn.id,
                first: txn.first(),
            })
            .collect()
    }
}
