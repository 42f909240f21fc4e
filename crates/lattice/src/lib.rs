//! Join-semilattices: states that merge to the same in any order, grouped in
//! any way, however often [Anna §V].
//!
//! Pure mathematics: no clock, randomness or I/O, no knowledge of keys,
//! commands or the protocol, and nothing of ours below. Every lattice is one
//! file, and every one is tried by [`laws`]. Encoded states may come from a
//! file or a peer: decoding answers a state or [`Malformed`], never panics,
//! and a state has one encoding only, so that equal bytes are equal states.
//!
//! | module | lattice |
//! |---|---|
//! | [`stamp`] | no lattice: what orders writes, and the clock that gives it |
//! | [`counter`] | counters that many replicas add to at once |
//! | [`register`] | the last write wins, increments of it add up |
//! | [`presence`] | whether a member is there; additions beat removals |
//! | [`score`] | a number that is written and added to |
//! | [`version`] | what has been seen of each replica's writes |
//! | [`siblings`] | values of which none has seen the other |
//! | [`code`] | how states are written |
//! | [`laws`] | tries whether a lattice is one |
#![forbid(unsafe_code)]

pub mod code;
pub mod counter;
pub mod laws;
pub mod presence;
pub mod register;
pub mod score;
pub mod siblings;
pub mod stamp;
pub mod version;

pub use code::{Coded, Malformed};
pub use counter::{Counter, FloatCounter};
pub use presence::Presence;
pub use register::Register;
pub use score::Score;
pub use siblings::Siblings;
pub use stamp::{Clock, Stamp};
pub use version::VersionVector;

/// States of which any two have a least one above both.
///
/// [`Default::default`] is the bottom: merging it changes nothing.
pub trait Lattice: Clone + Default {
    /// Makes this state the least one above both; returns whether it changed.
    fn merge(&mut self, other: &Self) -> bool;
}
