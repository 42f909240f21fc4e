//! Checks the lattice laws, on all triples of generated states.
//!
//! Every lattice of this crate is checked by its own tests, with its name at the call: `laws::check::<Counter>(…)`.
//! `cargo xtask tidy` fails if one is not.

use crate::{Coded, Lattice, Total};
use std::fmt::Debug;

/// Numbers from a seed, for generators of states (SplitMix64).
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; `bound` must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// Checks the laws on the bottom and `count` states, and on all pairs and triples of them. The error shows the states
/// that violate one.
///
/// States should be of few kinds, so that the interesting cases occur: equal stamps, entries of the same replicas.
pub fn check<L: Lattice + PartialEq + Debug>(
    count: usize,
    seed: u64,
    mut state: impl FnMut(&mut Draw) -> L,
) -> Result<(), String> {
    let mut draw = Draw::new(seed);
    let mut states = vec![L::default()];
    states.extend((0..count).map(|_| state(&mut draw)));
    for a in &states {
        expect("merge is not idempotent", &[a], &of(a, a)?, a)?;
        let above = of(&L::default(), a)?;
        expect("the default is not the bottom", &[a], &above, a)?;
        let same = of(a, &L::default())?;
        expect("the default is not the bottom", &[a], &same, a)?;
    }
    let mut joins = Vec::with_capacity(states.len() * states.len());
    for a in &states {
        for b in &states {
            joins.push(of(a, b)?);
        }
    }
    let join = |a: usize, b: usize| &joins[a * states.len() + b];
    for (x, a) in states.iter().enumerate() {
        for (y, b) in states.iter().enumerate() {
            expect("merge is not commutative", &[a, b], join(x, y), join(y, x))?;
            let again = of(join(x, y), b)?;
            expect(
                "a join is not above what it joins",
                &[a, b],
                &again,
                join(x, y),
            )?;
            for (z, c) in states.iter().enumerate() {
                let (left, right) = (of(join(x, y), c)?, of(a, join(y, z))?);
                expect("merge is not associative", &[a, b, c], &left, &right)?;
            }
        }
    }
    Ok(())
}

/// Checks that any two states are ordered, and that `Ord` is that order.
pub fn check_total<L: Total + Debug>(
    count: usize,
    seed: u64,
    mut state: impl FnMut(&mut Draw) -> L,
) -> Result<(), String> {
    let mut draw = Draw::new(seed);
    let mut states = vec![L::default()];
    states.extend((0..count).map(|_| state(&mut draw)));
    for a in &states {
        for b in &states {
            let greater = std::cmp::max(a, b);
            expect("merge is not the maximum", &[a, b], &of(a, b)?, greater)?;
        }
    }
    Ok(())
}

/// Checks that an optimized lattice equals the composition that its description states: merging and the map to
/// `model` commute.
pub fn check_model<L: Lattice + PartialEq + Debug, M: Lattice + PartialEq + Debug>(
    count: usize,
    seed: u64,
    mut state: impl FnMut(&mut Draw) -> L,
    model: impl Fn(&L) -> M,
) -> Result<(), String> {
    let mut draw = Draw::new(seed);
    let mut states = vec![L::default()];
    states.extend((0..count).map(|_| state(&mut draw)));
    for a in &states {
        for b in &states {
            let (is, to_be) = (model(&of(a, b)?), of(&model(a), &model(b))?);
            expect(
                "the model merges otherwise",
                &[&model(a), &model(b)],
                &is,
                &to_be,
            )?;
            if (a == b) != (model(a) == model(b)) {
                return Err(format!(
                    "the model hides a difference\n  of {a:?}\n  and {b:?}"
                ));
            }
        }
    }
    Ok(())
}

/// The join, if `merge` reports correctly whether it changed anything.
fn of<L: Lattice + PartialEq + Debug>(a: &L, b: &L) -> Result<L, String> {
    let mut joined = a.clone();
    let changed = joined.merge(b);
    if changed != (joined != *a) {
        return Err(format!(
            "merge says {changed} where it is not\n  into {a:?}\n  from {b:?}\n  gives {joined:?}"
        ));
    }
    Ok(joined)
}

fn expect<L: PartialEq + Debug>(
    what: &str,
    of: &[&impl Debug],
    is: &L,
    to_be: &L,
) -> Result<(), String> {
    if is == to_be {
        return Ok(());
    }
    Err(format!(
        "{what}\n  of {of:?}\n  one   {is:?}\n  other {to_be:?}"
    ))
}

/// Checks encodings: a state survives a round trip, equal states have equal bytes, and changed bytes give either an
/// error or a state whose encoding they are.
pub fn check_code<L: Coded + PartialEq + Debug>(
    count: usize,
    seed: u64,
    mut state: impl FnMut(&mut Draw) -> L,
) -> Result<(), String> {
    let mut draw = Draw::new(seed);
    for _ in 0..count {
        let state = state(&mut draw);
        let bytes = state.encoded();
        if L::decode(&bytes).as_ref() != Ok(&state) {
            return Err(format!(
                "decode does not give back {state:?}\n  bytes {bytes:?}"
            ));
        }
        for _ in 0..20 {
            let spoilt = spoil(&bytes, &mut draw);
            if let Ok(other) = L::decode(&spoilt)
                && other.encoded() != spoilt
            {
                return Err(format!("{other:?} has two encodings\n  one {spoilt:?}"));
            }
        }
    }
    Ok(())
}

