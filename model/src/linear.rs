//! A model of linear transactions: slots, origins of transactions and the links between them, under heads that change,
//! links that break, origins that end, and stops of everything that lose the ends of logs.
//!
//! It drives the code that nodes run, [`rufous_linear::Head`] and [`rufous_linear::Origin`]. Its own are the logs and
//! the links. A slot is one replicated log here: what its copies do is the subject of the model of chains.
//!
//! | module | what it has |
//! |---|---|
//! | [`op`] | what a transaction does to a key |
//! | [`ops`] | operations, and the keys of a slot |
//! | [`slot`] | a slot: its log, what of it is kept, and its head |
//! | [`world`] | all slots and origins, and what may happen next |
//! | [`steps`] | what each action does |
//! | [`bounds`] | bounds of random histories |
//! | [`check`] | what has to hold at the end |
//! | `serial` | whether replies of typed operations have an order |
//! | `told` | what slots tell clients |
//! | [`search`] | random histories |
//! | [`exhaustive`] | every order within small bounds |

pub mod bounds;
pub mod check;
pub mod exhaustive;
pub mod op;
pub mod ops;
pub mod search;
mod serial;
pub mod slot;
pub mod steps;
pub mod surveys;
#[cfg(test)]
mod tests;
mod told;
pub mod world;
