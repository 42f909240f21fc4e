//! What is sent again: messages may be lost, and heads and origins change.

use super::settling::{Ends, Settling};
use super::{Basis, Head};
use crate::book::Entry;
use crate::message::{Message, Output, To};
use crate::txn::{Operation, TxnId};
use std::sync::Arc;

/// A head that sends again.
pub(super) struct Again<'a, O: Operation> {
    pub(super) head: &'a mut Head<O>,
    pub(super) out: &'a mut Vec<Output<O>>,
}

impl<O: Operation> Again<'_, O> {
    /// What another head may lack.
    pub(super) fn send(self, peer: u16) {
        let past = self.head.settling.past.iter();
        let past = past.filter(|(_, before)| **before == peer);
        self.out.extend(past.map(|(txn, _)| {
            let ask = Message::IsPrepared { txn: *txn };
            Output::Send(To::Slot(peer), ask)
        }));
        let slot = self.head.book.slot();
        for (id, txn) in self.head.entries() {
            let (is_after, is_before) = (
                txn.after(slot) == Some(peer),
                txn.before(slot) == Some(peer),
            );
            let has_final = self.head.finals.contains_key(&id);
            let lacks_rest = !self.head.settling.has_rest(id);
            match self.head.book.get(id) {
                Some(Entry::Prepared { max: None, .. }) if is_before && !has_final => {
                    let ask = Message::IsPrepared { txn: id };
                    self.out.push(Output::Send(To::Slot(peer), ask));
                }
                Some(Entry::Prepared { .. }) if is_after && !has_final => {
                    self.head.pass_on(id, Basis::Unkept, self.out);
                }
                Some(Entry::Applied { alone: true, .. }) if is_after && lacks_rest => {
                    let ask = Message::IsApplied { txn: id };
                    self.out.push(Output::Send(To::Slot(peer), ask));
                }
                Some(Entry::Applied { .. }) if is_before => self.head.back(id, self.out),
                Some(Entry::Aborted { .. }) if is_before => self.head.undo(id, self.out),
                _ => self.head.ends(self.out).settle_again(id, peer),
            }
        }
    }
}

impl Settling {
    /// Whether nothing is to be said of it but that it may be forgotten.
    pub(super) fn is_over<O>(&self, txn: TxnId, entry: &Entry<O>) -> bool {
        match entry {
            Entry::Prepared { .. } => false,
            Entry::Applied { .. } | Entry::Aborted { .. } => {
                let first = self.firsts.get(&txn);
                let has_ended = matches!(entry, Entry::Aborted { .. }) || self.has(txn);
                has_ended && first.is_none_or(|first| first.heard)
            }
            Entry::Forgotten { .. } => true,
        }
    }
}

impl<O: Operation> Ends<'_, O> {
    /// What another head may lack about an ended transaction of this slot.
    pub(super) fn settle_again(&mut self, id: TxnId, peer: u16) {
        let Some(entry) = self.book.get(id).cloned() else {
            return;
        };
        let (slot, slots) = (self.book.slot(), entry.txn().slots());
        if entry.txn().first() != slot {
            return;
        }
        let is_stop = slots.contains(&peer) && !self.at.is_safe(id, peer);
        match &entry {
            // Through all of them: the last one says when it has come.
            Entry::Forgotten { txn } if txn.after(slot) == Some(peer) || txn.last() == peer => {
                let slots: Arc<[u16]> = slots.into();
                self.on_forget(id, &slots);
            }
            Entry::Applied { .. } if is_stop && self.at.has(id) => {
                self.out
                    .push(Output::Send(To::Slot(peer), Message::Settled { txn: id }));
            }
            Entry::Aborted { .. } if is_stop => {
                self.out
                    .push(Output::Send(To::Slot(peer), Message::Settled { txn: id }));
            }
            _ => {}
        }
        let after = self.at.open_predecessors(id);
        let asked = after.into_iter().flatten().filter(|(_, at)| **at == peer);
        for (txn, _) in asked {
            if let Entry::Applied { stamp, .. } = &entry {
                let (txn, before) = (*txn, *stamp);
                self.out
                    .push(Output::Send(To::Slot(peer), Message::Ask { txn, before }));
            }
        }
    }
}
