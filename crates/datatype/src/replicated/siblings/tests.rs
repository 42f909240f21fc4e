//! What siblings do, in cases that people meet.

use super::*;
use crate::object::{Object, Registered, Tag};

fn writer(time: u64, replica: u16) -> Writer {
    Writer {
        stamp: Stamp {
            time,
            replica,
            step: 0,
        },
    }
}

fn view(object: &Object) -> View<'_> {
    Siblings::of(object).map(Siblings::view).unwrap()
}

fn run(object: &mut Object, what: impl FnOnce(View<'_>, &mut Vec<u8>)) -> Vec<u8> {
    let mut ops = Vec::new();
    what(view(object), &mut ops);
    hear(object, &ops);
    ops
}

fn hear(object: &mut Object, ops: &[u8]) {
    object.commit_encoded(ops, &Tuning::default()).unwrap();
}

fn all(object: &Object) -> Vec<Vec<u8>> {
    let values = values(view(object));
    values.live().map(|(_, value)| value.to_vec()).collect()
}

#[test]
fn writes_that_have_not_seen_each_other_are_both_kept() {
    let (mut a, mut b) = (Tag::Siblings.empty(), Tag::Siblings.empty());
    let x = run(&mut a, |view, ops| {
        set(view, b"x", None, &writer(1, 1), ops)
    });
    let y = run(&mut b, |view, ops| {
        set(view, b"y", None, &writer(2, 2), ops)
    });
    hear(&mut a, &y);
    hear(&mut b, &x);
    assert_eq!(a, b);
    assert_eq!(all(&a), [b"y", b"x"]);
    assert_eq!(latest(view(&a)), Some(&b"y"[..]));
    let seen = values(view(&a)).seen().clone();
    let both = run(&mut a, |view, ops| {
        set(view, b"z", Some(&seen), &writer(3, 1), ops);
    });
    hear(&mut b, &both);
    hear(&mut b, &x);
    assert_eq!(all(&b), [b"z"]);
    let gone = run(&mut b, |view, ops| delete(view, None, &writer(4, 2), ops));
    hear(&mut a, &gone);
    hear(&mut a, &both);
    assert!(a == b && a.is_hidden() && !a.is_empty());
    assert_eq!(a.forget(3, 1), Forgotten::Kept);
    assert_eq!(a.forget(a.newest().time, 1), Forgotten::Empty);
}

#[test]
fn large_values_are_shared_by_copies() {
    let mut a = Tag::Siblings.empty();
    let value = vec![b'v'; 10_000];
    run(&mut a, |view, ops| {
        set(view, &value, None, &writer(1, 1), ops)
    });
    assert!(a.packed().is_none() && a.heap_bytes() > 10_000);
    assert_eq!(latest(view(&a)), Some(&value[..]));
    run(&mut a, |view, ops| {
        set(view, b"short", None, &writer(2, 1), ops)
    });
    assert!(a.packed().is_some());
}
