//! The laws of merges.

use super::{Lines, canonical, shown};
use crate::algebra::{Algebra, Merge, Tuning};
use rufous_base::rng::Rng;

pub(super) fn check<T: Algebra>(tuning: &Tuning, rng: &mut Rng) -> Result<(), String> {
    let Some(merge) = T::MERGE else {
        return Ok(());
    };
    let [a, b, c] = [(); 3].map(|()| T::sample_state(rng));
    let laws = Laws::<T> { merge, tuning };
    laws.equal(
        "merge is not idempotent",
        [&a, &a],
        laws.of(&a, &a)?,
        a.clone(),
    )?;
    let (ab, ba) = (laws.of(&a, &b)?, laws.of(&b, &a)?);
    let bc = laws.of(&b, &c)?;
    let (left, right) = (laws.of(&ab, &c)?, laws.of(&a, &bc)?);
    laws.equal("merge is not commutative", [&a, &b], ab, ba)?;
    laws.equal("merge is not associative", [&a, &bc], left, right)?;
    let bottom = laws.of(&T::empty(), &a)?;
    laws.equal(
        "a missing key is not below all",
        [&T::empty(), &a],
        bottom,
        a.clone(),
    )
}

struct Laws<'t, T: Algebra> {
    merge: Merge<T>,
    tuning: &'t Tuning,
}

impl<T: Algebra> Laws<'_, T> {
    /// The merge of both, which leaves the second as it was.
    fn of(&self, into: &T::State, from: &T::State) -> Result<T::State, String> {
        let mut merged = into.clone();
        let before = (canonical::<T>(into), canonical::<T>(from));
        let changed = (self.merge)(&mut merged, T::view(from), self.tuning);
        let lines = |what: &str| {
            Lines::new(what)
                .add("into", shown(&before.0))
                .add("from", shown(&before.1))
                .state::<T>("gives", &merged)
        };
        if (canonical::<T>(into), canonical::<T>(from)) != before {
            return lines("merge changes what it reads").fail();
        }
        if changed != (canonical::<T>(&merged) != before.0) {
            return lines("merge is wrong about whether it changed anything").fail();
        }
        Ok(merged)
    }

    fn equal(
        &self,
        what: &str,
        of: [&T::State; 2],
        one: T::State,
        other: T::State,
    ) -> Result<(), String> {
        if canonical::<T>(&one) == canonical::<T>(&other) {
            return Ok(());
        }
        Lines::new(what)
            .state::<T>("states", of[0])
            .state::<T>("", of[1])
            .state::<T>("one way", &one)
            .state::<T>("other way", &other)
            .fail()
    }
}
