//! The Redis-protocol server: connections, sessions, commands on the server
//! itself, and typed settings.
//!
//! Data and commands on data live below it; this crate never touches a record. The program around
//! it, with its command line, files and admin port, is `rufous-node`.
//!
//! Map, in reading order:
//! - [`identity`]: who the server says it is
//! - [`config`]: settings, with their names, values and defaults
//! - [`front`]: one actor per worker, from bytes to replies
//! - [`command`]: commands on connections and on the server
//! - [`cluster`]: a node among others: sessions with them, the coordinator
//! - [`tls`]: its certificates
#![forbid(unsafe_code)]

pub mod cluster;
pub mod command;
pub mod config;
pub mod front;
pub mod identity;
pub mod tls;
