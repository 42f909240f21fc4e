//! A deterministic simulator: real workers in a seeded world of time, network,
//! disk and clients, and oracles that judge what the clients saw.
//!
//! It never reads a clock, a socket, a file or a random source while it runs a
//! seed: the same seed gives the same trace, line by line.
//!
//! Map, in reading order:
//! - [`plan`]: what a seed stands for
//! - [`world`]: events in their order, and what they do
//! - [`seat`]: one worker, driven as the contract of actors has it
//! - [`disk`], [`clock`]: what outlives a crash, and the time of day
//! - [`client`], [`workload`]: who asks for what
//! - [`queues`]: clients of lists and sorted sets that wait for what comes
//! - [`lattice`]: clients of keyspaces of which several workers have replicas
//! - [`history`], [`model`], [`oracle`]: what was seen, and whether it is right
//! - [`probes`], [`trace`]: rare states that were reached, and what happened
//! - [`faults`]: what is made wrong on purpose
//! - [`runs`]: many seeds
//! - [`replicas`]: the second world, of replicas of lattice keyspaces alone
//! - [`chains`]: the third world, of nodes that replicate along chains
//! - [`cluster`]: the fourth world, of whole nodes of a cluster
//! - [`gossip`]: the fifth world, of nodes that share lattice keyspaces
//! - [`settings`], [`random`]: helpers
#![forbid(unsafe_code)]

pub mod chains;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod disk;
pub mod faults;
pub mod gossip;
pub mod history;
pub mod lattice;
pub mod model;
pub mod oracle;
pub mod plan;
pub mod probes;
pub mod queues;
pub mod random;
pub mod replicas;
pub mod runs;
pub mod seat;
pub mod settings;
pub mod trace;
pub mod workload;
pub mod world;
