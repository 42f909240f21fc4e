//! Bytes of messages and of what is stored: little-endian varints, lengths before what is long, and the kind first.
//!
//! ```text
//! id           node u16, start u64, number u64, big-endian: names of entries sort as identities do
//! stamp        varint time, id
//! transaction  id, body, gathered, count, parts: varint slot, key, count, operations, expected version. With an order of its
//!              own, before the count: 0, varint order, count, slots
//! expected     0: none | 1: never written | 2, stamp
//! ```
//!
//! Entries: see [`crate::stored`]. Numbers of kinds are never used again: what stands in logs stays readable. Bytes may
//! come from anywhere: a length or a count above what is left is refused before anything is allocated.

mod messages;
#[cfg(test)]
mod tests;

use crate::fact::{At, Ending, Stage};
use crate::message::{Found, Outcome, Predecessor};
use crate::txn::{Part, Stamp, Transaction, TxnId};
use std::sync::Arc;

/// A value with an encoding of its own, of at least one byte, that says where it ends.
pub trait Coded: Sized {
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes a value off the front. `None` if these bytes are none.
    fn decode(from: &mut &[u8]) -> Option<Self>;
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = u8::decode(from)?;
        let bits = u64::from(byte & 0x7f);
        if bits > u64::MAX >> shift {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            // One encoding of each number.
            return (byte != 0 || shift == 0).then_some(value);
        }
    }
    None
}

/// So many bytes.
pub(crate) fn slice<'a>(from: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(usize::try_from(len).ok()?)?;
    *from = rest;
    Some(taken)
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = varint(from)?;
    slice(from, len)
}

pub(crate) fn put_all<T: Coded>(out: &mut Vec<u8>, all: &[T]) {
    put_varint(out, all.len() as u64);
    for one in all {
        one.encode(out);
    }
}

pub(crate) fn all<T: Coded>(from: &mut &[u8]) -> Option<Vec<T>> {
    let count = varint(from)?;
    // Each has a byte at least. Nothing is reserved: they may be larger in memory.
    if count > from.len() as u64 {
        return None;
    }
    (0..count).map(|_| T::decode(from)).collect()
}

impl Coded for u8 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        Some(*byte)
    }
}

impl Coded for u16 {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(*self));
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        varint(from)?.try_into().ok()
    }
}

impl Coded for u64 {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, *self);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        varint(from)
    }
}

impl Coded for Found {
    fn encode(&self, out: &mut Vec<u8>) {
        self.txn.encode(out);
        self.of.encode(out);
        self.at.encode(out);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Some(Self {
            txn: TxnId::decode(from)?,
            of: all(from)?,
            at: all(from)?,
        })
    }
}

impl Coded for At {
    fn encode(&self, out: &mut Vec<u8>) {
        self.slot.encode(out);
        self.stage.encode(out);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (slot, stage) = (u16::decode(from)?, Coded::decode(from)?);
        Some(Self { slot, stage })
    }
}

impl Coded for Stage {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Passed => out.push(0),
            Self::Ended(ending) => {
                out.push(1);
                ending.stamp.encode(out);
                put_all(out, &ending.after);
                ending.told.encode(out);
                ending.alone.encode(out);
            }
            Self::Aborted => out.push(2),
            Self::Forgotten => out.push(3),
        }
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::decode(from)? {
            0 => Self::Passed,
            1 => Self::Ended(Ending {
                stamp: Stamp::decode(from)?,
                after: all(from)?,
                told: Arc::decode(from)?,
                alone: bool::decode(from)?,
            }),
            2 => Self::Aborted,
            3 => Self::Forgotten,
            _ => return None,
        })
    }
}

impl Coded for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        match u8::decode(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Coded> Coded for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        if bool::decode(from)? {
            T::decode(from).map(Some)
        } else {
            Some(None)
        }
    }
}

impl<T: Coded> Coded for Arc<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        T::encode(self, out);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        T::decode(from).map(Arc::new)
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_all(out, self);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        all(from)
    }
}

/// Bytes of any length.
impl Coded for Arc<[u8]> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        bytes(from).map(Into::into)
    }
}

impl TxnId {
    /// The length of its encoding.
    pub const BYTES: usize = 18;
}

impl Coded for TxnId {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.node.to_be_bytes());
        out.extend_from_slice(&self.start.to_be_bytes());
        out.extend_from_slice(&self.number.to_be_bytes());
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (node, rest) = from.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        *from = rest;
        Some(Self {
            node: u16::from_be_bytes(*node),
            start: u64::from_be_bytes(*start),
            number: u64::from_be_bytes(*number),
        })
    }
}

impl Coded for Stamp {
    fn encode(&self, out: &mut Vec<u8>) {
        self.time.encode(out);
        self.txn.encode(out);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (time, txn) = (u64::decode(from)?, TxnId::decode(from)?);
        Some(Self { time, txn })
    }
}

impl Coded for Predecessor {
    fn encode(&self, out: &mut Vec<u8>) {
        self.txn.encode(out);
        self.first.encode(out);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (txn, first) = (TxnId::decode(from)?, u16::decode(from)?);
        Some(Self { txn, first })
    }
}

impl Coded for Outcome {
    fn encode(&self, out: &mut Vec<u8>) {
        (*self == Self::Committed).encode(out);
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::decode(from)? {
            Self::Committed
        } else {
            Self::Aborted
        })
    }
}

impl<O: Coded> Coded for Part<O> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.slot.encode(out);
        put_bytes(out, &self.key);
        put_all(out, &self.ops);
        match self.expects {
            None => out.push(0),
            Some(None) => out.push(1),
            Some(Some(stamp)) => {
                out.push(2);
                stamp.encode(out);
            }
        }
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        Some(Self {
            slot: u16::decode(from)?,
            key: bytes(from)?.into(),
            ops: all(from)?,
            expects: match u8::decode(from)? {
                0 => None,
                1 => Some(None),
                2 => Some(Some(Stamp::decode(from)?)),
                _ => return None,
            },
        })
    }
}

/// Its slots are those of its parts; parts that are none, or in another order than its own, are refused.
impl<O: Coded> Coded for Transaction<O> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.id.encode(out);
        put_bytes(out, self.body());
        put_bytes(out, self.gathered());
        if self.order() > 0 {
            out.push(0);
            self.order().encode(out);
            put_all(out, self.slots());
        }
        put_all(out, self.parts());
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let id = TxnId::decode(from)?;
        let (body, gathered) = (bytes(from)?, bytes(from)?);
        let whole = |parts| Self::of_sorted(id, parts, body.into(), gathered.into());
        let parts: Vec<Part<O>> = all(from)?;
        if !parts.is_empty() {
            return whole(parts);
        }
        let (order, slots) = (u64::decode(from)?, all(from)?);
        let txn = whole(all(from)?)?.with_slots(order, slots);
        txn.filter(|_| order > 0)
    }
}
