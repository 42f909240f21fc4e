//! Keys: every pair of operations in small states, and random groups that holders let in.
//!
//! Of each pair that is said to be independent, both orders are run in all states: no key, keys of the type with
//! one element and more, and a key of another type, each with and without a deadline. Where an operation's reply was
//! shown, or a condition checked, and another one is not said to conflict, that one may not change it. A rule that says
//! too little is no mistake: such pairs are counted and listed as missed.

mod groups;
#[cfg(test)]
mod tests;

use super::{Failure, Lines, failure, shown};
use crate::algebra::{self, Algebra, Tuning};
use crate::key::sample::{self, small_keys};
use crate::key::{
    Condition, Held, Holders, Key, Keys, Op, Relation, Reply, Standing, Type, holds, run,
};
pub use groups::groups;
use std::collections::BTreeMap;

/// The rule that is tried: of two operations, and of a state if one is given.
pub type Rule = fn(&Held<'_>, &Held<'_>, Option<&Standing>) -> Relation;

/// What holders say.
pub fn rule(held: &Held<'_>, new: &Held<'_>, standing: Option<&Standing>) -> Relation {
    let mut holders = Holders::default();
    holders.hold(&held.footprint());
    holders.relation(&new.footprint(), standing)
}

/// How many pairs there are of each relation, of operations of one type and of keys.
#[derive(Clone, Debug)]
pub struct Tally {
    pub of: Type,
    /// With nothing observed or promised.
    pub independent: u64,
    pub orderable: u64,
    /// Orderable ones that are independent in all states that were tried.
    pub missed: u64,
    /// One was shown, or has a condition, and the other may not come before.
    pub conflicting: u64,
    /// Conflicting ones of which none changed anything in the states that were tried.
    pub spurious: u64,
    /// Pairs with a shown reply or a condition that do not conflict.
    pub harmless: u64,
    /// An example of each missed pair of kinds.
    pub examples: BTreeMap<String, String>,
}

impl Tally {
    fn new(of: Type) -> Self {
        Self {
            of,
            independent: 0,
            orderable: 0,
            missed: 0,
            conflicting: 0,
            spurious: 0,
            harmless: 0,
            examples: BTreeMap::new(),
        }
    }
}

/// Tries the rule on all pairs of one type.
pub fn pairs(of: Type, rule: Rule) -> Result<Tally, Failure> {
    tried(of, rule).map_err(|what| failure::<Keys>(None, what))
}

fn tried(of: Type, rule: Rule) -> Result<Tally, String> {
    let states = small_keys(of).into_iter();
    let states: Vec<(Key, Standing)> = states
        .map(|key| (key.clone(), Standing::of(&key)))
        .collect();
    let first = |op: Op<'static>| Tried {
        op,
        done: states.iter().map(|(state, _)| first(&op, state)).collect(),
    };
    let ops: Vec<Tried> = sample::ops(of).into_iter().map(first).collect();
    let mut tally = Tally::new(of);
    for (at, a) in ops.iter().enumerate() {
        for b in &ops[..=at] {
            orders(a, b, &states, (rule, &mut tally))?;
        }
        for b in &ops {
            observed(a, b, &states, (rule, &mut tally))?;
        }
    }
    Ok(tally)
}

/// An operation with what it does first in each state.
struct Tried {
    op: Op<'static>,
    done: Vec<Done>,
}

struct Done {
    reply: Reply,
    state: Key,
    changed: bool,
}

fn first(op: &Op<'static>, state: &Key) -> Done {
    let mut after = state.clone();
    let applied = Keys::apply(&mut after, op, &Tuning::default());
    Done {
        reply: applied.reply,
        state: after,
        changed: applied.changed,
    }
}

/// The reply of an operation after another one, and what they leave.
fn second(done: &Done, op: &Op<'static>) -> (Reply, Key) {
    let mut state = done.state.clone();
    let reply = run(&mut state, op, &Tuning::default());
    (reply, state)
}

const WANTED: [[bool; 2]; 4] = [[true, true], [true, false], [false, true], [false, false]];

