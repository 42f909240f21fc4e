//! A deterministic simulator: real workers in a seeded world of time, network,
//! disk and clients, and oracles that judge what the clients saw.
//!
//! It never reads a clock, a socket, a file or a random source while it runs a
//! seed: the same seed gives the same trace, line by line.
//!
//! Map, in reading order:
//! - [`engine`]: events in their order, trace, probes, faults, the runner of seeds
//! - [`world`]: the scenario of one node, with its clients, its disk and its ends; the
//!   modules up to [`settings`] are its parts, some of them shared with others
//! - [`plan`]: what a seed of it stands for
//! - [`seat`]: one worker, driven by the contract of actors
//! - [`client`], [`workload`]: clients and their requests
//! - [`queues`]: clients that wait for elements of lists and sorted sets
//! - [`lattice`]: clients of keyspaces of which several workers have replicas
//! - [`history`], [`model`], [`oracle`]: requests and replies, and whether they are right
//! - [`settings`]: the configuration of a node
//! - [`chains`]: the scenario of nodes that replicate along chains
//! - [`cluster`]: the scenario of whole nodes of a cluster
//! - [`gossip`]: the scenario of nodes that share lattice keyspaces
#![forbid(unsafe_code)]

pub mod chains;
pub mod client;
pub mod cluster;
pub mod engine;
pub mod gossip;
pub mod history;
pub mod lattice;
pub mod model;
pub mod oracle;
pub mod plan;
pub mod queues;
pub mod seat;
pub mod settings;
pub mod workload;
pub mod world;
