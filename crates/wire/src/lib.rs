//! The protocol between nodes: messages, frames and sessions.
//!
//! Sans-io: no socket, clock, file or randomness. A [`Session`] takes the bytes of a connection,
//! split in any way, and returns messages and bytes to be sent. It knows the format of a message,
//! never its meaning.
//!
//! Invariants:
//! 1. Input is hostile: no memory is allocated for bytes that have not arrived, an accepted message
//!    is within the limits of [`message`], and nothing panics.
//! 2. A session holds one incomplete frame, of each class no more than its window, in each
//!    direction, and the received part of a message in pieces.
//! 3. No message of a peer is accepted before its handshake, and none after it was refused. A node
//!    that asks for proof of the cluster's secret tells nothing of itself before it has it.
//! 4. Messages of one class arrive in order, each at most once.
//! 5. A session carries only messages that its version has.
//!
//! | module | what it has |
//! |---|---|
//! | [`message`] | the messages, and what must hold of each |
//! | [`mapping`], [`chain`] | conversion from and to the types of `crates/mapping` and `crates/chain` |
//! | [`frame`] | messages to bytes and back; `pieces`: messages too long for one frame |
//! | [`class`] | which messages do not wait for which |
//! | [`version`] | which messages each version has, and which version is used |
//! | [`proof`] | that both nodes know the cluster's secret |
//! | [`session`] | one connection: handshake, and what is sent when |
//! | [`peers`] | the connected nodes, over all sessions |
//! | [`refused`] | why a session is ended |
#![forbid(unsafe_code)]

pub mod chain;
mod check;
pub mod class;
pub mod frame;
pub mod mapping;
pub mod message;
pub mod peers;
pub mod planted;
pub mod proof;
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
