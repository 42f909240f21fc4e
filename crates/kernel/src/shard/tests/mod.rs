//! Tests of the whole shard.

mod collections;
mod guarantees;
mod journal;
mod model;
mod single;
mod snapshot;
mod watch;
