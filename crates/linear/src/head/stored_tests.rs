//! Heads whose books are stored entry by entry, with keys that others hold, and slots that refuse and tell: as the kernel
//! drives them.

use super::{Head, Later, Others, State};
use crate::stored::{Stored, entry_of};
use crate::told::pieces;
use crate::{Access, Book, Message, Outcome, Output, Part, Stamp, To, Transaction, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Txn = Arc<Transaction<Access>>;
type Sent = Vec<(To, Message<Access>)>;

/// Keys that others hold, and transactions that are refused.
#[derive(Default)]
struct Keys {
    held: BTreeSet<Box<[u8]>>,
    refused: BTreeSet<TxnId>,
    applied: Vec<u64>,
    /// What slots up to this one have added, and later ones told, of what was applied last.
    known: BTreeSet<String>,
    later: Vec<String>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl State<Access> for Keys {
    fn version(&self, _: &[u8]) -> Option<Stamp> {
        None
    }

    fn others(&self, key: &[u8]) -> Others {
        if self.held.contains(key) {
            Others::Hold
        } else {
            Others::None
        }
    }

    fn refuses(&mut self, txn: &Transaction<Access>, slot: u16) -> Option<Vec<u8>> {
        let is_refused = self.refused.contains(&txn.id);
        is_refused.then(|| format!("no, says {slot}").into())
    }

    fn gather(&mut self, txn: &Transaction<Access>, slot: u16) -> Result<Vec<u8>, Vec<u8>> {
        match &txn.body()[..] {
            b"large" if slot > 1 => Err(b"too large".into()),
            b"large" | b"joint" => Ok(format!("{slot} has {};", self.applied.len()).into()),
            _ => Ok(Vec::new()),
        }
    }

    fn apply(
        &mut self,
        txn: &Transaction<Access>,
        slot: u16,
        _: Stamp,
        later: Later<'_>,
    ) -> Vec<u8> {
        self.applied.push(txn.id.number);
        self.known = pieces(txn.gathered())
            .map(|(_, piece)| text(piece))
            .collect();
        let Later::Told(later) = later else {
            panic!("no slot is beside another");
        };
        self.later = pieces(later).map(|(_, piece)| text(piece)).collect();
        [txn.body(), format!(" at {slot};").as_bytes()].concat()
    }
}

struct Slot {
    no: u16,
    head: Head<Access>,
    keys: Keys,
    stored: Stored<Access>,
    bytes: BTreeMap<TxnId, Vec<u8>>,
}

impl Slot {
    fn new(no: u16) -> Self {
        Self {
            no,
            head: Head::new(Book::new(no)),
            keys: Keys::default(),
            stored: Stored::of(&Book::new(no)),
            bytes: BTreeMap::new(),
        }
    }

    fn put(&mut self, out: Vec<Output<Access>>) -> Sent {
        let mut sent = Vec::new();
        for output in out {
            match output {
                Output::Record(record) => {
                    let id = record.txn().expect("no slot has lost anything");
                    let write = self.stored.on_change(id, self.head.book().get(id));
                    let bytes = write.on(self.bytes.remove(&id));
                    self.bytes.extend(bytes.map(|bytes| (id, bytes)));
                }
                Output::Send(to, message) | Output::SendSynced(to, message) => {
                    sent.push((to, message));
                }
                Output::Beside(..) => {}
            }
        }
        sent
    }

    fn take(&mut self, from: Option<u16>, message: Message<Access>) -> Sent {
        let mut out = Vec::new();
        self.head
            .on_message(from, message, &mut self.keys, &mut out);
        self.put(out)
    }

    fn on_free(&mut self, key: &[u8]) -> Sent {
        self.keys.held.remove(key);
        let mut out = Vec::new();
        self.head.on_free(&mut self.keys, &mut out);
        self.put(out)
    }

    /// Another head begins with what was stored.
    fn restart(&mut self) -> Sent {
        let entries = self.bytes.iter();
        let entries = entries.map(|(id, bytes)| (*id, entry_of(bytes).expect("an entry")));
        self.head = Head::new(Book::restore(self.no, entries));
        self.stored = Stored::of(self.head.book());
        let mut out = Vec::new();
        self.head.on_start(&mut self.keys, &mut out);
        self.put(out)
    }
}

fn id(number: u64) -> TxnId {
    TxnId {
        node: 1,
        start: 1,
        number,
    }
}

fn part(slot: u16, key: &[u8], access: Access) -> Part<Access> {
    Part {
        slot,
        key: key.into(),
        ops: vec![access],
        expects: None,
    }
}

/// It writes these keys of slots.
fn writes(number: u64, keys: &[(u16, &[u8])]) -> Txn {
    let parts = keys
        .iter()
        .map(|(slot, key)| part(*slot, key, Access::Write));
    let body = format!("T{number}").into_bytes();
    Arc::new(Transaction::new(id(number), parts.collect(), body.into()).expect("has parts"))
}

/// It writes a key of each of two slots.
fn of_both(number: u64, body: &[u8]) -> Txn {
    let keys = [(1, b"a".as_slice()), (5, b"b")];
    let parts = keys.map(|(slot, key)| part(slot, key, Access::Write));
    Arc::new(Transaction::new(id(number), parts.into(), body.into()).expect("has parts"))
}

fn forward(txn: &Txn) -> Message<Access> {
    let (txn, max) = (Arc::clone(txn), 0);
    Message::Forward { txn, max }
}

fn outcome(number: u64, outcome: Outcome, told: &[u8]) -> (To, Message<Access>) {
    let message = Message::Outcome {
        txn: id(number),
        outcome,
        told: told.into(),
    };
    (To::Origin { node: 1, start: 1 }, message)
}

/// Carries messages between two slots until none is left; returns those to origins.
fn carry(slots: &mut [Slot; 2], from: u16, sent: Sent) -> Sent {
    let mut all: Vec<(u16, To, Message<Access>)> = sent
        .into_iter()
        .map(|(to, message)| (from, to, message))
        .collect();
    let mut told = Vec::new();
    while !all.is_empty() {
        let (from, to, message) = all.remove(0);
        let To::Slot(no) = to else {
            told.push((to, message));
            continue;
        };
        let slot = slots
            .iter_mut()
            .find(|slot| slot.no == no)
            .expect("one of the two");
        let sent = slot.take(Some(from), message);
        all.extend(sent.into_iter().map(|(to, message)| (no, to, message)));
    }
    told
}

/// Also where a new head continues at either slot.
#[test]
fn a_slot_knows_what_earlier_ones_have_added_and_later_ones_tell() {
    for restarts in 0..4 {
        let mut slots = [Slot::new(1), Slot::new(5)];
        slots[0].keys.applied = vec![7, 8];
        let mut sent = slots[0].take(None, forward(&of_both(1, b"joint")));
        if restarts & 1 > 0 {
            sent = slots[0].restart();
            let mut out = Vec::new();
            slots[0].head.on_link(5, &mut out);
            sent.extend(slots[0].put(out));
        }
        let [(To::Slot(5), message)] = &sent[..] else {
            panic!("{sent:?}");
        };
        let mut sent = slots[1].take(Some(1), message.clone());
        if restarts & 2 > 0 {
            slots[1].restart();
            let mut out = Vec::new();
            slots[1].head.on_link(1, &mut out);
            sent = slots[1].put(out);
        }
        let told = carry(&mut slots, 5, sent);
        assert_eq!(
            told,
            [outcome(1, Outcome::Committed, b"joint at 1;joint at 5;")]
        );
        let [first, last] = &slots;
        let both = BTreeSet::from(["1 has 2;", "5 has 0;"].map(str::to_owned));
        assert_eq!(last.keys.known, both);
        assert_eq!(first.keys.later, ["joint at 5;"]);
        assert_eq!(last.keys.later, [""; 0]);
    }
}

#[test]
fn a_slot_that_has_too_much_to_add_aborts() {
    let mut slots = [Slot::new(1), Slot::new(5)];
    let sent = slots[0].take(None, forward(&of_both(1, b"large")));
    let told = carry(&mut slots, 1, sent);
    assert_eq!(told, [outcome(1, Outcome::Aborted, b"too large")]);
    let applied = slots.each_ref().map(|slot| slot.keys.applied.len());
    assert_eq!(applied, [0, 0]);
}

#[test]
fn a_transaction_waits_for_keys_that_others_hold_and_keeps_its_place() {
    let mut slot = Slot::new(1);
    slot.keys.held.insert(b"a".as_slice().into());
    let (first, second) = (writes(1, &[(1, b"a"), (1, b"b")]), writes(2, &[(1, b"b")]));
    assert_eq!(slot.take(None, forward(&first)), []);
    assert_eq!(
        slot.take(None, forward(&second)),
        [],
        "behind the first one"
    );
    assert_eq!((slot.head.waiting(), slot.head.is_idle()), (2, false));
    assert!(
        !slot.head.holds(b"a") && !slot.head.holds(b"b"),
        "not yet prepared"
    );
    assert_eq!(slot.on_free(b"c"), [], "another key");
    // What does not need these keys passes.
    let other = writes(3, &[(1, b"c")]);
    let sent = slot.take(None, forward(&other));
    assert_eq!(sent, [outcome(3, Outcome::Committed, b"T3 at 1;")]);
    let sent = slot.on_free(b"a");
    let committed = [
        outcome(1, Outcome::Committed, b"T1 at 1;"),
        outcome(2, Outcome::Committed, b"T2 at 1;"),
    ];
    assert_eq!(
        (sent, &slot.keys.applied[..]),
        (committed.into(), &[3, 1, 2][..])
    );
    assert_eq!(slot.on_free(b"a"), []);
}

#[test]
fn a_refusal_is_told_to_the_client_and_an_expected_version_is_not() {
    let mut slots = [Slot::new(1), Slot::new(2)];
    slots[1].keys.refused.insert(id(1));
    let sent = slots[0].take(None, forward(&writes(1, &[(1, b"a"), (2, b"a")])));
    assert!(slots[0].head.holds(b"a"));
    let told = carry(&mut slots, 1, sent);
    assert_eq!(told, [outcome(1, Outcome::Aborted, b"no, says 2")]);
    assert!(!slots[0].head.holds(b"a"));
    // Sent again, and to another head.
    slots[0].restart();
    let sent = slots[0].take(None, forward(&writes(1, &[(1, b"a"), (2, b"a")])));
    assert!(
        sent.contains(&outcome(1, Outcome::Aborted, b"no, says 2")),
        "{sent:?}"
    );
    let mut parts = vec![part(1, b"a", Access::Read)];
    parts[0].expects = Some(Some(Stamp::default()));
    let txn = Transaction::new(id(2), parts, Arc::default()).expect("has parts");
    let sent = slots[0].take(None, forward(&Arc::new(txn)));
    assert_eq!(sent, [outcome(2, Outcome::Aborted, b"")]);
}

#[test]
fn what_slots_tell_reaches_the_client_in_their_order_over_other_heads() {
    let mut slots = [Slot::new(1), Slot::new(2)];
    let sent = slots[0].take(None, forward(&writes(1, &[(1, b"a"), (2, b"a")])));
    let [(to, message)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!(*to, To::Slot(2));
    let back = slots[1].take(Some(1), message.clone());
    // Both heads end; the second slot has it applied and the first one prepared.
    assert_eq!((slots[0].restart(), slots[1].restart()), (vec![], vec![]));
    assert!(slots[0].head.holds(b"a") && !slots[1].head.holds(b"a"));
    let mut out = Vec::new();
    slots[1].head.on_link(1, &mut out);
    assert_eq!(slots[1].put(out), back, "it is sent again");
    let told = carry(&mut slots, 2, back);
    assert_eq!(told, [outcome(1, Outcome::Committed, b"T1 at 1;T1 at 2;")]);
    assert_eq!(slots[0].head.peers(), BTreeSet::from([2]));
    assert_eq!(slots[1].head.peers(), BTreeSet::from([1]));
    assert_eq!(slots[0].head.origins(), BTreeSet::from([(1, 1)]));
    assert_eq!(slots[1].head.origins(), BTreeSet::new());
    let sent = slots[0].take(None, Message::Heard { txn: id(1) });
    carry(&mut slots, 1, sent);
    for slot in &slots {
        assert!(slot.head.is_idle() && slot.bytes.is_empty());
        assert!(slot.head.peers().is_empty() && slot.head.origins().is_empty());
    }
}

#[test]
fn parts_of_one_key_are_one_part() {
    let parts = |expects| {
        let mut write = part(1, b"a", Access::Write);
        write.expects = expects;
        vec![
            write,
            part(1, b"b", Access::Read),
            part(1, b"a", Access::Read),
        ]
    };
    let txn = Transaction::new(id(1), parts(Some(None)), Arc::default()).expect("has parts");
    let known: Vec<_> = txn
        .at(1)
        .map(|part| (part.ops.len(), part.expects))
        .collect();
    assert_eq!(known, [(2, Some(None)), (1, None)]);
    let mut twice = parts(Some(None));
    twice[2].expects = Some(Some(Stamp::default()));
    assert_eq!(
        Transaction::new(id(1), twice, Arc::default()),
        None,
        "two versions"
    );
}
