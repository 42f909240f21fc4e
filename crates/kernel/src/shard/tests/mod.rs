//! Tests of the whole shard.
