//! Admission, and application in the order of final stamps.

use super::index::Waiting;
use super::{Basis, Final, Head, Later, State};
use crate::book::{Book, Entry};
use crate::message::{Ahead, Output, Predecessor, Record};
use crate::planted::{self, Off};
use crate::told;
use crate::txn::{Operation, Relation, Stamp, Transaction, TxnId};
use std::sync::Arc;

/// What is told of a transaction that was aborted as it would have waited for one that visits slots in another order: the
/// two could wait for each other. Nothing else is told like that. Its origin begins it again, in the order of now.
pub const OTHER_ORDER: &[u8] = b"other order";

impl<O: Operation> Head<O> {
    /// As [`Head::new`], where requests that are no transactions see keys: transactions that depend on one another are kept apart.
    pub fn apart(book: Book<O>) -> Self {
        let mut head = Self::new(book);
        head.index.waits_from = Relation::Orderable;
        head
    }

    /// Admits and applies what can be.
    pub(super) fn go_on(&mut self, state: &mut impl State<O>, out: &mut Vec<Output<O>>) {
        while self.admit(state, out) || self.apply(state, out) {}
        self.end_recovery(out);
    }

    /// Admits one transaction that conflicts with nothing prepared and with nothing that waits before it.
    fn admit(&mut self, state: &mut impl State<O>, out: &mut Vec<Output<O>>) -> bool {
        let slot = self.book.slot();
        let next = self
            .index
            .next_to_admit(|key| state.standing(key), |key| state.others(key));
        let Some((Waiting { txn, max }, clashes)) = next else {
            return false;
        };
        if clashes {
            self.abort(txn, OTHER_ORDER.into(), out);
            return true;
        }
        let as_expected = |expects: Option<Option<Stamp>>, key: &[u8]| {
            expects.is_none_or(|version| version == state.version(key))
        };
        let holds = txn
            .at(slot)
            .all(|part| as_expected(part.expects, &part.key));
        if !holds && !planted::is(Off::Conditions) {
            self.abort(txn, told::nothing(), out);
            return true;
        }
        if let Some(why) = state.refuses(&txn, slot) {
            self.abort(txn, why.into(), out);
            return true;
        }
        let txn = match state.gather(&txn, slot) {
            Ok(added) if added.is_empty() => txn,
            Ok(added) => Arc::new(txn.with_gathered(slot, &added)),
            Err(why) => {
                self.abort(txn, why.into(), out);
                return true;
            }
        };
        let proposal = self.book.clock() + 1;
        let next = txn.after(slot).filter(|_| state.is_apart(&txn));
        self.propose(Arc::clone(&txn), (proposal, max), out);
        if let Some(next) = next {
            out.push(Output::Beside(next, Ahead::Prepared { txn }));
        }
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
        self.pass_on(id, Basis::Unkept, out);
    }

    /// Applies one transaction with a final stamp, if no dependent one may still end below it.
    fn apply(&mut self, state: &mut impl State<O>, out: &mut Vec<Output<O>>) -> bool {
        let slot = self.book.slot();
        let finals = |id: TxnId| self.finals.get(&id).map(|last| last.stamp);
        let standing = |key: &[u8]| state.standing(key);
        let Some(id) = self.index.next_to_apply(finals, standing) else {
            return false;
        };
        let (Some(entry), Some(last)) = (self.book.get(id), self.finals.remove(&id)) else {
            return false;
        };
        let Final {
            stamp,
            mut after,
            told,
            basis,
        } = last;
        let txn = Arc::clone(entry.txn());
        let later = match basis {
            Basis::Alone(bytes) => Later::Bytes(bytes),
            Basis::Kept | Basis::Unkept => Later::Told(&told),
        };
        after.extend(self.predecessors(&txn, state));
        after.sort_unstable();
        after.dedup();
        let piece = state.apply(&txn, slot, stamp, later);
        let told = told::joined(slot, &piece, &told);
        let before = txn.before(slot).filter(|_| state.is_apart(&txn));
        let bytes = later.len() + piece.len();
        let alone = matches!(basis, Basis::Alone(_)) && !planted::is(Off::RestAwaited);
        let record = Record::Applied {
            txn,
            stamp,
            after,
            told,
            alone,
        };
        self.record(record, out);
        let is_known = basis != Basis::Unkept || planted::is(Off::DecidedKept);
        if let Some(before) = before.filter(|_| is_known) {
            let (txn, stamp) = (id, stamp);
            out.push(Output::Beside(before, Ahead::Applied { txn, stamp, bytes }));
        }
        self.back(id, out);
        true
    }

    /// Dependent transactions that were applied here before and may not be settled.
    fn predecessors(&mut self, txn: &Transaction<O>, state: &impl State<O>) -> Vec<Predecessor> {
        let standing = |key: &[u8]| state.standing(key);
        let book = &self.book;
        let after = |id: TxnId| book.get(id).map_or(&[][..], Entry::after);
        let all = self.index.predecessors(txn, standing, after).into_iter();
        all.map(|(txn, first)| Predecessor { txn, first }).collect()
    }
}
