//! Commands on the connection.

use crate::command::SessionCommand;

pub mod ping;

pub static COMMANDS: &[&SessionCommand] = &[&ping::PING];
