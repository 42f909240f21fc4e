//! Members that were cut out of the tree and are still in the table: no reader may
//! see them, in the set and in copies of it.

use super::large::Large;
use super::state::State;
use super::*;
use crate::algebra::DataType;
use std::collections::{BTreeMap, BTreeSet};

type Model = BTreeMap<Vec<u8>, f64>;

const MEMBERS: u64 = 600;

fn member(n: u64) -> Vec<u8> {
    format!("member {n}").into_bytes()
}

fn apply(state: &mut State, op: &Op<'_>) -> Reply {
    SortedSet::apply(state, op, &Tuning::default()).reply
}

fn add(state: &mut State, member: &[u8], score: f64) -> Reply {
    let only = Only::default();
    apply(
        state,
        &Op::Add {
            member,
            score,
            only,
        },
    )
}

fn large(state: &State) -> &Large {
    match state {
        State::Large(large) => large,
        other => panic!("not large: {other:?}"),
    }
}

/// Looks at the set in every way there is.
fn same(state: &State, model: &Model, rng: &mut Rng) {
    let view = SortedSet::view(state);
    assert_eq!(view.len(), model.len());
    for n in 0..MEMBERS {
        let member = member(n);
        assert_eq!(view.score(&member), model.get(&member).copied());
    }
    let mut sorted: Vec<_> = model.iter().map(|(m, s)| (*s, m.clone())).collect();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap());
    for (index, (score, member)) in sorted.iter().enumerate() {
        assert_eq!(view.rank(member), Some((index, *score)));
    }
    let mut all = Vec::new();
    view.each(0..view.len(), false, |member, score| {
        all.push((score, member.to_vec()));
    });
    assert_eq!(all, sorted);
    let (mut cursor, mut seen) = (0, BTreeSet::new());
    loop {
        cursor = view.scan(cursor, 10, &mut |member, score| {
            assert_eq!(model.get(member), Some(&score), "a shadow was shown");
            assert!(seen.insert(member.to_vec()), "shown twice");
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(seen.len(), model.len());
    if let Some((member, score)) = view.random(rng) {
        assert_eq!(model.get(member), Some(&score));
    }
    if let State::Large(large) = state {
        large.check();
    }
}

/// Of a set with shadows, chunks tell all that is in it and no more.
fn reloaded(state: &State) -> State {
    let (mut loaded, mut chunk, mut at) = (SortedSet::empty(), Vec::new(), Some(0));
    while let Some(from) = at {
        chunk.clear();
        at = SortedSet::chunk(SortedSet::view(state), from, 300, &mut chunk);
        SortedSet::extend(&mut loaded, &chunk, &Tuning::default()).unwrap();
    }
    loaded
}

/// A range of neighbours in the order, or of scores.
fn remove_range(state: &mut State, model: &mut Model, rng: &mut Rng) {
    let low = rng.below(200) as f64;
    let high = low + rng.below(200) as f64;
    let zone = Zone::scores(low, rng.below(2) == 0, high, false);
    let inside: Vec<_> = model
        .iter()
        .filter(|(member, score)| zone.has(**score, member))
        .map(|(member, _)| member.clone())
        .collect();
    let reply = apply(state, &Op::RemoveRange { zone });
    assert_eq!(reply, Reply::Count(inside.len()));
    for member in inside {
        model.remove(&member);
    }
}

#[test]
fn nobody_sees_shadows_whatever_happens_in_between() {
    let mut rng = Rng::new(11);
    let (mut most, mut swept) = (0, 0);
    for _ in 0..30 {
        let (mut state, mut model) = (SortedSet::empty(), Model::new());
        let mut copies: Vec<(State, Model)> = Vec::new();
        for step in 0..1_500 {
            let member = member(rng.below(MEMBERS));
            let score = rng.below(200) as f64;
            let before = model.get(&member).copied();
            match rng.below(100) {
                0..=69 => {
                    let reply = add(&mut state, &member, score);
                    let outcome = match before {
                        None => Outcome::Added,
                        Some(old) if old == score => Outcome::Kept,
                        Some(_) => Outcome::Updated,
                    };
                    assert_eq!(reply, Reply::Add(outcome));
                    model.insert(member, score);
                }
                70..=79 => {
                    let op = Op::Remove { member: &member };
                    assert_eq!(apply(&mut state, &op), Reply::Remove(before.is_some()));
                    model.remove(&member);
                }
                80..=84 => {
                    let sum = before.unwrap_or(0.0) + 3.0;
                    let op = Op::Increment {
                        member: &member,
                        by: 3.0,
                        only: Only::default(),
                    };
                    assert_eq!(apply(&mut state, &op), Reply::Score(Some(sum)));
                    model.insert(member, sum);
                }
                85..=88 => remove_range(&mut state, &mut model, &mut rng),
                89..=92 => {
                    let budget = rng.below(30) as usize;
                    let mut left = budget;
                    SortedSet::sweep(&mut state, &mut left);
                    swept += budget - left;
                }
                // Either the copy or the original is used further: neither may notice the other.
                93 if copies.len() < 4 => copies.push((state.clone(), model.clone())),
                94 if !copies.is_empty() => {
                    let at = rng.below(copies.len() as u64) as usize;
                    std::mem::swap(&mut state, &mut copies[at].0);
                    std::mem::swap(&mut model, &mut copies[at].1);
                }
                _ => {}
            }
            if let State::Large(large) = &state {
                most = most.max(large.shadows());
            }
            if step % 100 == 99 {
                same(&state, &model, &mut rng);
                for (copy, model) in &copies {
                    same(copy, model, &mut rng);
                }
            }
        }
        same(&reloaded(&state), &model, &mut rng);
    }
    assert!(most > 100 && swept > 500, "{most} shadows, {swept} swept");
}

fn full(count: u64) -> State {
    let mut state = SortedSet::empty();
    for n in 0..count {
        add(&mut state, &member(n), n as f64);
    }
    state
}

#[test]
fn sweeping_in_steps_leaves_nothing_behind() {
    let mut state = full(20_000);
    let bytes = SortedSet::heap_bytes(&state);
    let zone = Zone::scores(100.0, false, 20_000.0, false);
    apply(&mut state, &Op::RemoveRange { zone });
    assert!(large(&state).shadows() > 19_000, "all were swept at once");
    let mut steps = 0;
    loop {
        let mut left = 100;
        steps += 1;
        if !SortedSet::sweep(&mut state, &mut left) {
            break;
        }
        assert_eq!(left, 0);
    }
    assert!(steps >= 198, "{steps} steps");
    large(&state).check();
    assert_eq!(large(&state).shadows(), 0);
    assert!(SortedSet::heap_bytes(&state) < bytes / 20);
    let mut left = 5;
    assert!(!SortedSet::sweep(&mut state, &mut left));
    assert_eq!(left, 5);
}

#[test]
fn shadows_become_fewer_while_members_are_added() {
    let mut state = full(3_000);
    let zone = Zone::scores(1.0, false, 3_000.0, false);
    apply(&mut state, &Op::RemoveRange { zone });
    let before = large(&state).shadows();
    for n in 0..(before as u64).div_ceil(2) {
        add(&mut state, format!("other {n}").as_bytes(), -1.0);
    }
    assert_eq!(large(&state).shadows(), 0);
    large(&state).check();
}

#[test]
fn whoever_comes_back_with_the_same_score_stays() {
    let mut state = full(1_000);
    let zone = Zone::scores(1.0, false, 1_000.0, false);
    apply(&mut state, &Op::RemoveRange { zone });
    assert_eq!(add(&mut state, &member(7), 7.0), Reply::Add(Outcome::Added));
    assert_eq!(add(&mut state, &member(7), 7.0), Reply::Add(Outcome::Kept));
    assert_eq!(add(&mut state, &member(8), 9.5), Reply::Add(Outcome::Added));
    while SortedSet::sweep(&mut state, &mut 50) {}
    let view = SortedSet::view(&state);
    assert_eq!(view.len(), 3);
    assert_eq!(view.score(&member(7)), Some(7.0));
    assert_eq!(view.score(&member(8)), Some(9.5));
    assert_eq!(view.score(&member(9)), None);
    large(&state).check();
}
