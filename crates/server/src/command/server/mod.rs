//! Commands on the server itself.

use crate::command::SessionCommand;

pub mod dbsize;
pub mod debug;
pub mod flush;

pub static COMMANDS: &[&SessionCommand] = &[&dbsize::DBSIZE, &debug::WORKER, &debug::OWNER, &debug::DEBUG];
