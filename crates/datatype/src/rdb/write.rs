//! Writing a payload, element by element or from a whole value.

use super::{Items, RdbValue, VERSION, checksum, types};
use crate::integer;
use crate::object::Tag;

/// A payload being written. The kinds with a count take exactly as many elements as announced.
#[derive(Debug)]
pub struct DumpWriter {
    out: Vec<u8>,
}

impl DumpWriter {
    /// The whole payload of a string.
    pub fn string(value: &[u8]) -> Vec<u8> {
        let mut writer = Self::of(types::STRING, value.len() + 16);
        writer.item(value);
        writer.finish()
    }

    /// Followed by as many calls of [`Self::item`].
    pub fn list(count: usize) -> Self {
        Self::counted(types::LIST, count)
    }

    /// Followed by as many calls of [`Self::item`].
    pub fn set(count: usize) -> Self {
        Self::counted(types::SET, count)
    }

    /// Followed by twice as many calls of [`Self::item`]: fields, each with its value.
    pub fn hash(pairs: usize) -> Self {
        Self::counted(types::HASH, pairs)
    }

    /// Followed by as many calls of [`Self::member`].
    pub fn sorted_set(count: usize) -> Self {
        Self::counted(types::SORTED_SET, count)
    }

    /// Followed by a call of [`Self::item`] for each chunk.
    pub fn own(tag: Tag) -> Self {
        let mut writer = Self::of(types::OWN, 64);
        writer
            .out
            .extend_from_slice(&[types::OWN_VERSION, tag as u8]);
        writer
    }

    /// A string; small integers are written as such.
    pub fn item(&mut self, item: &[u8]) {
        // Eleven characters are the longest integer of 32 bits.
        let short = (1..=11).contains(&item.len());
        let number = short.then(|| integer::parse_i64(item)).flatten();
        match number.and_then(|number| i32::try_from(number).ok()) {
            Some(number) => self.integer(number),
            None => {
                self.length(item.len());
                self.out.extend_from_slice(item);
            }
        }
    }

    pub fn member(&mut self, member: &[u8], score: f64) {
        self.item(member);
        self.out.extend_from_slice(&score.to_le_bytes());
    }

    /// The payload.
    pub fn finish(self) -> Vec<u8> {
        seal(self.out)
    }

    fn of(kind: u8, capacity: usize) -> Self {
        let mut out = Vec::with_capacity(capacity);
        out.push(kind);
        Self { out }
    }

    fn counted(kind: u8, count: usize) -> Self {
        let mut writer = Self::of(kind, 64);
        writer.length(count);
        writer
    }

    /// 6, 14, 32 or 64 bits, the highest byte first.
    fn length(&mut self, len: usize) {
        match len {
            0..0x40 => self.out.push(len as u8),
            0x40..0x4000 => {
                let bytes = (len as u16 | 0x4000).to_be_bytes();
                self.out.extend_from_slice(&bytes);
            }
            _ => match u32::try_from(len) {
                Ok(len) => {
                    self.out.push(0x80);
                    self.out.extend_from_slice(&len.to_be_bytes());
                }
                Err(_) => {
                    self.out.push(0x81);
                    self.out.extend_from_slice(&(len as u64).to_be_bytes());
                }
            },
        }
    }

    fn integer(&mut self, number: i32) {
        let bytes = number.to_le_bytes();
        let (kind, width) = match number {
            -0x80..0x80 => (0xc0, 1),
            -0x8000..0x8000 => (0xc1, 2),
            _ => (0xc2, 4),
        };
        self.out.push(kind);
        self.out.extend_from_slice(&bytes[..width]);
    }
}

/// Adds the footer to a value in the file format.
pub fn seal(mut value: Vec<u8>) -> Vec<u8> {
    value.extend_from_slice(&VERSION.to_le_bytes());
    let sum = checksum::checksum(&value);
    value.extend_from_slice(&sum.to_le_bytes());
    value
}

/// The payload of a value.
pub fn write(value: &RdbValue) -> Vec<u8> {
    let all = |mut writer: DumpWriter, items: &Items| {
        for item in items.iter() {
            writer.item(item);
        }
        writer.finish()
    };
    match value {
        RdbValue::String(bytes) => DumpWriter::string(bytes),
        RdbValue::List(items) => all(DumpWriter::list(items.len()), items),
        RdbValue::Set(items) => all(DumpWriter::set(items.len()), items),
        RdbValue::Hash(items) => all(DumpWriter::hash(items.len() / 2), items),
        RdbValue::SortedSet(members, scores) => {
            let mut writer = DumpWriter::sorted_set(members.len());
            for (member, score) in members.iter().zip(scores) {
                writer.member(member, *score);
            }
            writer.finish()
        }
        RdbValue::Own(tag, chunks) => all(DumpWriter::own(*tag), chunks),
    }
}
