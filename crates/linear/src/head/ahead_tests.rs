//! Heads of slots beside one another, driven by hand: what is kept, and what is said when.

use super::driven::{self, Sent, id};
use super::{Later, OTHER_ORDER, State};
use crate::{Access, Ahead, Message, Outcome, Part, Record, Stage, Stamp, To, Transaction};
use std::sync::Arc;

type Txn = Arc<Transaction<Access>>;
type Slot = driven::Slot<Access, Keys>;

#[derive(Default)]
struct Keys {
    /// A slot needs what others add.
    joint: bool,
    refuses: bool,
    applied: Vec<(u64, Stamp)>,
    later: usize,
}

impl State<Access> for Keys {
    fn version(&self, _: &[u8]) -> Option<Stamp> {
        None
    }

    fn refuses(&mut self, _: &Transaction<Access>, _: u16) -> Option<Vec<u8>> {
        self.refuses.then(|| b"no".into())
    }

    fn is_apart(&mut self, _: &Transaction<Access>) -> bool {
        !self.joint
    }

    fn apply(
        &mut self,
        txn: &Transaction<Access>,
        slot: u16,
        stamp: Stamp,
        later: Later<'_>,
    ) -> Vec<u8> {
        self.applied.push((txn.id.number, stamp));
        self.later = later.len();
        format!("{slot};").into()
    }
}

fn part(slot: u16, access: Access) -> Part<Access> {
    Part {
        slot,
        key: (*b"k").into(),
        ops: vec![access],
        expects: None,
    }
}

/// It has a key of each slot.
fn txn_of(number: u64, slots: &[u16], access: Access) -> Transaction<Access> {
    let parts = slots.iter().map(|slot| part(*slot, access)).collect();
    Transaction::new(id(number), parts, Arc::default()).expect("parts")
}

fn txn(number: u64, slots: &[u16]) -> Txn {
    Arc::new(txn_of(number, slots, Access::Write))
}

fn forward(txn: &Txn, max: u64) -> Message<Access> {
    let txn = Arc::clone(txn);
    Message::Forward { txn, max }
}

fn prepared(txn: &Txn) -> Ahead<Access> {
    let txn = Arc::clone(txn);
    Ahead::Prepared { txn }
}

fn applied(stamp: Stamp, bytes: usize) -> Ahead<Access> {
    let txn = stamp.txn;
    Ahead::Applied { txn, stamp, bytes }
}

fn to(slot: u16, message: Message<Access>) -> Sent<Access> {
    vec![(To::Slot(slot), message)]
}

fn at(time: u64, number: u64) -> Stamp {
    let txn = id(number);
    Stamp { time, txn }
}

fn backward(stamp: Stamp, told: &[(u16, &str)]) -> Message<Access> {
    let told = told
        .iter()
        .rev()
        .fold(Arc::default(), |later, (slot, piece)| {
            crate::told::joined(*slot, piece.as_bytes(), &later)
        });
    Message::Backward {
        txn: stamp.txn,
        stamp,
        after: Vec::new(),
        told,
    }
}

fn forget(number: u64) -> Message<Access> {
    let slots = [1, 2, 3].into();
    Message::Forget {
        txn: id(number),
        slots,
    }
}

/// Three slots of one worker, in which a transaction is prepared.
fn three() -> ([Slot; 3], Txn) {
    let txn = txn(1, &[1, 2, 3]);
    let mut slots = [Slot::new(1), Slot::new(2), Slot::new(3)];
    let sent = slots[0].take(None, forward(&txn, 0));
    assert_eq!(sent, to(2, forward(&txn, 1)));
    assert_eq!(slots[0].take_beside(), [(2, prepared(&txn))]);
    assert_eq!(slots[1].ahead(prepared(&txn)), []);
    assert_eq!(slots[1].take_beside(), [(3, prepared(&txn))]);
    assert_eq!(slots[2].ahead(prepared(&txn)), []);
    assert_eq!(slots[2].take_beside(), []);
    assert!(slots.iter().all(|slot| slot.records.len() == 1));
    (slots, txn)
}

