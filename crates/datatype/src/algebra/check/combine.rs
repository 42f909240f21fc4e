//! Combined operations against those they were made of.

use super::{Lines, canonical, shown};
use crate::algebra::{Algebra, Tuning};
use rufous_base::rng::Rng;

/// Most pairs do not combine.
const PAIRS: usize = 16;

pub(super) fn check<T: Algebra>(
    state: &T::State,
    tuning: &Tuning,
    rng: &mut Rng,
) -> Result<(), String> {
    for _ in 0..PAIRS {
        let (pending, new) = (T::sample_op(rng), T::sample_op(rng));
        // What is asked twice combines most often, and is seldom drawn twice.
        for new in [pending, new] {
            let Some(combined) = T::combine(&pending, &new) else {
                continue;
            };
            compare::<T>(state, [&pending, &new, &combined], tuning)?;
            // What was combined may be combined further.
            let third = T::sample_op(rng);
            for third in [pending, third] {
                if let Some(all) = T::combine(&combined, &third) {
                    compare::<T>(state, [&combined, &third, &all], tuning)?;
                }
            }
        }
    }
    Ok(())
}

fn compare<T: Algebra>(
    state: &T::State,
    [pending, new, combined]: [&T::Op<'_>; 3],
    tuning: &Tuning,
) -> Result<(), String> {
    let (mut apart, mut together) = (state.clone(), state.clone());
    let first = T::apply(&mut apart, pending, tuning).reply;
    let second = T::apply(&mut apart, new, tuning).reply;
    let both = T::apply(&mut together, combined, tuning).reply;
    let lines = |what: &str| {
        Lines::new(what)
            .state::<T>("state", state)
            .add("pending", format!("{pending:?}"))
            .add("new", format!("{new:?}"))
            .add("combined", format!("{combined:?}"))
            .add("its reply", format!("{both:?}"))
    };
    let (apart, together) = (canonical::<T>(&apart), canonical::<T>(&together));
    if !T::stands_for_both(&both) {
        if together == canonical::<T>(state) {
            return Ok(());
        }
        return lines("a combined operation that does not stand for both changed something")
            .add("leaves", shown(&together))
            .fail();
    }
    if apart != together {
        return lines("a combined operation does not leave what both leave")
            .add("both leave", shown(&apart))
            .add("it leaves", shown(&together))
            .fail();
    }
    let shared = T::share(pending, new, &both);
    if shared != (first.clone(), second.clone()) {
        return lines("the reply of a combined operation does not give those of both")
            .add("both", format!("{first:?}, {second:?}"))
            .add("shared", format!("{:?}, {:?}", shared.0, shared.1))
            .fail();
    }
    Ok(())
}
