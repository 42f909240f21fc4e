//! One operation: what it answers, what it does, and whether its type's
//! tables know it.

use super::{Lines, canonical};
use crate::algebra::{Algebra, Kind, Operation, Tuning};
use rufous_base::rng::Rng;

/// How many operations are drawn to see whether every kind is among them.
const DRAWS: usize = 5_000;

pub(super) fn check<T: Algebra>(
    state: &T::State,
    op: &T::Op<'_>,
    tuning: &Tuning,
) -> Result<(), String> {
    let before = canonical::<T>(state);
    let lines = |what: &str| {
        Lines::new(what)
            .add("state", super::shown(&before))
            .add("operation", format!("{op:?}"))
    };
    let reply = T::execute(T::view(state), op);
    if canonical::<T>(state) != before {
        return lines("execute changes the state")
            .state::<T>("afterwards", state)
            .fail();
    }
    let again = T::execute(T::view(state), op);
    if reply != again {
        return lines("execute does not answer the same again")
            .add("replies", format!("{reply:?}, {again:?}"))
            .fail();
    }
    let (mut applied, mut committed) = (state.clone(), state.clone());
    let outcome = T::apply(&mut applied, op, tuning);
    T::commit(&mut committed, op, tuning);
    if canonical::<T>(state) != before {
        return lines("a change of a clone changes what it is a clone of")
            .state::<T>("afterwards", state)
            .fail();
    }
    if outcome.reply != reply {
        return lines("apply does not answer what execute does")
            .add("execute", format!("{reply:?}"))
            .add("apply", format!("{:?}", outcome.reply))
            .fail();
    }
    let (applied, committed) = (canonical::<T>(&applied), canonical::<T>(&committed));
    if applied != committed {
        return lines("apply does not leave the state that commit leaves")
            .add("apply", super::shown(&applied))
            .add("commit", super::shown(&committed))
            .fail();
    }
    if outcome.changed != (applied != before) {
        return lines("apply is wrong about whether it changed anything")
            .add("changed", outcome.changed)
            .add("afterwards", super::shown(&applied))
            .fail();
    }
    if outcome.changed && op.is_read() {
        return lines("a read changes the state")
            .add("afterwards", super::shown(&applied))
            .fail();
    }
    Ok(())
}

/// Kinds and rules name every kind once, and samples cover them.
pub(super) fn tables<T: Algebra>(seed: u64) -> Result<(), String> {
    for (at, (kind, _)) in <T::Kind>::ALL.iter().enumerate() {
        if <T::Kind>::ALL[..at].iter().any(|(known, _)| known == kind) {
            return Lines::new("KINDS names a kind twice")
                .add("kind", format!("{kind:?}"))
                .fail();
        }
    }
    let rules = T::rules();
    for (at, rule) in rules.iter().enumerate() {
        let (a, b) = rule.pair;
        let same = |other: &(T::Kind, T::Kind)| *other == (a, b) || *other == (b, a);
        if rules[..at].iter().any(|earlier| same(&earlier.pair)) {
            return Lines::new("rules() has a pair twice")
                .add("pair", format!("{a:?}, {b:?}"))
                .fail();
        }
    }
    let mut rng = Rng::new(seed);
    let mut missing: Vec<T::Kind> = <T::Kind>::ALL.iter().map(|(kind, _)| *kind).collect();
    for _ in 0..DRAWS {
        let op = T::sample_op(&mut rng);
        let kind = op.kind();
        if !<T::Kind>::ALL.iter().any(|(known, _)| *known == kind) {
            return Lines::new("KINDS lacks a kind")
                .add("kind", format!("{kind:?}"))
                .fail();
        }
        missing.retain(|known| *known != kind);
    }
    if missing.is_empty() {
        return Ok(());
    }
    Lines::new("sample_op never gives some kinds")
        .add("kinds", format!("{missing:?}"))
        .fail()
}
