//! Registers: their laws, and practical cases.

use super::*;
use crate::counter::tests::{counter, floats};
use crate::laws::{self, Draw};
use crate::{Lexicographic, Max, Product};

fn stamp(time: u64) -> Stamp {
    Stamp::new(time, 1)
}

fn register(draw: &mut Draw) -> Register {
    let time = draw.below(4);
    let value = draw.below(3).checked_sub(1).map(|n| vec![b'0' + n as u8]);
    let mut register = match (value, time) {
        (Some(value), 1..) => Register::written(stamp(time), value, draw.below(2) * 5),
        (_, 0) => Register::default(),
        _ => Register::deleted(stamp(time)),
    };
    if draw.below(2) == 0 {
        register.counter = counter(draw);
        register.floats = floats(draw);
    }
    if draw.below(2) == 0 {
        let dated = match draw.below(2) {
            0 => stamp(draw.below(4)),
            _ => stamp(1 + draw.below(3)).expired(),
        };
        let at = draw.below(2) * 5 * dated.time.min(1);
        register.deadline = (dated, at);
    }
    register
}

#[test]
fn the_laws_hold() {
    laws::check::<Register>(60, 1, register).unwrap();
    laws::check_code(600, 1, register).unwrap();
}

#[test]
fn a_register_is_a_lexicographic_pair_beside_a_deadline() {
    type Written = Max<Option<Vec<u8>>>;
    type Added = Product<Counter, FloatCounter>;
    type Content = Lexicographic<Max<Stamp>, Product<Written, Added>>;
    type Model = Product<Content, Max<(Stamp, u64)>>;
    laws::check_model::<Register, Model>(150, 1, register, |register| {
        let written = Max(register.value.clone());
        let added = Product(register.counter.clone(), register.floats.clone());
        let content = Lexicographic {
            rank: Max(register.stamp),
            value: Product(written, added),
        };
        Product(content, Max(register.deadline))
    })
    .unwrap();
}

#[test]
fn a_write_replaces_what_was_counted_and_counts_of_one_write_add_up() {
    let mut a = Register::written(stamp(1), b"10".to_vec(), 0);
    let mut b = a.clone();
    a.counter.add(1, 2).unwrap();
    b.counter.add(2, 3).unwrap();
    assert!(a.merge(&b));
    assert_eq!(a.counter.sum(), 5);
    let later = Register::written(stamp(2), b"1".to_vec(), 0);
    assert!(a.merge(&later) && !a.is_counted());
    assert!(!a.merge(&b));
    assert_eq!(a.value(), Some(&b"1"[..]));
}

#[test]
fn counts_with_and_without_a_removal_that_all_know_of_add_up() {
    let (mut a, mut b) = (Register::default(), Register::deleted(stamp(2)));
    a.counter.add(1, 2).unwrap();
    b.counter.add(2, 3).unwrap();
    let both = |mut mine: Register, theirs: &Register, horizon| {
        let met = mine.meet(theirs, horizon);
        mine.merge(theirs);
        (met, mine.counter.sum(), mine.stamp())
    };
    assert_eq!(both(a.clone(), &b, 2), (true, 5, stamp(2)));
    assert_eq!(both(b.clone(), &a, 2), (true, 5, stamp(2)));
    // A newer stamp drops the counts that did not know of it.
    assert_eq!(both(a.clone(), &b, 1), (false, 3, stamp(2)));
    // A forgotten removal or value that arrives again has no effect.
    let gone = Register::deleted(stamp(2));
    assert_eq!(both(a.clone(), &gone, 2), (true, 2, stamp(2)));
    let value = Register::written(stamp(2), b"7".to_vec(), 1);
    let over = stamp(time_of(1)).expired();
    assert_eq!(both(a, &value, 2), (true, 2, over));
    assert_eq!(both(value.clone(), &b, 2), (false, 3, stamp(2)));
}

#[test]
fn a_deadline_does_not_write_the_value_again() {
    let old = Register::written(stamp(1), b"old".to_vec(), 0);
    let new = Register::written(stamp(2), b"new".to_vec(), 0);
    let mut dated = old.clone();
    assert!(dated.set_deadline(stamp(3), 9));
    assert!(dated.merge(&new));
    assert_eq!((dated.value(), dated.deadline()), (Some(&b"new"[..]), 9));
    // Set before the write, which has none.
    let mut dated = Register::written(stamp(1), b"old".to_vec(), 0);
    assert!(dated.set_deadline(stamp(2), 9));
    let later = Register::written(stamp(3), b"new".to_vec(), 0);
    assert!(dated.merge(&later) && dated == later);
    // Of two deadlines the later one holds, whichever write it was set on.
    let mut with = Register::written(stamp(3), b"new".to_vec(), 5);
    let mut dated = old.clone();
    assert!(dated.set_deadline(stamp(4), 7) && with.merge(&dated));
    assert_eq!((with.value(), with.deadline()), (Some(&b"new"[..]), 7));
}

