//! What nodes say to one another: messages, the frames they are in, and
//! sessions.
//!
//! Sans-io: no socket, clock, file or randomness. A [`Session`] is fed the bytes
//! of a connection, in whatever pieces they come, and leaves messages and bytes
//! to be sent. It knows what a message looks like, never what it means.
//!
//! Invariants:
//! 1. What comes is hostile: no memory is taken for what has not come, a message
//!    that was let through is within the limits of [`message`], and nothing
//!    panics.
//! 2. A session holds one frame in part, of each class no more than its window,
//!    in each direction, and of a message in pieces what came of it.
//! 3. Nothing of a peer is heard before it has said who it is, and nothing after
//!    it was refused.
//! 4. Messages of one class come in order, each at most once.
//! 5. Of a session's version there is nothing on it but what that version has.
//!
//! | module | what it has |
//! |---|---|
//! | [`message`] | the messages, and what must hold of each |
//! | [`mapping`], [`chain`] | from and to what `crates/mapping` and `crates/chain` work with |
//! | [`frame`] | messages to bytes and back; `pieces` those that are too long for one |
//! | [`class`] | which messages do not wait for which |
//! | [`version`] | which messages each version has, and which version is spoken |
//! | [`session`] | one connection: who is there, what goes out when |
//! | [`peers`] | who is connected, over all sessions |
//! | [`refused`] | why a peer is heard no more |
#![forbid(unsafe_code)]

pub mod chain;
mod check;
pub mod class;
pub mod frame;
pub mod mapping;
pub mod message;
pub mod peers;
pub mod refused;
pub mod session;
pub mod version;

mod flow;
mod pieces;
mod scan;

pub use bytes::Bytes;
pub use class::Class;
pub use message::{Body, Envelope};
pub use peers::Peers;
pub use refused::Refused;
pub use session::{Event, Local, NotSent, Session};
