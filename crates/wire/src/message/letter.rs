//! Messages of linear transactions.

use bytes::Bytes;

/// A message of a linear transaction, between the heads of slots and the workers that transactions came from.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Letter {
    /// The slot of its sender, and one; 0: the worker that the transaction came from.
    #[prost(uint32, tag = "1")]
    pub from_slot: u32,
    /// The epoch since which the chain of that slot is unchanged.
    #[prost(uint64, tag = "2")]
    pub from_since: u64,
    /// The same of its receiver.
    #[prost(uint32, tag = "3")]
    pub to_slot: u32,
    #[prost(uint64, tag = "4")]
    pub to_since: u64,
    #[prost(bytes = "bytes", tag = "5")]
    pub message: Bytes,
}
