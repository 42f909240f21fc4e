//! What the checker does not know: the order, shapes and sizes.

use super::order::{rank_of, score_of};
use super::*;
use crate::algebra::{Algebra, DataType};

fn add(state: &mut State, member: &[u8], score: f64) {
    let op = Op::Add {
        member,
        score,
        only: Only::default(),
    };
    SortedSet::apply(state, &op, &Tuning::default());
}

#[test]
fn scores_as_bytes_are_in_the_order_of_scores() {
    let scores = [
        f64::NEG_INFINITY,
        f64::MIN,
        -1.5,
        -1.0,
        -f64::MIN_POSITIVE,
        0.0,
        5e-324,
        1.0,
        1.5,
        f64::MAX,
        f64::INFINITY,
    ];
    for pair in scores.windows(2) {
        assert!(rank_of(pair[0]) < rank_of(pair[1]), "{pair:?}");
    }
    for score in scores {
        assert_eq!(score_of(rank_of(score)), score);
    }
    assert_eq!(rank_of(-0.0), rank_of(0.0));
}

#[test]
fn equal_scores_are_ordered_by_bytes_and_large_sets_look_the_same() {
    for count in [5_u32, 1_000] {
        let mut state = SortedSet::empty();
        for n in 0..count {
            add(
                &mut state,
                format!("{:04}", n * 7 % count).as_bytes(),
                f64::from(n % 3),
            );
        }
        let view = SortedSet::view(&state);
        let mut expected: Vec<(f64, String)> = (0..count)
            .map(|n| (f64::from(n % 3), format!("{:04}", n * 7 % count)))
            .collect();
        expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let mut forth = Vec::new();
        view.each(0..view.len(), false, |member, score| {
            forth.push((score, String::from_utf8_lossy(member).into_owned()));
        });
        assert_eq!(forth, expected);
        let mut back = Vec::new();
        view.each(1..view.len(), true, |member, score| {
            back.push((score, String::from_utf8_lossy(member).into_owned()));
        });
        expected.remove(0);
        expected.reverse();
        assert_eq!(back, expected);
        assert_eq!(SortedSet::packed(&state).is_some(), count == 5);
    }
}

#[test]
fn a_set_that_is_emptied_at_once_can_be_filled_again() {
    let mut state = SortedSet::empty();
    for n in 0..1_000_u32 {
        add(&mut state, &n.to_be_bytes(), 1.0);
    }
    let all = Op::RemoveRange { zone: Zone::ALL };
    let applied = SortedSet::apply(&mut state, &all, &Tuning::default());
    assert_eq!(applied.reply, Reply::Count(1_000));
    assert!(SortedSet::is_empty(SortedSet::view(&state)));
    assert!(SortedSet::heap_bytes(&state) > 10_000);
    add(&mut state, b"again", 2.0);
    assert_eq!(SortedSet::len(SortedSet::view(&state)), 1);
    assert_eq!(SortedSet::heap_bytes(&state), 0);
}

#[test]
fn a_built_set_is_like_one_of_additions() {
    for count in [3_u32, 500] {
        let tuning = Tuning::default();
        let (mut state, mut builder) = (SortedSet::empty(), Builder::new(&tuning));
        for n in 0..count {
            let (member, score) = (n.to_le_bytes(), f64::from(n ^ 5));
            add(&mut state, &member, score);
            builder.change(&member, |_| -1.0);
            builder.change(&member, |old| old.map_or(0.0, |old| old + score + 1.0));
        }
        builder.set(b"gone", 1.0);
        builder.remove(b"gone");
        let built = builder.finish(&tuning);
        let canonical = |state| SortedSet::canonical(SortedSet::view(state));
        assert_eq!(canonical(&built), canonical(&state));
        assert_eq!(SortedSet::packed(&built), SortedSet::packed(&state));
    }
}
