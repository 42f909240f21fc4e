//! The ways a value or an argument can be refused, each with the text that Redis sends after `ERR `.

use std::fmt;

/// Why an operation on a value was refused. `Display` gives Redis's text, without the leading `ERR `.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueError {
    /// Not a canonical integer of 64 bits.
    NotInteger,
    /// An integer that must not be negative is, or does not fit.
    NotPositive,
    /// A counter would leave the range of 64 bits.
    Overflow,
    /// The one decrement that cannot be negated, `i64::MIN`.
    DecrementOverflow,
    /// Not a floating-point number, or one that does not fit.
    NotFloat,
    /// A floating-point counter would leave the finite numbers.
    NanOrInfinity,
    /// The increment of a hash field is itself not finite.
    IncrementNanOrInfinity,
    /// A hash field holds something other than an integer.
    HashNotInteger,
    /// A hash field holds something other than a number.
    HashNotFloat,
    /// A bound of a range of scores is not a number.
    NotScoreBound,
    /// A bit offset is negative, malformed or beyond the longest string.
    BitOffset,
    /// The bit to set is neither 0 nor 1.
    BitValue,
    /// The bit to look for is neither 0 nor 1.
    BitArgument,
    /// `BITOP NOT` of several strings.
    BitNotSources,
    /// An unknown bitfield type.
    BitfieldType,
    /// An unknown bitfield overflow rule.
    BitfieldOverflow,
    /// A negative offset for `SETRANGE`.
    OffsetOutOfRange,
    /// The result would be longer than a string may be.
    StringTooLong,
    /// An input of `LCS` does not fit 32 bits.
    LcsStringTooLong,
    /// The table that Redis would need for `LCS` exceeds the limit.
    LcsTooLarge,
    /// A malformed cursor.
    InvalidCursor,
    /// Options that do not go together, or are unknown.
    Syntax,
    /// `NX` together with another condition.
    ExpireNxWithOthers,
    /// `GT` together with `LT`.
    ExpireGtWithLt,
    /// A deadline that overflows, or is not positive where it must be, for the command named (in lower case).
    InvalidExpire(&'static str),
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::NotInteger => "value is not an integer or out of range",
            Self::NotPositive => "value is out of range, must be positive",
            Self::Overflow => "increment or decrement would overflow",
            Self::DecrementOverflow => "decrement would overflow",
            Self::NotFloat => "value is not a valid float",
            Self::NanOrInfinity => "increment would produce NaN or Infinity",
            Self::IncrementNanOrInfinity => "value is NaN or Infinity",
            Self::HashNotInteger => "hash value is not an integer",
            Self::HashNotFloat => "hash value is not a float",
            Self::NotScoreBound => "min or max is not a float",
            Self::BitOffset => "bit offset is not an integer or out of range",
            Self::BitValue => "bit is not an integer or out of range",
            Self::BitArgument => "The bit argument must be 1 or 0.",
            Self::BitNotSources => "BITOP NOT must be called with a single source key.",
            Self::BitfieldType => {
                "Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
            }
            Self::BitfieldOverflow => "Invalid OVERFLOW type specified",
            Self::OffsetOutOfRange => "offset is out of range",
            Self::StringTooLong => "string exceeds maximum allowed size (proto-max-bulk-len)",
            Self::LcsStringTooLong => "String too long for LCS",
            Self::LcsTooLarge => {
                "Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
            }
            Self::InvalidCursor => "invalid cursor",
            Self::Syntax => "syntax error",
            Self::ExpireNxWithOthers => {
                "NX and XX, GT or LT options at the same time are not compatible"
            }
            Self::ExpireGtWithLt => "GT and LT options at the same time are not compatible",
            Self::InvalidExpire(command) => {
                return write!(f, "invalid expire time in '{command}' command");
            }
        };
        f.write_str(text)
    }
}

impl std::error::Error for ValueError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_clients_match_on() {
        let check = |error: ValueError, text: &str| assert_eq!(error.to_string(), text);
        check(
            ValueError::NotInteger,
            "value is not an integer or out of range",
        );
        check(
            ValueError::Overflow,
            "increment or decrement would overflow",
        );
        check(
            ValueError::InvalidExpire("set"),
            "invalid expire time in 'set' command",
        );
        check(
            ValueError::StringTooLong,
            "string exceeds maximum allowed size (proto-max-bulk-len)",
        );
    }
}
