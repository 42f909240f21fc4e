//! The transactions of a node's clients, from their submission to their outcome.

use crate::message::{Message, Outcome, Output, To};
use crate::txn::{Operation, Transaction, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Origin<O> {
    node: u16,
    /// Higher with each start of the node, so that identities are never used again.
    start: u64,
    number: u64,
    waiting: BTreeMap<TxnId, Arc<Transaction<O>>>,
}

/// A transaction whose outcome is known.
#[derive(Clone, Debug)]
pub struct Ended<O> {
    pub txn: Arc<Transaction<O>>,
    pub outcome: Outcome,
    /// What its slots have told.
    pub told: Arc<[u8]>,
}

impl<O: Operation> Origin<O> {
    pub fn new(node: u16, start: u64) -> Self {
        Self {
            node,
            start,
            number: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// The identity of the next transaction.
    pub fn next_id(&mut self) -> TxnId {
        self.number += 1;
        TxnId {
            node: self.node,
            start: self.start,
            number: self.number,
        }
    }

    /// A client submits a transaction.
    pub fn on_submit(&mut self, txn: Arc<Transaction<O>>, out: &mut Vec<Output<O>>) {
        out.push(forward(&txn));
        self.waiting.insert(txn.id, txn);
    }

    /// The outcome of a transaction with what its slots have told, if it was not known before.
    pub fn on_outcome(
        &mut self,
        (txn, outcome, told): (TxnId, Outcome, Arc<[u8]>),
        from: u16,
        out: &mut Vec<Output<O>>,
    ) -> Option<Ended<O>> {
        out.push(Output::Send(To::Slot(from), Message::Heard { txn }));
        let txn = self.waiting.remove(&txn)?;
        Some(Ended { txn, outcome, told })
    }

    /// Messages to and from the head of a slot may have been lost, or it is another one.
    pub fn on_link(&mut self, slot: u16, out: &mut Vec<Output<O>>) {
        let waiting = self.waiting.values();
        out.extend(waiting.filter(|txn| txn.first() == slot).map(forward));
    }

    /// A transaction makes no progress.
    pub fn send_again(&self, txn: TxnId, out: &mut Vec<Output<O>>) {
        out.extend(self.waiting.get(&txn).map(forward));
    }

    /// Transactions without an outcome.
    pub fn waiting(&self) -> impl Iterator<Item = &TxnId> {
        self.waiting.keys()
    }
}

fn forward<O: Operation>(txn: &Arc<Transaction<O>>) -> Output<O> {
    let (to, txn) = (To::Slot(txn.first()), Arc::clone(txn));
    Output::Send(to, Message::Forward { txn, max: 0 })
}
