//! What a transaction waits for to be admitted, and what it must not wait for.

use super::{Index, Others, Place};
use crate::planted::{self, Off};
use crate::txn::{Holders, Operation, Relation, Standing, Transaction, TxnId};
use std::sync::Arc;

impl<O: Operation> Index<O> {
    /// A transaction that a waiting one conflicts with.
    pub(super) fn conflict(
        &mut self,
        number: u64,
        txn: &Transaction<O>,
        standing: &impl Fn(&[u8]) -> Option<Standing<O>>,
    ) -> Option<TxnId> {
        if planted::is(Off::Waiting) {
            return None;
        }
        for part in txn.at(self.slot) {
            let Some(at) = self.keys.get(&part.key) else {
                continue;
            };
            let standing = standing(&part.key);
            self.compared += 2;
            let is_conflict = |relation| relation >= self.waits_from;
            if is_conflict(at.prepared.relation(part, standing.as_ref())) {
                // In whatever state: that is one more than enough to wait for.
                let prepared = at.order.iter().map(|least| least.txn);
                let with = self.first_of(prepared, |other| {
                    is_conflict(txn.relation(other, self.slot))
                });
                self.compared += with.1;
                if with.0.is_some() {
                    return with.0;
                }
            }
            if is_conflict(at.waiting.relation(part, standing.as_ref())) {
                let earlier = at.arrived.range(..number).map(|(_, id)| *id);
                let with =
                    self.first_of(earlier, |other| is_conflict(txn.relation(other, self.slot)));
                self.compared += with.1;
                if with.0.is_some() {
                    return with.0;
                }
            }
        }
        None
    }

    /// Whether a transaction depends on one that visits slots in another order, and is prepared or waits before it. The two
    /// could wait for each other, to be admitted or to be applied.
    pub(super) fn clashes(&self, number: u64, txn: &Transaction<O>) -> bool {
        if self.orders.keys().all(|order| *order == txn.order()) || planted::is(Off::Orders) {
            return false;
        }
        txn.at(self.slot).any(|part| {
            let Some(at) = self.keys.get(&part.key) else {
                return false;
            };
            let prepared = at.order.iter().map(|least| least.txn);
            let waiting = at.arrived.range(..number).map(|(_, id)| *id);
            let mut others = prepared.chain(waiting).filter_map(|id| self.known(id));
            others.any(|other| {
                let is_other = other.order() != txn.order();
                is_other && txn.relation(other, self.slot) != Relation::Independent
            })
        })
    }

    /// Whether a transaction would wait behind requests that wait for what is prepared here, in part of another order.
    pub(super) fn clashes_behind(&self, others: Others, txn: &Transaction<O>) -> bool {
        if others < Others::Wait || planted::is(Off::Behind) {
            return false;
        }
        let is_one = self.orders.keys().all(|order| *order == txn.order());
        let mut open = self.open.values();
        !is_one
            && open.any(|(other, place)| {
                matches!(place, Place::Prepared(_)) && other.order() != txn.order()
            })
    }

    fn known(&self, id: TxnId) -> Option<&Arc<Transaction<O>>> {
        let number = self.numbers.get(&id);
        let waiting = number.and_then(|number| self.queue.get(number));
        let open = self.open.get(&id).map(|(txn, _)| txn);
        open.or(waiting.map(|waiting| &waiting.txn))
    }

    /// The first of these transactions for which something holds, and how many were looked at.
    fn first_of(
        &self,
        ids: impl Iterator<Item = TxnId>,
        holds: impl Fn(&Transaction<O>) -> bool,
    ) -> (Option<TxnId>, u64) {
        let mut looked = 0;
        for id in ids {
            looked += 1;
            if self.known(id).is_some_and(|txn| holds(txn)) {
                return (Some(id), looked);
            }
        }
        (None, looked)
    }
}
