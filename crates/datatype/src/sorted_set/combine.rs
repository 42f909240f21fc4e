//! Operations that stand for two [Claret §4.3]: identical reads, a wider range
//! for a narrower one [Claret §5.2], and changes after which a second one has
//! nothing left to do.

use super::order::Zone;
use super::{Element, Only, Op, Outcome, Reply};

pub(super) fn combine<'a>(pending: &Op<'a>, new: &Op<'a>) -> Option<Op<'a>> {
    let [wide, narrow] = [pending, new];
    match (wide, narrow) {
        (Op::Range { .. } | Op::Slice { .. } | Op::Lex { .. }, _) if answers(wide, narrow) => {
            Some(*wide)
        }
        (_, Op::Range { .. } | Op::Slice { .. } | Op::Lex { .. }) if answers(narrow, wide) => {
            Some(*narrow)
        }
        (Op::Score { .. } | Op::Rank { .. } | Op::Length | Op::Count { .. }, _) => {
            (pending == new).then_some(*pending)
        }
        (Op::Remove { .. }, Op::Remove { .. }) => (pending == new).then_some(*pending),
        (Op::RemoveRange { zone }, Op::RemoveRange { zone: other }) => {
            zone.covers(other).then_some(*pending)
        }
        (
            Op::Add {
                member,
                score,
                only,
            },
            Op::Add {
                member: other,
                score: next,
                only: too,
            },
        ) => {
            let idle = member == other && only == too && leaves_nothing(*only, *score, *next);
            idle.then_some(*pending)
        }
        _ => None,
    }
}

/// Whether an addition with the same conditions changes nothing after one.
fn leaves_nothing(only: Only, score: f64, next: f64) -> bool {
    score == next || only.new || only.greater && next < score || only.less && next > score
}

/// Whether the elements of a read tell the reply of another.
fn answers(wide: &Op<'_>, narrow: &Op<'_>) -> bool {
    match (wide, narrow) {
        (Op::Range { zone }, Op::Range { zone: other } | Op::Count { zone: other }) => {
            zone.covers(other)
        }
        (
            Op::Slice { start, stop },
            Op::Slice {
                start: from,
                stop: to,
            },
        ) => {
            wide == narrow
                || (*start < 0) == (*stop < 0)
                    && (*from < 0) == (*to < 0)
                    && (*start < 0) == (*from < 0)
                    && start <= from
                    && to <= stop
        }
        (
            Op::Lex { low, high },
            Op::Lex {
                low: from,
                high: to,
            },
        ) => low <= from && high.is_none_or(|high| to.is_some_and(|to| to <= high)),
        _ => false,
    }
}

pub(super) fn share(pending: &Op<'_>, new: &Op<'_>, combined: &Reply) -> (Reply, Reply) {
    let second = match combined {
        Reply::Add(_) => Reply::Add(Outcome::Kept),
        Reply::Remove(_) => Reply::Remove(false),
        Reply::Count(_) if matches!(new, Op::RemoveRange { .. }) => Reply::Count(0),
        Reply::Elements(_) => return (part(pending, new, combined), part(new, pending, combined)),
        same => same.clone(),
    };
    (combined.clone(), second)
}

/// The reply of `op`, of one that stands for it and `other`.
fn part(op: &Op<'_>, other: &Op<'_>, combined: &Reply) -> Reply {
    let Reply::Elements(all) = combined else {
        return combined.clone();
    };
    match op {
        Op::Count { zone } => Reply::Count(within(all, zone).count()),
        Op::Range { zone } => Reply::Elements(within(all, zone).cloned().collect()),
        Op::Lex { low, high } => {
            let within = all.iter().filter(|(member, _)| {
                **member >= **low && high.is_none_or(|high| **member < *high)
            });
            Reply::Elements(within.cloned().collect())
        }
        Op::Slice { start, stop } => {
            let (from, to) = match other {
                Op::Slice {
                    start: from,
                    stop: to,
                } if answers(other, op) => (*from, *to),
                _ => (*start, *stop),
            };
            // The same asked twice, perhaps from both ends: where it lies is not known.
            if (from, to) == (*start, *stop) {
                return combined.clone();
            }
            // The elements are those of positions `from` to `to`, as far as there are such:
            // some may be missing at the end from which positions do not count.
            let first = match from < 0 {
                true => to - all.len() as i64 + 1,
                false => from,
            };
            let wanted = |index: usize| (*start..=*stop).contains(&(first + index as i64));
            let within = all.iter().enumerate().filter(|(index, _)| wanted(*index));
            Reply::Elements(within.map(|(_, element)| element.clone()).collect())
        }
        _ => combined.clone(),
    }
}

fn within<'e>(all: &'e [Element], zone: &Zone<'e>) -> impl Iterator<Item = &'e Element> {
    let zone = *zone;
    all.iter()
        .filter(move |(member, score)| zone.has(*score, member))
}
