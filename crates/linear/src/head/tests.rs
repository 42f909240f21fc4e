//! Heads of three slots, driven by hand: what each puts out for one message.

use super::driven::{self, Sent, id};
use super::{Later, State};
use crate::told::nothing;
use crate::{
    At, Ending, Fact, Message, Operation, Outcome, Pairs, Part, Record, Relation, Stage, Stamp, To,
    Transaction,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Adds do not depend on one another, and everything else does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Add,
    Append,
    Read,
}

impl Operation for Op {
    type Holders = Pairs<Op>;

    fn relation(&self, other: &Self) -> Relation {
        match (self, other) {
            (Op::Add, Op::Add) | (Op::Read, Op::Read) => Relation::Independent,
            _ => Relation::Orderable,
        }
    }

    fn writes(&self) -> bool {
        *self != Op::Read
    }
}

#[derive(Default)]
struct Keys(BTreeMap<Box<[u8]>, Stamp>);

impl State<Op> for Keys {
    fn version(&self, key: &[u8]) -> Option<Stamp> {
        self.0.get(key).copied()
    }

    fn apply(&mut self, txn: &Transaction<Op>, slot: u16, stamp: Stamp, _: Later<'_>) -> Vec<u8> {
        for part in txn.at(slot) {
            self.0.insert(part.key.clone(), stamp);
        }
        Vec::new()
    }
}

type Slot = driven::Slot<Op, Keys>;

fn stamp(time: u64, number: u64) -> Stamp {
    Stamp {
        time,
        txn: id(number),
    }
}

/// One operation on key "k" of each slot.
fn txn(number: u64, slots: &[u16], op: Op) -> Arc<Transaction<Op>> {
    observed(number, slots, op, None)
}

fn observed(
    number: u64,
    slots: &[u16],
    op: Op,
    expects: Option<Option<Stamp>>,
) -> Arc<Transaction<Op>> {
    let part = |slot: &u16| Part {
        slot: *slot,
        key: b"k".as_slice().into(),
        ops: vec![op],
        expects,
    };
    Arc::new(
        Transaction::new(id(number), slots.iter().map(part).collect(), nothing())
            .expect("has parts"),
    )
}

fn forward(txn: &Arc<Transaction<Op>>, max: u64) -> Message<Op> {
    Message::Forward {
        txn: Arc::clone(txn),
        max,
    }
}

const ORIGIN: To = To::Origin { node: 1, start: 1 };

fn outcome(number: u64, outcome: Outcome) -> (To, Message<Op>) {
    let txn = id(number);
    (
        ORIGIN,
        Message::Outcome {
            txn,
            outcome,
            told: nothing(),
        },
    )
}

#[test]
fn a_transaction_of_one_slot_ends_there_and_is_forgotten() {
    let mut slot = Slot::new(4);
    let txn = txn(1, &[4], Op::Append);
    assert_eq!(
        slot.take(None, forward(&txn, 0)),
        [outcome(1, Outcome::Committed)]
    );
    assert_eq!(slot.keys.version(b"k"), Some(stamp(1, 1)));
    slot.take(None, Message::Heard { txn: id(1) });
    assert!(slot.head.book().is_empty());
}

#[test]
fn the_last_slot_knows_the_maximum_and_applies_first() {
    let (mut first, mut last) = (Slot::new(1), Slot::new(2));
    // The last slot has seen more.
    let other = txn(1, &[2], Op::Add);
    last.take(None, forward(&other, 6));
    let txn = txn(2, &[1, 2], Op::Append);
    let sent = first.take(None, forward(&txn, 0));
    assert_eq!(sent, [(To::Slot(2), forward(&txn, 1))]);
    assert_eq!(first.keys.version(b"k"), None, "it may end anywhere");
    let sent = last.take(Some(1), forward(&txn, 1));
    let [
        (
            To::Slot(1),
            Message::Backward {
                txn: _,
                stamp: at,
                after,
                told: _,
            },
        ),
    ] = &sent[..]
    else {
        panic!("{sent:?}");
    };
    assert_eq!(*at, stamp(7, 2));
    // The add before it is not known to be settled elsewhere; it is one of the last slot.
    assert_eq!((after.len(), last.keys.version(b"k")), (0, Some(*at)));
    let back = sent.into_iter().next().expect("one").1;
    let sent = first.take(Some(2), back);
    let settled = (To::Slot(2), Message::Settled { txn: id(2) });
    assert_eq!(sent, [settled, outcome(2, Outcome::Committed)]);
    assert_eq!(first.keys.version(b"k"), Some(stamp(7, 2)));
}

