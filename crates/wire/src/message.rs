//! The messages, as in `crates/wire/proto/wire.proto`, and what must hold of each: see
//! [`Envelope::check`].

mod alike;
mod clock;
mod learned;
mod letter;
mod waits;

pub use alike::{Alike, AlikeWrite, MAX_ALIKE, MAX_ALIKE_BYTES};
pub use clock::{AskClock, Clock};
pub use learned::{HeldSlots, Learned, LearnedSlots};
pub use letter::Letter;
pub use waits::{EndWait, EndWaits, How};

use crate::scan;
use bytes::Bytes;

/// Bytes of a node's permanent id.
pub const ID: usize = 20;
/// Limit on the bytes of a cluster's name, and of a refusal's text.
pub const MAX_NAME: usize = 255;
/// Limit on the bytes of one batch of gossip: larger ones are sent as several messages, so that others do not wait long.
/// Parts of a slot's copy are smaller, unless one element is larger.
pub const MAX_CHUNK: usize = 1024 * 1024;
/// Limit on the bytes of a message in pieces. Values have 512 MiB at most.
pub const MAX_WHOLE: usize = 1024 * 1024 * 1024;
/// Limit on the requests or replies in one message.
pub const MAX_REQUESTS: usize = 4096;
/// Limit on the writes in one message.
pub const MAX_ITEMS: usize = 65_000;
/// Limit on the value of a wall clock, so that differences of two clocks fit.
pub const MAX_UNIX_US: u64 = 1 << 62;

/// One message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Envelope {
    /// The newest epoch that its sender knows.
    #[prost(uint64, tag = "1")]
    pub epoch: u64,
    /// The workers of the sender's node and of the receiver's.
    #[prost(uint32, tag = "2")]
    pub from: u32,
    #[prost(uint32, tag = "3")]
    pub to: u32,
    #[prost(
        oneof = "Body",
        tags = "10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 30, 31, 40, 41, 44, 45, 46, 50, 51, 60, 61, 62"
    )]
    pub body: Option<Body>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Body {
    #[prost(message, tag = "10")]
    Hello(Hello),
    #[prost(message, tag = "11")]
    Refuse(Refuse),
    #[prost(message, tag = "12")]
    Credit(Credit),
    #[prost(message, tag = "13")]
    Heartbeat(Heartbeat),
    #[prost(message, tag = "14")]
    Mapping(Mapping),
    #[prost(message, tag = "15")]
    Ask(Ask),
    #[prost(message, tag = "16")]
    Grant(Grant),
    #[prost(message, tag = "17")]
    Learned(Learned),
    #[prost(message, tag = "18")]
    Piece(Piece),
    #[prost(message, tag = "20")]
    Items(Items),
    #[prost(message, tag = "21")]
    Ack(Ack),
    #[prost(message, tag = "22")]
    State(State),
    #[prost(message, tag = "23")]
    Behind(Behind),
    #[prost(message, tag = "24")]
    Learn(Learn),
    #[prost(message, tag = "25")]
    Copy(Copy),
    #[prost(message, tag = "26")]
    Copied(Copied),
    #[prost(message, tag = "30")]
    Gossip(Gossip),
    #[prost(message, tag = "31")]
    Digest(Digest),
    #[prost(message, tag = "40")]
    Requests(Requests),
    #[prost(message, tag = "41")]
    Replies(Replies),
    #[prost(message, tag = "44")]
    EndWaits(EndWaits),
    #[prost(message, tag = "45")]
    Letter(Letter),
    #[prost(message, tag = "46")]
    Alike(Alike),
    #[prost(message, tag = "50")]
    AskClock(AskClock),
    #[prost(message, tag = "51")]
    Clock(Clock),
    #[prost(message, tag = "60")]
    Challenge(Challenge),
    #[prost(message, tag = "61")]
    Proof(Proof),
    #[prost(message, tag = "62")]
    Sealed(Sealed),
}

/// The first message of both sides.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    #[prost(string, tag = "1")]
    pub cluster: String,
    #[prost(bytes = "vec", tag = "2")]
    pub node: Vec<u8>,
    /// Rises with every start of the node.
    #[prost(uint64, tag = "3")]
    pub incarnation: u64,
    /// Random, new with every start: tells two nodes with the same data apart.
    #[prost(fixed64, tag = "4")]
    pub start: u64,
    #[prost(uint32, tag = "5")]
    pub oldest: u32,
    #[prost(uint32, tag = "6")]
    pub newest: u32,
    /// The program's version, shown to operators only. Empty if the program does not send it.
    #[prost(string, tag = "7")]
    pub program: String,
    /// The challenge of a node that does not ask for proof, for a peer that does. Empty: none.
    #[prost(bytes = "vec", tag = "8")]
    pub nonce: Vec<u8>,
}

