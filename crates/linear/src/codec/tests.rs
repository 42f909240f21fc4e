//! Random values come back as they were; bytes that are cut or changed are refused, or are another value.

use super::{Coded, put_varint, varint};
use crate::stored::{Stored, Write, entry_of};
use crate::{Access, Book, Entry, Message, Outcome, Part, Predecessor, Stamp, Transaction, TxnId};
use crate::{At, Ending, Found, Stage};
use std::fmt::Debug;
use std::sync::Arc;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Of any size.
    fn number(&mut self) -> u64 {
        let bits = self.below(64);
        self.next() >> bits
    }

    fn bytes(&mut self) -> Vec<u8> {
        let most = [4, 40, 300][self.below(3) as usize];
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }

    fn id(&mut self) -> TxnId {
        TxnId {
            node: self.number() as u16,
            start: self.number(),
            number: self.number(),
        }
    }

    fn stamp(&mut self) -> Stamp {
        let (time, txn) = (self.number(), self.id());
        Stamp { time, txn }
    }

    fn after(&mut self) -> Vec<Predecessor> {
        let each = (0..self.below(4)).map(|_| Predecessor {
            txn: self.id(),
            first: self.number() as u16,
        });
        each.collect()
    }

    fn txn(&mut self) -> Arc<Transaction<Access>> {
        let parts = (0..1 + self.below(5)).map(|_| {
            let ops = (0..self.below(3)).map(|_| match self.below(2) {
                0 => Access::Read,
                _ => Access::Write,
            });
            Part {
                ops: ops.collect(),
                slot: self.number() as u16,
                key: self.bytes().into(),
                expects: match self.below(3) {
                    0 => None,
                    1 => Some(None),
                    _ => Some(Some(self.stamp())),
                },
            }
        });
        let parts = parts.collect();
        let (id, body) = (self.id(), self.bytes().into());
        // Parts of one key that expect different versions are none.
        let order = self.below(3);
        let ordered = |txn: Transaction<Access>| match order {
            0 => txn,
            _ => txn.ordered(order, |slot| (slot % 3, u16::MAX - slot)),
        };
        let txn = Transaction::new(id, parts, body).map(ordered);
        txn.map_or_else(|| self.txn(), Arc::new)
    }

    fn entry(&mut self) -> Entry<Access> {
        let txn = self.txn();
        match self.below(4) {
            0 => Entry::Prepared {
                txn,
                proposal: self.number(),
                max: (self.below(2) == 0).then(|| self.number()),
            },
            1 => Entry::Applied {
                txn,
                stamp: self.stamp(),
                after: self.after(),
                told: self.bytes().into(),
                alone: self.below(2) == 0,
            },
            2 => Entry::Aborted {
                txn,
                told: self.bytes().into(),
            },
            _ => Entry::Forgotten { txn },
        }
    }

    /// A question for values, or the answer.
    fn reading(&mut self, kind: u64, txn: TxnId) -> Message<Access> {
        let numbers = vec![self.number(), self.number()];
        let bytes: [Arc<[u8]>; 2] = [self.bytes().into(), self.bytes().into()];
        let [body, told] = bytes.clone();
        if kind == 15 {
            return Message::Read {
                txn,
                keys: bytes.into(),
                known: numbers,
                body,
            };
        }
        Message::Values {
            txn,
            seen: numbers,
            told,
        }
    }

    /// Of each kind in turn.
    fn message(&mut self, kind: u64) -> Message<Access> {
        let (txn, id, stamp, told) = (self.txn(), self.id(), self.stamp(), self.bytes().into());
        let max = self.number();
        let (after, is) = (self.after(), self.below(2) == 0);
        match kind % 21 {
            0 => Message::Forward { txn, max },
            1 => Message::Backward {
                txn: id,
                stamp,
                after,
                told,
            },
            2 => Message::Undo { txn: id, told },
            3 => Message::Ask {
                txn: id,
                before: stamp,
            },
            4 => Message::Later { stamp },
            5 => Message::Settled { txn: id },
            6 => Message::Safe { txn: id },
            7 => Message::Forget {
                txn: id,
                slots: txn.slots().into(),
            },
            8 => Message::Unknown { txn: id },
            9 => Message::IsApplied { txn: id },
            10 => Message::Gone { txn: id },
            11 => Message::Outcome {
                txn: id,
                outcome: if is {
                    Outcome::Committed
                } else {
                    Outcome::Aborted
                },
                told,
            },
            12 => Message::Heard { txn: id },
            13 => Message::IsPrepared { txn: id },
            14 => Message::Unprepared { txn: id },
            15 | 16 => self.reading(kind % 21, id),
            17..=19 => self.survey(kind % 21, &txn),
            _ => Message::Proposed { txn: id, max },
        }
    }
}

impl Random {
    /// A question of a survey, or an answer.
    fn survey(&mut self, kind: u64, txn: &Arc<Transaction<Access>>) -> Message<Access> {
        let [round, epoch, lost] = [self.number(), self.number(), self.number()];
        let slots = txn.slots().to_vec();
        let one = Found {
            txn: txn.id,
            of: slots.clone(),
            at: Vec::new(),
        };
        let found = vec![one.clone(), one];
        match (kind, self.below(2) == 0) {
            (17, true) => Message::Survey {
                round,
                epoch,
                lost,
                slots,
            },
            (17, false) => Message::Recall {
                round,
                epoch,
                lost,
                found,
            },
            (18, _) => Message::Surveyed {
                round,
                covers: slots,
                found,
            },
            (_, is_here) => Message::Recalled {
                round,
                id: txn.id,
                txn: is_here.then(|| Arc::clone(txn)),
                at: self.stages(),
            },
        }
    }

