//! Reading arguments: numbers, and option words without regard to case.

use crate::Failure;
use rufous_base::limits::DATABASES;
use rufous_datatype::integer;

/// Whether `arg` is the option `word` (given in capitals).
#[inline]
pub fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}

/// A signed integer argument.
pub fn integer(arg: &[u8]) -> Result<i64, Failure> {
    integer::parse_i64(arg).ok_or(Failure::NOT_AN_INTEGER)
}

/// A count or length that may not be negative.
pub fn unsigned(arg: &[u8]) -> Result<u64, Failure> {
    integer::parse_i64(arg)
        .and_then(|n| u64::try_from(n).ok())
        .ok_or(Failure::OUT_OF_RANGE)
}

/// The index of a database.
pub fn database(arg: &[u8]) -> Result<u8, Failure> {
    let index = integer(arg)?;
    if (0..DATABASES as i64).contains(&index) {
        Ok(index as u8)
    } else {
        Err(Failure::DB_OUT_OF_RANGE)
    }
}
