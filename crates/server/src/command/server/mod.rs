//! Commands on the server itself.

use crate::command::SessionCommand;

pub mod backup;
pub mod bgrewriteaof;
pub mod bgsave;
pub mod cluster;
pub mod command;
pub mod config;
pub mod dbsize;
pub mod debug;
pub mod flush;
pub mod function;
pub mod info;
pub mod keys;
pub mod keyspace;
pub mod lastsave;
pub mod latency;
pub mod lolwut;
pub mod memory;
pub mod monitor;
pub mod object;
pub mod pfselftest;
pub mod randomkey;
pub mod role;
pub mod save;
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
    &pfselftest::PFSELFTEST,
    &keys::KEYS,
    &object::OBJECT,
    &object::HELP,
    &randomkey::RANDOMKEY,
    &scan::SCAN,
    &save::SAVE,
    &bgsave::BGSAVE,
    &bgrewriteaof::BGREWRITEAOF,
    &lastsave::LASTSAVE,
    &backup::BACKUP,
    &backup::PIN,
    &backup::UNPIN,
    &backup::HELP,
];
