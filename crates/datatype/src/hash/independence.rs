//! Which operations on a hash are independent.
//!
//! Pairs say it all but for sums: an operation that changes a field is
//! independent only of those that would leave the same (sets of one value,
//! quiet deletes), of other increments, and of what its change cannot
//! be told from. So all that is admitted on a field and changes it is of one
//! sort, and what was true of each pair stays true of all.

use super::{Hash, Kind, Op, View, field, float_sum, sum};
use crate::algebra::{Held, Rule, When};
use crate::declared::rules;
use crate::integer::parse_i64;

type HeldOp<'a> = Held<Op<'a>>;

fn apart(a: &HeldOp<'_>, b: &HeldOp<'_>) -> bool {
    field(&a.op) != field(&b.op)
}

fn quiet(a: &HeldOp<'_>, b: &HeldOp<'_>) -> bool {
    !a.wanted && !b.wanted
}

fn current<'v>(held: &HeldOp<'_>, view: View<'v>) -> Option<&'v [u8]> {
    field(&held.op).and_then(|field| view.get(field))
}

fn present(held: &HeldOp<'_>, view: View<'_>) -> bool {
    current(held, view).is_some()
}

/// Whether the operation, by itself, leaves everything as it is.
fn keeps(held: &HeldOp<'_>, view: View<'_>) -> bool {
    let current = current(held, view);
    match held.op {
        Op::Set { value, .. } => current == Some(value),
        Op::SetNew { .. } => current.is_some(),
        Op::Delete { .. } => current.is_none(),
        Op::Increment { by, .. } => match sum(current, by) {
            Ok(_) => by == 0 && current.is_some(),
            Err(_) => true,
        },
        Op::IncrementFloat { by, .. } => match float_sum(current, by) {
            Ok(sum) => current == Some(&sum),
            Err(_) => true,
        },
        _ => true,
    }
}

/// Whether the value would be as long as it is; nothing has no length.
fn keeps_length(held: &HeldOp<'_>, view: View<'_>) -> bool {
    let len = current(held, view).map_or(0, <[u8]>::len);
    match held.op {
        Op::Set { value, .. } => value.len() == len,
        Op::SetNew { value, .. } => present(held, view) || value.is_empty(),
        Op::Delete { .. } => len == 0,
        _ => keeps(held, view),
    }
}

fn same_value(a: &HeldOp<'_>, b: &HeldOp<'_>) -> bool {
    let value = |held: &HeldOp<'_>| match held.op {
        Op::Set { value, .. } | Op::SetNew { value, .. } => Some(value.to_vec()),
        _ => None,
    };
    value(a) == value(b)
}

fn amount(held: &HeldOp<'_>) -> i64 {
    match held.op {
        Op::Increment { by, .. } => by,
        _ => 0,
    }
}

/// Whether a number stays within 64 bits whichever of these come first.
fn fits<'h, 'a: 'h>(increments: impl Iterator<Item = &'h HeldOp<'a>>, start: i64) -> bool {
    let (mut least, mut most) = (i128::from(start), i128::from(start));
    for by in increments.map(amount) {
        least += i128::from(by.min(0));
        most += i128::from(by.max(0));
    }
    i64::try_from(least).is_ok() && i64::try_from(most).is_ok()
}

/// The number that increments begin with.
fn start(held: &HeldOp<'_>, view: View<'_>) -> Option<i64> {
    current(held, view).map_or(Some(0), parse_i64)
}

/// Whether two increments of one field may both be done, in either order.
fn sums_commute(a: &HeldOp<'_>, b: &HeldOp<'_>, view: View<'_>) -> bool {
    let fits = start(a, view).is_some_and(|start| fits([a, b].into_iter(), start));
    fits && (!a.wanted || amount(b) == 0) && (!b.wanted || amount(a) == 0)
}