/// Both orders of two operations with nothing observed.
fn orders(
    a: &Tried,
    b: &Tried,
    states: &[(Key, Standing)],
    (rule, tally): (Rule, &mut Tally),
) -> Result<(), String> {
    // In each state: whether the same is left, and whether each reply is the same.
    let alike = a.done.iter().zip(&b.done).map(|(of_a, of_b)| {
        let ((late_b, one), (late_a, other)) = (second(of_a, &b.op), second(of_b, &a.op));
        (one == other, [of_a.reply == late_a, of_b.reply == late_b])
    });
    let alike: Vec<(bool, [bool; 2])> = alike.collect();
    for wanted in WANTED {
        let held = |op: &Op<'static>, wanted| Held {
            wanted,
            ..Held::new(*op)
        };
        let pair = [held(&a.op, wanted[0]), held(&b.op, wanted[1])];
        let relation = rule(&pair[0], &pair[1], None);
        if relation != rule(&pair[1], &pair[0], None) {
            return pair_lines("a relation depends on the order of the two", &pair).fail();
        }
        let mut always = true;
        for ((state, standing), (same, replies)) in states.iter().zip(&alike) {
            let told = wanted.iter().zip(replies);
            let commute = *same && told.clone().all(|(wanted, alike)| !wanted || *alike);
            always &= commute;
            let here = rule(&pair[0], &pair[1], Some(standing));
            if !commute && (relation == Relation::Independent || here == Relation::Independent) {
                return pair_lines("operations that are said to be independent are not", &pair)
                    .add("state", shown(&state.canonical()))
                    .add("", format!("{state:?}"))
                    .fail();
            }
        }
        match relation {
            Relation::Independent => tally.independent += 1,
            Relation::Orderable => tally.orderable += 1,
            Relation::Conflicting => {
                return pair_lines("a conflict with nothing observed", &pair).fail();
            }
        }
        if always && relation != Relation::Independent {
            tally.missed += 1;
            let kinds = [a, b].map(|of| format!("{:?}", algebra::Operation::kind(&of.op)));
            let example = tally.examples.entry(kinds.join(", "));
            example.or_insert_with(|| format!("{:?}, {:?}", pair[0], pair[1]));
        }
    }
    Ok(())
}

fn pair_lines(what: &str, pair: &[Held<'_>; 2]) -> Lines {
    let lines = Lines::new(what);
    let lines = lines.add("operation 1", format!("{:?}", pair[0]));
    lines.add("operation 2", format!("{:?}", pair[1]))
}

/// What was observed of one operation, and another that may come before.
fn observed(
    a: &Tried,
    b: &Tried,
    states: &[(Key, Standing)],
    (rule, tally): (Rule, &mut Tally),
) -> Result<(), String> {
    let first = Held {
        shown: true,
        ..Held::new(a.op)
    };
    let with = |condition| Held {
        condition,
        ..Held::quiet(a.op)
    };
    let ways = [first, with(Condition::Own), with(Condition::Version)];
    for (way, first) in ways.into_iter().enumerate() {
        let differs = states.iter().zip(&a.done).zip(&b.done);
        let differs = differs.map(|(((state, _), of_a), of_b)| match way {
            0 => of_a.reply != Keys::execute(&of_b.state, &a.op),
            1 => holds(&a.op, state) != holds(&a.op, &of_b.state),
            _ => of_b.changed,
        });
        let differs: Vec<bool> = differs.collect();
        for second in [Held::new(b.op), Held::quiet(b.op)] {
            let pair = [first, second];
            let relation = rule(&first, &second, None);
            for ((state, standing), differs) in states.iter().zip(&differs) {
                let here = rule(&first, &second, Some(standing));
                let lets = relation != Relation::Conflicting || here != Relation::Conflicting;
                if *differs && lets {
                    let what = "an operation changes what was observed of another, and is not said to conflict";
                    return pair_lines(what, &pair)
                        .add("state", shown(&state.canonical()))
                        .add("", format!("{state:?}"))
                        .fail();
                }
            }
            match (relation == Relation::Conflicting, differs.contains(&true)) {
                (true, true) => tally.conflicting += 1,
                (true, false) => tally.spurious += 1,
                (false, _) => tally.harmless += 1,
            }
        }
    }
    Ok(())
}
