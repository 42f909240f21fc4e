//! Who has which slots: the members of a cluster, the ring that says who is to
//! have what, and the chains that are in force.
//!
//! Pure and deterministic: no clock, randomness, socket or file. A
//! [`Mapping`] is a value with an epoch; [`planner`] makes the next one of it
//! from what was seen of the members, one step at a time. Somebody else stores
//! it, sends it and acts by it.
//!
//! | module | what it has |
//! |---|---|
//! | [`member`] | nodes, by name and by number |
//! | [`ring`] | virtual nodes: who is to have a slot, and who comes behind |
//! | [`chains`] | who has a slot now, in which order, and who learns it |
//! | [`mapping`] | all of it, in one epoch |
//! | [`planner`] | the next epoch |
//! | [`invalid`] | what is wrong with one that came from elsewhere |
#![forbid(unsafe_code)]

pub mod chains;
pub mod invalid;
pub mod mapping;
pub mod member;
pub mod planner;
pub mod ring;

pub use chains::{Chain, Chains, Members};
pub use invalid::Invalid;
pub use mapping::Mapping;
pub use member::{Member, NodeId, NodeNo};
pub use ring::Ring;
