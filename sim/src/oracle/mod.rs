//! What has to hold of everything that clients saw.
//!
//! - [`lattice`]: what replicas of counters and sets may show
//! - [`linear`]: some order of commands explains it all, over restarts, too
//! - [`sessions`]: the order of writes that levels of sessions and causal cuts promise
//! - [`promise`]: what a restart may lose

pub mod lattice;
pub mod linear;
pub mod promise;
pub mod sessions;
