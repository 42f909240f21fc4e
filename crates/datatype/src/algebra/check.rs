//! The algebra checker: tries what a type states, on random states and
//! operations, and shows the smallest case in which it does not hold.
//!
//! Everything follows from a seed. Round `n` of seed `s` is round 0 of seed
//! `s + n`, so that a failure names the seed of its round and is repeated by
//! `cargo xtask algebra --seed <it> --rounds 1`.
//!
//! | part | what is tried |
//! |---|---|
//! | [`group`] | groups of two to five admitted operations, in every order |
//! | [`single`] | `execute`, `commit` and `apply` of one operation agree; reads change nothing |
//! | [`combine`] | a combined operation is like both it was made of |
//! | [`keys`] | operations on keys of any type: pairs, what was observed of them, and groups |
//! | [`lattice`] | merges are associative, commutative and idempotent |
//! | [`stored`] | shapes, encodings and chunks of types that the store keeps |
//! | [`recognition`] | how much of what is independent a type recognises |

mod combine;
mod group;
pub mod keys;
mod lattice;
pub mod recognition;
mod single;
mod stored;

#[cfg(test)]
mod planted;
#[cfg(test)]
mod shelf;
#[cfg(test)]
mod tests;

use super::{Algebra, DataType, MAX_PACKED, Packing, Tuning};
use rufous_base::rng::Rng;
use std::fmt::{Display, Formatter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Rounds that tests try each type with: some seconds for all of them.
pub const TEST_ROUNDS: u64 = 1_000;

/// Something that a type states and does not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// [`Algebra::NAME`].
    pub name: &'static str,
    /// Of the round, so that it can be repeated; nothing if no round is to blame.
    pub seed: Option<u64>,
    pub what: String,
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.what.trim_end())?;
        match self.seed {
            Some(seed) => write!(
                f,
                "\n  again       cargo xtask algebra --seed {seed} --rounds 1"
            ),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// Tries what every type states.
pub fn algebra<T: Algebra>(seed: u64, rounds: u64) -> Result<(), Failure> {
    single::tables::<T>(seed).map_err(|what| failure::<T>(None, what))?;
    each_round::<T>(seed, rounds, round::<T>)
}

/// Tries a type that the store keeps: that, and its shapes and encodings.
pub fn data_type<T: DataType>(seed: u64, rounds: u64) -> Result<(), Failure> {
    algebra::<T>(seed, rounds)?;
    each_round::<T>(seed, rounds, stored::round::<T>)
}

fn round<T: Algebra>(rng: &mut Rng) -> Result<(), String> {
    let state = T::sample_state(rng);
    let tuning = sample_tuning(rng);
    for _ in 0..4 {
        single::check::<T>(&state, &T::sample_op(rng), &tuning)?;
    }
    for _ in 0..4 {
        group::check::<T>(&state, &tuning, rng)?;
    }
    combine::check::<T>(&state, &tuning, rng)?;
    lattice::check::<T>(&tuning, rng)
}

/// A panic fails the round like anything else.
fn each_round<T: Algebra>(
    seed: u64,
    rounds: u64,
    round: fn(&mut Rng) -> Result<(), String>,
) -> Result<(), Failure> {
    for number in 0..rounds {
        let seed = seed.wrapping_add(number);
        let mut rng = Rng::new(seed);
        let outcome = catch_unwind(AssertUnwindSafe(|| round(&mut rng)));
        let what = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(what)) => what,
            Err(panic) => format!("panicked: {}", panic_text(&*panic)),
        };
        return Err(failure::<T>(Some(seed), what));
    }
    Ok(())
}

fn failure<T: Algebra>(seed: Option<u64>, what: String) -> Failure {
    Failure {
        name: T::NAME,
        seed,
        what,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no text)")
}

/// Collections leave their packed shape with the third element.
const TINY: Packing = Packing {
    entries: 2,
    bytes: 4,
};

fn tiny_tuning(seed: u64) -> Tuning {
    let mut tuning = Tuning {
        seed,
        ..Tuning::default()
    };
    for packing in [
        &mut tuning.hash,
        &mut tuning.list,
        &mut tuning.set,
        &mut tuning.sorted_set,
    ] {
        *packing = TINY;
    }
    tuning
}

fn sample_tuning(rng: &mut Rng) -> Tuning {
    let seed = rng.next_u64();
    match rng.below(2) {
        0 => tiny_tuning(seed),
        _ => Tuning {
            seed,
            ..Tuning::default()
        },
    }
}

fn canonical<T: Algebra>(state: &T::State) -> Vec<u8> {
    T::canonical(T::view(state))
}

/// Lines of a report: a name and what it is.
struct Lines(String);

impl Lines {
    fn new(what: &str) -> Self {
        Lines(format!("{what}\n"))
    }

    fn add(mut self, name: &str, value: impl Display) -> Self {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "  {name:11} {value}");
        self
    }

    fn state<T: Algebra>(self, name: &str, state: &T::State) -> Self {
        self.add(name, shown(&canonical::<T>(state)))
    }

    fn fail<R>(self) -> Result<R, String> {
        Err(self.0)
    }
}

/// Bytes, readable where they are text, and not endlessly many.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 400;
    match bytes.get(..MOST) {
        Some(start) if bytes.len() > MOST => {
            format!("\"{}\"… of {} bytes", start.escape_ascii(), bytes.len())
        }
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}
