//! Which operations are independent.
//!
//! Every rule stays true whatever else it admits: of operations on one member
//! only those are admitted together that leave it as it is, or lead to one of the
//! scores that were checked; a member that moves to another score never enters a
//! zone that a held read depends on.

use super::order::{Cut, Zone};
use super::score::rank_of;
use super::step::Step;
use super::view::View;
use super::{Kind, Only, Op, SortedSet};
use crate::algebra::{Held, Rule, When};

const fn rule(first: Kind, second: Kind, text: &'static str) -> Rule<SortedSet> {
    Rule {
        pair: (first, second),
        when: When::If {
            text,
            holds: independent,
        },
    }
}

const SAME_MEMBER: &str = "x ≠ y, or neither changes S, or one adds only new members and x ∈ S, \
    or both have the same conditions and score, or both raise only, or both lower only, and \
    no reply is wanted";
const INCREMENTS: &str =
    "x ≠ y, or neither changes S, or no reply is wanted and all scores are small whole numbers";
const REMOVED: &str = "x ≠ y, or neither changes S, or no reply is wanted";
const MIXED: &str = "x ≠ y, or neither changes S, or one adds only new members and x ∈ S";
const APART: &str = "x is neither before nor afterwards in the zone, or the reply is not wanted";
const SCORE: &str = "x ≠ y, or x stays as it is, or the score is not wanted";
const RANK: &str =
    "x ≠ y and x stays on its side of y, or x stays as it is, or the rank is not wanted";
const LENGTH: &str = "x ∈ S stays, or x ∉ S is not added, or the length is not wanted";
const COUNT: &str = "x stays within the zone or outside of it, or the count is not wanted";
const SLICE: &str = "both ends count from the same end of S and x stays beyond them, or the elements are not wanted";
const LEX: &str = "x is not between the bounds or stays as it is, or the elements are not wanted";
const FREE: &str = "nothing of S is in the removed zone that is read, or the reply is not wanted";

use Kind::{Add, Count, Increment, Length, Lex, Range, Rank, Remove, RemoveRange, Score, Slice};

pub(super) static RULES: [Rule<SortedSet>; 38] = [
    rule(Add, Add, SAME_MEMBER),
    rule(Add, Increment, MIXED),
    rule(Add, Remove, "x ≠ y, or neither changes S"),
    rule(Increment, Increment, INCREMENTS),
    rule(Increment, Remove, "x ≠ y, or neither changes S"),
    rule(Remove, Remove, REMOVED),
    rule(
        Add,
        RemoveRange,
        "x is neither before nor afterwards in the zone",
    ),
    rule(
        Increment,
        RemoveRange,
        "x is neither before nor afterwards in the zone",
    ),
    rule(Remove, RemoveRange, "x ∉ zone, or no reply is wanted"),
    rule(
        RemoveRange,
        RemoveRange,
        "nothing of S is in both zones, or no reply is wanted",
    ),
    rule(Add, Score, SCORE),
    rule(Add, Rank, RANK),
    rule(Add, Length, LENGTH),
    rule(Add, Count, COUNT),
    rule(Add, Range, APART),
    rule(Add, Slice, SLICE),
    rule(Add, Lex, LEX),
    rule(Increment, Score, SCORE),
    rule(Increment, Rank, RANK),
    rule(Increment, Length, LENGTH),
    rule(Increment, Count, COUNT),
    rule(Increment, Range, APART),
    rule(Increment, Slice, SLICE),
    rule(Increment, Lex, LEX),
    rule(Remove, Score, SCORE),
    rule(Remove, Rank, RANK),
    rule(Remove, Length, LENGTH),
    rule(Remove, Count, COUNT),
    rule(Remove, Range, APART),
    rule(Remove, Slice, SLICE),
    rule(Remove, Lex, LEX),
    rule(RemoveRange, Score, "y ∉ zone, or the score is not wanted"),
    rule(RemoveRange, Rank, FREE),
    rule(RemoveRange, Length, FREE),
    rule(RemoveRange, Count, FREE),
    rule(RemoveRange, Range, FREE),
    rule(RemoveRange, Slice, FREE),
    rule(RemoveRange, Lex, FREE),
];

