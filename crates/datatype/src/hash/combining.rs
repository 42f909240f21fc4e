//! Which operations on a hash are done as one.

use super::{Op, Reply, field};

/// See [`crate::algebra::Algebra::combine`].
pub(super) fn combine<'a>(pending: &Op<'a>, new: &Op<'a>) -> Option<Op<'a>> {
    match (*pending, *new) {
        (Op::Length, Op::Length) => return Some(Op::Length),
        (Op::All, new) if is_read(&new) => return Some(Op::All),
        (pending, Op::All) if is_read(&pending) => return Some(Op::All),
        _ => {}
    }
    let field = field(pending)?;
    if super::field(new) != Some(field) {
        return None;
    }
    match (*pending, *new) {
        (Op::Set { .. }, Op::Set { .. })
        | (Op::Set { .. } | Op::Delete { .. }, Op::Delete { .. })
        | (Op::Delete { .. }, Op::Set { .. }) => Some(*new),
        (Op::Set { .. }, Op::SetNew { .. }) => Some(*pending),
        (
            Op::Set { .. } | Op::Delete { .. },
            Op::Get { .. } | Op::Exists { .. } | Op::StrLen { .. },
        ) => Some(*pending),
        // A sum of parts of one sign fits only if each part does.
        (Op::Increment { by, .. }, Op::Increment { by: more, .. })
            if (by <= 0 && more <= 0) || (by >= 0 && more >= 0) =>
        {
            let by = by.checked_add(more)?;
            Some(Op::Increment { field, by })
        }
        (Op::Get { .. }, Op::Get { .. } | Op::Exists { .. } | Op::StrLen { .. })
        | (Op::Exists { .. } | Op::StrLen { .. }, Op::Get { .. }) => Some(Op::Get { field }),
        (Op::Exists { .. }, Op::Exists { .. }) | (Op::StrLen { .. }, Op::StrLen { .. }) => {
            Some(*new)
        }
        _ => None,
    }
}

fn is_read(op: &Op<'_>) -> bool {
    matches!(
        op,
        Op::Get { .. } | Op::Exists { .. } | Op::StrLen { .. } | Op::Length | Op::All
    )
}

/// See [`crate::algebra::Algebra::share`].
pub(super) fn share(pending: &Op<'_>, new: &Op<'_>, combined: &Reply) -> (Reply, Reply) {
    match (pending, new, combined) {
        (Op::Increment { .. }, Op::Increment { by, .. }, Reply::Integer(sum)) => {
            let first = sum.map(|sum| sum.wrapping_sub(*by));
            (Reply::Integer(first), combined.clone())
        }
        (Op::Set { value, .. }, ..) => {
            // Whether the field was there before both.
            let there = match new {
                Op::Delete { .. } => combined.is_true(),
                _ => !combined.is_true(),
            };
            (Reply::Bool(!there), after(Some(value), new))
        }
        (Op::Delete { .. }, ..) => {
            let there = match new {
                Op::Set { .. } => !combined.is_true(),
                _ => combined.is_true(),
            };
            (Reply::Bool(there), after(None, new))
        }
        _ => (read_from(combined, pending), read_from(combined, new)),
    }
}

/// What an operation answers when the field holds this.
fn after(value: Option<&[u8]>, op: &Op<'_>) -> Reply {
    match op {
        Op::Set { .. } | Op::SetNew { .. } => Reply::Bool(value.is_none()),
        Op::Get { .. } => Reply::Value(value.map(<[u8]>::to_vec)),
        Op::StrLen { .. } => Reply::Count(value.map_or(0, <[u8]>::len)),
        _ => Reply::Bool(value.is_some()),
    }
}

/// The reply of a read, out of that of one that reads as much or more.
fn read_from(combined: &Reply, op: &Op<'_>) -> Reply {
    match (combined, op) {
        (Reply::Pairs(all), Op::Length) => Reply::Count(all.len()),
        (Reply::Pairs(all), _) => match field(op) {
            Some(field) => after(all.get(field).map(Vec::as_slice), op),
            None => combined.clone(),
        },
        (Reply::Value(value), _) => after(value.as_deref(), op),
        _ => combined.clone(),
    }
}
