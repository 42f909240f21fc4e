//! The scenario "node": one node of several workers with its clients, its disk and its ends.
//!
//! Map, in reading order:
//! - [`world`]: what happens, and in which order
//! - [`plan`]: what a seed stands for
//! - [`seat`]: one worker, driven by the contract of actors
//! - [`client`], [`workload`]: clients and their requests
//! - [`queues`]: clients that wait for elements of lists and sorted sets
//! - [`lattice`]: clients of keyspaces of which several workers have replicas
//! - [`settings`]: the configuration

pub mod client;
pub mod lattice;
pub mod plan;
pub mod queues;
pub mod seat;
pub mod settings;
pub mod workload;
pub mod world;

pub use world::World;
