//! How often transactions are compared while many are open: that must not grow with them.

use super::{Head, Later, State};
use crate::told::nothing;
use crate::{Book, Message, Output, Part, Stamp, Standing, Transaction, TxnId, Typed};
use rufous_datatype::key::{Held, Key, Op, Typed as Of, Value};
use rufous_datatype::text;
use std::sync::Arc;

/// An increment by so much.
type Increment = Typed<i64>;

fn increment(by: i64, wanted: bool) -> Increment {
    let op = Op::Typed(Of::Text(text::Op::Incr { by }));
    let held = if wanted {
        Held::new(op)
    } else {
        Held::quiet(op)
    };
    Typed::new(by, [held])
}

/// Every key is a number.
struct Numbers;

impl State<Increment> for Numbers {
    fn version(&self, _: &[u8]) -> Option<Stamp> {
        None
    }

    fn standing(&self, _: &[u8]) -> Option<Standing<Increment>> {
        let key = Key::new(Value::text(b"5"), None);
        Some(rufous_datatype::key::Standing::of(&key))
    }

    fn apply(&mut self, _: &Transaction<Increment>, _: u16, _: Stamp, _: Later<'_>) -> Vec<u8> {
        Vec::new()
    }
}

const MANY: u64 = 10_000;

fn id(number: u64) -> TxnId {
    TxnId {
        node: 1,
        start: 1,
        number,
    }
}

/// A transaction over this slot and the next one, where it cannot end yet.
fn forward(number: u64, key: u64, op: &Increment) -> Message<Increment> {
    let part = |slot| Part {
        slot,
        key: key.to_be_bytes().into(),
        ops: vec![op.clone()],
        expects: None,
    };
    let txn = Transaction::new(id(number), vec![part(1), part(2)], nothing()).expect("has parts");
    let (txn, max) = (Arc::new(txn), 0);
    Message::Forward { txn, max }
}

/// The comparisons of each forward message, with keys by the number of the transaction, and the head.
fn open(key: fn(u64) -> u64, op: &Increment) -> (Vec<u64>, Head<Increment>) {
    let mut head = Head::new(Book::new(1));
    let mut counts = Vec::new();
    for number in 1..=MANY {
        let before = head.index.compared();
        let message = forward(number, key(number), op);
        head.on_message(None, message, &mut Numbers, &mut Vec::new());
        counts.push(head.index.compared() - before);
    }
    assert_eq!(head.waiting(), 0);
    (counts, head)
}

fn backward(number: u64, time: u64) -> Message<Increment> {
    let txn = id(number);
    Message::Backward {
        txn,
        stamp: Stamp { time, txn },
        after: Vec::new(),
        told: nothing(),
    }
}

/// The final stamp of one arrives: what the head puts out, and how many comparisons that takes.
fn settle(head: &mut Head<Increment>, number: u64) -> (Vec<Output<Increment>>, u64) {
    let before = head.index.compared();
    let mut out = Vec::new();
    let message = backward(number, MANY + number);
    head.on_message(Some(2), message, &mut Numbers, &mut out);
    (out, head.index.compared() - before)
}

#[test]
fn open_transactions_of_other_keys_are_not_compared() {
    let (counts, mut head) = open(|number| number, &increment(1, true));
    // It compares with none: its key has none.
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    assert!(counts[0] <= 2, "{counts:?}");
    for number in 1..=MANY {
        let (_, compared) = settle(&mut head, number);
        assert!(compared <= 2);
    }
}

#[test]
fn counts_that_hold_one_key_are_compared_at_once() {
    let (counts, mut head) = open(|_| 1, &increment(1, false));
    assert!(counts.iter().all(|count| *count <= 2), "{counts:?}");
    // Independent ones are applied as their stamps become known, the last one first.
    for number in (1..=MANY).rev() {
        let (out, compared) = settle(&mut head, number);
        assert!(!out.is_empty(), "it is applied");
        assert!(compared <= 3, "{number}");
    }
}

#[test]
fn dependent_ones_on_one_key_are_compared_with_the_one_before() {
    let (counts, mut head) = open(|_| 1, &increment(1, true));
    assert!(counts.iter().all(|count| *count <= 2), "{counts:?}");
    for number in (2..=MANY).rev() {
        let (out, compared) = settle(&mut head, number);
        assert_eq!(out, [], "it waits for the first one");
        assert!(compared <= 4, "{number}");
    }
}
