//! Operations that stand for others [Claret §4.3]: a wider range answers for what lies within it, and one pop takes for
//! several clients.

use super::{Op, Reply, places};

pub(super) fn combine<'a>(pending: &Op<'a>, new: &Op<'a>) -> Option<Op<'a>> {
    match (*pending, *new) {
        (Op::PopFront { count: a }, Op::PopFront { count: b }) => Some(Op::PopFront {
            count: a.checked_add(b)?,
        }),
        (Op::PopBack { count: a }, Op::PopBack { count: b }) => Some(Op::PopBack {
            count: a.checked_add(b)?,
        }),
        _ if covers(pending, new) => Some(*pending),
        _ if covers(new, pending) => Some(*new),
        _ => None,
    }
}

pub(super) fn share(pending: &Op<'_>, new: &Op<'_>, combined: &Reply) -> (Reply, Reply) {
    match (*pending, combined) {
        (Op::PopFront { count } | Op::PopBack { count }, Reply::Elements(all)) => {
            let (first, second) = all.split_at(super::clamp(count).min(all.len()));
            (
                Reply::Elements(first.to_vec()),
                Reply::Elements(second.to_vec()),
            )
        }
        _ if covers(pending, new) => (combined.clone(), part(pending, new, combined)),
        _ => (part(new, pending, combined), combined.clone()),
    }
}

/// Whether the reply to `wide` says what the reply to `op` says. The reply to a range does not say where the list's
/// ends are, unless the range reaches from one to the other.
fn covers(wide: &Op<'_>, op: &Op<'_>) -> bool {
    let Op::Range { start, stop } = *wide else {
        return wide == op && matches!(op, Op::Index { .. } | Op::Length | Op::Position(_));
    };
    let whole = (start, stop) == (0, -1);
    let (from, to) = match *op {
        Op::Length => return whole,
        Op::Index { index } => (index, index),
        Op::Range { start, stop } => (start, stop),
        _ => return false,
    };
    let one_side =
        (start < 0) == (stop < 0) && (from < 0) == (start < 0) && (to < 0) == (start < 0);
    whole || (start, stop) == (from, to) || (one_side && start <= from && from <= to && to <= stop)
}

/// The reply to `op`, out of the one to `wide`, which covers it.
fn part(wide: &Op<'_>, op: &Op<'_>, reply: &Reply) -> Reply {
    let (Op::Range { start, stop }, Reply::Elements(all)) = (*wide, reply) else {
        return reply.clone();
    };
    let within = |from: i64, to: i64| match (start, stop) {
        (0, -1) => places(from, to, all.len()),
        _ if (start, stop) == (from, to) => 0..all.len(),
        _ if start >= 0 => places(from - start, to - start, all.len()),
        // Both end where the list ends, so many elements before it.
        _ => {
            let end = all.len() as i64 - 1 - (stop - to);
            let first = all.len() as i64 - 1 - (stop - from);
            match end < 0 {
                true => 0..0,
                false => first.max(0) as usize..end as usize + 1,
            }
        }
    };
    match *op {
        Op::Length => Reply::Length(all.len()),
        Op::Index { index } => {
            Reply::Element(within(index, index).next().map(|at| all[at].clone()))
        }
        Op::Range { start, stop } => Reply::Elements(all[within(start, stop)].to_vec()),
        _ => reply.clone(),
    }
}
