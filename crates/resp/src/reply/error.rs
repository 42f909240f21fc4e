//! Why bytes are not a reply.

use std::fmt;

/// The reply stream is broken; nothing after it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// No reply starts with this byte.
    UnknownType(u8),
    /// The line or payload of a reply that starts with this byte makes no sense.
    Malformed(u8),
    /// A payload or line is not followed by CR LF.
    MissingLineEnd,
    /// Longer than the limits permit.
    TooBig,
    /// Aggregates nested deeper than the limits permit.
    TooDeep,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(byte) => {
                write!(f, "no reply type starts with '{}'", byte.escape_ascii())
            }
            Self::Malformed(byte) => write!(f, "malformed '{}' reply", byte.escape_ascii()),
            Self::MissingLineEnd => f.write_str("reply is not followed by CR LF"),
            Self::TooBig => f.write_str("reply exceeds the size limit"),
            Self::TooDeep => f.write_str("reply exceeds the nesting limit"),
        }
    }
}

impl std::error::Error for ReplyError {}
