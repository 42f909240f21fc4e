//! Shards and workers of this package, driven by hand. One binary, so that the package is linked once.

mod chains;
mod replicas;
mod turns;
mod waiting;
mod workers;
