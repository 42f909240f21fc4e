//! Tests of concurrent values.

use super::*;
use crate::laws::{self, Draw};
use crate::{Dot, MultiValue};

fn stamp(time: u64, replica: u16) -> Stamp {
    Stamp::new(time, replica)
}

fn siblings(draw: &mut Draw) -> Siblings {
    let mut siblings = Siblings::default();
    for time in 1..=draw.below(4) {
        let stamp = stamp(time, draw.below(3) as u16);
        let value = (draw.below(4) > 0).then(|| vec![b'a' + time as u8]);
        let nothing = Seen::default();
        let context = (draw.below(2) == 0).then_some(&nothing);
        siblings.write(stamp, value, context);
    }
    siblings
}

/// Also incremented, with deadlines, and expired.
fn all_kinds(draw: &mut Draw) -> Siblings {
    let mut siblings = siblings(draw);
    for time in 1..=draw.below(4) {
        let live = siblings.live().nth(draw.below(3) as usize);
        let at = live.map_or(Stamp::ZERO, |sibling| sibling.stamp);
        match draw.below(4) {
            // Some of it after the earlier deadline has passed.
            0 => {
                let late = draw.below(2) * time_of(1);
                let seen = Seen::from(siblings.seen().clone());
                let context = (draw.below(2) == 0).then_some(&seen);
                siblings.set_deadline(stamp(3 + time + late, 1), draw.below(3), context);
            }
            1 => siblings.expire(1),
            _ => {
                let by = draw.below(9) as i64 - 4;
                siblings.add(at, draw.below(3) as u16, by).unwrap();
            }
        }
    }
    siblings
}

#[test]
fn the_laws_hold() {
    laws::check::<Siblings>(60, 1, siblings).unwrap();
    laws::check::<Siblings>(70, 2, all_kinds).unwrap();
    laws::check_code(900, 1, all_kinds).unwrap();
}

#[test]
fn siblings_are_a_register_in_causal_order() {
    let dot = |stamp: Stamp| Dot {
        replica: stamp.replica,
        number: stamp.time,
    };
    laws::check_model::<Siblings, MultiValue<Vec<u8>>>(150, 1, siblings, |siblings| {
        let live = siblings.live();
        let store = live.map(|sibling| (dot(sibling.stamp), sibling.value.clone()));
        let seen = siblings.seen().stamps();
        let seen = seen.flat_map(|last| (1..=last.time).map(move |time| Stamp { time, ..last }));
        MultiValue::new(store.collect(), seen.map(dot))
    })
    .unwrap();
}

fn values(siblings: &Siblings) -> Vec<&[u8]> {
    siblings.live().map(|sibling| &sibling.value[..]).collect()
}

