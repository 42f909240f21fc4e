//! Commands on the bits of strings.

pub mod bitcount;
pub mod bitfield;
pub mod bitfield_ro;
pub mod bitop;
pub mod bitpos;
pub mod getbit;
pub mod setbit;

use crate::{Command, Failure, options};
use rufous_datatype::bits::BitUnit;

pub static COMMANDS: &[&Command] = &[
    &bitcount::BITCOUNT,
    &bitfield::BITFIELD,
    &bitfield_ro::BITFIELD_RO,
    &bitop::BITOP,
    &bitpos::BITPOS,
    &getbit::GETBIT,
    &setbit::SETBIT,
];

/// BYTE or BIT, as BITCOUNT and BITPOS take it.
fn unit(word: &[u8]) -> Result<BitUnit, Failure> {
    match word {
        word if options::is(word, "BYTE") => Ok(BitUnit::Byte),
        word if options::is(word, "BIT") => Ok(BitUnit::Bit),
        _ => Err(Failure::SYNTAX),
    }
}
