//! Deadlines of replicated collections, and what they have in common with tombstones: all replicas forget, but not at
//! the same time.

use super::tests::Replica;
use super::*;
use crate::hash::{self, Hash};
use crate::object::{Registered, Tag};
use crate::replicated::shared_set::SharedSet;
use crate::replicated::{Forgotten, Known};
use crate::set::{self, Set};
use rufous_lattice::stamp::COUNTER_BITS;

/// The time of stamps in a millisecond.
fn time(ms: u64) -> u64 {
    (ms * 1000) << COUNTER_BITS
}

impl Replica {
    fn at(&mut self, ms: u64) -> &mut Self {
        self.writer.stamp.time = time(ms);
        self
    }

    fn expire(&mut self, ms: u64, at: u64) -> Vec<u8> {
        let mut ops = Vec::new();
        let writer = self.at(ms).writer;
        self.object.encode_deadline(at, &writer, &mut ops).unwrap();
        self.hear(&ops);
        ops
    }

    fn pass(&mut self) -> Vec<u8> {
        let mut ops = Vec::new();
        self.object.encode_expiry(&mut ops);
        self.hear(&ops);
        ops
    }

    fn add(&mut self, ms: u64, member: &[u8]) -> Vec<u8> {
        self.at(ms).run::<Set>(&set::Op::Add { member }).1
    }

    fn count(&mut self, ms: u64, field: &[u8]) -> (i64, Vec<u8>) {
        let op = hash::Op::Increment { field, by: 1 };
        let (reply, ops) = self.at(ms).run::<Hash>(&op);
        let Ok(hash::Reply::Integer(Ok(sum))) = reply else {
            panic!("{reply:?}");
        };
        (sum, ops)
    }

    fn deliver(&mut self, ops: &[u8], horizon: u64) {
        let mut sent = self.object.tag().empty();
        sent.commit_encoded(ops, &Tuning::default()).unwrap();
        let known = Known {
            here: horizon,
            there: horizon,
        };
        self.object.make_way(&sent, known, &Tuning::default());
        self.hear(ops);
    }
}

#[test]
fn what_was_there_goes_and_what_is_added_since_stays() {
    let [mut a, mut b] = Replica::two(Tag::SharedSet);
    let mut told = a.add(1, b"old");
    told.extend(a.expire(2, 10));
    b.hear(&told);
    assert_eq!((a.object.deadline(), b.object.deadline()), (10, 10));
    // Not yet: the other's clock is ahead.
    let late = b.add(11, b"new");
    a.hear(&late);
    assert_eq!((a.object.len(), b.object.len()), (2, 2));
    a.pass();
    assert_eq!((a.object.len(), a.object.deadline()), (1, 0));
    b.pass();
    assert_eq!(a.object, b.object);
    a.hear(&told);
    assert_eq!(a.object.len(), 1, "what comes late has gone, too");
    // It is dropped when all replicas have received it, and not before.
    let bytes = |replica: &Replica| replica.object.packed().map(<[u8]>::len);
    let before = bytes(&a);
    assert_eq!(a.object.forget(time(9), 9), Forgotten::Kept);
    assert_eq!(a.object, b.object);
    a.object.forget(time(11), 9);
    assert_ne!(a.object, b.object);
    assert!(bytes(&a) < before && a.object.len() == 1);
}

#[test]
fn an_extension_wins_whose_replica_did_not_know_that_the_time_had_come() {
    let [mut a, mut b] = Replica::two(Tag::SharedSet);
    let mut told = a.add(1, b"old");
    told.extend(a.expire(2, 10));
    b.hear(&told);
    let extended = b.expire(9, 20);
    a.pass();
    assert!(a.object.is_hidden());
    let new = a.add(12, b"new");
    a.hear(&extended);
    b.hear(&new);
    assert_eq!(a.object, b.object);
    assert_eq!((a.object.len(), a.object.deadline()), (2, 20));
    // A replica that knows of it does not restore what has gone.
    b.pass();
    let new = b.add(22, b"newer");
    let extended = b.expire(23, 30);
    a.hear(&[new, extended].concat());
    assert_eq!((a.object.len(), a.object.deadline()), (1, 30));
    assert_eq!(a.object, b.object);
}

