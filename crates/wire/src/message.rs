//! The messages, as `crates/wire/proto/wire.proto` has them, and what must hold
//! of each: see [`Envelope::check`].

use crate::scan;
use bytes::Bytes;
use rufous_base::limits::{MAX_WORKERS, SLOTS};

/// Bytes of a node's name for ever.
pub const ID: usize = 20;
/// Bytes of a cluster's name, and of what a refusal says.
pub const MAX_NAME: usize = 255;
/// Bytes of one batch of gossip, and of one part of a slot's copy: who has more
/// to say uses more messages, so that nobody waits long behind one of them.
pub const MAX_CHUNK: usize = 1024 * 1024;
/// Writes in one message.
pub const MAX_ITEMS: usize = 65_000;

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
        tags = "10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 23, 24, 25, 26, 30, 31"
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

const _: () = assert!(MAX_ITEMS + 8 < scan::MAX_FIELDS, "who may send may be read");

impl Envelope {
    /// Whether what it says can be at all: numbers in their ranges, sizes in
    /// their limits, ranges of slots that follow one another. Both sides ask,
    /// the sender before it sends. The answer says what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        let workers = MAX_WORKERS as u32;
        ensure(
            self.from < workers && self.to < workers,
            "there is no such worker",
        )?;
        match self.body.as_ref().ok_or("a message of an unknown kind")? {
            Body::Hello(hello) => hello.check(),
            Body::Refuse(refuse) => name(&refuse.text),
            Body::Mapping(mapping) => mapping.check().map_err(|invalid| invalid.0),
            Body::Items(Items { slot, items, .. }) | Body::State(State { slot, items, .. }) => {
                is_slot(*slot)?;
                ensure(items.len() <= MAX_ITEMS, "too many writes at once")?;
                let rise = items.windows(2).all(|pair| pair[0].seq < pair[1].seq);
                ensure(rise, "writes of a slot that are not in order")
            }
            Body::Ack(Ack { slot, .. })
            | Body::Behind(Behind { slot, .. })
            | Body::Learn(Learn { slot, .. })
            | Body::Copied(Copied { slot, .. }) => is_slot(*slot),
            Body::Copy(copy) => {
                is_slot(copy.slot)?;
                ensure(copy.chunk.len() <= MAX_CHUNK, "too large a part of a copy")
            }
            Body::Gossip(gossip) => ensure(gossip.batch.len() <= MAX_CHUNK, "too large a batch"),
            Body::Digest(digest) => {
                is_slot(digest.first)?;
                let room = SLOTS - digest.first as usize;
                ensure(digest.hashes.len() <= room, "hashes of too many slots")
            }
            Body::Credit(_) | Body::Heartbeat(_) | Body::Ask(_) | Body::Grant(_) => Ok(()),
        }
    }
}

impl Hello {
    fn check(&self) -> Result<(), &'static str> {
        name(&self.cluster)?;
        ensure(self.node.len() == ID, "a node's id of the wrong length")?;
        ensure(
            0 < self.oldest && self.oldest <= self.newest && self.newest <= u32::from(u16::MAX),
            "versions that cannot be",
        )
    }
}

fn is_slot(slot: u32) -> Result<(), &'static str> {
    ensure((slot as usize) < SLOTS, "there is no such slot")
}

fn name(text: &str) -> Result<(), &'static str> {
    ensure(text.len() <= MAX_NAME, "too long a name")
}

fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}
