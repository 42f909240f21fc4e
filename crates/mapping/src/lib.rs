//! Placement of slots on nodes: the members of a cluster, the ring with the desired owners of each
//! slot, and the chains in force.
//!
//! Pure and deterministic: no clock, randomness, socket or file. A [`Mapping`] is a value with an
//! epoch; [`planner`] derives the next one from it and the observed members, one step at a time.
//! Other crates store it, send it and apply it.
//!
//! | module | what it has |
//! |---|---|
//! | [`member`] | nodes, by id and by number |
//! | [`ring`] | virtual nodes: which nodes are to have a slot, and in which order |
//! | [`chains`] | the nodes that have a slot now, their order, and the learner |
//! | [`mapping`] | all of these, in one epoch |
//! | [`planner`] | the next epoch |
//! | [`invalid`] | why a received mapping is invalid |
//! | [`planted`] | deliberate faults, for the model and the simulator |
#![forbid(unsafe_code)]

pub mod chains;
pub mod invalid;
pub mod mapping;
pub mod member;
pub mod planner;
pub mod planted;
pub mod ring;

pub use chains::{Chain, Chains, Members, Phase};
pub use invalid::Invalid;
pub use mapping::Mapping;
pub use member::{Folder, Member, NodeId, NodeNo, Was};
pub use ring::Ring;