#[test]
fn counts_are_kept_when_a_deadline_is_set_elsewhere() {
    let (mut a, mut b) = (Register::default(), Register::default());
    for n in 1..=1000u64 {
        a.begin_count(stamp(2 * n));
        a.counter.add(1, 1).unwrap();
        b.set_deadline(stamp(2 * n + 1), 1 << 50);
        b.merge(&a);
    }
    a.merge(&b);
    assert_eq!((a.counter.sum(), a.deadline()), (1000, 1 << 50));
}

#[test]
fn a_write_that_keeps_the_deadline_keeps_one_that_was_set_meanwhile() {
    let old = Register::written(stamp(1), b"old".to_vec(), 5);
    let mut kept = old.rewritten(stamp(3), b"new".to_vec());
    assert_eq!(kept.deadline(), 5);
    let mut extended = old.clone();
    assert!(extended.set_deadline(stamp(2), 7) && kept.merge(&extended));
    assert_eq!((kept.value(), kept.deadline()), (Some(&b"new"[..]), 7));
    // By a replica that did not know yet that it would expire.
    kept.expire();
    assert!(!kept.is_there());
    let mut late = old.clone();
    late.expire();
    assert_eq!(
        late.rewritten(stamp(4), b"x".to_vec()).deadline,
        (stamp(4), 0)
    );
}

#[test]
fn a_removal_is_not_undone_by_a_deadline() {
    let mut gone = Register::deleted(stamp(2));
    let mut dated = Register::written(stamp(1), b"x".to_vec(), 0);
    dated.set_deadline(stamp(3), 9);
    assert!(gone.merge(&dated) && !gone.is_there());
    assert_eq!((gone.deadline(), gone.until()), (0, time_of(9)));
    assert!(!gone.set_deadline(stamp(4), 9));
    // Nor does that deadline apply to what is counted since, before or after its time.
    for time in [5, time_of(9)] {
        let mut gone = gone.clone();
        gone.begin_count(stamp(time));
        gone.counter.add(1, 1).unwrap();
        assert!(gone.is_there() && gone.deadline() == 0);
    }
}

#[test]
fn an_extension_shows_again_what_has_expired() {
    let write = Register::written(stamp(1), b"x".to_vec(), 5);
    let mut late = write.clone();
    late.counter.add(1, 1).unwrap();
    let mut gone = write.clone();
    gone.expire();
    assert!(gone.merge(&late) && !gone.is_there());
    assert_eq!(gone.until(), time_of(5));
    let mut extended = write.clone();
    assert!(extended.set_deadline(stamp(2), 9));
    let mut both = gone.clone();
    assert!(both.merge(&extended) && both.is_there() && both.deadline() == 9);
    assert!(gone.merge(&Register::written(stamp(2), b"y".to_vec(), 0)) && gone.is_there());
    // By the clock of the stamps it should have known.
    let mut extended = write.clone();
    assert!(!extended.set_deadline(stamp(time_of(5)), 9) && extended.has_expired());
}

#[test]
fn counts_after_an_expiry_add_up_and_do_not_outlive_the_next() {
    let mut gone = Register::written(stamp(1), b"7".to_vec(), 0);
    gone.set_deadline(stamp(2), 5);
    gone.expire();
    let mut both = [gone.clone(), gone.clone()];
    for (replica, register) in both.iter_mut().enumerate() {
        register.begin_count(stamp(3));
        register.counter.add(replica as u16, 1).unwrap();
    }
    let [mut a, b] = both;
    a.merge(&b);
    a.merge(&gone);
    assert_eq!((a.counter.sum(), a.is_there(), a.deadline()), (2, true, 0));
    assert!(a.value().is_none());
    assert_eq!(a.stamp(), stamp(time_of(5)).expired());
    let later = stamp(time_of(6));
    assert!(a.set_deadline(later, 9) && a.deadline() == 9);
    a.expire();
    assert!(!a.is_there());
    a.begin_count(stamp(time_of(9)));
    let over = stamp(time_of(9)).expired();
    assert_eq!((a.stamp(), a.counter.sum()), (over, 0));
}

