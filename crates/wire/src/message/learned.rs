//! What nodes report to the leader about copies of slots.

/// To the leader: complete learners of the sender's slots, and what the sender has of slots of whose
/// chains no node acts.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Learned {
    #[prost(message, repeated, tag = "1")]
    pub all: Vec<LearnedSlots>,
    /// In order. Slots that are in none of these are not reported.
    #[prost(message, repeated, tag = "2")]
    pub held: Vec<HeldSlots>,
    /// The sender's start. The following fields are about `held`.
    #[prost(uint64, tag = "3")]
    pub incarnation: u64,
    /// The sender has a log: what it does not have was lost.
    #[prost(bool, tag = "4")]
    pub logs: bool,
    /// The operator accepts that writes are lost which no reported copy has.
    #[prost(bool, tag = "5")]
    pub accepts: bool,
    /// Its files may lack writes that it has acknowledged.
    #[prost(bool, tag = "6")]
    pub may_lack: bool,
    /// They have everything that it has ever logged.
    #[prost(bool, tag = "7")]
    pub keeps_all: bool,
    /// The epoch of the mapping by which it has them; 0: an older program.
    #[prost(uint64, tag = "8")]
    pub epoch: u64,
}

/// Slots of which the sender has equal copies, or none.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HeldSlots {
    #[prost(uint32, tag = "1")]
    pub first: u32,
    /// The first slot after the range.
    #[prost(uint32, tag = "2")]
    pub until: u32,
    /// It has a copy: of the chain of this epoch, up to this write.
    #[prost(bool, tag = "3")]
    pub whole: bool,
    #[prost(uint64, tag = "4")]
    pub since: u64,
    #[prost(uint64, tag = "5")]
    pub seq: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct LearnedSlots {
    #[prost(uint32, tag = "1")]
    pub first: u32,
    /// The first slot after the range.
    #[prost(uint32, tag = "2")]
    pub until: u32,
    #[prost(uint32, tag = "3")]
    pub learner: u32,
    /// The epoch of their chains.
    #[prost(uint64, tag = "4")]
    pub since: u64,
}