#[test]
fn a_key_made_anew_has_no_deadline() {
    let [mut a, mut b] = Replica::two(Tag::SharedSet);
    b.hear(&a.add(1, b"x"));
    b.hear(&a.expire(2, 10));
    let removed = a.at(3).run::<Set>(&set::Op::Remove { member: b"x" });
    assert_eq!(removed.0, Ok(set::Reply::Bool(true)));
    b.hear(&removed.1);
    assert!(a.object.is_hidden());
    b.hear(&a.add(4, b"y"));
    assert_eq!((a.object.deadline(), b.object.deadline()), (0, 0));
    b.hear(&a.expire(5, 10));
    b.hear(&a.expire(6, 0));
    assert_eq!((a.object.deadline(), b.object.deadline()), (0, 0));
}

#[test]
fn a_time_that_has_gone_by_takes_what_was_there() {
    let [mut a, mut b] = Replica::two(Tag::SharedHash);
    b.hear(&a.count(5, b"f").1);
    b.hear(&a.expire(6, 1));
    a.pass();
    b.pass();
    assert!(a.object.is_hidden() && a.object == b.object);
    // A clock that is behind still writes above what has gone.
    let write = hash::Op::Set {
        field: b"f",
        value: b"7",
    };
    b.hear(&a.at(2).run::<Hash>(&write).1);
    assert_eq!((a.object.len(), b.object.len()), (1, 1));
    assert!(a.writer.stamp.time > time(6), "shown to the clock");
}

#[test]
fn counts_begin_anew_after_a_deadline_and_add_up() {
    let [mut a, mut b] = Replica::two(Tag::SharedHash);
    b.hear(&a.count(1, b"f").1);
    b.hear(&a.expire(2, 10));
    for replica in [&mut a, &mut b] {
        replica.pass();
    }
    let (first, second) = (a.count(11, b"f"), b.count(11, b"f"));
    assert_eq!((first.0, second.0), (1, 1));
    a.hear(&second.1);
    b.hear(&first.1);
    assert_eq!(a.object, b.object);
    assert_eq!(a.count(12, b"f").0, 3);
}

#[test]
fn counts_of_who_has_forgotten_a_removal_are_seen_by_who_has_not() {
    let [mut a, mut b] = Replica::two(Tag::SharedHash);
    b.hear(
        &a.at(1)
            .run::<Hash>(&hash::Op::Set {
                field: b"g",
                value: b"",
            })
            .1,
    );
    b.hear(&a.count(1, b"f").1);
    b.hear(&a.at(2).run::<Hash>(&hash::Op::Delete { field: b"f" }).1);
    a.object.forget(time(3), 9);
    let (sum, ops) = a.count(4, b"f");
    assert_eq!(sum, 1);
    let mut early = Replica::two(Tag::SharedHash).into_iter().next().unwrap();
    early.object = b.object.clone();
    early.deliver(&ops, time(1));
    assert_eq!(early.object.len(), 1, "it may be from before the removal");
    b.deliver(&ops, time(3));
    assert_eq!(b.object.len(), 2);
    assert_eq!(a.object, b.object);
    assert_eq!(b.count(5, b"f").0, 2);
}

#[test]
fn counts_of_who_has_forgotten_a_deadline_are_seen_by_who_has_not() {
    let [mut a, mut b] = Replica::two(Tag::SharedHash);
    b.hear(&a.count(1, b"f").1);
    b.hear(&a.expire(2, 10));
    a.pass();
    b.pass();
    // B has a field that A has not received.
    let later = b
        .at(12)
        .run::<Hash>(&hash::Op::Set {
            field: b"g",
            value: b"",
        })
        .1;
    assert_eq!(a.object.forget(time(11), 9), Forgotten::Empty);
    let (_, ops) = a.count(13, b"f");
    b.deliver(&ops, time(11));
    assert_eq!(b.object.len(), 2);
    a.deliver(&later, time(11));
    assert_eq!(a.object, b.object);
}

