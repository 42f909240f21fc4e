//! Errors of the request parser, worded as Redis words them, since clients and test suites match
//! on the text.

use std::fmt;

/// The request stream is broken: answer `-ERR <text>` and close the connection.
///
/// `Display` gives the text without `ERR`. It never contains CR or LF, whatever was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The count after `*` is no integer, or above [`crate::Limits::max_args`].
    InvalidMultibulkLength,
    /// The length after `$` is no integer, negative, or above [`crate::Limits::max_bulk`].
    InvalidBulkLength,
    /// An argument starts with this byte instead of `$`.
    ExpectedBulk(u8),
    /// No line end within the permitted length after `*`.
    TooBigMultibulkHeader,
    /// No line end within the permitted length after `$`.
    TooBigBulkHeader,
    /// No line end within the permitted length of an inline command.
    TooBigInline,
    /// A quote of an inline command is not closed, or closed in the middle of a word.
    UnbalancedQuotes,
    /// More arguments than a client may send before it has authenticated.
    UnauthenticatedMultibulk,
    /// A longer argument than a client may send before it has authenticated.
    UnauthenticatedBulk,
    /// A request whose small arguments together pass the range of a span (4 GiB).
    TooBigRequest,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        f.write_str(match self {
            Self::InvalidMultibulkLength => "invalid multibulk length",
            Self::InvalidBulkLength => "invalid bulk length",
            // Escaped, so that a received control byte cannot end the error line early.
            Self::ExpectedBulk(byte) => {
                return write!(f, "expected '$', got '{}'", byte.escape_ascii());
            }
            Self::TooBigMultibulkHeader => "too big mbulk count string",
            Self::TooBigBulkHeader => "too big bulk count string",
            Self::TooBigInline => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::UnauthenticatedMultibulk => "unauthenticated multibulk length",
            Self::UnauthenticatedBulk => "unauthenticated bulk length",
            Self::TooBigRequest => "too big request",
        })
    }
}

impl std::error::Error for ProtocolError {}