/// What pairs do not show: that a field stays within 64 bits after all of its
/// increments, unless none of them changes it.
pub(super) fn sums_fit(held: &[HeldOp<'_>], new: &HeldOp<'_>, view: View<'_>) -> bool {
    if !matches!(new.op, Op::Increment { .. }) {
        return true;
    }
    let Some(start) = start(new, view) else {
        return true;
    };
    let of_field =
        |held: &&HeldOp<'_>| matches!(held.op, Op::Increment { .. }) && !apart(held, new);
    let all = || held.iter().filter(of_field).chain([new]);
    all().all(|held| keeps(held, view)) || fits(all(), start)
}

const APART: When<Hash> = When::If {
    text: "x ≠ y",
    holds: |a, b, _| apart(a, b),
};

const APART_OR_KEPT: When<Hash> = When::If {
    text: "x ≠ y, or neither changes anything",
    holds: |a, b, view| apart(a, b) || keeps(a, view) && keeps(b, view),
};

const APART_OR_THERE: When<Hash> = When::If {
    text: "x ≠ y, or x ∈ S",
    holds: |a, b, view| apart(a, b) || present(a, view),
};

const NEW_OR_SAME: When<Hash> = When::If {
    text: "x ≠ y, or x ∈ S, or neither reply is wanted and the values are the same",
    holds: |a, b, view| apart(a, b) || present(a, view) || quiet(a, b) && same_value(a, b),
};

const READS_UNCHANGED: When<Hash> = When::If {
    text: "x ≠ y, or the update changes nothing, or the read is not wanted",
    holds: |read, update, view| apart(read, update) || keeps(update, view) || !read.wanted,
};

const EXISTS_ANYWAY: When<Hash> = When::If {
    text: "x ≠ y, or y ∈ S, or exists(x) is not wanted",
    holds: |read, update, view| apart(read, update) || present(update, view) || !read.wanted,
};

const AS_LONG: When<Hash> = When::If {
    text: "x ≠ y, or the length stays the same, or strlen(x) is not wanted",
    holds: |read, update, view| apart(read, update) || keeps_length(update, view) || !read.wanted,
};

const AS_MANY: When<Hash> = When::If {
    text: "y ∈ S, or length() is not wanted",
    holds: |read, update, view| present(update, view) || !read.wanted,
};

const ALL_KEPT: When<Hash> = When::If {
    text: "the update changes nothing, or all() is not wanted",
    holds: |read, update, view| keeps(update, view) || !read.wanted,
};

rules! {
    pub(super) static RULES of Hash:
        Set, Set: "x ≠ y, or the values are the same and: x ∈ S, or neither reply is wanted", |a, b, view| {
            apart(a, b) || same_value(a, b) && (present(a, view) || quiet(a, b))
        };
        // A set decides, whether it comes first or last.
        SetNew, Set: "x ≠ y, or x ∈ S, or neither reply is wanted", |a, b, view| apart(a, b) || present(a, view) || quiet(a, b);
        SetNew, SetNew: NEW_OR_SAME;
        Delete, Set: APART;
        Delete, SetNew: APART;
        Delete, Delete: "x ≠ y, or x ∉ S, or neither reply is wanted", |a, b, view| apart(a, b) || !present(a, view) || quiet(a, b);
        Increment, Set: APART_OR_KEPT;
        Increment, SetNew: APART_OR_THERE;
        Increment, Delete: APART;
        Increment, Increment: "x ≠ y, or neither changes anything, or S[x] fits 64 bits in either order and no wanted sum is changed by the other", |a, b, view| {
            apart(a, b) || keeps(a, view) && keeps(b, view) || sums_commute(a, b, view)
        };
        IncrementFloat, Set: APART_OR_KEPT;
        IncrementFloat, SetNew: APART_OR_THERE;
        IncrementFloat, Delete: APART;
        IncrementFloat, Increment: APART_OR_KEPT;
        IncrementFloat, IncrementFloat: APART_OR_KEPT;
        Get, Set: READS_UNCHANGED;
        Get, SetNew: READS_UNCHANGED;
        Get, Delete: READS_UNCHANGED;
        Get, Increment: READS_UNCHANGED;
        Get, IncrementFloat: READS_UNCHANGED;
        Exists, Set: EXISTS_ANYWAY;
        Exists, SetNew: EXISTS_ANYWAY;
        Exists, Delete: READS_UNCHANGED;
        Exists, Increment: EXISTS_ANYWAY;
        Exists, IncrementFloat: EXISTS_ANYWAY;
        StrLen, Set: AS_LONG;
        StrLen, SetNew: AS_LONG;
        StrLen, Delete: AS_LONG;
        StrLen, Increment: READS_UNCHANGED;
        StrLen, IncrementFloat: READS_UNCHANGED;
        Length, Set: AS_MANY;
        Length, SetNew: AS_MANY;
        Length, Delete: "y ∉ S, or length() is not wanted", |read, update, view| !present(update, view) || !read.wanted;
        Length, Increment: AS_MANY;
        Length, IncrementFloat: AS_MANY;
        All, Set: ALL_KEPT;
        All, SetNew: ALL_KEPT;
        All, Delete: ALL_KEPT;
        All, Increment: ALL_KEPT;
        All, IncrementFloat: ALL_KEPT;
}
