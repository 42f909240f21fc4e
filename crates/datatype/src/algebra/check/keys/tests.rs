//! The rule of keys, and mistakes planted in it.

use super::*;
use crate::algebra::check::TEST_ROUNDS;
use crate::key::Typed;

#[test]
fn pairs_of_all_types_are_as_stated() {
    for of in Type::ALL {
        let tally = pairs(*of, rule).unwrap_or_else(|failure| panic!("{failure}"));
        let all = [
            tally.independent,
            tally.orderable,
            tally.conflicting,
            tally.harmless,
        ];
        assert!(all.iter().all(|count| *count > 50), "{tally:?}");
        // Most of what it refuses has a reason that a small state shows.
        assert!(tally.missed * 2 < tally.orderable, "{tally:?}");
        assert!(tally.spurious < tally.conflicting, "{tally:?}");
    }
}

#[test]
fn groups_are_as_stated() {
    if let Err(failure) = groups(1, 4 * TEST_ROUNDS) {
        panic!("{failure}");
    }
}

#[track_caller]
fn found(of: Type, says: &str, rule: Rule) {
    let failure = pairs(of, rule).expect_err(says).to_string();
    assert!(failure.contains(says), "{failure}");
}

fn is_plain(held: &Held<'_>) -> bool {
    !held.shown && held.condition == Condition::None
}

/// Of a type, with nothing observed.
fn is_update(held: &Held<'_>) -> bool {
    is_plain(held) && matches!(held.op, Op::Typed(_)) && held.footprint().writes()
}

#[test]
fn a_type_s_rule_without_the_key_is_found() {
    found(Type::Set, "are not", |a, b, standing| {
        match (a.op, b.op) {
            // What the type says: other members, whatever becomes of the key.
            (Op::Typed(Typed::Set(x)), Op::Typed(Typed::Set(y)))
                if is_update(a) && is_update(b) && format!("{x:?}") != format!("{y:?}") =>
            {
                let held = |op, wanted| algebra::Held { op, wanted };
                let empty = crate::set::Set::empty();
                let view = crate::set::Set::view(&empty);
                let (x, y) = (held(x, a.wanted), held(y, b.wanted));
                if crate::set::Set::admits(&[x], &y, view) {
                    Relation::Independent
                } else {
                    Relation::Orderable
                }
            }
            _ => rule(a, b, standing),
        }
    });
}

#[test]
fn an_expiry_that_does_not_ask_for_the_key_is_found() {
    found(Type::Hash, "are not", |a, b, standing| {
        let expires = |held: &Held<'_>| is_plain(held) && matches!(held.op, Op::Expire { .. });
        if expires(a) && is_update(b) || expires(b) && is_update(a) {
            return Relation::Independent;
        }
        rule(a, b, standing)
    });
}

#[test]
fn counts_without_their_limits_are_found() {
    found(Type::Text, "are not", |a, b, standing| {
        let counts = |held: &Held<'_>| {
            let counts = matches!(
                held.op,
                Op::Typed(Typed::Text(crate::text::Op::Incr { .. }))
            );
            counts && !held.wanted && is_plain(held)
        };
        if counts(a) && counts(b) {
            return Relation::Independent;
        }
        rule(a, b, standing)
    });
}

#[test]
fn a_reply_that_is_forgotten_to_be_shown_is_found() {
    found(Type::List, "observed", |a, b, standing| {
        let forgotten = Held { shown: false, ..*a };
        rule(&forgotten, b, standing)
    });
}

/// What is held, without a condition of one kind.
fn without<'a>(held: &Held<'a>, forgotten: Condition) -> Held<'a> {
    let mut held = *held;
    if held.condition == forgotten {
        held.condition = Condition::None;
    }
    held
}

#[test]
fn conditions_that_are_forgotten_are_found() {
    let rules: [Rule; 2] = [
        |a, b, standing| rule(&without(a, Condition::Own), b, standing),
        |a, b, standing| rule(&without(a, Condition::Version), b, standing),
    ];
    for rule in rules {
        found(Type::Set, "observed", rule);
    }
}
