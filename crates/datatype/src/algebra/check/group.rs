//! Groups of operations that a type admits together, in every order.
//!
//! Every order of every part of the group is run, not of the whole alone: an
//! operation that was admitted may be given up, and what stays held must be
//! independent without it.

use super::{Lines, canonical, shown};
use crate::algebra::{Algebra, Held, Kind, Operation, Tuning, independent};
use rufous_base::rng::Rng;

const MOST: u64 = 5;

pub(super) fn check<T: Algebra>(
    state: &T::State,
    tuning: &Tuning,
    rng: &mut Rng,
) -> Result<(), String> {
    let group = sample::<T>(state, rng)?;
    documented::<T>(state, &group)?;
    match difference::<T>(state, &group, tuning) {
        None => Ok(()),
        Some((one, other)) => report::<T>(state, &group, [&one, &other], tuning),
    }
}

/// What is admitted must be independent by the rules, of which documentation is
/// made: looking at more than pairs may only take away.
fn documented<T: Algebra>(state: &T::State, group: &[Held<T::Op<'_>>]) -> Result<(), String> {
    for (at, new) in group.iter().enumerate() {
        let view = T::view(state);
        let undocumented = |held: &&Held<_>| !independent::<T>(held, new, view);
        if let Some(held) = group[..at].iter().find(undocumented) {
            return Lines::new("operations were admitted together that no rule lets")
                .state::<T>("state", state)
                .add("operation", format!("{held:?}"))
                .add("operation", format!("{new:?}"))
                .fail();
        }
    }
    Ok(())
}

/// An operation that may want its reply or not.
pub(super) fn sample_held<T: Algebra>(rng: &mut Rng) -> Held<T::Op<'static>> {
    Held {
        op: T::sample_op(rng),
        wanted: rng.below(2) == 0,
    }
}

/// Operations admitted one by one. Faults that need three operations of a kind, or
/// operations whose replies are not wanted, would be found too rarely among
/// operations of all kinds: half of the groups are of one kind or two, and half
/// want all of their replies or none.
fn sample<T: Algebra>(
    state: &T::State,
    rng: &mut Rng,
) -> Result<Vec<Held<T::Op<'static>>>, String> {
    let size = 2 + rng.below(MOST - 1) as usize;
    let mut kinds: Vec<T::Kind> = <T::Kind>::ALL.iter().map(|(kind, _)| *kind).collect();
    if rng.below(2) == 0 {
        let few = [(); 2].map(|()| kinds[rng.below(kinds.len() as u64) as usize]);
        kinds = few[..1 + rng.below(2) as usize].to_vec();
    }
    let all_wanted = [None, None, Some(false), Some(true)][rng.below(4) as usize];
    let mut group: Vec<Held<T::Op<'static>>> = Vec::new();
    for _ in 0..size * 8 {
        let mut new = sample_of::<T>(&kinds, rng);
        new.wanted = all_wanted.unwrap_or(new.wanted);
        if T::admits(&group, &new, T::view(state)) {
            group.push(new);
        } else if group.is_empty() {
            return Lines::new("an operation alone is not admitted")
                .state::<T>("state", state)
                .add("operation", format!("{:?}", new.op))
                .fail();
        }
        if group.len() == size {
            break;
        }
    }
    Ok(group)
}

/// An operation of these kinds, unless it takes too long to find one.
fn sample_of<T: Algebra>(kinds: &[T::Kind], rng: &mut Rng) -> Held<T::Op<'static>> {
    const TRIES: usize = 100;
    let mut held = sample_held::<T>(rng);
    for _ in 0..TRIES {
        if kinds.contains(&held.op.kind()) {
            break;
        }
        held = sample_held::<T>(rng);
    }
    held
}

/// Two orders, by position in the group, that show that operations are not
/// independent: of parts of the group as small as possible.
pub(super) fn difference<T: Algebra>(
    state: &T::State,
    group: &[Held<T::Op<'_>>],
    tuning: &Tuning,
) -> Option<(Vec<usize>, Vec<usize>)> {
    let mut walk = Walk::<T> {
        group,
        tuning,
        states: vec![None; 1 << group.len()],
        replies: vec![None; group.len()],
        worst: None,
    };
    walk.down(state, &mut Vec::new());
    walk.worst
}

struct Walk<'w, 'a, T: Algebra> {
    group: &'w [Held<T::Op<'a>>],
    tuning: &'w Tuning,
    /// By the operations that were run, as bits: the state that the first
    /// order of them left.
    states: Vec<Option<(Vec<u8>, Vec<usize>)>>,
    /// The first reply of each operation that wants it, and where.
    replies: Vec<Option<(T::Reply, Vec<usize>)>>,
    worst: Option<(Vec<usize>, Vec<usize>)>,
}

impl<T: Algebra> Walk<'_, '_, T> {
    fn down(&mut self, state: &T::State, order: &mut Vec<usize>) {
        for next in 0..self.group.len() {
            if order.contains(&next) {
                continue;
            }
            let mut after = state.clone();
            let applied = T::apply(&mut after, &self.group[next].op, self.tuning);
            order.push(next);
            if self.group[next].wanted {
                match self.replies[next].take() {
                    None => self.replies[next] = Some((applied.reply, order.clone())),
                    Some((reply, first)) => {
                        if reply != applied.reply {
                            self.differ(&first, order);
                        }
                        self.replies[next] = Some((reply, first));
                    }
                }
            }
            let mask = order.iter().fold(0, |mask, &at| mask | 1 << at);
            let left = canonical::<T>(&after);
            match self.states[mask].take() {
                None => self.states[mask] = Some((left, order.clone())),
                Some((first, way)) => {
                    if first != left {
                        self.differ(&way, order);
                    }
                    self.states[mask] = Some((first, way));
                }
            }
            self.down(&after, order);
            order.pop();
        }
    }

    fn differ(&mut self, one: &[usize], other: &[usize]) {
        let size = |(a, b): (&[usize], &[usize])| a.len().max(b.len());
        let known = self.worst.as_ref().map(|(a, b)| size((a, b)));
        if known.is_none_or(|known| size((one, other)) < known) {
            self.worst = Some((one.to_vec(), other.to_vec()));
        }
    }
}

pub(super) fn report<T: Algebra>(
    state: &T::State,
    group: &[Held<T::Op<'_>>],
    orders: [&[usize]; 2],
    tuning: &Tuning,
) -> Result<(), String> {
    let mut lines = Lines::new("operations that were admitted together are not independent")
        .state::<T>("state", state)
        .add("", format!("{state:?}"));
    for (at, held) in group.iter().enumerate() {
        if orders.iter().any(|order| order.contains(&at)) {
            let wanted = if held.wanted { "wanted" } else { "quiet" };
            lines = lines.add(
                &format!("operation {}", at + 1),
                format!("{:?}, {wanted}", held.op),
            );
        }
    }
    for order in orders {
        let mut state = state.clone();
        let mut text = String::new();
        for &at in order {
            let reply = T::apply(&mut state, &group[at].op, tuning).reply;
            text.push_str(&format!("{}: {reply:?}; ", at + 1));
        }
        text.push_str(&format!("leaves {}", shown(&canonical::<T>(&state))));
        lines = lines.add("order", text);
    }
    lines.fail()
}
