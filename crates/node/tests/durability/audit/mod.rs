//! Clients that remember what they were told, and an audit that holds the node
//! to it, key by key. It knows nothing but the protocol and the standard
//! library: `cargo xtask demo durable` uses it too.
//!
//! Each key has one client that writes it, and at most one command on it is
//! under way, so that what may be found after a crash is exactly known: what
//! was acknowledged last or, where the answer never came, that command's
//! outcome, as a whole or not at all.

pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod object;
pub(crate) mod wire;

pub(crate) use ledger::{Findings, Ledger};
pub(crate) use load::Load;

use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Numbers that follow from a seed.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}
