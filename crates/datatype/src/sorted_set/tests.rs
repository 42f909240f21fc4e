//! What the checker does not know: the order, shapes and sizes.

use super::score::{rank_of, score_of};
use super::*;
use crate::algebra::{Algebra, DataType};
use std::collections::BTreeMap;

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

/// A sorted set as plainly as can be.
#[derive(Default)]
struct Model(BTreeMap<Vec<u8>, f64>);

impl Model {
    fn sorted(&self) -> Vec<(f64, Vec<u8>)> {
        let mut all: Vec<_> = self.0.iter().map(|(m, s)| (*s, m.clone())).collect();
        all.sort_by(|a, b| a.partial_cmp(b).unwrap());
        all
    }
}

#[test]
fn a_large_set_does_what_a_plain_one_does() {
    let mut rng = Rng::new(7);
    let tuning = Tuning::default();
    let (mut state, mut model) = (SortedSet::empty(), Model::default());
    for round in 0..30_000 {
        let member = format!("member {}", rng.below(4_000)).into_bytes();
        let score = rng.below(500) as f64 - 250.0;
        let op = match rng.below(20) {
            0..=10 => Op::Add {
                member: &member,
                score,
                only: Only::default(),
            },
            11..=14 => Op::Increment {
                member: &member,
                by: score / 4.0,
                only: Only::default(),
            },
            _ => Op::Remove { member: &member },
        };
        let before = model.0.get(&member).copied();
        let expected = match op {
            Op::Add { .. } => {
                model.0.insert(member.clone(), score);
                Reply::Add(match before {
                    None => Outcome::Added,
                    Some(old) if old == score => Outcome::Kept,
                    Some(_) => Outcome::Updated,
                })
            }
            Op::Increment { by, .. } => {
                let sum = before.unwrap_or(0.0) + by;
                model.0.insert(member.clone(), sum);
                Reply::Score(Some(sum))
            }
            _ => Reply::Remove(model.0.remove(&member).is_some()),
        };
        let applied = SortedSet::apply(&mut state, &op, &tuning);
        assert_eq!(applied.reply, expected, "{op:?}");
        if round % 1_000 == 999 {
            same(&mut state, &mut model, score);
        }
    }
}

/// Compares everything, and removes those around a score.
fn same(state: &mut State, model: &mut Model, score: f64) {
    let sorted = model.sorted();
    let view = state.view();
    let mut all = Vec::new();
    view.each(0..view.len(), false, |member, score| {
        all.push((score, member.to_vec()));
    });
    assert_eq!(all, sorted);
    for (index, (score, member)) in sorted.iter().enumerate().step_by(97) {
        assert_eq!(view.rank(member), Some((index, *score)));
        assert_eq!(view.at(index), Some((&member[..], *score)));
    }
    let zone = Zone::scores(score, true, score + 20.0, false);
    let within = |of: f64| of > score && of <= score + 20.0;
    let count = sorted.iter().filter(|(of, _)| within(*of)).count();
    assert_eq!(view.span(&zone).len(), count);
    let op = Op::RemoveRange { zone };
    let applied = SortedSet::apply(state, &op, &Tuning::default());
    assert_eq!(applied.reply, Reply::Count(count));
    model.0.retain(|_, of| !within(*of));
    assert_eq!(state.view().len(), model.0.len());
    if let State::Large(large) = state {
        large.check();
    }
}
