//! Tests of the whole shard.

mod collections;
mod guarantees;
mod journal;
mod lattice;
mod model;
mod replicas;
mod single;
mod snapshot;
mod watch;
