//! Registers, in practical cases.

use super::*;
use crate::object::{Object, Registered, Tag};
use crate::replicated::Writer;

fn writer(time: u64, replica: u16) -> Writer {
    Writer {
        stamp: Stamp::new(time, replica),
    }
}

/// A replica: its operations are sent to others unchanged.
struct Replica(Object, u16);

impl Replica {
    fn two() -> [Replica; 2] {
        [1, 2].map(|replica| Replica(Tag::Register.empty(), replica))
    }

    fn view(&self) -> View<'_> {
        Register::of(&self.0).map(Register::view).unwrap()
    }

    fn text(&self) -> Option<&[u8]> {
        self.view().text()
    }

    fn run(&mut self, time: u64, what: impl FnOnce(View<'_>, &Writer, &mut Vec<u8>)) -> Vec<u8> {
        let mut ops = Vec::new();
        what(self.view(), &writer(time, self.1), &mut ops);
        self.hear(&ops);
        ops
    }

    fn hear(&mut self, ops: &[u8]) {
        self.0.commit_encoded(ops, &Tuning::default()).unwrap();
    }

    fn set(&mut self, time: u64, value: &[u8]) -> Vec<u8> {
        self.run(time, |_, writer, ops| set(writer, value, 0, ops))
    }

    fn delete(&mut self, time: u64) -> Vec<u8> {
        self.run(time, |_, writer, ops| delete(writer, ops))
    }

    fn add(&mut self, by: i64) -> Vec<u8> {
        self.run(9, |view, writer, ops| {
            increment(view, by, writer, ops).unwrap();
        })
    }

    fn add_float(&mut self, by: &[u8]) -> Vec<u8> {
        self.run(9, |view, writer, ops| {
            increment_float(view, by, writer, ops).unwrap();
        })
    }
}

#[test]
fn the_higher_stamp_wins_everywhere() {
    let [mut a, mut b] = Replica::two();
    let (one, other) = (a.set(1, b"one"), b.set(1, b"other"));
    a.hear(&other);
    b.hear(&one);
    assert_eq!(a.text(), Some(&b"other"[..]));
    assert_eq!(a.0, b.0);
    let gone = a.delete(2);
    b.hear(&gone);
    assert!(a.0 == b.0 && b.0.is_hidden() && !b.0.is_empty());
    b.hear(&one);
    assert!(b.0.is_hidden(), "what was deleted does not come back");
}

#[test]
fn increments_add_up_whoever_makes_them() {
    let [mut a, mut b] = Replica::two();
    let (x, y) = (a.add(5), b.add(-2));
    a.hear(&y);
    b.hear(&x);
    assert_eq!(a.text(), Some(&b"3"[..]));
    assert_eq!(a.0, b.0);
    let set = a.set(4, b"100");
    let (x, y) = (a.add(1), b.add(50));
    b.hear(&set);
    b.hear(&x);
    a.hear(&y);
    assert_eq!(a.text(), Some(&b"101"[..]));
    assert_eq!(a.0, b.0);
}

#[test]
fn floats_are_written_as_redis_writes_them() {
    let [mut a, mut b] = Replica::two();
    b.hear(&a.set(1, b"10.5"));
    let (x, y) = (a.add_float(b"0.1"), b.add_float(b"-5"));
    a.hear(&y);
    b.hear(&x);
    assert_eq!(a.text(), Some(&b"5.6"[..]));
    assert_eq!(a.0, b.0);
    a.add_float(b"0.2");
    assert_eq!(a.text(), Some(&b"5.8"[..]));
    let mut ops = Vec::new();
    let refused = increment(a.view(), 1, &writer(9, 1), &mut ops);
    assert!(refused.is_err() && ops.is_empty());
    a.set(5, b"text");
    let refused = increment_float(a.view(), b"1", &writer(9, 1), &mut ops);
    assert!(refused.is_err() && ops.is_empty());
}

#[test]
fn sums_beyond_64_bits_stay_at_their_end() {
    let [mut a, mut b] = Replica::two();
    b.hear(&a.set(1, b"9223372036854775806"));
    let (x, y) = (a.add(1), b.add(1));
    a.hear(&y);
    b.hear(&x);
    assert_eq!(a.text(), Some(&b"9223372036854775807"[..]));
    assert_eq!(a.0, b.0);
}

#[test]
fn a_plain_write_is_overwritten_where_it_lies() {
    let [mut a, mut b] = Replica::two();
    a.set(1, b"one");
    let mut bytes = a.0.packed().unwrap().to_vec();
    assert_eq!(packed_stamp(&bytes), writer(1, 1).stamp);
    let later = writer(2, 2).stamp;
    assert!(!overwrite_in_place(&mut bytes, later, b"longer"));
    assert!(!overwrite_in_place(&mut bytes, Stamp::ZERO, b"two"));
    assert!(overwrite_in_place(&mut bytes, later, b"two"));
    b.set(2, b"two");
    assert_eq!(b.0.packed(), Some(&bytes[..]));
    assert!(!overwrite_in_place(&mut [], later, b""));
    b.delete(8);
    let mut bytes = b.0.packed().unwrap().to_vec();
    assert!(!overwrite_in_place(&mut bytes, writer(9, 1).stamp, b""));
}

#[test]
fn deadlines_and_tombstones() {
    let [mut a, mut b] = Replica::two();
    let written = a.set(1, b"5");
    let timed = a.run(2, |view, writer, ops| {
        assert!(expire_at(view, 77, writer, ops));
    });
    assert_eq!((a.text(), a.view().deadline()), (Some(&b"5"[..]), 77));
    assert_eq!(packed_deadline(a.0.packed().unwrap()), 77);
    assert_eq!(a.0.forget(99, 1), Forgotten::Kept);
    b.hear(&timed);
    let at_b = b.add(0);
    assert_eq!(b.view().deadline(), 77);
    a.run(0, |view, _, ops| expire(view, ops));
    a.hear(&at_b);
    a.hear(&written);
    assert!(a.0.is_hidden(), "what is added to it is gone with it");
    b.run(0, |view, _, ops| expire(view, ops));
    assert_eq!(a.0, b.0);
    a.delete(8);
    assert_eq!(a.0.newest(), writer(8, 1).stamp);
    assert_eq!(a.0.forget(7, 1), Forgotten::Kept);
    assert_eq!(a.0.forget(8, 1), Forgotten::Empty);
    assert!(a.0.is_empty());
}

#[test]
fn what_fits_no_record_is_kept_by_reference() {
    let [mut a, mut b] = Replica::two();
    let long = vec![b'v'; 10_000];
    let ops = a.set(1, &long);
    b.hear(&ops);
    assert!(a.0.packed().is_none() && a.view().shared_text().is_some());
    assert_eq!(a.0, b.0);
    assert!(a.0.heap_bytes() >= 10_000);
    a.set(2, b"short");
    assert!(a.0.packed().is_some());
    assert_ne!(a.0, b.0);
}
