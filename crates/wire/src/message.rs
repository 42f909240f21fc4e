//! The messages, as `crates/wire/proto/wire.proto` has them, and what must hold
//! of each: see [`Envelope::check`].

use crate::scan;
use bytes::Bytes;

/// Bytes of a node's name for ever.
pub const ID: usize = 20;
/// Bytes of a cluster's name, and of what a refusal says.
pub const MAX_NAME: usize = 255;
/// Bytes of one batch of gossip: who has more to say uses more messages, so that
/// nobody waits long behind one of them. Parts of a slot's copy have less, but
/// where one element has more.
pub const MAX_CHUNK: usize = 1024 * 1024;
/// Bytes of a message that comes in pieces. Values have 512 MiB at most.
pub const MAX_WHOLE: usize = 1024 * 1024 * 1024;
/// Requests in one message, and replies.
pub const MAX_REQUESTS: usize = 4096;
/// Writes in one message.
pub const MAX_ITEMS: usize = 65_000;
/// What a wall clock may show, so that it can be told from another.
pub const MAX_UNIX_US: u64 = 1 << 62;

/// One message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Envelope {
    /// The newest epoch that its sender knows.
    #[prost(uint64, tag = "1")]
    pub epoch: u64,
    /// Workers, of the sender's node and of the receiver's.
    #[prost(uint32, tag = "2")]
    pub from: u32,
    #[prost(uint32, tag = "3")]
    pub to: u32,
    #[prost(
        oneof = "Body",
        tags = "10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 30, 31, 40, 41, 50, 51"
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
    #[prost(message, tag = "50")]
    AskClock(AskClock),
    #[prost(message, tag = "51")]
    Clock(Clock),
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
    /// The program's version, for operators; nothing hangs on it. Empty is of a
    /// program that does not say it.
    #[prost(string, tag = "7")]
    pub program: String,
}

/// The last message of a side that wants no more of the other.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Refuse {
    #[prost(uint32, tag = "1")]
    pub reason: u32,
    #[prost(string, tag = "2")]
    pub text: String,
}

/// So many bytes of frames of a class were taken off the connection's hands.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Credit {
    #[prost(uint32, tag = "1")]
    pub class: u32,
    #[prost(uint64, tag = "2")]
    pub bytes: u64,
}

/// Nothing but the epoch, from who has nothing else to say.
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
    /// Who is to have slots: ranges that follow one another.
    #[prost(message, repeated, tag = "5")]
    pub ring: Vec<Owners>,
    /// Who has them.
    #[prost(message, repeated, tag = "6")]
    pub chains: Vec<Chain>,
    /// Who is in the ring. A member's own weight may be newer.
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
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Owners {
    /// The first slot behind the range.
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
}

/// Asks for a lease; the time is the asker's.
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

/// To who plans the next epoch: learners of the sender's slots that have all.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Learned {
    #[prost(message, repeated, tag = "1")]
    pub all: Vec<LearnedSlots>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct LearnedSlots {
    #[prost(uint32, tag = "1")]
    pub first: u32,
    /// The first slot behind the range.
    #[prost(uint32, tag = "2")]
    pub until: u32,
    #[prost(uint32, tag = "3")]
    pub learner: u32,
    /// The epoch of their chains.
    #[prost(uint64, tag = "4")]
    pub since: u64,
}

/// A part of a message that is too long for a frame: bytes of its envelope.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Piece {
    #[prost(bytes = "bytes", tag = "1")]
    pub bytes: Bytes,
    /// The message is whole with it.
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

/// Of all that follows, `since` is the epoch of the chain that it is about.
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

/// What replicas of lattice keys changed, in their own encoding.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Gossip {
    #[prost(bytes = "bytes", tag = "1")]
    pub batch: Bytes,
}

/// A hash for each slot, from the first on.
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
    /// The first one's number; the others have those that follow. In one session
    /// the sender gives each once.
    #[prost(uint64, tag = "1")]
    pub first: u64,
    #[prost(message, repeated, tag = "2")]
    pub requests: Vec<Request>,
    /// Rises when one of this sender's was not done here: until the receiver sees
    /// that, it does none of those that were sent behind it.
    #[prost(uint64, tag = "3")]
    pub round: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    #[prost(uint32, tag = "1")]
    pub db: u32,
    /// How the reply is to be written.
    #[prost(bool, tag = "2")]
    pub resp3: bool,
    /// Nobody needs the reply, unless it is an error.
    #[prost(bool, tag = "3")]
    pub quiet: bool,
    /// It is to leave no trace in statistics of accesses.
    #[prost(bool, tag = "4")]
    pub no_touch: bool,
    /// The array of its words, as clients write it. Its arguments are not fields
    /// here: they would have to be counted before they are decoded.
    #[prost(bytes = "bytes", tag = "5")]
    pub words: Bytes,
}

/// Replies to requests, in the order in which they came to be.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Replies {
    #[prost(message, repeated, tag = "1")]
    pub replies: Vec<Reply>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Reply {
    /// The request's.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// The reply, as clients read it, or a part of it.
    #[prost(bytes = "bytes", tag = "2")]
    pub bytes: Bytes,
    /// More of it follows, before any other reply.
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// Nothing was done: by the epoch that comes with it the receiver of the
    /// request does not answer for its keys, or one before it was not done.
    #[prost(bool, tag = "4")]
    pub not_here: bool,
}

/// Asks what the other node's wall clock shows; the time is the asker's.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AskClock {
    #[prost(uint64, tag = "1")]
    pub asked_us: u64,
}

/// What it shows, in microseconds since the Unix epoch.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Clock {
    #[prost(uint64, tag = "1")]
    pub asked_us: u64,
    #[prost(uint64, tag = "2")]
    pub unix_us: u64,
}

const _: () = assert!(MAX_ITEMS + 8 < scan::MAX_FIELDS, "who may send may be read");
