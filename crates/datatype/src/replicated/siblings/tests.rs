//! Siblings, in practical cases.

use super::*;
use crate::object::{Object, Registered, Tag};

fn writer(time: u64, replica: u16) -> Writer {
    Writer {
        stamp: Stamp::new(time, replica),
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
    values.live().map(|sibling| sibling.value.clone()).collect()
}

#[test]
fn writes_that_have_not_seen_each_other_are_both_kept() {
    let (mut a, mut b) = (Tag::Siblings.empty(), Tag::Siblings.empty());
    let x = run(&mut a, |view, ops| {
        set(view, (b"x", 0), None, &writer(1, 1), ops);
    });
    let y = run(&mut b, |view, ops| {
        set(view, (b"y", 0), None, &writer(2, 2), ops);
    });
    hear(&mut a, &y);
    hear(&mut b, &x);
    assert_eq!(a, b);
    assert_eq!(all(&a), [b"y", b"x"]);
    assert_eq!(shown(view(&a), Pick::Newest), Some(&b"y"[..]));
    let seen = Seen::from(values(view(&a)).seen().clone());
    let both = run(&mut a, |view, ops| {
        set(view, (b"z", 0), Some(&seen), &writer(3, 1), ops);
    });
    hear(&mut b, &both);
    hear(&mut b, &x);
    assert_eq!(all(&b), [b"z"]);
    let gone = run(&mut b, |view, ops| {
        assert!(delete(view, None, &writer(4, 2), ops));
    });
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
        set(view, (&value[..], 0), None, &writer(1, 1), ops);
    });
    assert!(a.packed().is_none() && a.heap_bytes() > 10_000);
    assert_eq!(shown(view(&a), Pick::Newest), Some(&value[..]));
    run(&mut a, |view, ops| {
        set(view, (b"short", 0), None, &writer(2, 1), ops);
    });
    assert!(a.packed().is_some());
}

#[test]
fn increments_belong_to_what_is_shown_and_add_up() {
    let (mut a, mut b) = (Tag::Siblings.empty(), Tag::Siblings.empty());
    let mut sums = Vec::new();
    let mut add = |object: &mut Object, by, replica| {
        run(object, |view, ops| {
            let writer = writer(9, replica);
            sums.push(increment(view, Pick::Newest, by, &writer, ops));
        })
    };
    let (x, y) = (add(&mut a, 5, 1), add(&mut b, -2, 2));
    hear(&mut a, &y);
    hear(&mut b, &x);
    assert_eq!(a, b);
    let _ = add(&mut a, 1, 1);
    assert_eq!(sums, [Ok(5), Ok(-2), Ok(4)]);
    let gone = run(&mut a, |view, ops| {
        assert!(delete(view, None, &writer(10, 1), ops));
    });
    hear(&mut b, &gone);
    run(&mut b, |view, ops| {
        let done = increment(view, Pick::Newest, 3, &writer(11, 2), ops);
        assert_eq!(done, Ok(3));
    });
    assert_eq!(all(&b), [b"3"]);
    run(&mut b, |view, ops| {
        set(view, (b"word", 0), None, &writer(12, 2), ops);
    });
    let before = b.clone();
    run(&mut b, |view, ops| {
        let done = increment(view, Pick::Newest, 3, &writer(13, 2), ops);
        assert_eq!(done, Err(ValueError::NotInteger));
    });
    assert_eq!(b, before);
}

#[test]
fn one_of_several_is_picked_alike_by_everybody() {
    let mut a = Tag::Siblings.empty();
    let nothing = Seen::default();
    let texts = ["9", "10", "-1e3", "9007199254740993", "9007199254740992"];
    for (time, text) in texts.iter().enumerate() {
        run(&mut a, |view, ops| {
            let writer = writer(time as u64 + 1, 1);
            set(view, (text.as_bytes(), 0), Some(&nothing), &writer, ops);
        });
    }
    let picked = |a: &Object, pick| shown(view(a), pick).map(<[u8]>::to_vec);
    assert_eq!(picked(&a, Pick::Newest), Some(b"9007199254740992".to_vec()));
    assert_eq!(
        picked(&a, Pick::Largest),
        Some(b"9007199254740993".to_vec())
    );
    assert_eq!(picked(&a, Pick::Smallest), Some(b"-1e3".to_vec()));
    run(&mut a, |view, ops| {
        set(view, (b"a text", 0), Some(&nothing), &writer(9, 1), ops);
    });
    assert_eq!(picked(&a, Pick::Largest), Some(b"a text".to_vec()));
    assert_eq!(picked(&a, Pick::Smallest), Some(b"-1e3".to_vec()));
    assert_eq!((count(view(&a)), count(&[])), (6, 0));
}

#[test]
fn each_value_has_its_time_and_replicas_let_it_go_by_themselves() {
    let (mut a, mut b) = (Tag::Siblings.empty(), Tag::Siblings.empty());
    let nothing = Seen::default();
    let x = run(&mut a, |view, ops| {
        set(view, (b"x", 50), None, &writer(1, 1), ops);
    });
    let y = run(&mut b, |view, ops| {
        set(view, (b"y", 70), Some(&nothing), &writer(2, 2), ops);
    });
    hear(&mut a, &y);
    hear(&mut b, &x);
    assert_eq!((a.deadline(), b.deadline()), (50, 50));
    assert_eq!(shown_deadline(view(&a), Pick::Newest), 70);
    assert_eq!(shown_deadline(view(&a), Pick::Smallest), 50);
    for object in [&mut a, &mut b] {
        let mut ops = Vec::new();
        object.encode_expiry(&mut ops);
        hear(object, &ops);
    }
    assert_eq!(a, b);
    assert_eq!((all(&a), a.deadline()), (vec![b"y".to_vec()], 70));
    // A message in transit does not restore it.
    hear(&mut a, &x);
    assert_eq!((all(&a), a.deadline()), (vec![b"y".to_vec()], 70));
    let mut ops = Vec::new();
    a.encode_expiry(&mut ops);
    hear(&mut a, &ops);
    assert!(a.is_hidden() && a.deadline() == 0 && a.until() > a.newest().time);
    assert_eq!(a.forget(a.newest().time, 1), Forgotten::Kept);
    // The other replica had extended the deadline before it knew.
    let mut ops = Vec::new();
    b.encode_deadline(90, &writer(3, 2), &mut ops).unwrap();
    hear(&mut b, &ops);
    hear(&mut a, &ops);
    assert!(a == b && a.deadline() == 90);
    assert_eq!(a.forget(u64::MAX, 1), Forgotten::Kept);
    let mut ops = Vec::new();
    a.encode_expiry(&mut ops);
    hear(&mut a, &ops);
    assert_eq!(a.forget(a.until(), 1), Forgotten::Empty);
}