/// They have executed it, and the two behind the first have been told so by message.
fn executed() -> [Slot; 3] {
    let ([mut first, mut middle, mut last], txn) = three();
    middle.take(Some(1), forward(&txn, 1));
    last.take(Some(2), forward(&txn, 1));
    last.take(Some(3), forward(&txn, 1));
    middle.ahead(applied(at(1, 1), 2));
    first.ahead(applied(at(1, 1), 4));
    middle.take(Some(3), backward(at(1, 1), &[(3, "3;")]));
    for slot in [&mut first, &mut middle, &mut last] {
        slot.take_beside();
    }
    [first, middle, last]
}

#[test]
fn each_slot_records_twice_and_waits_for_what_the_others_keep() {
    let ([mut first, mut middle, mut last], txn) = three();
    // The messages find it prepared: nothing is recorded again.
    let on = to(3, forward(&txn, 1));
    assert_eq!(middle.take(Some(1), forward(&txn, 1)), on);
    // The stamp is made of what the last slot has recorded, which it does not keep yet.
    assert_eq!(last.take(Some(2), forward(&txn, 1)), on);
    assert!(last.keys.applied.is_empty());
    let stamp = at(1, 1);
    let sent = last.take(Some(3), forward(&txn, 1));
    assert_eq!(sent, to(2, backward(stamp, &[(3, "3;")])));
    assert_eq!(last.take_beside(), [(2, applied(stamp, 2))]);
    // The others apply it at once, and say so when the one behind keeps it.
    assert_eq!(middle.ahead(applied(stamp, 2)), []);
    assert_eq!(middle.take_beside(), [(1, applied(stamp, 4))]);
    assert_eq!(first.ahead(applied(stamp, 4)), []);
    assert_eq!(first.keys.later, 4);
    assert_eq!(first.keys.applied, [(1, stamp)]);
    let sent = middle.take(Some(3), backward(stamp, &[(3, "3;")]));
    let both = backward(stamp, &[(2, "2;"), (3, "3;")]);
    assert_eq!(sent, to(1, both.clone()));
    let sent = first.take(Some(2), both);
    let outcome = Message::Outcome {
        txn: id(1),
        outcome: Outcome::Committed,
        told: b"1;2;3;".as_slice().into(),
    };
    let origin = To::Origin { node: 1, start: 1 };
    assert!(sent.contains(&(origin, outcome)));
    let mut all = [first, middle, last].into_iter();
    assert!(all.all(|slot| slot.records.len() == 2));
}

#[test]
fn what_the_slot_before_has_lost_is_given_up() {
    let ([mut first, mut middle, mut last], txn) = three();
    assert_eq!(first.lose_records(0), []);
    let ask = Message::IsPrepared { txn: id(1) };
    assert_eq!(middle.link(1), to(1, ask.clone()));
    let unprepared = Message::Unprepared { txn: id(1) };
    assert_eq!(first.take(Some(2), ask), to(2, unprepared.clone()));
    let on = to(3, unprepared.clone());
    assert_eq!(middle.take(Some(1), unprepared.clone()), on);
    assert_eq!(last.take(Some(2), unprepared), []);
    assert!(middle.head.is_idle() && last.head.is_idle());
    // It is sent again, as a new one.
    first.take(None, forward(&txn, 0));
    assert_eq!(first.take_beside(), [(2, prepared(&txn))]);
    middle.take(Some(1), forward(&txn, 1));
    assert!(middle.head.holds(b"k"));
}

#[test]
fn what_was_passed_on_is_not_given_up() {
    let ([_, mut middle, _], txn) = three();
    middle.take(Some(1), forward(&txn, 1));
    let unprepared = Message::Unprepared { txn: id(1) };
    assert_eq!(middle.take(Some(1), unprepared), []);
    assert!(middle.head.holds(b"k"));
}

#[test]
fn the_next_head_makes_the_same_of_what_was_kept() {
    let ([_, mut middle, mut last], txn) = three();
    // Meanwhile another key of the slot has a later time.
    let other = Part {
        key: (*b"other").into(),
        ..part(3, Access::Write)
    };
    let other = Transaction::new(id(7), vec![other], Arc::default());
    last.take(None, forward(&Arc::new(other.expect("a part")), 9));
    let on = to(3, forward(&txn, 5));
    for _ in 0..2 {
        assert_eq!(middle.take(Some(1), forward(&txn, 5)), on);
        assert_eq!(last.take(Some(2), forward(&txn, 5)), on);
        middle.lose_head();
        last.lose_head();
        // It asks for the message: nothing else brings it again.
        let ask = Message::IsPrepared { txn: id(1) };
        assert_eq!(last.link(2), to(2, ask.clone()));
        assert_eq!(middle.take(Some(3), ask), []);
    }
    middle.take(Some(1), forward(&txn, 5));
    last.take(Some(2), forward(&txn, 5));
    last.take(Some(3), forward(&txn, 5));
    assert_eq!(last.keys.applied.last(), Some(&(1, at(5, 1))));
}

