//! Slots that may have lost the ends of their logs ask the others, each as a worker of its own.

use super::ops::Op;
use super::world::{End, World};
use rufous_linear::survey::Question;
use rufous_linear::{At, Entry, Found, Message, Output, To};
use std::collections::{BTreeMap, BTreeSet};

/// All heads are heads of one mapping here.
const EPOCH: u64 = 0;

impl World {
    /// A slot begins to ask. `is_same`: its chain is another one, with the same head.
    pub(super) fn survey(&mut self, no: u16, is_same: bool) {
        let (lost, slots) = (self.lost, self.bounds.slots);
        let survey = &mut self.slot(no).survey;
        survey.on_mapping(lost, |_| is_same);
        if survey.is_over() {
            let all: BTreeSet<u16> = (0..slots).collect();
            survey.begin(0, EPOCH, BTreeSet::from([no]), all);
        }
        self.ask(no, None);
    }

    /// The chain of this slot has changed: others that ask begin again if it has lost something, and ask its other head.
    pub(super) fn survey_again(&mut self, no: u16) {
        let lost = self.lost;
        for other in (0..self.bounds.slots).filter(|other| *other != no) {
            let slot = self.slot(other);
            if !slot.closed {
                continue;
            }
            slot.survey.on_mapping(lost, |_| true);
            if slot.survey.is_over() {
                self.survey(other, true);
            }
        }
    }

    /// Asks others, or one of them, for what they have not told yet.
    pub(super) fn ask(&mut self, no: u16, peer: Option<u16>) {
        let survey = &mut self.slot(no).survey;
        survey.ask_again();
        let (round, epoch, lost) = survey.question();
        let mut asked = BTreeMap::<u16, Message<Op>>::new();
        match survey.due(0) {
            Some(Question::Find(slots)) => {
                let slots = slots.into_iter().map(|of| {
                    let slots = vec![no];
                    let message = Message::Survey {
                        round,
                        epoch,
                        lost,
                        slots,
                    };
                    (of, message)
                });
                asked.extend(slots);
            }
            Some(Question::Tell(all)) => {
                let mut found = BTreeMap::<u16, Vec<Found>>::new();
                for (txn, slots) in all {
                    for slot in slots {
                        let one = Found {
                            txn,
                            of: Vec::new(),
                            at: vec![slot],
                        };
                        found.entry(slot).or_default().push(one);
                    }
                }
                asked.extend(found.into_iter().map(|(slot, found)| {
                    let message = Message::Recall {
                        round,
                        epoch,
                        lost,
                        found,
                    };
                    (slot, message)
                }));
            }
            None => {}
        }
        for (slot, message) in asked {
            if peer.is_none_or(|peer| peer == slot) {
                self.send(End::Slot(no), End::Slot(slot), message);
            }
        }
    }

    /// A message arrives at a slot.
    pub(super) fn receive(&mut self, no: u16, from: Option<u16>, message: Message<Op>) {
        match (message, from) {
            (Message::Survey { round, slots, .. }, Some(from)) => {
                let found = self.found_at(no, &slots);
                let covers = vec![no];
                let answer = Message::Surveyed {
                    round,
                    covers,
                    found,
                };
                self.send(End::Slot(no), End::Slot(from), answer);
            }
            (Message::Recall { round, found, .. }, Some(from)) => {
                self.tell_stages(no, from, (round, &found))
            }
            (
                Message::Surveyed {
                    round,
                    covers,
                    found,
                },
                _,
            ) => {
                let slot = self.slot(no);
                let book = slot.head.book().clone();
                let is_open =
                    |_: u16, txn| matches!(book.get(txn), None | Some(Entry::Prepared { .. }));
                if slot.survey.on_found(round, &covers, found, is_open) {
                    self.ask(no, None);
                }
                self.open(no);
            }
            (Message::Recalled { round, id, txn, at }, _) => {
                self.slot(no).survey.on_told(round, id, (txn, at));
                self.open(no);
            }
            (message, from) => {
                let mut out = Vec::new();
                let slot = self.slot(no);
                if !slot.closed {
                    slot.head
                        .on_message(from, message, &mut slot.keys, &mut out);
                }
                self.put(no, out);
            }
        }
    }

    fn found_at(&mut self, no: u16, asked: &[u16]) -> Vec<Found> {
        let head = &self.slot(no).head;
        let known = head.known().filter_map(|txn| {
            let of = asked.iter().filter(|of| txn.slots().contains(of));
            let of: Vec<u16> = of.copied().collect();
            let (txn, at) = (txn.id, vec![no]);
            (!of.is_empty()).then_some(Found { txn, of, at })
        });
        known.collect()
    }

    /// Tells what a slot has, when that is kept.
    fn tell_stages(&mut self, no: u16, to: u16, (round, found): (u64, &[Found])) {
        let slot = self.slot(no);
        let answers = found.iter().map(|one| {
            let (txn, stage) = slot.head.stage(one.txn).unzip();
            let (id, at) = (one.txn, vec![At { slot: no, stage }]);
            Output::Send(To::Slot(to), Message::Recalled { round, id, txn, at })
        });
        let answers = answers.collect();
        self.put(no, answers);
    }

    /// Goes on if all is told.
    fn open(&mut self, no: u16) {
        let slot = self.slot(no);
        let Some(facts) = slot.survey.take(no).filter(|_| slot.closed) else {
            return;
        };
        slot.closed = false;
        let mut out = Vec::new();
        slot.head.on_surveyed(&facts, &mut slot.keys, &mut out);
        self.tell_starts(no, &mut out);
        self.put(no, out);
    }
}
