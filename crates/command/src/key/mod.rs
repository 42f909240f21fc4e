//! Commands on keys, whatever they hold.

pub mod copy;
pub mod del;
pub mod dump;
pub mod exists;
pub mod expire;
pub mod expireat;
pub mod expiretime;
pub mod memory_usage;
pub mod move_to;
pub mod object;
pub mod persist;
pub mod pexpire;
pub mod pexpireat;
pub mod pexpiretime;
pub mod pttl;
pub mod rename;
pub mod renamenx;
pub mod restore;
pub mod sort;
pub mod touch;
pub mod ttl;
pub mod type_of;
pub mod unlink;

use crate::Command;

pub static COMMANDS: &[&Command] = &[
    &del::DEL,
    &unlink::UNLINK,
    &exists::EXISTS,
    &touch::TOUCH,
    &type_of::TYPE,
    &dump::DUMP,
    &restore::RESTORE,
    &rename::RENAME,
    &renamenx::RENAMENX,
    &copy::COPY,
    &sort::SORT,
    &sort::SORT_RO,
    &move_to::MOVE,
    &expire::EXPIRE,
    &pexpire::PEXPIRE,
    &expireat::EXPIREAT,
    &pexpireat::PEXPIREAT,
    &ttl::TTL,
    &pttl::PTTL,
    &expiretime::EXPIRETIME,
    &pexpiretime::PEXPIRETIME,
    &persist::PERSIST,
    &object::encoding::ENCODING,
    &object::freq::FREQ,
    &object::idletime::IDLETIME,
    &object::refcount::REFCOUNT,
    &memory_usage::MEMORY_USAGE,
];
