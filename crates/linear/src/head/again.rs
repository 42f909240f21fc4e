//! What is sent again: messages may be lost, and heads and origins change.

use super::Basis;
use super::Head;
use super::recovery::Recovery;
use super::settling::Ends;
use crate::book::Entry;
use crate::message::{Message, Output, To};
use crate::planted::{self, Off};
use crate::txn::{Operation, TxnId};
use std::collections::BTreeSet;
use std::sync::Arc;

impl<O: Operation> Head<O> {
    /// Other slots that its transactions concern: [`Head::on_link`] for each, from time to time, sends again what they
    /// may lack.
    pub fn peers(&self) -> BTreeSet<u16> {
        let stops = self.known().flat_map(|txn| txn.slots()).copied();
        let mut all: BTreeSet<u16> = stops.collect();
        all.extend(self.settling.asked());
        all.extend(self.settling.past().map(|(_, before)| before));
        all.extend(self.recovery.iter().flat_map(Recovery::asked));
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

    /// Messages to and from a head may have been lost, or it is another one: what it may lack is sent again.
    pub fn on_link(&mut self, peer: u16, out: &mut Vec<Output<O>>) {
        if self.recovery.is_some() {
            return self.ask_again(peer, out);
        }
        if planted::is(Off::SentAgain) {
            return;
        }
        let past = self.settling.past().filter(|(_, before)| *before == peer);
        out.extend(past.map(|(txn, _)| {
            let ask = Message::IsPrepared { txn };
            Output::Send(To::Slot(peer), ask)
        }));
        let slot = self.book.slot();
        for (id, txn) in self.entries() {
            let (is_after, is_before) = (
                txn.after(slot) == Some(peer),
                txn.before(slot) == Some(peer),
            );
            let has_final = self.finals.contains_key(&id);
            match self.book.get(id) {
                Some(Entry::Prepared { max: None, .. }) if is_before && !has_final => {
                    let ask = Message::IsPrepared { txn: id };
                    out.push(Output::Send(To::Slot(peer), ask));
                }
                Some(Entry::Prepared { .. }) if is_after && !has_final => {
                    self.pass_on(id, Basis::Unkept, out);
                }
                Some(Entry::Applied { alone: true, .. }) if is_after => {
                    let ask = Message::IsApplied { txn: id };
                    out.push(Output::Send(To::Slot(peer), ask));
                }
                Some(Entry::Applied { .. }) if is_before => self.back(id, out),
                Some(Entry::Aborted { .. }) if is_before => self.undo(id, out),
                _ => self.ends(out).settle_again(id, peer),
            }
        }
    }

    /// Messages to and from an origin may have been lost.
    pub fn on_origin_link(&mut self, origin: (u16, u64), out: &mut Vec<Output<O>>) {
        self.drop_held_of(origin.0);
        self.ends(out).on_origin_link(origin);
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
        let is_stop = slots.contains(&peer);
        match &entry {
            Entry::Forgotten { txn } if is_stop => {
                if txn.after(slot) == Some(peer) {
                    let slots: Arc<[u16]> = slots.into();
                    self.on_forget(id, &slots);
                }
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