#[test]
fn dependent_ones_are_applied_by_their_stamps_and_independent_ones_at_once() {
    for (op, is_dependent) in [(Op::Append, true), (Op::Add, false)] {
        let mut slot = Slot::new(1);
        let (a, b) = (txn(1, &[1, 2], op), txn(2, &[1, 2], op));
        slot.take(None, forward(&a, 0));
        slot.take(None, forward(&b, 0));
        // The later one has its stamp first: the other one may still end below it.
        let back = |txn: u64, time| Message::Backward {
            txn: id(txn),
            stamp: stamp(time, txn),
            after: Vec::new(),
            told: nothing(),
        };
        slot.take(Some(2), back(2, 9));
        assert_eq!(slot.keys.version(b"k").is_none(), is_dependent, "{op:?}");
        slot.take(Some(2), back(1, 5));
        let last = if is_dependent {
            stamp(9, 2)
        } else {
            stamp(5, 1)
        };
        assert_eq!(slot.keys.version(b"k"), Some(last), "{op:?}");
    }
}

#[test]
fn what_one_has_observed_the_other_waits_to_change() {
    let mut slot = Slot::new(1);
    let reader = observed(1, &[1, 2], Op::Read, Some(None));
    let writer = txn(2, &[1, 2], Op::Append);
    slot.take(None, forward(&reader, 0));
    assert_eq!(slot.take(None, forward(&writer, 0)), []);
    assert_eq!(slot.head.waiting(), 1);
    let back = Message::Backward {
        txn: id(1),
        stamp: stamp(3, 1),
        after: Vec::new(),
        told: nothing(),
    };
    let sent = slot.take(Some(2), back);
    assert!(
        sent.contains(&(To::Slot(2), forward(&writer, 4))),
        "{sent:?}"
    );
}

#[test]
fn a_condition_that_does_not_hold_aborts_and_undoes() {
    let (mut first, mut last) = (Slot::new(1), Slot::new(2));
    last.keys.0.insert(b"k".as_slice().into(), stamp(1, 9));
    let txn = observed(1, &[1, 2], Op::Append, Some(None));
    first.take(None, forward(&txn, 0));
    let sent = last.take(Some(1), forward(&txn, 1));
    assert_eq!(
        sent,
        [(
            To::Slot(1),
            Message::Undo {
                txn: id(1),
                told: nothing()
            }
        )]
    );
    let sent = first.take(
        Some(2),
        Message::Undo {
            txn: id(1),
            told: nothing(),
        },
    );
    assert!(sent.contains(&outcome(1, Outcome::Aborted)), "{sent:?}");
    assert_eq!(first.keys.version(b"k"), None);
    // The message was lost and is sent again: the answer stays.
    let sent = first.take(None, forward(&txn, 0));
    assert!(sent.contains(&outcome(1, Outcome::Aborted)), "{sent:?}");
}

#[test]
fn an_outcome_waits_for_the_predecessors() {
    let mut slot = Slot::new(3);
    let write = txn(1, &[1, 3], Op::Append);
    slot.take(Some(1), forward(&write, 1));
    // It is applied here, and not yet at slot 1, which would show the state before it.
    let read = txn(2, &[3], Op::Read);
    let sent = slot.take(None, forward(&read, 0));
    let ask = Message::Ask {
        txn: id(1),
        before: stamp(2, 2),
    };
    assert_eq!(sent, [(To::Slot(1), ask)]);
    let sent = slot.take(Some(1), Message::Settled { txn: id(1) });
    assert!(sent.contains(&outcome(2, Outcome::Committed)), "{sent:?}");
}