/// The first message of a node that asks for proof: `crates/wire/src/proof.rs` describes it and the
/// following two.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Challenge {
    #[prost(bytes = "vec", tag = "1")]
    pub nonce: Vec<u8>,
}

/// The dialler's proof that it knows the secret.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Proof {
    #[prost(bytes = "vec", tag = "1")]
    pub mac: Vec<u8>,
}

/// A `Hello` and the proof that a node which knows the secret has sent it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sealed {
    #[prost(bytes = "bytes", tag = "1")]
    pub hello: Bytes,
    #[prost(bytes = "vec", tag = "2")]
    pub mac: Vec<u8>,
}

/// The last message of a side that ends the session.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Refuse {
    #[prost(uint32, tag = "1")]
    pub reason: u32,
    #[prost(string, tag = "2")]
    pub text: String,
}

/// This number of bytes of frames of a class was taken by the receiver.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Credit {
    #[prost(uint32, tag = "1")]
    pub class: u32,
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
}

/// The epoch alone, from a node that has nothing else to send.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Heartbeat {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub epoch: u64,
    #[prost(uint32, tag = "2")]
    pub copies: u32,
    /// The number that the next member gets.
    #[prost(uint32, tag = "3")]
    pub next: u32,
    #[prost(message, repeated, tag = "4")]
    pub members: Vec<Member>,
    /// The desired owners of slots: consecutive ranges.
    #[prost(message, repeated, tag = "5")]
    pub ring: Vec<Owners>,
    /// The nodes that have the slots.
    #[prost(message, repeated, tag = "6")]
    pub chains: Vec<Chain>,
    /// The members of the ring. A member's own weight may be newer.
    #[prost(message, repeated, tag = "7")]
    pub weights: Vec<Weight>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Weight {
    #[prost(uint32, tag = "1")]
    pub no: u32,
    #[prost(uint32, tag = "2")]
    pub weight: u32,
    #[prost(string, tag = "3")]
    pub zone: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Member {
    #[prost(uint32, tag = "1")]
    pub no: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub id: Vec<u8>,
    #[prost(uint64, tag = "3")]
    pub incarnation: u64,
    #[prost(string, tag = "4")]
    pub peer: String,
    #[prost(string, tag = "5")]
    pub plain: String,
    #[prost(string, tag = "6")]
    pub cluster: String,
    #[prost(string, tag = "7")]
    pub zone: String,
    #[prost(uint32, tag = "8")]
    pub weight: u32,
    #[prost(bool, tag = "9")]
    pub drains: bool,
    #[prost(uint32, tag = "10")]
    pub workers: u32,
    /// Of its folder; see `rufous_mapping::Folder`.
    #[prost(uint64, optional, tag = "11")]
    pub after: Option<u64>,
    #[prost(bool, tag = "12")]
    pub behind: bool,
    #[prost(bool, tag = "13")]
    pub renewed: bool,
    #[prost(bool, tag = "14")]
    pub whole: bool,
}

/// What follows a member's record in its announcement: fields of one message with it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Health {
    #[prost(string, tag = "20")]
    pub ails: String,
    #[prost(bool, tag = "21")]
    pub says_whom: bool,
    #[prost(uint32, repeated, tag = "22")]
    pub hears: Vec<u32>,
    #[prost(string, tag = "24")]
    pub waits: String,
    #[prost(uint32, tag = "25")]
    pub unserved: u32,
    #[prost(bool, tag = "26")]
    pub serves: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Owners {
    /// The first slot after the range.
    #[prost(uint32, tag = "1")]
    pub until: u32,
    #[prost(uint32, repeated, tag = "2")]
    pub nodes: Vec<u32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Chain {
    #[prost(uint32, tag = "1")]
    pub until: u32,
    #[prost(uint32, repeated, tag = "2")]
    pub members: Vec<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub learner: Option<u32>,
    #[prost(uint64, tag = "4")]
    pub born: u64,
    #[prost(uint64, tag = "5")]
    pub since: u64,
    /// No node acts by it; see `rufous_mapping::Phase`. Older programs do not know this and the next
    /// field.
    #[prost(uint64, optional, tag = "6")]
    pub acted: Option<u64>,
    #[prost(uint32, repeated, tag = "7")]
    pub former: Vec<u32>,
    /// It confirms although it has lost no node: a slot that was born again. Programs that do not know
    /// this take the chain for a halted one.
    #[prost(bool, tag = "8")]
    pub confirms: bool,
    /// The epoch in which it continued although acknowledged writes may be missing. Programs that do
    /// not know this drop it.
    #[prost(uint64, tag = "9")]
    pub lost: u64,
}

/// Asks for a lease; the time is that of the asker's clock.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ask {
    #[prost(uint64, tag = "1")]
    pub asked_us: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Grant {
    #[prost(uint64, tag = "1")]
    pub asked_us: u64,
}

/// A part of a message that is too long for a frame: bytes of its envelope.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Piece {
    #[prost(bytes = "bytes", tag = "1")]
    pub bytes: Bytes,
    /// This is the last piece.
    #[prost(bool, tag = "2")]
    pub last: bool,
}

/// One write of a slot.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Item {
    #[prost(uint64, tag = "1")]
    pub seq: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub effect: Bytes,
}

