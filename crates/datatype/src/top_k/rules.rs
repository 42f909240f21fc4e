//! Which adds do not reach what a read shows.
//!
//! All conditions look at the state before any of the operations, and hold for
//! several adds together if they hold for each: each add leaves in place what
//! the others are compared with. Only the score of a member that others may
//! push down needs a count of them, in [`leave_room`].

use super::{Add, Kind, Op, TopK, View, is_below};
use crate::algebra::{Held, Rule, When};
use crate::declared::rules;

rules! {
    pub(super) static RULES of TopK:
        Add, Add: When::Always;
        Add, Max: "x ranks no higher than the first of S, or the maximum is not wanted", |add, read, view| {
            unseen(add, read, |add| {
                view.at(0)
                    .is_some_and(|top| !is_below(top, (add.member, add.score)))
            })
        };
        Add, Range: "x ranks below all that is shown, or is above it already and stays there, and neither k nor the length of S moves its ends; or the range is not wanted", |add, read, view| {
            unseen(add, read, |add| match read.op {
                Op::Range { start, stop } => misses_range(add, start, stop, view),
                _ => false,
            })
        };
        Add, Score: "x ≠ y, and y is not in S or has room below it; or x = y has that score or more in S; or the score is not wanted", |add, read, view| {
            unseen(add, read, |add| match read.op {
                Op::Score { member } if member == add.member => keeps(add, view),
                Op::Score { member } => view.position(member).is_none_or(|at| {
                    at + usize::from(pushes(add, at, view)) < limit(add, view)
                }),
                _ => false,
            })
        };
        Add, Position: "x ≠ y, and y is not in S or x does not come to rank above it; or x = y has that score or more in S; or the position is not wanted", |add, read, view| {
            unseen(add, read, |add| match read.op {
                Op::Position { member } if member == add.member => keeps(add, view),
                Op::Position { member } => view
                    .position(member)
                    .is_none_or(|at| !pushes(add, at, view) && at < limit(add, view)),
                _ => false,
            })
        };
        Add, Length: "S is full or x is in S, and k is not less than its length; or the length is not wanted", |add, read, view| unseen(add, read, |add| keeps_length(add, view));
}

fn unseen(add: &Held<Op<'_>>, read: &Held<Op<'_>>, misses: impl FnOnce(&Add<'_>) -> bool) -> bool {
    match &add.op {
        Op::Add(add) => !read.wanted || misses(add),
        _ => false,
    }
}

/// How many members there may be after the add.
fn limit(add: &Add<'_>, view: View<'_>) -> usize {
    view.limit().min(add.k as usize)
}

/// Whether the add leaves its own member as it is.
fn keeps(add: &Add<'_>, view: View<'_>) -> bool {
    let stays = |at| view.score(add.member) >= Some(add.score) && at < limit(add, view);
    view.absorbs(add) || view.position(add.member).is_some_and(stays)
}

fn keeps_length(add: &Add<'_>, view: View<'_>) -> bool {
    let (len, limit) = (view.len(), limit(add, view));
    len > 0 && limit >= len && (limit == len || view.score(add.member).is_some())
}

/// Whether the add puts a member above the one at this rank that is not above
/// it in the state.
fn pushes(add: &Add<'_>, at: usize, view: View<'_>) -> bool {
    let comes_above = view
        .at(at)
        .is_some_and(|there| is_below(there, (add.member, add.score)));
    comes_above && view.position(add.member).is_none_or(|own| own > at)
}

fn misses_range(add: &Add<'_>, start: i64, stop: i64, view: View<'_>) -> bool {
    // Nothing is shown of any state.
    let never = (start < 0) == (stop < 0) && start > stop;
    if never || view.absorbs(add) {
        return true;
    }
    let (len, limit) = (view.len(), limit(add, view));
    let beyond = |rank: i64, len: usize| usize::try_from(rank).is_ok_and(|rank| rank >= len);
    if beyond(start, len) && beyond(start, limit) {
        return true;
    }
    // Where the end of the ranking is an end of the range, or what a rank counts from.
    let sees_length = start < 0 || stop < 0 || beyond(stop, len);
    if sees_length && !keeps_length(add, view) {
        return false;
    }
    let span = view.span(start, stop);
    let Some(last) = span.end.checked_sub(1).filter(|_| !span.is_empty()) else {
        return true;
    };
    if last >= limit {
        return false;
    }
    let below = view
        .at(last)
        .is_some_and(|there| is_below((add.member, add.score), there));
    let kept = view.score(add.member) >= Some(add.score);
    let above = view
        .position(add.member)
        .is_some_and(|own| own < span.start);
    below || kept || above
}

/// Whether every member whose score is wanted stays among the first, with all
/// that may come above it.
pub(super) fn leave_room(held: &[Held<Op<'_>>], new: &Held<Op<'_>>, view: View<'_>) -> bool {
    let all = || held.iter().chain([new]);
    let adds = || {
        all().filter_map(|held| match &held.op {
            Op::Add(add) => Some(add),
            _ => None,
        })
    };
    let least = adds().map(|add| limit(add, view)).min();
    let Some(least) = least else {
        return true;
    };
    all().filter(|held| held.wanted).all(|held| match held.op {
        Op::Score { member } => view
            .position(member)
            .is_none_or(|at| at + adds().filter(|add| pushes(add, at, view)).count() < least),
        _ => true,
    })
}
