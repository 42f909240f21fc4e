//! The vocabulary that every other crate shares: ids, time as a value, limits,
//! seeded randomness, key slots, and the contract between an actor and what
//! drives it.
//!
//! It never reads a clock, a socket, a file or a random source, and it knows
//! neither commands nor data types.
//!
//! Map, in reading order:
//! - [`ids`]: nodes, workers and connections
//! - [`time`]: instants handed in from outside
//! - [`limits`]: every bound of the system in one place
//! - [`slot`]: key to slot, slot to worker
//! - [`table`]: a map from slots that is looked up with every message
//! - [`figures`]: counters with their names in INFO and metrics
//! - [`rng`]: randomness from a seed
//! - [`args`]: the arguments of one request, borrowed from where they were read
//! - [`output`]: reply bytes, with large values by reference and what is made while it is sent
//! - [`disk`]: what an actor asks of its disk
//! - [`actor`]: what an actor is given and what it may ask for
#![forbid(unsafe_code)]

pub mod actor;
pub mod args;
pub mod disk;
pub mod figures;
pub mod ids;
pub mod limits;
pub mod output;
pub mod rng;
pub mod slot;
pub mod table;
pub mod time;

pub use actor::{
    Actor, Backlog, Close, ConnInfo, Dial, DialError, Effects, Garbage, Input, NodeEffect, Origin,
    Read, Sends, Until, Write,
};
pub use args::{Args, BigArg, Span};
pub use ids::{ConnId, NodeId, WorkerId};
pub use output::{Apart, Output, Pieces, Source};
pub use time::Now;