#[test]
fn what_is_added_to_one_write_adds_up_and_goes_with_it() {
    let (mut a, mut b) = (Siblings::default(), Siblings::default());
    a.add(Stamp::ZERO, 1, 5).unwrap();
    b.add(Stamp::ZERO, 2, -2).unwrap();
    assert!(a.merge(&b) && !a.merge(&b));
    let text = |siblings: &Siblings| {
        let texts = siblings.live().map(|sibling| sibling.text().into_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(text(&a), [b"3"]);
    // The first write replaces the missing write, whatever its writer.
    let nothing = Seen::default();
    a.write(stamp(1, 1), Some(b"10".to_vec()), Some(&nothing));
    b.merge(&a);
    assert_eq!(text(&b), [b"10"]);
    a.add(stamp(1, 1), 1, 1).unwrap();
    b.add(stamp(1, 1), 2, 1).unwrap();
    assert!(a.merge(&b));
    assert_eq!(text(&a), [b"12"]);
    let bytes = a.encoded();
    assert_eq!(texts(&bytes).collect::<Vec<_>>(), [b"12"]);
    assert_eq!((len(&bytes), seen_of(&bytes).as_ref()), (1, Ok(a.seen())));
    b.write(
        stamp(2, 2),
        Some(b"0".to_vec()),
        Some(&a.seen().clone().into()),
    );
    a.add(stamp(1, 1), 1, 1).unwrap();
    a.merge(&b);
    assert_eq!(text(&a), [b"0"]);
}

#[test]
fn deadlines_merge_and_what_has_expired_does_not_come_back() {
    let mut a = Siblings::default();
    let nothing = Seen::default();
    a.write(stamp(1, 1), Some(b"a".to_vec()), Some(&nothing));
    a.write(stamp(2, 2), Some(b"b".to_vec()), Some(&nothing));
    a.set_deadline_of(stamp(1, 1), 50);
    assert_eq!(
        (a.next_deadline(), next_deadline(&a.encoded())),
        (Some(50), Some(50))
    );
    let mut b = a.clone();
    a.set_deadline(stamp(3, 1), 100, None);
    b.set_deadline(stamp(4, 2), 0, None);
    assert_eq!(a.newest(), stamp(3, 1));
    let old = a.clone();
    let mut gone = a.clone();
    a.merge(&b);
    assert_eq!(a.next_deadline(), None, "the later of the two");
    assert_eq!(gone.next_deadline(), Some(100));
    gone.expire(99);
    assert_eq!(gone.live().count(), 2);
    gone.expire(100);
    assert!(gone.live().count() == 0 && !gone.is_bottom());
    assert_eq!((len(&gone.encoded()), gone.next_deadline()), (0, None));
    assert_eq!(gone.until(), time_of(100));
    assert!(!gone.merge(&old), "it has expired");
    // The replica that extended it did not know.
    assert!(!a.clone().merge(&gone) && gone.merge(&a));
    assert_eq!(gone, a);
}

#[test]
fn what_is_over_by_the_clock_of_stamps_is_not_extended() {
    let mut a = Siblings::default();
    a.write(stamp(1, 1), Some(b"a".to_vec()), None);
    a.set_deadline(stamp(2, 1), 7, None);
    let mut late = a.clone();
    let time = time_of(7);
    a.set_deadline(stamp(time - 1, 1), 0, None);
    late.set_deadline(stamp(time, 1), 0, None);
    assert_eq!((a.live().count(), late.live().count()), (1, 0));
    // No replica can extend it from here on.
    assert!(late.until() >= time);
    // A write that has seen it replaces it.
    let seen = Seen::from(late.seen().clone());
    late.write(stamp(time + 1, 1), Some(b"new".to_vec()), Some(&seen));
    assert!(!late.merge(&a));
    assert_eq!(values(&late), [b"new"]);
}

#[test]
fn a_count_that_never_was_written_lives_its_time_everywhere() {
    let (mut a, mut b) = (Siblings::default(), Siblings::default());
    a.add(Stamp::ZERO, 1, 7).unwrap();
    b.add(Stamp::ZERO, 2, 5).unwrap();
    a.set_deadline(stamp(5, 1), 10, None);
    b.set_deadline(stamp(6, 2), 20, None);
    a.merge(&b);
    assert_eq!(a.next_deadline(), Some(20));
    assert_eq!(Siblings::decode(&a.encoded()), Ok(a.clone()));
    let before = a.clone();
    a.expire(20);
    assert!(!a.merge(&before) && a.live().count() == 0);
    assert_eq!(Siblings::decode(&a.encoded()), Ok(a.clone()));
    a.write(stamp(30, 1), Some(b"1".to_vec()), None);
    assert!(!a.merge(&before));
    assert_eq!(values(&a), [b"1"]);
}

#[test]
fn who_gives_a_deadline_gives_it_to_what_he_has_seen() {
    let nothing = Seen::default();
    let mut all = Siblings::default();
    all.write(stamp(1, 1), Some(b"a".to_vec()), Some(&nothing));
    let seen = Seen::from(all.seen().clone());
    all.write(stamp(2, 2), Some(b"b".to_vec()), Some(&nothing));
    assert!(!all.set_deadline(stamp(3, 1), 5, Some(&nothing)));
    assert!(all.set_deadline(stamp(3, 1), 5, Some(&seen)));
    all.expire(5);
    assert_eq!(values(&all), [b"b"]);
    assert!(!all.set_deadline(stamp(4, 1), 9, Some(&seen)));
    assert!(all.set_deadline(stamp(4, 1), 9, None));
}

#[test]
fn what_has_expired_makes_room_first() {
    let nothing = Seen::default();
    let mut all = Siblings::default();
    for time in 1..=MAX_SIBLINGS as u64 {
        all.write(stamp(time, 1), Some(vec![0]), Some(&nothing));
    }
    all.set_deadline_of(stamp(20, 1), 1);
    all.expire(1);
    all.write(stamp(99, 1), Some(vec![0]), Some(&nothing));
    assert_eq!(all.live().count(), MAX_SIBLINGS);
    assert_eq!(all.live().last().map(|dot| dot.stamp.time), Some(1));
}

#[test]
fn deleting_nothing_changes_nothing() {
    let mut siblings = Siblings::default();
    let nothing = Seen::default();
    assert!(!siblings.write(stamp(1, 1), None, Some(&nothing)));
    assert!(siblings.is_bottom());
    siblings.write(stamp(2, 1), Some(b"a".to_vec()), Some(&nothing));
    assert!(!siblings.write(stamp(3, 1), None, Some(&nothing)));
    let seen = Seen::from(siblings.seen().clone());
    assert!(siblings.write(stamp(4, 1), None, Some(&seen)));
    assert!(values(&siblings).is_empty());
}

#[test]
fn what_has_not_seen_each_other_stays_beside_each_other() {
    let (mut a, mut b) = (Siblings::default(), Siblings::default());
    a.write(stamp(1, 1), Some(b"a".to_vec()), None);
    b.write(stamp(2, 2), Some(b"b".to_vec()), None);
    assert!(a.merge(&b) && b.merge(&a));
    assert_eq!(values(&a), [b"b", b"a"]);
    assert_eq!(a, b);
    let context = Seen::from(a.seen().clone());
    a.write(stamp(3, 1), Some(b"both".to_vec()), Some(&context));
    b.write(
        stamp(3, 2),
        Some(b"meanwhile".to_vec()),
        Some(&Seen::default()),
    );
    assert!(a.merge(&b));
    assert_eq!(values(&a), [&b"meanwhile"[..], b"both"]);
}

#[test]
fn what_a_write_has_seen_elsewhere_does_not_come_back() {
    let mut far = Siblings::default();
    far.write(stamp(1, 1), Some(b"old".to_vec()), None);
    let mut near = Siblings::default();
    near.write(
        stamp(2, 2),
        Some(b"new".to_vec()),
        Some(&far.seen().clone().into()),
    );
    assert!(!near.merge(&far));
    assert_eq!(values(&near), [b"new"]);
    near.write(stamp(3, 2), None, None);
    assert!(values(&near).is_empty() && near.seen().newest() == stamp(3, 2));
    // A client cannot have seen what is later than its own write.
    let mut liar = VersionVector::default();
    liar.raise(stamp(9, 1));
    near.write(stamp(4, 2), None, Some(&liar.into()));
    far.write(stamp(8, 1), Some(b"late".to_vec()), None);
    near.merge(&far);
    assert_eq!(values(&near), [b"late"]);
}

#[test]
fn a_write_leaves_a_bounded_number() {
    let mut all = Siblings::default();
    for time in 1..100 {
        all.write(stamp(time, 1), Some(vec![0]), Some(&Seen::default()));
    }
    assert_eq!(all.live().count(), MAX_SIBLINGS);
    assert_eq!(all.live().last().map(|dot| dot.stamp.time), Some(68));
}

#[test]
fn golden_bytes() {
    let mut siblings = Siblings::default();
    siblings.write(stamp(7, 2), Some(b"a".to_vec()), None);
    let dot = [0, 0, 0, 0, 0, 0, 0, 7, 0, 2, 0, 0];
    let seen = [1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0];
    assert_eq!(
        siblings.encoded(),
        [&seen[..], &[1], &dot, &[0, 1, b'a']].concat()
    );
}

#[test]
fn what_has_expired_has_no_text_and_had_a_deadline() {
    let mut gone = Siblings::default();
    gone.write(stamp(7, 2), Some(b"a".to_vec()), None);
    gone.set_deadline(stamp(8, 2), 5, None);
    let shown = gone.encoded();
    gone.expire(5);
    let bytes = gone.encoded();
    assert!(bytes.len() < shown.len() && texts(&bytes).count() == 0);
    assert_eq!(Siblings::decode(&bytes), Ok(gone));
    let form = 1 + 12 + 1 + 12;
    assert_eq!((shown[form], bytes[form]), (DEADLINE, DEADLINE + EXPIRED));
    let with = |at: usize, byte: u8, of: &[u8]| {
        let mut odd = of.to_vec();
        odd[at] = byte;
        Siblings::decode(&odd)
    };
    assert!(with(form, DEADLINE + EXPIRED, &shown).is_err(), "a text");
    assert!(with(bytes.len() - 1, 0, &bytes).is_err(), "no deadline");
    assert!(with(form, 8, &shown).is_err());
}

#[test]
fn who_has_written_has_not_seen_what_was_written_there_before() {
    let nothing = Seen::default();
    let mut here = Siblings::default();
    here.write(stamp(1, 1), Some(b"theirs".to_vec()), Some(&nothing));
    here.write(stamp(2, 1), Some(b"mine".to_vec()), Some(&nothing));
    let mine = here.seen_by_writer(stamp(2, 1), &nothing);
    // At a replica that has received neither, nothing counts as seen.
    let mut far = Siblings::default();
    far.write(stamp(3, 2), Some(b"far".to_vec()), Some(&mine));
    let mut merged = here.clone();
    merged.merge(&far);
    assert_eq!(values(&merged), [&b"far"[..], b"mine", b"theirs"]);
    here.write(stamp(3, 1), Some(b"again".to_vec()), Some(&mine));
    assert_eq!(values(&here), [&b"again"[..], b"theirs"]);
    // Alone it has seen everything.
    let all = Seen::from(here.seen().clone());
    here.write(stamp(4, 1), Some(b"all".to_vec()), Some(&all));
    let mine = here.seen_by_writer(stamp(4, 1), &all);
    assert_eq!(mine, here.seen().clone().into());
    assert_eq!(Seen::decode(&mine.encoded()), Ok(mine));
}
