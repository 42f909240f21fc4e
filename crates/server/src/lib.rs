//! The Redis-protocol server: connections, sessions, commands on the server
//! itself, settings and operation.
//!
//! Data and commands on data live below it; this crate never touches a record.
//!
//! Map, in reading order:
//! - [`config`]: settings
//! - [`front`]: one actor per worker, from bytes to replies
//! - [`command`]: commands on connections and on the server
//! - [`node`]: a running server
#![forbid(unsafe_code)]

pub mod command;
pub mod config;
pub mod front;
pub mod node;