fn independent(a: &Held<Op<'_>>, b: &Held<Op<'_>>, view: View<'_>) -> bool {
    match (Step::of(&a.op), Step::of(&b.op)) {
        (Some((x, first)), Some((y, second))) => {
            x != y || steps([(first, a.wanted), (second, b.wanted)], view.score(x))
        }
        (Some(step), None) => step_and_other(step, a.wanted, b, view),
        (None, Some(step)) => step_and_other(step, b.wanted, a, view),
        (None, None) => match (&a.op, &b.op) {
            (Op::RemoveRange { zone }, Op::RemoveRange { zone: other }) => {
                !a.wanted && !b.wanted || is_free(&zone.common(other), view)
            }
            (Op::RemoveRange { zone }, _) => !b.wanted || keeps(zone, &b.op, view),
            (_, Op::RemoveRange { zone }) => !a.wanted || keeps(zone, &a.op, view),
            _ => true,
        },
    }
}

fn is_free(zone: &Zone<'_>, view: View<'_>) -> bool {
    view.span(zone).is_empty()
}

/// Two steps with one member, and whether their replies are wanted.
fn steps([(a, a_wanted), (b, b_wanted)]: [(Step, bool); 2], old: Option<f64>) -> bool {
    if a.is_still(old) && b.is_still(old) {
        return true;
    }
    let idle = |step: Step| old.is_some() && step.only().is_some_and(|only| only.new);
    if idle(a) && !matches!(b, Step::Remove) || idle(b) && !matches!(a, Step::Remove) {
        return true;
    }
    if a_wanted || b_wanted {
        return false;
    }
    match (a, b) {
        (Step::Remove, Step::Remove) => true,
        (
            Step::Add { score, only },
            Step::Add {
                score: other,
                only: too,
            },
        ) => {
            let one_way = only.greater != only.less && !only.new;
            only == too && (rank_of(score) == rank_of(other) || one_way)
        }
        (
            Step::Increment { by, only },
            Step::Increment {
                by: other,
                only: too,
            },
        ) => {
            let free = only.bits() == 0 && too.bits() == 0;
            let start = old.unwrap_or(0.0);
            free && is_whole(start, MOST_WHOLE) && [by, other].iter().all(|by| is_whole(*by, STEP))
        }
        _ => false,
    }
}

/// From scores up to this, as many steps as are ever held at once stay below
/// 2^53, up to where sums are exact and thus the same in every order.
const MOST_WHOLE: f64 = (1_u64 << 52) as f64;
const STEP: f64 = (1_u64 << 32) as f64;

fn is_whole(score: f64, most: f64) -> bool {
    score.abs() <= most && score.trunc() == score
}

impl Step {
    fn only(self) -> Option<Only> {
        match self {
            Step::Add { only, .. } | Step::Increment { only, .. } => Some(only),
            Step::Remove => None,
        }
    }
}

/// Where a step may take its member, by itself or along with others of its kind
/// that are held too.
enum Path {
    /// From one score, or none, to another.
    Jump(Option<f64>, Option<f64>),
    /// Anywhere in here, while it stays in the set.
    Within(Zone<'static>),
    Anywhere,
}

fn path(step: Step, wanted: bool, old: Option<f64>) -> Path {
    match (step, old) {
        // Others like it may be let in, and move the member further.
        (Step::Increment { by, only }, _) if !wanted && only.bits() == 0 && by != 0.0 => {
            let Some(old) = old.filter(|old| old.is_finite()) else {
                return Path::Anywhere;
            };
            Path::Within(match by > 0.0 {
                true => Zone {
                    low: Cut::before_score(old),
                    high: Cut::END,
                },
                false => Zone {
                    low: Cut::START,
                    high: Cut::behind_score(old),
                },
            })
        }
        _ => Path::Jump(old, step.from(old).score),
    }
}

impl Path {
    /// Whether the member is never in the zone.
    fn avoids(&self, member: &[u8], zone: &Zone<'_>) -> bool {
        let out = |score: &Option<f64>| score.is_none_or(|score| !zone.has(score, member));
        match self {
            Path::Jump(old, new) => out(old) && out(new),
            Path::Within(within) => zone.common(within).is_void(),
            Path::Anywhere => zone.is_void(),
        }
    }

