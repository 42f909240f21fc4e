//! Who the server says it is.
//!
//! Clients and libraries decide by `redis_version` which commands they use, so
//! it names the Redis release whose commands and texts are followed; the
//! server's own name and version stand beside it.

pub const REDIS_VERSION: &str = "7.2.4";
pub const NAME: &str = "rufous";
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `HELLO` says, which libraries compare with what they know.
pub const PROTOCOL_NAME: &str = "redis";
