//! Commands on strings.

pub mod append;
mod counter;
pub mod decr;
pub mod decrby;
pub mod get;
pub mod getdel;
pub mod getex;
pub mod getrange;
pub mod getset;
pub mod incr;
pub mod incrby;
pub mod incrbyfloat;
pub mod lcs;
pub mod mget;
pub mod mset;
pub mod msetnx;
pub mod outcome;
pub(crate) mod owned;
pub mod psetex;
pub mod set;
pub mod setex;
pub mod setnx;
pub mod setrange;
pub mod strlen;
pub mod substr;
mod warm;

use crate::Command;

pub static COMMANDS: &[&Command] = &[
    &get::GET,
    &set::SET,
    &incr::INCR,
    &mget::MGET,
    &mset::MSET,
    &append::APPEND,
    &decr::DECR,
    &decrby::DECRBY,
    &getdel::GETDEL,
    &getex::GETEX,
    &getrange::GETRANGE,
    &getset::GETSET,
    &incrby::INCRBY,
    &incrbyfloat::INCRBYFLOAT,
    &lcs::LCS,
    &msetnx::MSETNX,
    &outcome::OUTCOME,
    &psetex::PSETEX,
    &setex::SETEX,
    &setnx::SETNX,
    &setrange::SETRANGE,
    &strlen::STRLEN,
    &substr::SUBSTR,
];
