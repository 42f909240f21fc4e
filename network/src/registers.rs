//! Which keys clients write and read. A few at a time, so that clients meet at them; after
//! some hundred operations others, so that a search can judge each. Those that were left
//! are still read now and then, and all of them in the end.
//!
//! These are of a strict keyspace; [`crate::lattice::keys`] has those of a lattice keyspace.

use std::sync::atomic::{AtomicU64, Ordering};

use rufous_sim::engine::random::Random;

/// Registers in use at a time.
const ACTIVE: u64 = 4;
/// Operations until others take their place.
const TURN: u64 = 1_000;
/// How often an earlier one is read.
const LOOKS_BACK: f64 = 0.05;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Registers {
    operations: AtomicU64,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Read(u64),
    Write(u64),
}

impl Registers {
    pub fn next(&self, random: &mut Random) -> Next {
        let count = self.operations.fetch_add(1, Ordering::Relaxed);
        let first = count / TURN * ACTIVE;
        if first > 0 && random.chance(LOOKS_BACK) {
            return Next::Read(random.below(first));
        }
        let register = first + random.below(ACTIVE);
        match random.chance(0.5) {
            true => Next::Write(register),
            false => Next::Read(register),
        }
    }

    /// All that may have been used.
    pub fn used(&self) -> u64 {
        (self.operations.load(Ordering::Relaxed) / TURN + 1) * ACTIVE
    }
}

/// The key of a register.
pub fn key(register: u64) -> String {
    format!("register:{register}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_written_at_a_time_and_the_others_still_read() {
        let (registers, mut random) = (Registers::default(), Random::new(1, "registers"));
        let mut looked_back = 0;
        for count in 0..20_000 {
            let first = count / TURN * ACTIVE;
            match registers.next(&mut random) {
                Next::Write(register) => assert!((first..first + ACTIVE).contains(&register)),
                Next::Read(register) => {
                    assert!(register < first + ACTIVE);
                    looked_back += u64::from(register < first);
                }
            }
        }
        assert!(looked_back > 500, "{looked_back}");
        assert_eq!(registers.used(), 84);
    }
}
