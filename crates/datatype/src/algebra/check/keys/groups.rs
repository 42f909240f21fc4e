//! Random groups of operations on keys, as holders let them in.

use super::super::{Failure, Lines, each_round, group, shown};
use crate::algebra::{self, Algebra, Tuning};
use crate::key::access::{Access, Mode, What};
use crate::key::sample;
use crate::key::{Held, Holders, Key, Keys, Op, Relation, Standing, run};
use rufous_base::rng::Rng;

/// Tries random groups, each operation of which the holders before it let in.
pub fn groups(seed: u64, rounds: u64) -> Result<(), Failure> {
    each_round::<Keys>(seed, rounds, |rng| {
        independent_group(rng)?;
        observed_group(rng)?;
        applied_group(rng)
    })
}

const MOST: usize = 4;

fn admitted(
    state: &Key,
    rng: &mut Rng,
    first: Option<Held<'static>>,
    lets: fn(Relation) -> bool,
) -> Vec<Held<'static>> {
    let standing = Standing::of(state);
    let (mut holders, mut all) = (Holders::default(), Vec::new());
    for number in 0..12 * MOST {
        let op = sample::op_for(state, rng);
        let next = Held {
            wanted: rng.below(2) == 0,
            ..Held::new(op)
        };
        let next = first.filter(|_| number == 0).unwrap_or(next);
        let footprint = next.footprint();
        if lets(holders.relation(&footprint, Some(&standing))) {
            holders.hold(&footprint);
            all.push(next);
        }
        if all.len() == MOST {
            break;
        }
    }
    all
}

/// Every order of each part of it; and what was independent stays so when a part of it is done.
fn independent_group(rng: &mut Rng) -> Result<(), String> {
    let state = sample::state(rng);
    let all = admitted(&state, rng, None, |of| of == Relation::Independent);
    let held = all.iter().map(|held| algebra::Held {
        op: held.op,
        wanted: held.wanted,
    });
    let group: Vec<algebra::Held<Op<'static>>> = held.collect();
    let tuning = Tuning::default();
    if let Some((one, other)) = group::difference::<Keys>(&state, &group, &tuning) {
        return group::report::<Keys>(&state, &group, [&one, &other], &tuning);
    }
    let Some((first, rest)) = all.split_first() else {
        return Ok(());
    };
    let mut after = state.clone();
    Keys::apply(&mut after, &first.op, &tuning);
    let (standing, mut holders) = (Standing::of(&after), Holders::default());
    for held in rest {
        let footprint = held.footprint();
        if holders.relation(&footprint, Some(&standing)) != Relation::Independent {
            return Lines::new("operations are not independent any more when one of them is done")
                .add("state", shown(&state.canonical()))
                .add("done", format!("{first:?}"))
                .add("others", format!("{rest:?}"))
                .fail();
        }
        holders.hold(&footprint);
    }
    Ok(())
}

/// What is said to be independent of operations that were applied could have come before any of the last ones.
fn applied_group(rng: &mut Rng) -> Result<(), String> {
    let start = sample::state(rng);
    let (mut state, mut holders, mut done) = (start.clone(), Holders::default(), Vec::new());
    let tuning = Tuning::default();
    for _ in 0..=rng.below(MOST as u64) {
        let next = sample_quiet(&state, rng);
        holders.hold(&next.footprint());
        let reply = run(&mut state, &next.op, &tuning);
        done.push((next, reply));
    }
    let new = sample_quiet(&state, rng);
    if holders.relation_after(&new.footprint(), &Standing::of(&state)) != Relation::Independent {
        return Ok(());
    }
    let last = run(&mut state, &new.op, &tuning);
    for place in 0..done.len() {
        let mut other = start.clone();
        let mut alike = true;
        for (at, (held, reply)) in done.iter().enumerate() {
            if at == place {
                alike &= run(&mut other, &new.op, &tuning) == last || !new.wanted;
            }
            alike &= run(&mut other, &held.op, &tuning) == *reply || !held.wanted;
        }
        if !alike || other != state {
            return Lines::new("an operation is not independent of what was applied before it")
                .add("state", shown(&start.canonical()))
                .add("applied", format!("{done:?}"))
                .add("operation", format!("{new:?}"))
                .add("place", place)
                .fail();
        }
    }
    Ok(())
}

/// Counts more often than others: theirs is the rule that looks at the state.
fn sample_quiet(state: &Key, rng: &mut Rng) -> Held<'static> {
    let mut next = Held::quiet(sample::op_for(state, rng));
    for _ in 0..40 {
        let counts = |what: &Access| matches!(what.what, What::At(_, Mode::Count(_)));
        if next.footprint().accesses().iter().any(counts) {
            break;
        }
        next = Held::quiet(sample::op_for(state, rng));
    }
    if rng.below(3) == 0 {
        next = Held::new(sample::op_for(state, rng));
    }
    next
}

/// Whatever is let in beside a reply that was shown does not change it, in any order and number.
fn observed_group(rng: &mut Rng) -> Result<(), String> {
    let state = sample::state(rng);
    let first = Held {
        shown: true,
        ..Held::new(sample::op_for(&state, rng))
    };
    let lets = |of| of != Relation::Conflicting;
    let all = admitted(&state, rng, Some(first), lets);
    let reply = Keys::execute(&state, &first.op);
    let mut open = vec![(state.clone(), Vec::<usize>::new())];
    while let Some((before, done)) = open.pop() {
        if Keys::execute(&before, &first.op) != reply {
            return Lines::new("a reply that was shown is changed by what was let in beside it")
                .add("state", shown(&state.canonical()))
                .add("shown", format!("{first:?}"))
                .add("others", format!("{all:?}"))
                .add("order", format!("{done:?}"))
                .fail();
        }
        for next in (1..all.len()).filter(|next| !done.contains(next)) {
            let mut after = before.clone();
            Keys::apply(&mut after, &all[next].op, &Tuning::default());
            open.push((after, [done.clone(), vec![next]].concat()));
        }
    }
    Ok(())
}
