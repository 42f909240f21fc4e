//! Heads of slots beside one another, driven by hand: what is kept, and what is said when.

use super::{Head, Later, State};
use crate::{
    Access, Ahead, Book, Message, Outcome, Output, Part, Record, Stamp, To, Transaction, TxnId,
};
use std::collections::BTreeSet;
use std::sync::Arc;

type Txn = Arc<Transaction<Access>>;

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

struct Slot {
    head: Head<Access>,
    keys: Keys,
    records: Vec<Record<Access>>,
}

/// What a slot has put out besides records.
#[derive(Debug, Default, PartialEq)]
struct Put {
    sent: Vec<(To, Message<Access>)>,
    beside: Vec<(u16, Ahead<Access>)>,
}

impl Slot {
    fn new(no: u16) -> Self {
        Self {
            head: Head::new(Book::new(no)),
            keys: Keys::default(),
            records: Vec::new(),
        }
    }

    fn put(&mut self, out: Vec<Output<Access>>) -> Put {
        let mut put = Put::default();
        for output in out {
            match output {
                Output::Record(record) => self.records.push(record),
                Output::Send(to, message) | Output::SendSynced(to, message) => {
                    put.sent.push((to, message));
                }
                Output::Beside(slot, ahead) => put.beside.push((slot, ahead)),
            }
        }
        put
    }

    fn take(&mut self, from: Option<u16>, message: Message<Access>) -> Put {
        let mut out = Vec::new();
        let keys = &mut self.keys;
        self.head.on_message(from, message, keys, &mut out);
        self.put(out)
    }

    fn ahead(&mut self, ahead: Ahead<Access>) -> Put {
        let mut out = Vec::new();
        self.head.on_ahead(ahead, &mut self.keys, &mut out);
        self.put(out)
    }

    fn link(&mut self, peer: u16) -> Put {
        let mut out = Vec::new();
        self.head.on_link(peer, &mut out);
        self.put(out)
    }

    /// Another head takes over, which has only so many of the records.
    fn lose_head(&mut self, kept: usize) -> Put {
        self.records.truncate(kept);
        let mut book = Book::new(self.head.book().slot());
        for record in &self.records {
            book.on_record(record.clone());
        }
        self.head = Head::new(book);
        let mut out = Vec::new();
        let keys = &mut self.keys;
        self.head.on_start(BTreeSet::new(), keys, &mut out);
        self.put(out)
    }
}

fn id(number: u64) -> TxnId {
    let (node, start) = (1, 1);
    TxnId {
        node,
        start,
        number,
    }
}

/// It writes a key of each slot.
fn txn(number: u64, slots: &[u16]) -> Txn {
    let part = |slot: &u16| Part {
        slot: *slot,
        key: (*b"k").into(),
        ops: vec![Access::Write],
        expects: None,
    };
    let parts = slots.iter().map(part).collect();
    Arc::new(Transaction::new(id(number), parts, Arc::default()).expect("parts"))
}

fn forward(txn: &Txn, max: u64) -> Message<Access> {
    let txn = Arc::clone(txn);
    Message::Forward { txn, max }
}

fn prepared(txn: &Txn) -> Ahead<Access> {
    let txn = Arc::clone(txn);
    Ahead::Prepared { txn }
}

