//! The algebra of strings: through the checker, and where its limits lie.

use super::{Op, Reply, Text};
use crate::algebra::check::{TEST_ROUNDS, algebra};
use crate::algebra::{Algebra, Held};

#[test]
fn strings_keep_what_they_state() {
    if let Err(failure) = algebra::<Text>(1, TEST_ROUNDS * 4) {
        panic!("{failure}");
    }
}

fn quiet(op: Op<'_>) -> Held<Op<'_>> {
    Held { op, wanted: false }
}

fn wanted(op: Op<'_>) -> Held<Op<'_>> {
    Held { op, wanted: true }
}

#[track_caller]
fn check(state: &str, group: &[Held<Op<'_>>], independent: bool) {
    let (new, held) = group.split_last().unwrap();
    assert_eq!(
        Text::admits(held, new, Some(state.as_bytes())),
        independent,
        "{state} {group:?}"
    );
}

#[test]
fn counts_near_the_limit_are_looked_at_together() {
    let two = quiet(Op::Incr { by: 2 });
    let near = (i64::MAX - 5).to_string();
    check(&near, &[two, two], true);
    check(&near, &[two, two, two], false);
    check("7", &[two, two, two], true);
    check("7", &[two, wanted(Op::Incr { by: 2 })], false);
    // Refused in every order, as the other never gives enough way.
    let most = quiet(Op::Incr { by: i64::MAX });
    check("7", &[most, quiet(Op::Incr { by: -6 })], true);
    check("7", &[most, quiet(Op::Incr { by: -7 })], false);
}

#[test]
fn ranges_are_independent_where_they_do_not_touch() {
    let (start, value) = (0, &b"ab"[..]);
    let low = wanted(Op::SetRange { offset: 0, value });
    let high = wanted(Op::SetRange { offset: 2, value });
    check("hello", &[low, high], true);
    check("hell", &[low, high], true);
    // The reply of the first shows whether the string has grown.
    check("hel", &[low, high], false);
    check("hel", &[quiet(low.op), high], true);
    check(
        "hello",
        &[high, wanted(Op::GetRange { start, end: 1 })],
        true,
    );
    check(
        "hello",
        &[high, wanted(Op::GetRange { start, end: 2 })],
        false,
    );
    check(
        "hello",
        &[high, wanted(Op::GetRange { start, end: -4 })],
        true,
    );
    check(
        "hello",
        &[
            high,
            wanted(Op::SetBit {
                offset: 15,
                bit: true,
            }),
        ],
        true,
    );
    check(
        "hello",
        &[
            high,
            wanted(Op::SetBit {
                offset: 16,
                bit: true,
            }),
        ],
        false,
    );
}

#[test]
fn what_is_put_answers_for_what_follows() {
    let (five, get) = (Op::Set { value: b"5" }, Op::Get);
    assert_eq!(Text::combine(&five, &get), Some(five));
    let replies = Text::share(&five, &get, &Reply::Done);
    assert_eq!(replies, (Reply::Done, Reply::Bytes(Some(b"5".to_vec()))));
    let both = Text::combine(&get, &five).unwrap();
    assert_eq!(both, Op::GetSet { value: b"5" });
    assert_eq!(
        Text::combine(&Op::Incr { by: 1 }, &Op::Incr { by: -1 }),
        None
    );
    let all = Text::combine(&Op::Incr { by: i64::MAX }, &Op::Incr { by: 1 });
    assert_eq!(all, None);
}

#[test]
fn what_is_no_number_stays_none_while_its_letters_do() {
    let count = wanted(Op::Incr { by: 1 });
    let (offset, value) = (1, &b"7"[..]);
    check(
        "5ok",
        &[count, wanted(Op::SetRange { offset, value })],
        false,
    );
    check("ok", &[count, wanted(Op::SetRange { offset, value })], true);
    check("ok", &[count, wanted(Op::Append { value })], true);
    check("5", &[count, quiet(Op::Append { value })], false);
}
