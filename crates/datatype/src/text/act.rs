//! What an operation does to a string, whatever it answers.

use super::{Op, View};
use crate::range::{check_string_len, setrange_offset};
use crate::{DEFAULT_MAX_BULK_LEN, bits, float, integer};
use std::ops::Range;

/// Operations that do the same are the same here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act<'a> {
    /// In no state.
    Nothing,
    /// Whatever was there, or nothing at all, comes to be this.
    Put(Option<&'a [u8]>),
    PutIfMissing(&'a [u8]),
    Patch(Patch<'a>),
    /// At least one byte.
    Append(&'a [u8]),
    Add(i64),
    AddFloat(&'a [u8]),
}

/// Overwrites a part and leaves the rest; what is missing or too short is
/// filled up with zeros before.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patch<'a> {
    Bytes { at: usize, value: &'a [u8] },
    Bit { at: u64, bit: bool },
}

pub(super) fn act<'a>(op: &Op<'a>) -> Act<'a> {
    match *op {
        Op::Get | Op::StrLen | Op::GetRange { .. } | Op::GetBit { .. } | Op::BitCount => {
            Act::Nothing
        }
        Op::Set { value } | Op::GetSet { value } => Act::Put(Some(value)),
        Op::Delete | Op::GetDel => Act::Put(None),
        Op::SetNx { value } => Act::PutIfMissing(value),
        Op::SetRange { offset, value } => {
            match setrange_offset(offset, value.len(), DEFAULT_MAX_BULK_LEN) {
                Ok(at) if !value.is_empty() => Act::Patch(Patch::Bytes { at, value }),
                _ => Act::Nothing,
            }
        }
        Op::SetBit { offset, bit } => Act::Patch(Patch::Bit { at: offset, bit }),
        // Creates what is missing, and that is all.
        Op::Append { value: [] } => Act::Patch(Patch::Bytes { at: 0, value: &[] }),
        Op::Append { value } => Act::Append(value),
        Op::Incr { by } => Act::Add(by),
        Op::IncrFloat { by } => Act::AddFloat(by),
    }
}

impl Act<'_> {
    /// Whether it makes another state of this one.
    pub(super) fn changes(&self, view: View<'_>) -> bool {
        match *self {
            Act::Nothing => false,
            Act::Put(value) => value != view,
            Act::PutIfMissing(_) => view.is_none(),
            Act::Patch(patch) => !view.is_some_and(|bytes| patch.is_in(bytes)),
            Act::Append(value) => {
                let (len, added) = (super::len(view), value.len() as u64);
                check_string_len(len, added, DEFAULT_MAX_BULK_LEN).is_ok()
            }
            Act::Add(by) => (by != 0 || view.is_none()) && integer::increment(view, by).is_ok(),
            Act::AddFloat(by) => {
                float::increment(view, by).is_ok_and(|text| Some(text.as_slice()) != view)
            }
        }
    }

    /// Does it; returns whether anything changed.
    pub(super) fn perform(&self, state: &mut Option<Vec<u8>>) -> bool {
        if !self.changes(state.as_deref()) {
            return false;
        }
        match *self {
            Act::Nothing => {}
            Act::Put(None) => *state = None,
            Act::Put(Some(value)) | Act::PutIfMissing(value) => {
                let bytes = state.get_or_insert_default();
                bytes.clear();
                bytes.extend_from_slice(value);
            }
            Act::Patch(patch) => patch.perform(state.get_or_insert_default()),
            Act::Append(value) => state.get_or_insert_default().extend_from_slice(value),
            Act::Add(by) => {
                if let Ok(sum) = integer::increment(state.as_deref(), by) {
                    let bytes = state.get_or_insert_default();
                    bytes.clear();
                    integer::write_i64(bytes, sum);
                }
            }
            Act::AddFloat(by) => {
                if let Ok(text) = float::increment(state.as_deref(), by) {
                    *state = Some(text);
                }
            }
        }
        true
    }
}

impl Patch<'_> {
    /// How many bytes a string has at least, afterwards.
    pub(super) fn end(&self) -> u64 {
        match *self {
            Patch::Bytes { at, value } => (at + value.len()) as u64,
            Patch::Bit { at, .. } => bits::bytes_to_hold(at),
        }
    }

    /// Whether a string has already what this writes.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        match *self {
            Patch::Bytes { at, value } => bytes.get(at..at + value.len()) == Some(value),
            Patch::Bit { at, bit } => {
                self.end() <= bytes.len() as u64 && bits::getbit(bytes, at) == bit
            }
        }
    }

    /// Whether both write the same where they overlap, if they do.
    pub(super) fn agrees(&self, other: &Patch<'_>) -> bool {
        match (*self, *other) {
            (Patch::Bit { at, bit }, Patch::Bit { at: of, bit: to }) => at != of || bit == to,
            (Patch::Bit { at, bit }, bytes) | (bytes, Patch::Bit { at, bit }) => {
                bytes.written_bit(at).is_none_or(|written| written == bit)
            }
            (Patch::Bytes { at, value }, Patch::Bytes { at: of, value: to }) => {
                let (start, end) = (at.max(of), (at + value.len()).min(of + to.len()));
                start >= end || value[start - at..end - at] == to[start - of..end - of]
            }
        }
    }

    /// The bit that this leaves at an offset, if it writes there.
    fn written_bit(&self, offset: u64) -> Option<bool> {
        match *self {
            Patch::Bit { at, bit } => (at == offset).then_some(bit),
            Patch::Bytes { at, value } => {
                let from = offset.checked_sub(at as u64 * 8)?;
                (from < value.len() as u64 * 8).then(|| bits::getbit(value, from))
            }
        }
    }

    /// Whether a bit of the string stays what it is; beyond the end it is 0.
    pub(super) fn leaves_bit(&self, bytes: &[u8], offset: u64) -> bool {
        self.written_bit(offset)
            .is_none_or(|bit| bit == bits::getbit(bytes, offset))
    }

    /// Whether these bytes of the string stay what they are; beyond the end
    /// they are zeros.
    pub(super) fn leaves_bytes(&self, bytes: &[u8], range: Range<usize>) -> bool {
        match *self {
            Patch::Bit { at, .. } => {
                let byte = (at / 8) as usize;
                !range.contains(&byte) || self.leaves_bit(bytes, at)
            }
            Patch::Bytes { at, value } => {
                let (start, end) = (range.start.max(at), range.end.min(at + value.len()));
                (start..end).all(|byte| value[byte - at] == bytes.get(byte).copied().unwrap_or(0))
            }
        }
    }

    fn perform(&self, bytes: &mut Vec<u8>) {
        let end = self.end() as usize;
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        match *self {
            Patch::Bytes { at, value } => bytes[at..at + value.len()].copy_from_slice(value),
            Patch::Bit { at, bit } => {
                bits::setbit(bytes, at, bit);
            }
        }
    }
}
