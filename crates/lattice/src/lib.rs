//! Join-semilattices: states whose merge is independent of order, grouping and repetition [Anna §III].
//!
//! Pure mathematics: no clock, randomness or I/O, no knowledge of keys, commands or the protocol, and no dependency
//! on other crates of the project. Every lattice is one file and is checked by [`laws`]. Encoded states may come from
//! a file or a peer: decoding returns a state or [`Malformed`], never panics, and a state has only one encoding, so
//! that equal bytes are equal states.
//!
//! `docs/lattices.md` lists all of them: bottom, merge, users, sources.
//!
//! | module | lattice |
//! |---|---|
//! | [`max`], [`min`] | the greatest, the least |
//! | [`union`], [`map`] | sets that only grow, maps of lattices |
//! | [`product`] | pairs, each side by itself |
//! | [`lexicographic`] | pairs in which the higher rank replaces everything |
//! | [`vector_clock`] | the greatest number seen of each replica |
//! | [`dots`], [`causal`] | names of updates, contexts that have seen them, what is in causal order |
//! | [`multi_value`] | registers in causal order |
//! | [`bounded_counter`] | counters that never fall below a bound |
//! | [`top_k`] | the greatest scores of a ranking |
//! | [`counter`] | counters for concurrent additions at many replicas |
//! | [`register`] | the last write wins, increments of it add up |
//! | [`presence`] | membership in a set; additions win over removals |
//! | [`score`] | a number that is written and incremented |
//! | [`deadline`] | when a collection expires, and the cut of a passed deadline |
//! | [`deadlines`] | deadlines with the cuts of earlier ones |
//! | [`version`] | the seen writes of each replica |
//! | [`siblings`] | concurrent values of a string |
//!
//! | module | not a lattice |
//! |---|---|
//! | [`stamp`] | the order of writes, and the clock that issues stamps |
//! | [`code`] | the encoding of states |
//! | [`laws`] | checks whether a type is a lattice |
#![forbid(unsafe_code)]

pub mod bounded_counter;
pub mod causal;
pub mod code;
pub mod counter;
pub mod deadline;
pub mod deadlines;
pub mod dots;
pub mod laws;
pub mod lexicographic;
pub mod map;
pub mod max;
pub mod min;
pub mod multi_value;
pub mod presence;
pub mod product;
pub mod register;
pub mod score;
pub mod siblings;
pub mod stamp;
pub mod top_k;
pub mod union;
pub mod vector_clock;
pub mod version;

pub use bounded_counter::BoundedCounter;
pub use causal::Causal;
pub use code::{Coded, Malformed};
pub use counter::{Counter, FloatCounter};
pub use deadline::Deadline;
pub use deadlines::Deadlines;
pub use dots::{Dot, Dots};
pub use lexicographic::Lexicographic;
pub use map::Map;
pub use max::Max;
pub use min::Min;
pub use multi_value::MultiValue;
pub use presence::Presence;
pub use product::Product;
pub use register::Register;
pub use score::Score;
pub use siblings::{Seen, Siblings};
pub use stamp::{Clock, Stamp};
pub use top_k::TopK;
pub use union::Union;
pub use vector_clock::VectorClock;
pub use version::VersionVector;

/// States of which any two have a least one above both.
///
/// [`Default::default`] is the bottom: merging it changes nothing.
pub trait Lattice: Clone + Default {
    /// Makes this state the least one above both; returns whether it changed.
    fn merge(&mut self, other: &Self) -> bool;
}

/// A lattice of which any two states are ordered, by [`Ord`]: their merge is the
/// greater one. [`laws::check_total`] tries it.
pub trait Total: Lattice + Ord {}