/// What was applied alone, the slot after has to apply with the same stamp, though it has lost that.
#[test]
fn a_slot_that_has_lost_that_it_applied_is_told_the_stamp() {
    let ([_, mut middle, mut last], txn) = three();
    middle.take(Some(1), forward(&txn, 4));
    last.take(Some(2), forward(&txn, 4));
    last.take(Some(3), forward(&txn, 4));
    middle.ahead(applied(at(4, 1), 2));
    last.lose_records(1);
    let ask = Message::IsPrepared { txn: id(1) };
    let proposed = Message::Proposed { txn: id(1), max: 4 };
    assert_eq!(middle.take(Some(3), ask), to(3, proposed.clone()));
    assert_eq!(last.take(Some(2), proposed), to(3, forward(&txn, 4)));
    let sent = last.take(Some(3), forward(&txn, 4));
    assert_eq!(sent, to(2, backward(at(4, 1), &[(3, "3;")])));
    assert_eq!(last.keys.applied, [(1, at(4, 1)), (1, at(4, 1))]);
}

#[test]
fn nothing_is_prepared_ahead_that_would_wait_or_be_refused_or_needs_what_others_add() {
    let (one, two) = (txn(1, &[1, 2, 3]), txn(2, &[1, 2]));
    let mut slot = Slot::new(2);
    slot.take(Some(1), forward(&one, 3));
    assert_eq!(slot.ahead(prepared(&two)), []);
    assert!(slot.head.book().get(two.id).is_none());
    let mut slot = Slot::new(2);
    slot.keys.refuses = true;
    assert_eq!(slot.ahead(prepared(&one)), []);
    assert!(slot.head.is_idle());
    let mut slot = Slot::new(1);
    slot.keys.joint = true;
    slot.take(None, forward(&one, 0));
    assert_eq!(slot.take_beside(), []);
}

/// The last slot has just recorded what the stamp is made of: the slot before may not use it yet.
#[test]
fn a_stamp_that_is_not_kept_is_not_used_by_others() {
    let mut last = Slot::new(2);
    last.take(Some(1), forward(&txn(1, &[1, 2]), 3));
    assert_eq!(last.take_beside(), []);
    assert_eq!(last.keys.applied.len(), 1);
}

/// Otherwise a message that each of many slots sends again goes through all of them.
#[test]
fn what_is_told_again_is_not_passed_on() {
    let txn = txn(1, &[1, 2, 3]);
    let told = backward(at(4, 1), &[(3, "3;")]);
    let mut slot = Slot::new(2);
    assert_eq!(slot.take(Some(1), forward(&txn, 4)).len(), 1);
    assert_eq!(slot.take(Some(1), forward(&txn, 4)), []);
    assert_eq!(slot.take(Some(3), told.clone()).len(), 1);
    assert_eq!(slot.take(Some(3), told.clone()), []);
    // Each looks after its neighbours.
    assert_eq!(slot.link(1).len(), 1);
    // The same of what was prepared and applied ahead.
    let mut slot = Slot::new(2);
    slot.ahead(prepared(&txn));
    assert_eq!(slot.take(Some(1), forward(&txn, 4)).len(), 1);
    assert_eq!(slot.take(Some(1), forward(&txn, 4)), []);
    slot.ahead(applied(at(4, 1), 2));
    assert_eq!(slot.take(Some(3), told.clone()).len(), 1);
    assert_eq!(slot.take(Some(3), told), []);
    // And of what was aborted.
    let mut slot = Slot::new(2);
    slot.take(Some(1), forward(&txn, 4));
    let undo = Message::Undo {
        txn: id(1),
        told: Arc::default(),
    };
    assert_eq!(slot.take(Some(3), undo.clone()).len(), 1);
    assert_eq!(slot.take(Some(3), undo), []);
    let known: Vec<u16> = slot.head.peers().into_iter().collect();
    assert_eq!(known, [1, 3]);
}

