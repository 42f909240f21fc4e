//! Writes of several slots with bytes in common, from programs of versions 4 and 5.

use super::{Item, Items};
use bytes::Bytes;

/// Limit on the writes of one message.
pub const MAX_ALIKE: usize = 1024;
/// Limit on the bytes of the writes of one message, the common ones counted for each.
pub const MAX_ALIKE_BYTES: usize = 16 << 20;

/// Writes of slots of one worker, each as in an [`Items`] of its own: the slots of a transaction keep the same of it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Alike {
    #[prost(bytes = "bytes", tag = "1")]
    pub common: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub writes: Vec<AlikeWrite>,
}

/// A write: the common bytes between these.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AlikeWrite {
    #[prost(uint32, tag = "1")]
    pub slot: u32,
    #[prost(uint64, tag = "2")]
    pub since: u64,
    #[prost(uint64, tag = "3")]
    pub all: u64,
    #[prost(uint64, tag = "4")]
    pub seq: u64,
    #[prost(bytes = "bytes", tag = "5")]
    pub before: Bytes,
    #[prost(bytes = "bytes", tag = "6")]
    pub after: Bytes,
}

impl Alike {
    /// Bytes of all writes.
    pub fn size(&self) -> usize {
        let each = self.writes.iter();
        each.map(|write| size_of(&self.common, write)).sum()
    }

    /// Whether it has as many bytes as it may have, a single write as many as a client makes it.
    pub(crate) fn is_bounded(&self) -> bool {
        self.writes.len() == 1 || self.size() <= MAX_ALIKE_BYTES
    }

    pub fn slots(&self) -> impl Iterator<Item = u16> {
        let slots = self.writes.iter().map(|write| write.slot);
        slots.filter_map(|slot| u16::try_from(slot).ok())
    }

    /// The messages that it stands for.
    pub fn each(self) -> impl Iterator<Item = Items> {
        let common = self.common;
        self.writes.into_iter().map(move |write| Items {
            slot: write.slot,
            since: write.since,
            all: write.all,
            items: vec![Item {
                seq: write.seq,
                effect: [&write.before[..], &common, &write.after].concat().into(),
            }],
        })
    }
}

fn size_of(common: &Bytes, write: &AlikeWrite) -> usize {
    common.len() + write.before.len() + write.after.len()
}
