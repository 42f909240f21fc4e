//! A node assembled: one actor per worker thread, driven by the runtime.
//!
//! This is the Rust API for programs that run a node inside themselves: give
//! it a way to make the actors, get a handle that connects, counts and stops.
//! It knows neither the protocol nor the commands; the server crate brings
//! both.
#![forbid(unsafe_code)]

pub use rufous_base as base;
pub use rufous_kernel as kernel;
pub use rufous_runtime as runtime;
