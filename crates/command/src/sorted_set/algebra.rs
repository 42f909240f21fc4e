//! Unions, intersections and differences of several sets.

use super::numbered;
use super::rangeof::put;
use super::reply::elements;
use super::source::{Members, Source};
use crate::options::{integer, is};
use crate::{Ctx, Failure, Reply};
use rufous_base::Args;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::float;
use rufous_datatype::sorted_set::{Builder, SortedSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Union,
    Inter,
    Diff,
}

#[derive(Clone, Copy, Debug, Default)]
enum Aggregate {
    #[default]
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// Of a score so far and another one; if that is no number, it is neither
    /// less nor more, and makes a sum 0.
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Aggregate::Sum => number(a + b),
            Aggregate::Min => {
                if b < a {
                    b
                } else {
                    a
                }
            }
            Aggregate::Max => {
                if b > a {
                    b
                } else {
                    a
                }
            }
        }
    }
}

/// What is no number, such as the sum of both infinities, counts as 0.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

struct Options {
    /// One for each key.
    weights: Vec<f64>,
    aggregate: Aggregate,
    scores: bool,
}

impl Options {
    fn parse(
        args: &Args<'_>,
        mut at: usize,
        keys: usize,
        operation: Operation,
        store: bool,
    ) -> Result<Options, Failure> {
        let mut options = Options {
            weights: vec![1.0; keys],
            aggregate: Aggregate::Sum,
            scores: false,
        };
        let weighed = operation != Operation::Diff;
        while at < args.len() {
            let word = args.get(at);
            if weighed && is(word, "WEIGHTS") && args.len() - at > keys {
                for (weight, index) in options.weights.iter_mut().zip(at + 1..) {
                    *weight = float::parse_f64(args.get(index))
                        .ok_or(Failure::from("ERR weight value is not a float"))?;
                }
                at += keys;
            } else if weighed && is(word, "AGGREGATE") && at + 1 < args.len() {
                options.aggregate = match args.get(at + 1) {
                    name if is(name, "SUM") => Aggregate::Sum,
                    name if is(name, "MIN") => Aggregate::Min,
                    name if is(name, "MAX") => Aggregate::Max,
                    _ => return Err(Failure::SYNTAX),
                };
                at += 1;
            } else if !store && is(word, "WITHSCORES") {
                options.scores = true;
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }
}

/// Runs a command that replies with what results.
pub(super) fn read(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    (command, operation): (&str, Operation),
) -> Result<(), Failure> {
    let keys = numbered::keys(args, 1, command)?;
    let sources = Source::all(ctx, args, keys.clone())?;
    let options = Options::parse(args, keys.end, keys.len(), operation, false)?;
    let tuning = *ctx.shard.tuning();
    let result = combine(operation, &sources, &options, Builder::new(&tuning));
    let state = result.finish(&tuning);
    let view = SortedSet::view(&state);
    elements(reply, view, 0..view.len(), false, options.scores);
    Ok(())
}

/// Runs a command that stores what results at its first key.
pub(super) fn store(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    (command, operation): (&str, Operation),
) -> Result<(), Failure> {
    let keys = numbered::keys(args, 2, command)?;
    let sources = Source::all(ctx, args, keys.clone())?;
    let options = Options::parse(args, keys.end, keys.len(), operation, true)?;
    let builder = Builder::new(ctx.shard.tuning());
    let result = combine(operation, &sources, &options, builder);
    let target = ctx.first_key(args.get(1));
    reply.count(put(ctx, target, result));
    Ok(())
}

fn combine(
    operation: Operation,
    sources: &[Source],
    options: &Options,
    mut result: Builder,
) -> Builder {
    let members = sources.iter().map(Source::members);
    let mut all: Vec<(Members<'_>, f64)> = members.zip(options.weights.iter().copied()).collect();
    if operation == Operation::Diff {
        difference(&all, &mut result);
        return result;
    }
    // The smallest first, as Redis has it: this is the order in which scores
    // are added up.
    all.sort_by_key(|(members, _)| members.len());
    match operation {
        Operation::Inter => intersection(&all, options.aggregate, &mut result),
        _ => {
            for (members, weight) in all {
                members.each(|member, score| {
                    let score = number(score * weight);
                    result.change(member, |old| {
                        old.map_or(score, |old| options.aggregate.of(old, score))
                    });
                    true
                });
            }
        }
    }
    result
}

fn intersection(all: &[(Members<'_>, f64)], aggregate: Aggregate, result: &mut Builder) {
    let Some(((smallest, weight), others)) = all.split_first() else {
        return;
    };
    smallest.each(|member, score| {
        let mut total = number(score * weight);
        for (other, weight) in others {
            match other.score(member) {
                Some(score) => total = aggregate.of(total, score * weight),
                None => return true,
            }
        }
        result.set(member, total);
        true
    });
}

fn difference(all: &[(Members<'_>, f64)], result: &mut Builder) {
    let Some(((first, _), others)) = all.split_first() else {
        return;
    };
    first.each(|member, score| {
        if others
            .iter()
            .all(|(other, _)| other.score(member).is_none())
        {
            result.set(member, score);
        }
        true
    });
}

/// ZINTERCARD.
pub(super) fn count_common(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let keys = numbered::keys(args, 1, "zintercard")?;
    let sources = Source::all(ctx, args, keys.clone())?;
    let limit = match args.len() - keys.end {
        0 => 0,
        2 if is(args.get(keys.end), "LIMIT") => limit(args.get(keys.end + 1))?,
        _ => return Err(Failure::SYNTAX),
    };
    let mut all: Vec<Members<'_>> = sources.iter().map(Source::members).collect();
    all.sort_by_key(|members| members.len());
    let mut count = 0;
    if let Some((smallest, others)) = all.split_first() {
        smallest.each(|member, _| {
            count += usize::from(others.iter().all(|other| other.score(member).is_some()));
            count != limit || limit == 0
        });
    }
    reply.count(count);
    Ok(())
}

/// How many are counted at most; 0 for no limit.
fn limit(arg: &[u8]) -> Result<usize, Failure> {
    let refused = Failure::from("ERR LIMIT can't be negative");
    let limit = integer(arg).map_err(|_| refused.clone())?;
    usize::try_from(limit).map_err(|_| refused)
}