/// In all of the following messages, `since` is the epoch of the chain that they are about.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Items {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(uint64, tag = "2")]
    pub since: u64,
    #[prost(uint64, tag = "3")]
    pub all: u64,
    #[prost(message, repeated, tag = "4")]
    pub items: Vec<Item>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Ack {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(uint64, tag = "2")]
    pub since: u64,
    #[prost(uint64, tag = "3")]
    pub seq: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct State {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(uint64, tag = "2")]
    pub since: u64,
    #[prost(uint64, tag = "3")]
    pub seq: u64,
    #[prost(message, repeated, tag = "4")]
    pub items: Vec<Item>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Behind {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(uint64, tag = "2")]
    pub since: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Learn {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(uint64, tag = "2")]
    pub since: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Copy {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(uint64, tag = "2")]
    pub since: u64,
    #[prost(bytes = "bytes", tag = "3")]
    pub chunk: Bytes,
    #[prost(uint64, tag = "4")]
    pub part: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Copied {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(uint64, tag = "2")]
    pub since: u64,
    #[prost(uint64, tag = "3")]
    pub all: u64,
    #[prost(uint64, tag = "4")]
    pub seq: u64,
    #[prost(uint64, tag = "5")]
    pub parts: u64,
}

/// Changes of replicas of lattice keys, in their own encoding.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Gossip {
    #[prost(bytes = "bytes", tag = "1")]
    pub batch: Bytes,
}

/// A hash for each slot, from the first slot on.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Digest {
    #[prost(uint32, tag = "1")]
    pub first: u32,
    #[prost(fixed64, repeated, tag = "2")]
    pub hashes: Vec<u64>,
}

/// Requests of clients for a node that has their keys, in order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Requests {
    /// The first request's number; the others have consecutive ones. In one session the sender uses
    /// each number once.
    #[prost(uint64, tag = "1")]
    pub first: u64,
    #[prost(message, repeated, tag = "2")]
    pub requests: Vec<Request>,
    /// Rises when a request of this sender was not executed: until the receiver sees the new round,
    /// it executes none of the requests sent after that one.
    #[prost(uint64, tag = "3")]
    pub round: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    #[prost(uint32, tag = "1")]
    pub db: u32,
    /// The encoding of the reply.
    #[prost(bool, tag = "2")]
    pub resp3: bool,
    /// The reply is not needed, unless it is an error.
    #[prost(bool, tag = "3")]
    pub quiet: bool,
    /// The request does not change statistics of accesses.
    #[prost(bool, tag = "4")]
    pub no_touch: bool,
    /// The array of its words, as clients write it. Its arguments are not fields here: they would
    /// have to be counted before they are decoded.
    #[prost(bytes = "bytes", tag = "5")]
    pub words: Bytes,
}

/// Replies to requests, in the order in which they were made.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Replies {
    #[prost(message, repeated, tag = "1")]
    pub replies: Vec<Reply>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Reply {
    /// The request's number.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// The reply, as clients read it, or a part of it.
    #[prost(bytes = "bytes", tag = "2")]
    pub bytes: Bytes,
    /// More parts of it follow, before any other reply.
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// The request was not executed: in the epoch of the envelope the receiver of the request does
    /// not serve its keys, or an earlier request was not executed.
    #[prost(bool, tag = "4")]
    pub not_here: bool,
    /// The request waits for data at the receiver of the request; its reply follows later. Only to
    /// requests of blocking commands, and so since version 3.
    #[prost(bool, tag = "5")]
    pub waits: bool,
}

const _: () = assert!(MAX_ITEMS + 8 < scan::MAX_FIELDS, "who may send may be read");
