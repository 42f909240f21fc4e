//! Unions, intersections and differences of the sets at several keys.

use crate::{Ctx, Failure, Reply};
use rufous_datatype::algebra::{Algebra, Tuning};
use rufous_datatype::object::Registered;
use rufous_datatype::set::{Op, Set, State, View};
use rufous_kernel::shard::{Entry, OwnedValue};
use std::ops::ControlFlow;

/// The sets at these keys, small ones copied, large ones shared; those that
/// are missing are empty.
pub(super) fn sets<'k>(
    ctx: &mut Ctx<'_>,
    keys: impl Iterator<Item = &'k [u8]>,
) -> Result<Vec<State>, Failure> {
    let set = |key| {
        let key = ctx.key(key);
        let found = ctx.shard.collection::<Set>(ctx.db, key, ctx.now)?;
        Ok(found.map_or_else(Set::empty, View::to_table))
    };
    keys.map(set).collect()
}

/// Shows what is in all of the sets, until told to stop.
pub(super) fn intersect(sets: &[State], mut each: impl FnMut(&[u8]) -> ControlFlow<()>) {
    let mut views: Vec<View<'_>> = sets.iter().map(State::view).collect();
    views.sort_by_cached_key(|view| view.len());
    let Some((least, others)) = views.split_first() else {
        return;
    };
    for (member, _) in least.iter() {
        if others.iter().all(|other| other.contains(member)) && each(member).is_break() {
            return;
        }
    }
}

/// Shows what is in the first of the sets and in no other.
pub(super) fn subtract(sets: &[State], mut each: impl FnMut(&[u8])) {
    let Some((first, others)) = sets.split_first() else {
        return;
    };
    for (member, _) in first.view().iter() {
        if !others.iter().any(|other| other.view().contains(member)) {
            each(member);
        }
    }
}

/// What is in the first of the sets and in no other, as a set. Where less is
/// taken away than there is, a copy of the first one shares what stays.
pub(super) fn difference(mut sets: Vec<State>, tuning: &Tuning) -> State {
    let Some((first, others)) = sets.split_first_mut() else {
        return Set::empty();
    };
    let taken: usize = others.iter().map(|set| set.view().len()).sum();
    if taken < first.view().len() {
        for (member, _) in others.iter().flat_map(|set| set.view().iter()) {
            Set::commit(first, &Op::Remove { member }, tuning);
        }
        return std::mem::take(first);
    }
    let mut left = Set::empty();
    subtract(&sets, |member| {
        Set::commit(&mut left, &Op::Add { member }, tuning);
    });
    left
}

/// What is in any of the sets, as a set: the largest, with all others added.
pub(super) fn union(mut sets: Vec<State>, tuning: &Tuning) -> State {
    let largest = (0..sets.len()).max_by_key(|&at| sets[at].view().len());
    let Some(largest) = largest else {
        return Set::empty();
    };
    let mut all = sets.swap_remove(largest);
    for (member, _) in sets.iter().flat_map(|set| set.view().iter()) {
        Set::commit(&mut all, &Op::Add { member }, tuning);
    }
    all
}

/// Puts a set at the command's first key, whatever is there, or removes the
/// key where the set is empty; replies how many members there are.
pub(super) fn store(ctx: &mut Ctx<'_>, key: &[u8], set: State, reply: &mut Reply<'_>) {
    let key = ctx.first_key(key);
    let len = set.view().len();
    if len == 0 {
        ctx.shard.remove(ctx.db, key, ctx.now);
    } else {
        let entry = Entry {
            value: OwnedValue::Object(Set::wrap(set)),
            expire_at: None,
            access: ctx.shard.policy().first_stamp(ctx.now),
        };
        ctx.shard.insert_entry(ctx.db, key, entry, ctx.now);
    }
    reply.count(len);
}
