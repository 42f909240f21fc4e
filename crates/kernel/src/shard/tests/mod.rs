//! Tests of the whole shard.

mod guarantees;
mod model;
mod single;
