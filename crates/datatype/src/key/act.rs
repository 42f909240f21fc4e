//! What operations on keys do.

use super::{Deadline, Key, Only, Op, Put, Reply, Set, Type, Value};
use crate::algebra::{Applied, Tuning};
use crate::expire::{ExpireCondition, has_passed};

pub(super) fn execute(key: &Key, op: &Op<'_>) -> Reply {
    match op {
        Op::Typed(typed) => typed
            .execute(key.value())
            .map_or(Reply::WrongType, Reply::Typed),
        Op::Exists | Op::Delete => Reply::Flag(!key.is_empty()),
        Op::Type => Reply::Type(key.value().map(Value::of)),
        Op::Ttl => Reply::Ttl(key.0.as_ref().map(|(_, deadline)| *deadline)),
        Op::Dump | Op::Take => Reply::Dump(key.canonical()),
        Op::Expired { now } => Reply::Flag(is_over(key, *now)),
        Op::Expire { at, only } => Reply::Flag(expires(key, *at, *only)),
        Op::Persist => Reply::Flag(key.deadline().is_some()),
        Op::Set(set) => of_set(key, set),
        Op::Put(put) => Reply::Flag(!put.only_new || key.is_empty()),
    }
}

pub(super) fn apply(key: &mut Key, op: &Op<'_>, tuning: &Tuning) -> Applied<Reply> {
    let before = key.canonical();
    let reply = run(key, op, tuning);
    let changed = key.canonical() != before;
    Applied { reply, changed }
}

/// Does what an operation does, and replies.
pub fn run(key: &mut Key, op: &Op<'_>, tuning: &Tuning) -> Reply {
    match op {
        Op::Typed(typed) => {
            let deadline = key.deadline();
            let value = key.0.take().map(|(value, _)| value);
            let (value, reply) = typed.apply(value, tuning);
            // A key that ends and one that begins have no deadline.
            key.0 = value.map(|value| (value, deadline));
            reply.map_or(Reply::WrongType, Reply::Typed)
        }
        op => {
            let reply = execute(key, op);
            change(key, op);
            reply
        }
    }
}

fn change(key: &mut Key, op: &Op<'_>) {
    match op {
        Op::Typed(_) | Op::Exists | Op::Type | Op::Ttl | Op::Dump => {}
        Op::Delete | Op::Take => key.0 = None,
        Op::Expired { now } => {
            if is_over(key, *now) {
                key.0 = None;
            }
        }
        Op::Expire { at, only } => {
            if expires(key, *at, *only)
                && let Some((_, deadline)) = &mut key.0
            {
                *deadline = Some(*at);
            }
        }
        Op::Persist => {
            if let Some((_, deadline)) = &mut key.0 {
                *deadline = None;
            }
        }
        Op::Set(set) => {
            if sets(key, set) {
                let deadline = match set.deadline {
                    Deadline::Keep => key.deadline(),
                    Deadline::Clear => None,
                    Deadline::At(at) => Some(at),
                };
                key.0 = Some((Value::text(set.value), deadline));
            }
        }
        Op::Put(Put { key: new, only_new }) => {
            if !only_new || key.is_empty() {
                *key = (*new).clone();
            }
        }
    }
}

/// Whether the condition of an operation is met: what [`super::Condition::Own`] promises. Where it has none, its
/// reply stands for it.
pub fn holds(op: &Op<'_>, key: &Key) -> Option<Reply> {
    let met = match op {
        Op::Set(set) => is_wanted(set.only, key),
        Op::Put(put) => !put.only_new || key.is_empty(),
        Op::Expire { at, only } if *only != ExpireCondition::default() => expires(key, *at, *only),
        Op::Expired { now } => is_over(key, *now),
        Op::Typed(_) => return Some(execute(key, op)),
        _ => return None,
    };
    Some(Reply::Flag(met))
}

fn is_wanted(only: Option<Only>, key: &Key) -> bool {
    match only {
        None => true,
        Some(Only::New) => key.is_empty(),
        Some(Only::Known) => !key.is_empty(),
    }
}

fn is_over(key: &Key, now: i64) -> bool {
    key.deadline()
        .is_some_and(|deadline| has_passed(deadline, now))
}

fn expires(key: &Key, at: i64, only: ExpireCondition) -> bool {
    !key.is_empty() && only.allows(key.deadline(), at)
}

/// Whether a value is of another type than `SET … GET` can show.
fn is_no_text(key: &Key) -> bool {
    key.value().is_some_and(|value| value.of() != Type::Text)
}

fn sets(key: &Key, set: &Set<'_>) -> bool {
    is_wanted(set.only, key) && !(set.get && is_no_text(key))
}

fn of_set(key: &Key, set: &Set<'_>) -> Reply {
    match key.value() {
        _ if !set.get => match set.only {
            None => Reply::Done,
            Some(_) => Reply::Flag(sets(key, set)),
        },
        Some(Value::Text(text)) => Reply::Text(text.clone()),
        Some(Value::Object(_)) => Reply::WrongType,
        None => Reply::Text(None),
    }
}
