//! OBJECT: what is known of a key besides its value. The container and its
//! help, which need no data, are with the server's own commands.

pub mod encoding;
pub mod freq;
pub mod idletime;
pub mod refcount;
