//! Replicated sketches, in practical cases.

use super::*;
use crate::object::{Object, Registered, Tag};

fn view(object: &Object) -> View<'_> {
    Sketch::of(object).map(Sketch::view).unwrap()
}

fn hear(object: &mut Object, ops: &[u8]) {
    object.commit_encoded(ops, &Tuning::default()).unwrap();
}

fn adds(object: &mut Object, numbers: std::ops::Range<u32>) -> Vec<u8> {
    let mut ops = Vec::new();
    for number in numbers {
        let start = ops.len();
        let element = number.to_le_bytes();
        add(view(object), [&element[..]].into_iter(), &mut ops);
        hear(object, &ops[start..]);
    }
    ops
}

fn count(object: &Object) -> u64 {
    view(object).sketch().unwrap().count().unwrap()
}

#[test]
fn what_replicas_add_is_counted_once() {
    let (mut a, mut b) = (Tag::Sketch.empty(), Tag::Sketch.empty());
    let (x, y) = (adds(&mut a, 0..3000), adds(&mut b, 2000..5000));
    hear(&mut a, &y);
    hear(&mut b, &x);
    assert_eq!(a, b);
    assert!((4800..5200).contains(&count(&a)), "{}", count(&a));
    let mut ops = Vec::new();
    let again = 7u32.to_le_bytes();
    assert!(!add(view(&a), [&again[..]].into_iter(), &mut ops) && ops.is_empty());
    let mut c = Tag::Sketch.empty();
    let registers = view(&a).sketch().unwrap().registers().unwrap();
    assert!(merge(view(&c), &registers, &mut ops));
    hear(&mut c, &ops);
    assert_eq!(a, c);
}

#[test]
fn a_deletion_takes_what_it_has_seen() {
    let mut a = Tag::Sketch.empty();
    let added = adds(&mut a, 0..10);
    let stamp = Stamp::new(5, 1);
    let mut gone = Vec::new();
    delete(&Writer { stamp }, &mut gone);
    hear(&mut a, &gone);
    hear(&mut a, &added);
    assert!(a.is_hidden() && !a.is_empty() && a.newest() == stamp);
    assert_eq!(a.forget(4, 1), Forgotten::Kept);
    let mut ops = Vec::new();
    assert!(
        add(view(&a), std::iter::empty(), &mut ops),
        "an empty one is there"
    );
    hear(&mut a, &ops);
    assert_eq!((count(&a), a.is_hidden()), (0, false));
    assert_eq!(a.forget(9, 1), Forgotten::Kept);
    hear(&mut a, &gone);
    assert!(!a.is_hidden(), "the deletion is below what came after it");
}

#[test]
fn golden_bytes_and_others() {
    let mut ops = Vec::new();
    delete(
        &Writer {
            stamp: Stamp::ZERO.next(),
        },
        &mut ops,
    );
    assert_eq!(ops, [13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
    let head = [0; 12];
    let refused: [&[u8]; 6] = [
        &[2],
        &[0, 0, 1, 1],
        &[1, 0, 1],
        &[1, 0, 1, 0],
        &[1, 0x40, 0, 1],
        &[1, 0, 2, 1, 0, 1, 1],
    ];
    for rest in refused {
        assert!(Delta::read(&[&head, rest].concat()).is_err(), "{rest:?}");
    }
    assert!(Delta::read(&[&head[..], &[1, 0, 1, 1, 0, 2, 51]].concat()).is_ok());
    assert!(Delta::read(&head).is_err());
}

#[test]
fn a_deadline_takes_what_was_there_and_what_is_added_since_adds_up() {
    let (mut a, mut b) = (Tag::Sketch.empty(), Tag::Sketch.empty());
    let stamp = |time| Stamp::new(time, 1);
    let expire = |object: &mut Object, time, at| {
        let mut ops = Vec::new();
        let writer = Writer { stamp: stamp(time) };
        object.encode_deadline(at, &writer, &mut ops).unwrap();
        hear(object, &ops);
        ops
    };
    let added = adds(&mut a, 0..10);
    let told = [added.clone(), expire(&mut a, 5, 9)].concat();
    hear(&mut b, &told);
    assert_eq!((b.deadline(), count(&b)), (9, 10));
    // Not by a late message, either.
    for object in [&mut a, &mut b] {
        let mut ops = Vec::new();
        object.encode_expiry(&mut ops);
        hear(object, &ops);
        hear(object, &told);
        assert!(object.is_hidden() && object.deadline() == 0);
    }
    let (x, y) = (adds(&mut a, 20..30), adds(&mut b, 25..40));
    hear(&mut a, &y);
    hear(&mut b, &x);
    assert_eq!(a, b);
    assert_eq!(count(&a), 20);
    // A deletion removes the deadline.
    expire(&mut a, 1 << 60, 1 << 40);
    let mut gone = Vec::new();
    delete(
        &Writer {
            stamp: stamp(2 << 60),
        },
        &mut gone,
    );
    hear(&mut a, &gone);
    adds(&mut a, 0..3);
    assert_eq!((a.deadline(), count(&a)), (0, 3));
}
