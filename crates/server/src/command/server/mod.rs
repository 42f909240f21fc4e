//! Commands on the server itself.

use crate::command::SessionCommand;

pub mod dbsize;
pub mod debug;
pub mod flush;
pub mod keys;
pub mod object;
pub mod randomkey;
pub mod scan;

pub static COMMANDS: &[&SessionCommand] = &[
    &dbsize::DBSIZE,
    &debug::WORKER,
    &debug::OWNER,
    &debug::DEBUG,
    &keys::KEYS,
    &object::OBJECT,
    &object::HELP,
    &randomkey::RANDOMKEY,
    &scan::SCAN,
];