/// The last one of them is not settled before the others are.
#[test]
fn predecessors_of_a_predecessor_are_not_asked_for() {
    let mut slot = Slot::new(5);
    for number in 1..4 {
        let write = txn(number, &[number as u16, 5], Op::Append);
        slot.take(Some(number as u16), forward(&write, number));
    }
    let asked = |slot: &mut Slot, read: u64| {
        let sent = slot.take(None, forward(&txn(read, &[5], Op::Read), 0));
        let to = sent.iter().map(|(to, message)| match (to, message) {
            (To::Slot(to), Message::Ask { txn, .. }) => (*to, txn.number),
            other => panic!("{other:?}"),
        });
        to.collect::<Vec<_>>()
    };
    assert_eq!(asked(&mut slot, 4), [(3, 3)]);
    // Reads do not come after one another.
    assert_eq!(asked(&mut slot, 5), [(3, 3)]);
    slot.take(Some(3), Message::Settled { txn: id(3) });
    assert_eq!(asked(&mut slot, 6), [(2, 2)]);
}

#[test]
fn another_head_goes_on_with_what_was_prepared() {
    let mut first = Slot::new(1);
    let txn = txn(1, &[1, 2], Op::Append);
    first.take(None, forward(&txn, 0));
    assert_eq!(first.lose_head(), []);
    let mut out = Vec::new();
    first.head.on_link(2, &mut out);
    assert_eq!(first.put(out), [(To::Slot(2), forward(&txn, 1))]);
    // The last slot had prepared it behind another one: the stamp is the one that it had.
    let mut last = Slot::new(2);
    let other = observed(2, &[2, 3], Op::Read, Some(None));
    last.take(None, forward(&other, 0));
    last.take(Some(1), forward(&txn, 1));
    assert_eq!(last.head.waiting(), 1, "it waits to be admitted");
    last.lose_head();
    assert_eq!(last.head.waiting(), 0, "slot 1 sends it again");
}

