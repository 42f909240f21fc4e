//! Writes of several slots with bytes in common.

use super::{Item, Items};
use bytes::Bytes;
use std::ops::Range;

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
    /// A message of one write whose bytes at `common` others may have, too. `None` if there is not one write.
    pub fn of(items: &Items, common: Range<usize>) -> Option<Self> {
        let (write, common) = write_of(items, common)?;
        Some(Self {
            common,
            writes: vec![write],
        })
    }

    /// Adds a write; false if it is not alike, or would make the message too large.
    pub fn add(&mut self, items: &Items, common: Range<usize>) -> bool {
        let Some((write, common)) = write_of(items, common) else {
            return false;
        };
        let fits = common == self.common && is_within(self.size() + size_of(&common, &write));
        if fits && self.writes.len() < MAX_ALIKE {
            self.writes.push(write);
            return true;
        }
        false
    }

    /// Bytes of all writes.
    pub fn size(&self) -> usize {
        let each = self.writes.iter();
        each.map(|write| size_of(&self.common, write)).sum()
    }

    /// Whether it has as many bytes as it may have, a single write as many as a client makes it.
    pub(crate) fn is_bounded(&self) -> bool {
        self.writes.len() == 1 || is_within(self.size())
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

fn is_within(bytes: usize) -> bool {
    bytes <= MAX_ALIKE_BYTES
}

fn size_of(common: &Bytes, write: &AlikeWrite) -> usize {
    common.len() + write.before.len() + write.after.len()
}

fn write_of(items: &Items, common: Range<usize>) -> Option<(AlikeWrite, Bytes)> {
    let [item] = &items.items[..] else {
        return None;
    };
    let effect = &item.effect;
    if common.start > common.end || common.end > effect.len() {
        return None;
    }
    let write = AlikeWrite {
        slot: items.slot,
        since: items.since,
        all: items.all,
        seq: item.seq,
        before: effect.slice(..common.start),
        after: effect.slice(common.end..),
    };
    Some((write, effect.slice(common)))
}
