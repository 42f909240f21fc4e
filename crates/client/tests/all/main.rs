//! The client against servers of every kind. One binary, so that the package is linked once.

mod cluster;
mod common;
mod doubt;
mod rufous;
#[cfg(feature = "tls")]
mod tls;
