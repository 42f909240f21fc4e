//! Operations on a string that one other stands for.
//!
//! What puts a whole value lets everything about the string be known without
//! asking: reads after it are answered from it, and a later value takes its
//! place. Reads share the widest of them [Claret §5.2].

use super::act::{Act, act};
use super::{Op, Reply, Text, View};
use crate::algebra::{Algebra, Operation};

fn is_read(op: &Op<'_>) -> bool {
    op.is_read()
}

/// What the operation leaves, if that does not depend on the previous value.
fn put<'a>(op: &Op<'a>) -> Option<Option<&'a [u8]>> {
    match act(op) {
        Act::Put(value) => Some(value),
        _ => None,
    }
}

pub(super) fn combine<'a>(pending: &Op<'a>, new: &Op<'a>) -> Option<Op<'a>> {
    match (*pending, *new) {
        (Op::Incr { by }, Op::Incr { by: more }) => {
            // With another sign the sum might fit where its first part does not.
            let same_way = by.signum() * more.signum() >= 0;
            let by = by.checked_add(more).filter(|_| same_way)?;
            Some(Op::Incr { by })
        }
        (Op::SetBit { offset, .. }, Op::SetBit { offset: of, .. }) => {
            (offset == of).then_some(*new)
        }
        _ if is_read(pending) && is_read(new) => {
            let mut wide = [pending, new].into_iter().zip([new, pending]);
            wide.find(|(wide, narrow)| covers(wide, narrow))
                .map(|(wide, _)| *wide)
        }
        _ => whole(pending, new),
    }
}

/// Of a read of everything or a change of everything, and what follows it.
fn whole<'a>(pending: &Op<'a>, new: &Op<'a>) -> Option<Op<'a>> {
    let left = match (put(pending), put(new)) {
        (_, Some(value)) => value,
        (Some(value), None) => match *new {
            Op::SetNx { value: other } => value.or(Some(other)),
            _ if is_read(new) => value,
            _ => return None,
        },
        (None, None) => return None,
    };
    match (pending, left) {
        (Op::Set { .. }, Some(value)) => Some(Op::Set { value }),
        (Op::Set { .. }, None) => Some(Op::Delete),
        (Op::Get | Op::GetSet { .. } | Op::Delete | Op::GetDel, Some(value)) => {
            Some(Op::GetSet { value })
        }
        (Op::Get | Op::GetSet { .. } | Op::Delete | Op::GetDel, None) => Some(Op::GetDel),
        _ => None,
    }
}

pub(super) fn share(pending: &Op<'_>, new: &Op<'_>, combined: &Reply) -> (Reply, Reply) {
    match (*pending, *new) {
        (Op::Incr { .. }, Op::Incr { by }) => match combined {
            // Both are of the same sign, so that what is between fits as well.
            Reply::Number(sum) => (Reply::Number(sum.wrapping_sub(by)), combined.clone()),
            _ => (combined.clone(), combined.clone()),
        },
        (Op::SetBit { bit, .. }, Op::SetBit { .. }) => (combined.clone(), Reply::Flag(bit)),
        _ if is_read(pending) && is_read(new) => {
            if covers(pending, new) {
                (combined.clone(), narrowed(pending, new, combined))
            } else {
                (narrowed(new, pending, combined), combined.clone())
            }
        }
        _ => {
            let before = bytes(combined);
            let between = put(pending).unwrap_or(before);
            (Text::execute(before, pending), Text::execute(between, new))
        }
    }
}

fn bytes(reply: &Reply) -> View<'_> {
    match reply {
        Reply::Bytes(bytes) => bytes.as_deref(),
        _ => None,
    }
}

/// Whether the reply of one read has the reply of the other in it.
fn covers(wide: &Op<'_>, narrow: &Op<'_>) -> bool {
    match (*wide, *narrow) {
        (
            Op::GetRange { start, end },
            Op::GetRange {
                start: from,
                end: to,
            },
        ) => wide == narrow || start >= 0 && from >= start && (0..=end).contains(&to),
        (Op::Get, _) => true,
        _ => wide == narrow,
    }
}

fn narrowed(wide: &Op<'_>, narrow: &Op<'_>, reply: &Reply) -> Reply {
    match (*wide, *narrow) {
        _ if wide == narrow => reply.clone(),
        (
            Op::GetRange { start, .. },
            Op::GetRange {
                start: from,
                end: to,
            },
        ) => {
            let part = if from > to {
                // Also where it ends before the wider one begins.
                Op::GetRange { start: 1, end: 0 }
            } else {
                Op::GetRange {
                    start: from - start,
                    end: to - start,
                }
            };
            Text::execute(bytes(reply), &part)
        }
        _ => Text::execute(bytes(reply), narrow),
    }
}
