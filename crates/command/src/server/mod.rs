//! Commands on whole databases. Here is what they do to one worker's part;
//! the server sees to it that every worker takes part at one time.

pub mod flushall;
pub mod flushdb;
pub mod swapdb;

use crate::Command;

pub static COMMANDS: &[&Command] = &[&flushall::FLUSHALL, &flushdb::FLUSHDB, &swapdb::SWAPDB];
