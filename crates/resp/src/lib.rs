//! RESP2 and RESP3: bytes to requests and replies, and back.
//!
//! **What it is.** A codec without input or output of its own. A server gives received bytes to
//! [`RequestParser`] and appends answers to an output vector with the functions of [`encode`]. A
//! client appends requests with [`encode::request`] and gives received bytes to [`ReplyParser`],
//! or to [`Skipper`] where only the end of each reply matters.
//!
//! **What it never does.** It opens no socket, reads no clock, starts no thread, and knows no
//! command, key or data type. It allocates for bytes that have arrived and never for a length that
//! was only announced. Nothing the other side sends makes it panic, recurse without bound, or look
//! at the same bytes again and again: the cost of a request is linear in its size, however it is
//! split on its way.
//!
//! **Map.**
//!
//! | module | concern |
//! |---|---|
//! | [`request`] | the server's side of parsing: requests as spans of the caller's buffer |
//! | `request::pending` | a request that has arrived in part, resumable at any byte |
//! | `request::inline` | commands typed as a line of text, with quoting |
//! | [`encode`] | the server's side of writing: replies by protocol version |
//! | [`reply`] | the client's side of parsing: owned replies, or only their ends |
//! | [`number`] | decimal integers and doubles in the form that Redis reads and writes |
//! | [`error`] | protocol errors with Redis's texts |
#![forbid(unsafe_code)]

pub mod encode;
pub mod error;
pub mod number;
pub mod reply;
pub mod request;

pub use encode::Proto;
pub use error::ProtocolError;
pub use number::{DoubleText, format_double, parse_integer};
pub use reply::{Reply, ReplyError, ReplyLimits, ReplyParser, Skipper, skip_reply};
pub use request::{Limits, Progress, RequestParser, Span, slice};

// Spans are 32-bit and sums of a position and an announced length must not overflow.
const _: () = assert!(usize::BITS >= 64);