#[test]
fn a_forgotten_deadline_does_not_apply_to_later_counts() {
    let mut mine = Register::default();
    mine.counter.add(1, 1).unwrap();
    let mut value = Register::written(stamp(1), b"x".to_vec(), 0);
    value.set_deadline(stamp(2), 5);
    let mut removed = Register::deleted(stamp(2));
    value.set_deadline(stamp(3), 6);
    removed.merge(&value);
    let mut removed_later = Register::deleted(stamp(4));
    removed_later.merge(&value);
    let mut expired = value.clone();
    expired.expire();
    for theirs in [&value, &removed, &removed_later, &expired] {
        let mut mine = mine.clone();
        assert!(mine.meet(theirs, 9));
        mine.merge(theirs);
        assert!(mine.is_there() && mine.deadline() == 0, "{theirs:?}");
        assert_eq!((mine.value(), mine.counter.sum()), (None, 1));
    }
}

#[test]
fn golden_bytes() {
    let head = |form| [&[form][..], &stamp(7).to_bytes()].concat();
    let mut all = Register::written(stamp(7), b"ab".to_vec(), 0);
    assert_eq!(all.encoded(), [&head(0)[..], b"ab"].concat());
    assert_eq!(Register::deleted(stamp(7)).encoded(), head(1));
    let timed = Register::written(stamp(7), b"ab".to_vec(), 9);
    let deadline = 9u64.to_be_bytes();
    assert_eq!(timed.encoded(), [&head(2)[..], &deadline, b"ab"].concat());
    all.counter.add(1, 5).unwrap();
    let counted = [&head(3)[..], &[0; 8], b"\x03ab\x01\0\x01\x05\0\0"].concat();
    assert_eq!(all.encoded(), counted);
    let mut never = Register::default();
    never.floats.set(2, 1.5);
    let counted = [
        &[3][..],
        &[0; 20],
        b"\0\0\x01\0\x02\x01\x3f\xf8\0\0\0\0\0\0",
    ]
    .concat();
    assert_eq!(never.encoded(), counted);
}

#[test]
fn golden_bytes_with_a_deadline_of_its_own() {
    let mut dated = Register::written(stamp(7), b"ab".to_vec(), 0);
    assert!(dated.set_deadline(stamp(8), 9));
    let rest = |deadline: Stamp| {
        let head = [&[5][..], &stamp(7).to_bytes(), &deadline.to_bytes()].concat();
        [&head[..], &9u64.to_be_bytes(), b"\x03ab\0\0"].concat()
    };
    assert_eq!(dated.encoded(), rest(stamp(8)));
    dated.expire();
    assert_eq!(dated.encoded(), rest(stamp(8).expired()));
    let expiry = [
        &[5][..],
        &[0; 12],
        &rest(stamp(8).expired())[13..33],
        b"\0\0\0",
    ]
    .concat();
    assert_eq!(dated.expiry().encoded(), expiry);
    // What another form can express.
    assert!(Register::decode(&rest(stamp(7))).is_err());
    // A time without a stamp.
    assert!(Register::decode(&rest(Stamp::ZERO)).is_err());
}

/// The same deadline has passed at one replica, which counts from nothing, and was set again at the other in time.
#[test]
fn counts_after_an_expiry_do_not_add_up_with_those_before_it() {
    let mut before = Register::default();
    before.counter.add(1, 5).unwrap();
    before.set_deadline(stamp(2), 5);
    let mut since = before.clone();
    since.expire();
    since.begin_count(stamp(time_of(5)));
    since.counter.add(2, 3).unwrap();
    let horizon = time_of(7);
    for extended in [false, true] {
        if extended {
            assert!(before.set_deadline(stamp(3), 9));
        }
        let [mut a, mut b] = [before.clone(), since.clone()];
        a.meet(&since, horizon);
        a.merge(&since);
        b.meet(&before, horizon);
        b.merge(&before);
        assert_eq!((a.counter.sum(), &a), (3, &b));
    }
}

/// A value that keeps the deadline is not hidden by one that had passed before.
#[test]
fn a_value_keeps_no_deadline_that_has_passed() {
    let mut counted = Register::written(stamp(1), b"7".to_vec(), 5);
    counted.expire();
    let other = counted.clone();
    counted.begin_count(stamp(time_of(5)));
    counted.counter.add(1, 3).unwrap();
    let mut value = counted.rewritten(stamp(time_of(6)), b"8".to_vec());
    value.merge(&other);
    assert!(value.is_there() && value.deadline() == 0);
    // Where the deadline is forgotten.
    let mut counted = Register::default();
    counted.counter.add(1, 3).unwrap();
    let mut value = counted.rewritten(stamp(time_of(6)), b"8".to_vec());
    value.merge(&other);
    assert!(value.is_there());
}