    /// One of each.
    fn stages(&mut self) -> Vec<At> {
        let ending = Ending {
            stamp: self.stamp(),
            after: self.after(),
            told: self.bytes().into(),
            alone: self.below(2) == 0,
        };
        let stages = [
            Some(Stage::Passed),
            Some(Stage::Ended(ending)),
            Some(Stage::Aborted),
            Some(Stage::Forgotten),
            None,
        ];
        let at = stages.into_iter().zip(self.below(9) as u16..);
        at.map(|(stage, slot)| At { slot, stage }).collect()
    }
}

fn bytes_of<T: Coded>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

fn comes_back<T: Coded + Debug + PartialEq>(value: &T, random: &mut Random) {
    let bytes = bytes_of(value);
    let mut with_more = bytes.clone();
    with_more.extend([1, 2, 3]);
    let mut rest = &with_more[..];
    assert_eq!(T::decode(&mut rest).as_ref(), Some(value));
    assert_eq!(rest, [1, 2, 3], "it ends where it ends");
    for len in 0..bytes.len() {
        assert_eq!(T::decode(&mut &bytes[..len]), None, "{value:?} up to {len}");
    }
    for _ in 0..40 {
        let mut other = bytes.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(other.len() as u64) as usize;
            other[at] ^= 1 << random.below(8);
        }
        let mut rest = &other[..];
        if let Some(known) = T::decode(&mut rest) {
            let taken = other.len() - rest.len();
            assert_eq!(
                bytes_of(&known),
                other[..taken],
                "one encoding of each value"
            );
        }
    }
}

/// An entry ends where its bytes end, and states may follow: others than its own may be an entry, too.
fn is_stored(entry: &Entry<Access>, random: &mut Random) {
    let id = entry.txn().id;
    let Write::Set { txn, state } = Stored::of(&Book::new(1)).on_change(id, Some(entry)) else {
        panic!("it is new");
    };
    let bytes = [&txn[..], &state].concat();
    assert_eq!(entry_of(&bytes).as_ref(), Some(entry));
    for len in 0..bytes.len() {
        assert_eq!(
            entry_of::<Access>(&bytes[..len]),
            None,
            "{entry:?} up to {len}"
        );
    }
    for _ in 0..40 {
        let mut other = bytes.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(other.len() as u64) as usize;
            other[at] ^= 1 << random.below(8);
        }
        let _any: Option<Entry<Access>> = entry_of(&other);
    }
}

#[test]
fn values_come_back_and_damaged_ones_are_refused_or_others() {
    let mut random = Random(1);
    for kind in 0..600 {
        let (entry, message) = (random.entry(), random.message(kind));
        is_stored(&entry, &mut random);
        comes_back(&message, &mut random);
    }
    for _ in 0..2_000 {
        let (id, stamp) = (random.id(), random.stamp());
        comes_back(&id, &mut random);
        comes_back(&stamp, &mut random);
        assert_eq!(bytes_of(&id).len(), TxnId::BYTES);
        let other = random.id();
        let names = (bytes_of(&id), bytes_of(&other));
        assert_eq!(names.0.cmp(&names.1), id.cmp(&other), "names sort");
    }
}

#[test]
fn numbers_have_one_encoding() {
    for value in (0..64).flat_map(|bits| [(1 << bits) - 1, 1u64 << bits, u64::MAX >> bits]) {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        assert_eq!(varint(&mut &bytes[..]), Some(value));
    }
    let others: [&[u8]; 4] = [&[], &[0x80], &[0x80, 0], &[0xff; 11]];
    for other in others {
        assert_eq!(varint(&mut &other[..]), None, "{other:?}");
    }
    let most = [[0xff; 9].as_slice(), &[2]].concat();
    assert_eq!(varint(&mut &most[..]), None, "above 64 bits");
}

fn part(slot: u16, key: &[u8]) -> Part<Access> {
    Part {
        slot,
        key: key.into(),
        ops: vec![Access::Read, Access::Write],
        expects: Some(None),
    }
}

fn id() -> TxnId {
    TxnId {
        node: 0x0102,
        start: 3,
        number: 4,
    }
}

#[test]
fn transactions_without_parts_or_with_parts_out_of_order_are_refused() {
    let of = |parts: &[Part<Access>]| {
        let mut bytes = bytes_of(&id());
        bytes.extend([0, 0]);
        super::put_all(&mut bytes, parts);
        Transaction::<Access>::decode(&mut &bytes[..])
    };
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[part(2, b"a"), part(1, b"a")]), None);
    assert_eq!(of(&[part(1, b"b"), part(1, b"a")]), None);
    assert_eq!(of(&[part(1, b"a"), part(1, b"a")]), None);
    let right = of(&[part(1, b"a"), part(1, b"b"), part(9, b"a")]).expect("in order");
    assert_eq!(right.slots(), [1, 9]);
}

#[test]
fn lengths_that_are_only_announced_cost_nothing() {
    // 2^62 parts, a body of as many bytes, and as many that were gathered.
    let announced = [[0xff; 8].as_slice(), &[0x3f]].concat();
    for before in [&[0, 0][..], &[0], &[]] {
        let bytes = [&bytes_of(&id())[..], before, &announced].concat();
        assert_eq!(Transaction::<Access>::decode(&mut &bytes[..]), None);
    }
}

/// Other nodes may run other versions.
#[test]
fn bytes_of_messages_are_these() {
    let mut bytes = Vec::new();
    Message::<Access>::Survey {
        round: 1,
        epoch: 300,
        lost: 2,
        slots: vec![7],
    }
    .encode(&mut bytes);
    assert_eq!(bytes, [25, 1, 0xac, 2, 2, 1, 7]);
}
