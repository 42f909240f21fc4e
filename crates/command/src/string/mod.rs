//! Commands on strings.

pub mod get;
pub mod set;

use crate::Command;

pub static COMMANDS: &[&Command] = &[&get::GET, &set::SET];