#[test]
fn what_shows_nothing_and_has_a_deadline_is_kept_until_then() {
    let [mut a, mut b] = Replica::two(Tag::SharedSet);
    let told = [a.add(1, b"x"), a.add(1, b"y"), a.expire(2, 100)].concat();
    b.hear(&told);
    let remove = |replica: &mut Replica, member| {
        let removed = replica.at(3).run::<Set>(&set::Op::Remove { member });
        removed.1
    };
    let (first, second) = (remove(&mut a, b"x"), remove(&mut b, b"y"));
    a.hear(&second);
    b.hear(&first);
    assert!(a.object.is_hidden() && a.object.deadline() == 100);
    // A replica that had forgotten it would not give a later member the deadline.
    assert_eq!(a.object.until(), time(100));
    assert_eq!(a.object.forget(time(99), 9), Forgotten::Kept);
    assert_eq!(a.object.forget(time(100), 9), Forgotten::Empty);
    let ops = b.add(4, b"z");
    assert_eq!((b.object.deadline(), b.object.len()), (0, 1));
    a.hear(&ops);
    assert_eq!((a.object.deadline(), a.object.len()), (0, 1));
}

impl Replica {
    fn remove(&mut self, ms: u64, member: &[u8]) -> Vec<u8> {
        self.at(ms).run::<Set>(&set::Op::Remove { member }).1
    }

    fn has(&self, member: &[u8]) -> bool {
        let state = SharedSet::of(&self.object).expect("a set");
        SharedSet::plain(state).contains(member)
    }
}

/// This many members lie in a table, and go with a deadline as a whole.
const MANY: u32 = 1_000;

/// All know that a first deadline has passed. A replica that forgets it sets a third one and does not know of a
/// second, which has passed elsewhere.
#[test]
fn what_went_with_a_deadline_stays_away_where_another_has_come_since() {
    for count in [1, MANY] {
        let [mut a, mut b] = Replica::two(Tag::SharedSet);
        let old: Vec<_> = (0..count).map(|n| format!("old {n}")).collect();
        for name in &old {
            b.hear(&a.add(1, name.as_bytes()));
        }
        b.hear(&a.expire(2, 10));
        a.pass();
        b.pass();
        assert_eq!(b.object.forget(time(10), usize::MAX), Forgotten::Empty);
        // B has not received this.
        let mut late = a.add(11, b"since");
        late.extend(a.expire(12, 20));
        a.pass();
        assert!(a.object.is_hidden());
        let mut third = b.add(13, b"anew");
        third.extend(b.expire(14, 90));
        // All that can arrive was made by replicas that knew of the first one.
        a.deliver(&third, time(11));
        b.deliver(&late, time(11));
        // The third did not know of the second, and so restores what went with it.
        assert!(a.has(b"since") && a.has(b"anew"));
        assert_eq!((a.object.len(), a.object.deadline()), (2, 90));
        assert_eq!(a.object, b.object);
    }
}

/// A table that has gone as a whole has what all know to have gone, and what may be restored.
#[test]
fn of_what_has_gone_as_a_whole_that_is_dropped_of_which_all_know() {
    let [mut a, mut b] = Replica::two(Tag::SharedSet);
    for n in 0..MANY {
        let ms = if n % 2 == 0 { 11 } else { 21 };
        a.add(ms, n.to_string().as_bytes());
    }
    b.expire(12, 15);
    b.pass();
    b.expire(22, 25);
    a.hear(&b.pass());
    assert!(a.object.is_hidden() && a.object.packed().is_none());
    let before = a.object.heap_bytes();
    assert_eq!(a.object.forget(time(14), usize::MAX), Forgotten::Kept);
    assert_eq!(a.object.heap_bytes(), before);
    a.object.forget(time(15), usize::MAX);
    // A replica that knew of none of them.
    let [mut other, _] = Replica::two(Tag::SharedSet);
    a.hear(&other.expire(40, 90));
    assert_eq!(a.object.len(), MANY as usize / 2);
    assert!(a.has(b"1") && !a.has(b"2"));
}

/// B has dropped an addition that went with a deadline, and so cannot remove it.
#[test]
fn an_addition_that_has_gone_is_dropped_beside_one_that_stays() {
    let [mut a, mut b] = Replica::two(Tag::SharedSet);
    b.hear(&[a.add(1, b"x"), a.expire(2, 10)].concat());
    a.pass();
    b.pass();
    assert_eq!(b.object.forget(time(10), 9), Forgotten::Empty);
    let anew = [b.add(12, b"x"), b.expire(13, 90)].concat();
    a.deliver(&anew, time(11));
    assert!(a.has(b"x") && b.has(b"x"));
    a.deliver(&b.remove(14, b"x"), time(11));
    assert!(!b.has(b"x"));
    assert!(!a.has(b"x"), "B does not know what A has added before");
    assert_eq!(a.object, b.object);
}
