//! A deterministic simulator: real workers in a seeded world of time, network,
//! disk and clients, and oracles that judge what the clients saw.
//!
//! It never reads a clock, a socket, a file or a random source while it runs a
//! seed: the same seed gives the same trace, line by line.
//!
//! Map, in reading order:
//! - [`engine`]: events in their order, trace, probes, faults, the runner of seeds
//! - [`node`]: the scenario of one node, with its clients, its disk and its ends; parts of it are
//!   shared with others
//! - [`chains`]: the scenario of nodes that replicate along chains
//! - [`cluster`]: the scenario of whole nodes of a cluster
//! - [`gossip`]: the scenario of nodes that share lattice keyspaces
//! - [`history`], [`model`], [`oracle`]: requests and replies, and whether they are right
#![forbid(unsafe_code)]

pub mod chains;
pub mod cluster;
pub mod engine;
pub mod gossip;
pub mod history;
pub mod model;
pub mod node;
pub mod oracle;
