//! A model of chains alone: nodes with one slot, whose members stop, lose what they had not
//! synced, come back with emptied or old folders, and are suspected, in every order within small
//! bounds, or at random within larger ones.
//!
//! It drives the code that nodes run: [`rufous_chain::Replica`] orders and copies writes, and
//! [`rufous_mapping::planner`] plans epochs. Its own are only what surrounds them: logs, links that
//! keep the order of one sender, a list of live nodes, clients that write.
//!
//! Not modelled: several slots or workers, copies in parts, clocks that drift, lost messages on
//! links that stay up, the coordinator's own failures. The simulator has those.
//!
//! | module | what it has |
//! |---|---|
//! | [`bounds`] | how much of what may happen |
//! | [`node`] | a node: its replica, its log and its folder |
//! | [`world`] | all nodes, and what may happen next |
//! | [`steps`] | what each action does |
//! | [`check`] | what has to hold |
//! | [`search`] | every order, or random ones; the shortest trace to a fault |
//! | [`rules`] | rules that can be switched off |
#![forbid(unsafe_code)]

pub mod bounds;
pub mod check;
pub mod linear;
pub mod node;
pub mod rules;
pub mod search;
pub mod steps;
#[cfg(test)]
mod tests;
pub mod world;