#[test]
fn what_was_forgotten_ahead_is_not_taken_for_new() {
    let [_, mut middle, mut last] = executed();
    assert_eq!(middle.take(Some(1), forget(1)), to(3, forget(1)));
    let [(3, ahead)] = &middle.take_beside()[..] else {
        panic!("nothing for the slot beside it");
    };
    assert_eq!(last.ahead(ahead.clone()), []);
    assert_eq!(last.records.last(), Some(&Record::Forgotten { txn: id(1) }));
    // It was sent twice.
    let late = txn(1, &[1, 2, 3]);
    assert_eq!(last.take(Some(2), forward(&late, 1)), []);
    assert!(last.head.book().is_empty() && !last.head.is_idle());
    let ask = Message::IsPrepared { txn: id(1) };
    assert_eq!(last.link(2), to(2, ask.clone()));
    let unprepared = Message::Unprepared { txn: id(1) };
    assert_eq!(middle.take(Some(3), ask), to(3, unprepared));
    // The last one says that all have forgotten it when the message has passed all.
    let gone = Message::Gone { txn: id(1) };
    assert_eq!(last.take(Some(2), forget(1)), to(1, gone));
    assert!(last.head.is_idle());
}

/// The head of the slot before has lost that it has forgotten it.
#[test]
fn what_the_slot_behind_has_forgotten_is_forgotten_again() {
    let [_, mut middle, mut last] = executed();
    middle.take(Some(1), forget(1));
    let [(3, ahead)] = &middle.take_beside()[..] else {
        panic!("nothing for the slot beside it");
    };
    last.ahead(ahead.clone());
    middle.lose_records(2);
    let ask = Message::IsApplied { txn: id(1) };
    assert_eq!(middle.link(3), to(3, ask.clone()));
    // As it has it still, what the other one asks makes nothing new there either.
    let is_prepared = Message::IsPrepared { txn: id(1) };
    for (to, answer) in middle.take(Some(3), is_prepared) {
        assert_eq!(to, To::Slot(3));
        assert_eq!(last.take(Some(2), answer), []);
    }
    let unknown = Message::Unknown { txn: id(1) };
    assert_eq!(last.take(Some(2), ask), to(2, unknown.clone()));
    assert_eq!(middle.take(Some(3), unknown), to(3, forget(1)));
    assert!(middle.head.is_idle());
}

/// In two orders they could wait for each other.
#[test]
fn a_transaction_waits_for_none_of_another_order() {
    let turned = |number, access| {
        let txn = txn_of(number, &[1, 2, 3], access);
        Arc::new(txn.ordered(1, |slot| u16::MAX - slot))
    };
    let mut slot = Slot::new(3);
    slot.ahead(prepared(&txn(1, &[1, 2, 3])));
    let sent = slot.take(None, forward(&turned(2, Access::Write), 0));
    let refused = Message::Outcome {
        txn: id(2),
        outcome: Outcome::Aborted,
        told: OTHER_ORDER.into(),
    };
    assert!(sent.contains(&(To::Origin { node: 1, start: 1 }, refused)));
    // Nor is it prepared ahead.
    slot.ahead(prepared(&turned(3, Access::Write)));
    assert!(slot.head.book().get(id(3)).is_none());
    // Of the same order it waits, and independent ones need no order.
    assert_eq!(slot.take(Some(2), forward(&txn(4, &[1, 2, 3]), 1)), []);
    assert_eq!(slot.head.waiting(), 1);
    let mut slot = Slot::new(3);
    let reads = Arc::new(txn_of(5, &[1, 2, 3], Access::Read));
    slot.ahead(prepared(&reads));
    slot.take(None, forward(&turned(6, Access::Read), 0));
    assert!(slot.head.book().get(id(6)).is_some());
}

/// The slot before may never have kept that it was prepared there: nothing has passed it then.
#[test]
fn what_was_only_prepared_ahead_is_not_told_to_a_slot_that_has_lost_something() {
    let mut slot = Slot::new(2);
    let txn = txn(1, &[1, 2, 3]);
    slot.ahead(prepared(&txn));
    assert_eq!(slot.head.stage(id(1)), None);
    slot.take(Some(1), forward(&txn, 1));
    assert_eq!(slot.head.stage(id(1)), Some((txn, Stage::Passed)));
}
