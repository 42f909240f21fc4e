//! Tests of the whole shard.

mod guarantees;
mod journal;
mod model;
mod single;
mod snapshot;
mod watch;
