//! Tests of the whole shard.

mod collections;
mod converted;
mod guarantees;
mod journal;
mod lattice;
mod members;
mod model;
mod recent;
mod replicas;
mod single;
mod sketches;
mod snapshot;
mod texts;
mod turn;
mod values;
mod watch;