/// Checks a function that reads encodings without decoding them: for any bytes it returns what `slow` returns for the
/// decoded state, and nothing if there is none.
pub fn check_reading<L: Coded, T: PartialEq + Debug>(
    count: usize,
    seed: u64,
    mut state: impl FnMut(&mut Draw) -> L,
    quick: impl Fn(&[u8]) -> Option<T>,
    slow: impl Fn(&L) -> Option<T>,
) -> Result<(), String> {
    let mut draw = Draw::new(seed);
    for _ in 0..count {
        let bytes = state(&mut draw).encoded();
        for spoilt in 0..20 {
            let bytes = match spoilt {
                0 => bytes.clone(),
                _ => spoil(&bytes, &mut draw),
            };
            let state = L::decode(&bytes).ok();
            let to_be = state.as_ref().and_then(&slow);
            expect(
                "bytes are read otherwise",
                &[&bytes],
                &quick(&bytes),
                &to_be,
            )?;
        }
    }
    Ok(())
}

/// The bytes with a change, as damage or a hostile sender could cause it.
pub fn spoil(bytes: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match draw.below(4) {
        0 => bytes.truncate(draw.below(bytes.len() as u64 + 1) as usize),
        1 => bytes = (0..draw.below(24)).map(|_| draw.next_u64() as u8).collect(),
        2 => bytes.insert(
            draw.below(bytes.len() as u64 + 1) as usize,
            draw.below(4) as u8,
        ),
        _ => {
            let at = draw.below(bytes.len().max(1) as u64) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte = [draw.next_u64() as u8, *byte ^ 1][draw.below(2) as usize];
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers, merged by whatever is tried.
    macro_rules! planted {
        ($name:ident, $merge:expr) => {
            #[derive(Clone, Debug, Default, PartialEq)]
            struct $name(u64);
            impl Lattice for $name {
                fn merge(&mut self, other: &Self) -> bool {
                    let merge: fn(&mut u64, u64) -> bool = $merge;
                    merge(&mut self.0, other.0)
                }
            }
            impl $name {
                fn verdict() -> String {
                    check(20, 1, |draw| $name(draw.below(5))).map_or_else(|e| e, |()| "ok".into())
                }
            }
        };
    }

    planted!(Max, |mine, theirs| {
        let changed = theirs > *mine;
        *mine = theirs.max(*mine);
        changed
    });
    planted!(Last, |mine, theirs| std::mem::replace(mine, theirs)
        != theirs);
    planted!(Sum, |mine, theirs| {
        *mine += theirs;
        theirs != 0
    });
    planted!(Silent, |mine, theirs| {
        *mine = theirs.max(*mine);
        false
    });
    planted!(Min, |mine, theirs| {
        let changed = theirs < *mine;
        *mine = theirs.min(*mine);
        changed
    });
    // Ties between unequal numbers are broken by rounding: not associative.
    planted!(Mean, |mine, theirs| {
        let old = *mine;
        if old != 0 && theirs != 0 {
            *mine = old.midpoint(theirs);
        } else {
            *mine |= theirs;
        }
        *mine != old
    });

    /// A minimum, ordered as if it were a maximum.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Backward(u64);

    impl Default for Backward {
        fn default() -> Self {
            Self(u64::MAX)
        }
    }

    impl Ord for Backward {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Backward {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Lattice for Backward {
        fn merge(&mut self, other: &Self) -> bool {
            let is_less = other.0 < self.0;
            self.0 = self.0.min(other.0);
            is_less
        }
    }

    impl Total for Backward {}

    #[test]
    fn an_order_that_is_not_that_of_merging_is_found() {
        check(20, 1, |draw| Backward(draw.below(5))).unwrap();
        let verdict = check_total(20, 1, |draw| Backward(draw.below(5))).unwrap_err();
        assert!(verdict.contains("not the maximum"), "{verdict}");
    }

    #[test]
    fn a_model_of_something_else_is_found() {
        let number = |draw: &mut Draw| Max(draw.below(5));
        let try_model = |model: fn(&Max) -> Max| check_model(20, 1, number, model);
        try_model(|max| Max(max.0 * 2)).unwrap();
        let verdict = try_model(|max| Max(max.0 ^ 1)).unwrap_err();
        assert!(verdict.contains("merges otherwise"), "{verdict}");
        let verdict = try_model(|max| Max(max.0 / 2)).unwrap_err();
        assert!(verdict.contains("hides a difference"), "{verdict}");
    }

    #[test]
    fn what_is_no_lattice_is_found() {
        assert_eq!(Max::verdict(), "ok");
        for (verdict, law) in [
            (Last::verdict(), "bottom"),
            (Sum::verdict(), "idempotent"),
            (Silent::verdict(), "merge says false"),
            (Min::verdict(), "bottom"),
            (Mean::verdict(), "associative"),
        ] {
            assert!(verdict.contains(law), "{law}: {verdict}");
        }
    }
}
