//! Commands on the server itself.

use crate::command::SessionCommand;

pub mod command;
pub mod config;
pub mod dbsize;
pub mod debug;
pub mod flush;
pub mod function;
pub mod info;
pub mod keys;
pub mod latency;
pub mod lolwut;
pub mod memory;
pub mod monitor;
pub mod object;
pub mod randomkey;
pub mod role;
pub mod scan;
pub mod shutdown;
pub mod slowlog;
pub mod time;

pub static COMMANDS: &[&SessionCommand] = &[
    &dbsize::DBSIZE,
    &info::INFO,
    &time::TIME,
    &role::ROLE,
    &shutdown::SHUTDOWN,
    &monitor::MONITOR,
    &lolwut::LOLWUT,
    &keys::KEYS,
    &object::OBJECT,
    &object::HELP,
    &randomkey::RANDOMKEY,
    &scan::SCAN,
];