fn sends(to: u16, message: Message<Access>) -> Put {
    Put {
        sent: vec![(To::Slot(to), message)],
        ..Put::default()
    }
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

/// Three slots of one worker, in which a transaction is prepared.
fn three() -> ([Slot; 3], Txn) {
    let txn = txn(1, &[1, 2, 3]);
    let mut slots = [Slot::new(1), Slot::new(2), Slot::new(3)];
    let put = slots[0].take(None, forward(&txn, 0));
    assert_eq!(put.beside, [(2, prepared(&txn))]);
    assert_eq!(put.sent, sends(2, forward(&txn, 1)).sent);
    let put = slots[1].ahead(prepared(&txn));
    assert_eq!(
        (&put.beside[..], put.sent),
        (&[(3, prepared(&txn))][..], vec![])
    );
    assert_eq!(slots[2].ahead(prepared(&txn)), Put::default());
    assert!(slots.iter().all(|slot| slot.records.len() == 1));
    (slots, txn)
}

#[test]
fn each_slot_records_twice_and_waits_for_what_the_others_keep() {
    let ([mut first, mut middle, mut last], txn) = three();
    // The messages find it prepared: nothing is recorded again.
    assert_eq!(
        middle.take(Some(1), forward(&txn, 1)),
        sends(3, forward(&txn, 1))
    );
    // The stamp is made of what the last slot has recorded, which it does not keep yet.
    assert_eq!(
        last.take(Some(2), forward(&txn, 1)),
        sends(3, forward(&txn, 1))
    );
    assert!(last.keys.applied.is_empty());
    let put = last.take(Some(3), forward(&txn, 1));
    let stamp = Stamp {
        time: 1,
        txn: id(1),
    };
    assert_eq!(put.sent, sends(2, backward(stamp, &[(3, "3;")])).sent);
    let applied = |bytes| Ahead::Applied {
        txn: id(1),
        stamp,
        bytes,
    };
    assert_eq!(put.beside, [(2, applied(2))]);
    // The others apply it at once, and say so when the one behind keeps it.
    let put = middle.ahead(applied(2));
    assert_eq!(
        (&put.beside[..], put.sent),
        (&[(1, applied(4))][..], vec![])
    );
    assert_eq!(first.ahead(applied(4)), Put::default());
    assert_eq!(first.keys.later, 4);
    assert_eq!(first.keys.applied, [(1, stamp)]);
    let put = middle.take(Some(3), backward(stamp, &[(3, "3;")]));
    let both = backward(stamp, &[(2, "2;"), (3, "3;")]);
    assert_eq!(put, sends(1, both.clone()));
    let put = first.take(Some(2), both);
    let outcome = Message::Outcome {
        txn: id(1),
        outcome: Outcome::Committed,
        told: b"1;2;3;".as_slice().into(),
    };
    let origin = To::Origin { node: 1, start: 1 };
    assert!(put.sent.contains(&(origin, outcome)));
    assert!(
        [first, middle, last]
            .iter()
            .all(|slot| slot.records.len() == 2)
    );
}

#[test]
fn what_the_slot_before_has_lost_is_given_up() {
    let ([mut first, mut middle, mut last], txn) = three();
    assert_eq!(first.lose_head(0), Put::default());
    let ask = Message::IsPrepared { txn: id(1) };
    assert_eq!(middle.link(1), sends(1, ask.clone()));
    let unprepared = Message::Unprepared { txn: id(1) };
    assert_eq!(first.take(Some(2), ask), sends(2, unprepared.clone()));
    assert_eq!(
        middle.take(Some(1), unprepared.clone()),
        sends(3, unprepared.clone())
    );
    assert_eq!(last.take(Some(2), unprepared), Put::default());
    assert!(middle.head.is_idle() && last.head.is_idle());
    // It is sent again, as a new one.
    let put = first.take(None, forward(&txn, 0));
    assert_eq!(put.beside, [(2, prepared(&txn))]);
    middle.take(Some(1), forward(&txn, 1));
    assert!(middle.head.holds(b"k"));
}

#[test]
fn what_was_passed_on_is_not_given_up() {
    let ([_, mut middle, _], txn) = three();
    middle.take(Some(1), forward(&txn, 1));
    let unprepared = Message::Unprepared { txn: id(1) };
    assert_eq!(middle.take(Some(1), unprepared), Put::default());
    assert!(middle.head.holds(b"k"));
}

#[test]
fn the_next_head_makes_the_same_of_what_was_kept() {
    let ([_, mut middle, mut last], txn) = three();
    // Meanwhile another key of the slot has a later time.
    let other = Transaction::new(
        id(7),
        vec![Part {
            slot: 3,
            key: (*b"other").into(),
            ops: vec![Access::Write],
            expects: None,
        }],
        Arc::default(),
    );
    let other = Arc::new(other.expect("a part"));
    last.take(None, forward(&other, 9));
    let stamp = Stamp {
        time: 5,
        txn: id(1),
    };
    for _ in 0..2 {
        assert_eq!(
            middle.take(Some(1), forward(&txn, 5)),
            sends(3, forward(&txn, 5))
        );
        assert_eq!(
            last.take(Some(2), forward(&txn, 5)),
            sends(3, forward(&txn, 5))
        );
        middle.lose_head(1);
        let kept = last.records.len();
        last.lose_head(kept);
        // It asks for the message: nothing else brings it again.
        let ask = Message::IsPrepared { txn: id(1) };
        assert_eq!(last.link(2), sends(2, ask.clone()));
        assert_eq!(middle.take(Some(3), ask), Put::default());
    }
    middle.take(Some(1), forward(&txn, 5));
    last.take(Some(2), forward(&txn, 5));
    last.take(Some(3), forward(&txn, 5));
    assert_eq!(last.keys.applied.last(), Some(&(1, stamp)));
}

/// What was applied alone, the slot after has to apply with the same stamp, though it has lost that.
#[test]
fn a_slot_that_has_lost_that_it_applied_is_told_the_stamp() {
    let ([_, mut middle, mut last], txn) = three();
    middle.take(Some(1), forward(&txn, 4));
    last.take(Some(2), forward(&txn, 4));
    last.take(Some(3), forward(&txn, 4));
    let stamp = Stamp {
        time: 4,
        txn: id(1),
    };
    let (txn_id, bytes) = (id(1), 2);
    middle.ahead(Ahead::Applied {
        txn: txn_id,
        stamp,
        bytes,
    });
    last.lose_head(1);
    let ask = Message::IsPrepared { txn: id(1) };
    assert_eq!(middle.take(Some(3), ask), sends(3, forward(&txn, 4)));
    last.take(Some(2), forward(&txn, 4));
    let put = last.take(Some(3), forward(&txn, 4));
    assert_eq!(put.sent, sends(2, backward(stamp, &[(3, "3;")])).sent);
    assert_eq!(last.keys.applied, [(1, stamp), (1, stamp)]);
}

#[test]
fn nothing_is_prepared_ahead_that_would_wait_or_be_refused_or_needs_what_others_add() {
    let (one, two) = (txn(1, &[1, 2, 3]), txn(2, &[1, 2]));
    let mut slot = Slot::new(2);
    slot.take(Some(1), forward(&one, 3));
    assert_eq!(slot.ahead(prepared(&two)), Put::default());
    assert!(slot.head.book().get(two.id).is_none());
    let mut slot = Slot::new(2);
    slot.keys.refuses = true;
    assert_eq!(slot.ahead(prepared(&one)), Put::default());
    assert!(slot.head.is_idle());
    let mut slot = Slot::new(1);
    slot.keys.joint = true;
    assert_eq!(slot.take(None, forward(&one, 0)).beside, []);
}

/// The last slot has just recorded what the stamp is made of: the slot before may not use it yet.
#[test]
fn a_stamp_that_is_not_kept_is_not_used_by_others() {
    let txn = txn(1, &[1, 2]);
    let mut last = Slot::new(2);
    let put = last.take(Some(1), forward(&txn, 3));
    assert_eq!(put.beside, []);
    assert_eq!(last.keys.applied.len(), 1);
}