#[test]
fn slots_forget_in_order_when_all_is_safe_and_the_origin_has_heard() {
    let (mut first, mut last) = (Slot::new(1), Slot::new(2));
    let txn = txn(1, &[1, 2], Op::Append);
    first.take(None, forward(&txn, 0));
    let back = last.take(Some(1), forward(&txn, 1)).remove(0).1;
    first.take(Some(2), back);
    let safe = last.take(Some(1), Message::Settled { txn: id(1) });
    assert_eq!(safe, [(To::Slot(1), Message::Safe { txn: id(1) })]);
    assert_eq!(first.take(Some(2), Message::Safe { txn: id(1) }), []);
    let sent = first.take(None, Message::Heard { txn: id(1) });
    let [(To::Slot(2), forget)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert!(!first.head.book().is_empty(), "its identity stays");
    let gone = last.take(Some(1), forget.clone());
    assert_eq!(gone, [(To::Slot(1), Message::Gone { txn: id(1) })]);
    assert!(last.head.book().is_empty());
    first.take(Some(2), Message::Gone { txn: id(1) });
    assert!(first.head.book().is_empty());
}

#[test]
fn an_origin_that_has_started_again_is_not_waited_for() {
    let mut slot = Slot::new(1);
    slot.take(None, forward(&txn(1, &[1], Op::Append), 0));
    let mut out = Vec::new();
    slot.head.on_origin_start((1, 1), &mut out);
    assert!(!slot.head.book().is_empty(), "it is the same start");
    slot.head.on_origin_start((1, 2), &mut out);
    assert!(slot.head.book().is_empty());
}

fn told(txn: &Arc<Transaction<Op>>, at: &[(u16, Stage)]) -> Arc<Fact<Op>> {
    let txn = Arc::clone(txn);
    let at = at.iter().map(|(slot, stage)| At {
        slot: *slot,
        stage: Some(stage.clone()),
    });
    let at = at.collect();
    Arc::new(Fact { txn, at })
}

fn ended(time: u64, number: u64) -> Stage {
    Stage::Ended(Ending {
        stamp: stamp(time, number),
        after: Vec::new(),
        told: nothing(),
        alone: false,
    })
}

/// A slot that has lost all that it had, and what it sends when it has these facts.
fn surveyed(no: u16, facts: &[Arc<Fact<Op>>]) -> (Slot, Sent<Op>) {
    let mut slot = Slot::new(no);
    let mut out = Vec::new();
    slot.head.on_loss(&mut out);
    slot.head.on_surveyed(facts, &mut slot.keys, &mut out);
    let sent = slot.put(out);
    (slot, sent)
}

#[test]
fn a_slot_that_has_lost_something_gets_it_from_others() {
    let lost = txn(1, &[1, 2], Op::Append);
    let (mut last, _) = surveyed(2, &[told(&lost, &[(1, ended(5, 1))])]);
    assert!(!last.head.book().is_lost());
    last.take(None, forward(&txn(2, &[2], Op::Read), 0));
    assert_eq!(last.keys.version(b"k"), Some(stamp(6, 2)));
    let applied = |record: &Record<Op>| match record {
        Record::Applied { txn, .. } => Some(txn.id.number),
        _ => None,
    };
    let order: Vec<u64> = last.records.iter().filter_map(applied).collect();
    assert_eq!(order, [1, 2]);
}

#[test]
fn what_later_slots_have_is_prepared_again_and_nothing_else() {
    let passed = |at: u16| (at, Stage::Passed);
    let of = |slots: &[u16]| txn(1, slots, Op::Append);
    for (fact, is_known) in [
        (told(&of(&[1, 2, 3]), &[passed(3)]), true),
        (told(&of(&[1, 2, 3]), &[(3, ended(5, 1))]), true),
        // It may not have come to this one.
        (told(&of(&[1, 2, 3]), &[passed(1)]), false),
        (told(&of(&[1, 2, 3]), &[passed(2)]), false),
        (
            told(&of(&[1, 2, 3]), &[passed(3), (1, Stage::Forgotten)]),
            false,
        ),
        (
            told(&of(&[1, 2, 3]), &[passed(3), (3, Stage::Aborted)]),
            false,
        ),
        (told(&of(&[1, 2, 3]), &[]), false),
    ] {
        let (slot, _) = surveyed(2, &[Arc::clone(&fact)]);
        let is = slot.head.book().get(id(1)).is_some();
        assert_eq!(is, is_known, "{fact:?}");
        assert_eq!(slot.head.holds(b"k"), is_known);
        assert_eq!(slot.head.stage(id(1)), None, "it is not told on");
        assert!(!slot.head.book().is_lost());
    }
}

/// The mark stays until the stamps are used that others have told.
#[test]
fn what_was_applied_is_applied_in_its_place() {
    let (first, second) = (txn(1, &[2, 3], Op::Append), txn(2, &[1, 2], Op::Append));
    let facts = [
        told(&first, &[(3, Stage::Passed)]),
        told(&second, &[(1, ended(9, 2))]),
    ];
    let (mut slot, _) = surveyed(2, &facts);
    assert!(slot.head.book().is_lost() && slot.keys.version(b"k").is_none());
    let back = Message::Backward {
        txn: id(1),
        stamp: stamp(4, 1),
        after: Vec::new(),
        told: nothing(),
    };
    slot.take(Some(3), back);
    assert!(!slot.head.book().is_lost());
    assert_eq!(slot.keys.version(b"k"), Some(stamp(9, 2)));
}

#[test]
fn a_slot_tells_how_far_a_transaction_has_come() {
    let mut first = Slot::new(1);
    let stage = |slot: &Slot, number| slot.head.stage(id(number)).map(|(_, at)| at);
    let one = txn(1, &[1, 2], Op::Append);
    first.take(None, forward(&one, 0));
    first.take(None, forward(&txn(2, &[1, 2], Op::Append), 0));
    assert_eq!(stage(&first, 1), Some(Stage::Passed));
    assert_eq!(
        stage(&first, 2),
        Some(Stage::Passed),
        "it waits, or is prepared"
    );
    assert_eq!(stage(&first, 3), None);
    let mut last = Slot::new(2);
    last.take(Some(1), forward(&one, 3));
    assert!(matches!(stage(&last, 1), Some(Stage::Ended(of)) if of.stamp == stamp(3, 1)));
    let undo = Message::Undo {
        txn: id(2),
        told: nothing(),
    };
    first.take(Some(2), undo);
    assert_eq!(stage(&first, 2), Some(Stage::Aborted));
}