    /// Whether the member is in the zone always or never.
    fn keeps_side(&self, member: &[u8], zone: &Zone<'_>) -> bool {
        let has = |score: Option<f64>| score.is_some_and(|score| zone.has(score, member));
        match self {
            Path::Jump(old, new) => has(*old) == has(*new),
            Path::Within(within) => zone.covers(within) || self.avoids(member, zone),
            Path::Anywhere => self.avoids(member, zone),
        }
    }
}

/// A step with a member, and a read or the removal of a zone.
fn step_and_other(
    (member, step): (&[u8], Step),
    wanted: bool,
    other: &Held<Op<'_>>,
    view: View<'_>,
) -> bool {
    let old = view.score(member);
    let path = path(step, wanted, old);
    let still = step.is_still(old);
    if let Op::RemoveRange { zone } = &other.op {
        let removes = matches!(step, Step::Remove);
        return removes && !wanted && !other.wanted
            || old.is_none() && still
            || path.avoids(member, zone);
    }
    if !other.wanted {
        return true;
    }
    match &other.op {
        Op::Score { member: asked } => *asked != member || still,
        Op::Rank { member: asked, .. } if *asked == member => still,
        Op::Rank {
            member: asked,
            from_top,
        } => match view.score(asked) {
            None => true,
            Some(score) => path.keeps_side(member, &side(score, asked, *from_top)),
        },
        Op::Length => still || old.is_some() && !matches!(step, Step::Remove),
        Op::Count { zone } => still || path.keeps_side(member, zone),
        Op::Range { zone } => still || path.avoids(member, zone),
        Op::Slice { start, stop } => {
            still || slice(*start, *stop, view).is_none_or(|zone| path.avoids(member, &zone))
        }
        Op::Lex { low, high } => still || member < *low || high.is_some_and(|high| member >= high),
        _ => false,
    }
}

/// What is below an item, or above it.
fn side(score: f64, member: &[u8], from_top: bool) -> Zone<'_> {
    match from_top {
        false => Zone {
            low: Cut::START,
            high: Cut::before(score, member),
        },
        true => Zone {
            low: Cut::behind(score, member),
            high: Cut::END,
        },
    }
}

/// The zone whose elements a slice depends on; nothing if it is always empty.
fn slice(start: i64, stop: i64, view: View<'_>) -> Option<Zone<'_>> {
    if (start < 0) == (stop < 0) && start > stop {
        return None;
    }
    let at = |index: i64| view.at(usize::try_from(index).ok()?);
    let len = view.len() as i64;
    let edge = match (start < 0, stop < 0) {
        (false, false) => at(stop).map(|(member, score)| Zone {
            low: Cut::START,
            high: Cut::behind(score, member),
        }),
        (true, true) => at(len.saturating_add(start)).map(|(member, score)| Zone {
            low: Cut::before(score, member),
            high: Cut::END,
        }),
        _ => None,
    };
    Some(edge.unwrap_or(Zone::ALL))
}

/// Whether a read, whose reply is wanted, sees nothing of a zone's removal.
fn keeps(zone: &Zone<'_>, read: &Op<'_>, view: View<'_>) -> bool {
    let free = |other: &Zone<'_>| is_free(&zone.common(other), view);
    match read {
        Op::Score { member } => !held(zone, member, view),
        Op::Rank { member, from_top } => match view.score(member) {
            None => true,
            Some(score) => !held(zone, member, view) && free(&side(score, member, *from_top)),
        },
        Op::Count { zone: other } | Op::Range { zone: other } => free(other),
        Op::Slice { start, stop } => slice(*start, *stop, view).is_none_or(|zone| free(&zone)),
        Op::Lex { low, high } => lex_free(zone, low, *high, view),
        _ => is_free(zone, view),
    }
}

fn held(zone: &Zone<'_>, member: &[u8], view: View<'_>) -> bool {
    view.score(member)
        .is_some_and(|score| zone.has(score, member))
}

/// Of zones with more elements than this, none is looked at.
const FEW: usize = 16;

fn lex_free(zone: &Zone<'_>, low: &[u8], high: Option<&[u8]>, view: View<'_>) -> bool {
    let span = view.span(zone);
    let mut free = span.len() <= FEW;
    if free {
        view.each(span, false, |member, _| {
            free &= member < low || high.is_some_and(|high| member >= high);
        });
    }
    free
}
