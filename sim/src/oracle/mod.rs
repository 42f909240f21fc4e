//! What has to hold of everything that clients saw.
//!
//! - [`linear`]: some order of commands explains it all, over restarts, too
//! - [`promise`]: what a restart may lose

pub mod linear;
pub mod promise;
