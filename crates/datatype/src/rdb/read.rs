//! Reading a payload: the footer, then the value in any of its forms.

use super::{FOOTER_LEN, Items, MAX_VERSION, RdbError, RdbValue, checksum, types};
use super::{integers, listpack, lzf, object, ziplist, zipmap};
use crate::float;
use crate::object::Tag;
use std::borrow::Cow;

/// The value of a payload. What is decoded may take up to `max_bytes`.
pub fn read(payload: &[u8], max_bytes: usize) -> Result<RdbValue, RdbError> {
    let (signed, sum) = payload.split_last_chunk::<8>().ok_or(RdbError::Footer)?;
    let (body, version) = signed.split_last_chunk::<2>().ok_or(RdbError::Footer)?;
    debug_assert_eq!(body.len() + FOOTER_LEN, payload.len());
    if u16::from_le_bytes(*version) > MAX_VERSION
        || u64::from_le_bytes(*sum) != checksum::checksum(signed)
    {
        return Err(RdbError::Footer);
    }
    let mut reader = Reader::new(body);
    let kind = reader.byte()?;
    let mut decoder = Decoder {
        items: Items::default(),
        scores: Vec::new(),
        max_bytes,
    };
    let value = decoder.value(kind, &mut reader)?;
    match reader.is_empty() {
        true => Ok(value),
        false => Err(RdbError::Malformed),
    }
}

/// An element of a packed form.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    Bytes(&'a [u8]),
    Integer(i64),
}

/// Bytes that were not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], RdbError> {
        let split = self.rest.split_at_checked(len);
        let (taken, rest) = split.ok_or(RdbError::Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let split = self.rest.split_first_chunk::<N>();
        let (taken, rest) = split.ok_or(RdbError::Malformed)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, RdbError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, RdbError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, RdbError> {
        self.array().map(u32::from_le_bytes)
    }

    /// A signed integer of up to eight bytes, the lowest first.
    pub(super) fn signed<const N: usize>(&mut self) -> Result<i64, RdbError> {
        let mut bytes = [0; 8];
        bytes[8 - N..].copy_from_slice(&self.array::<N>()?);
        Ok(i64::from_le_bytes(bytes) >> (64 - 8 * N))
    }

    /// A length, or the number of a special form of string.
    fn length(&mut self) -> Result<Length, RdbError> {
        let head = self.byte()?;
        Ok(match head {
            0..0x40 => Length::Plain(head.into()),
            0x40..0x80 => Length::Plain(u64::from(head & 0x3f) << 8 | u64::from(self.byte()?)),
            0x80 => Length::Plain(u32::from_be_bytes(self.array()?).into()),
            0x81 => Length::Plain(u64::from_be_bytes(self.array()?)),
            0xc0.. => Length::Special(head & 0x3f),
            _ => return Err(RdbError::Malformed),
        })
    }

    fn plain(&mut self) -> Result<u64, RdbError> {
        match self.length()? {
            Length::Plain(len) => Ok(len),
            Length::Special(_) => Err(RdbError::Malformed),
        }
    }

    fn plain_len(&mut self) -> Result<usize, RdbError> {
        usize::try_from(self.plain()?).map_err(|_| RdbError::Malformed)
    }

    /// A count of things that take at least `width` bytes each.
    fn count(&mut self, width: usize) -> Result<usize, RdbError> {
        let count = self.plain_len()?;
        match count <= self.len() / width {
            true => Ok(count),
            false => Err(RdbError::Malformed),
        }
    }
}

enum Length {
    Plain(u64),
    Special(u8),
}

/// What is decoded so far.
struct Decoder {
    items: Items,
    scores: Vec<f64>,
    max_bytes: usize,
}

impl Decoder {
    fn value(&mut self, kind: u8, reader: &mut Reader<'_>) -> Result<RdbValue, RdbError> {
        match kind {
            types::STRING => {
                let value = self.string(reader)?;
                self.check(value.len())?;
                return Ok(RdbValue::String(value.into_owned()));
            }
            types::OWN => return self.own(reader),
            types::LIST | types::SET => {
                for _ in 0..reader.count(1)? {
                    self.plain_item(reader)?;
                }
            }
            types::HASH => {
                for _ in 0..reader.count(2)? {
                    self.plain_item(reader)?;
                    self.plain_item(reader)?;
                }
            }
            types::SORTED_SET | types::SORTED_SET_TEXT => self.members(kind, reader)?,
            types::LIST_QUICKLIST | types::LIST_QUICKLIST_2 => self.quicklist(kind, reader)?,
            _ => {
                let packed = self.string(reader)?;
                self.packed(kind, &packed)?;
            }
        }
        self.finish(kind)
    }

    fn own(&mut self, reader: &mut Reader<'_>) -> Result<RdbValue, RdbError> {
        let [version, tag] = reader.array()?;
        let tag = Tag::from_byte(tag).filter(|&tag| !object::is_known_to_redis(tag));
        let tag = tag.ok_or(RdbError::Malformed)?;
        if version != types::OWN_VERSION || reader.is_empty() {
            return Err(RdbError::Malformed);
        }
        while !reader.is_empty() {
            self.plain_item(reader)?;
        }
        Ok(RdbValue::Own(tag, std::mem::take(&mut self.items)))
    }

    /// The collection, after checks of what it may not have.
    fn finish(&mut self, kind: u8) -> Result<RdbValue, RdbError> {
        let items = std::mem::take(&mut self.items);
        let (value, duplicates) = match kind {
            types::LIST | types::LIST_ZIPLIST | types::LIST_QUICKLIST | types::LIST_QUICKLIST_2 => {
                (RdbValue::List as fn(Items) -> RdbValue, false)
            }
            types::SET | types::SET_LISTPACK => (RdbValue::Set as _, items.has_duplicates(1)),
            types::SET_INTEGERS => (RdbValue::Set as _, false),
            types::HASH | types::HASH_ZIPMAP | types::HASH_ZIPLIST | types::HASH_LISTPACK => (
                RdbValue::Hash as _,
                !items.len().is_multiple_of(2) || items.has_duplicates(2),
            ),
            _ => {
                let scores = std::mem::take(&mut self.scores);
                let wrong = scores.len() != items.len() || items.has_duplicates(1);
                if wrong || items.is_empty() {
                    return Err(RdbError::Malformed);
                }
                return Ok(RdbValue::SortedSet(items, scores));
            }
        };
        match duplicates || items.is_empty() {
            true => Err(RdbError::Malformed),
            false => Ok(value(items)),
        }
    }

    /// The forms that are one string with everything.
    fn packed(&mut self, kind: u8, packed: &[u8]) -> Result<(), RdbError> {
        match kind {
            types::LIST_ZIPLIST | types::HASH_ZIPLIST => {
                ziplist::entries(packed, |item| self.item(item))?;
            }
            types::HASH_LISTPACK | types::SET_LISTPACK => {
                listpack::entries(packed, |item| self.item(item))?;
            }
            types::SORTED_SET_ZIPLIST => {
                let mut is_score = false;
                ziplist::entries(packed, |item| self.member_or_score(item, &mut is_score))?;
            }
            types::SORTED_SET_LISTPACK => {
                let mut is_score = false;
                listpack::entries(packed, |item| self.member_or_score(item, &mut is_score))?;
            }
            types::SET_INTEGERS => {
                integers::integers(packed, |number| self.item(Item::Integer(number)))?;
            }
            types::HASH_ZIPMAP => {
                zipmap::pairs(packed, |field, value| {
                    self.push(field)?;
                    self.push(value)
                })?;
            }
            _ => return Err(RdbError::Malformed),
        }
        Ok(())
    }

    /// A list of nodes, each a packed form or, in the later version, a large element.
    fn quicklist(&mut self, kind: u8, reader: &mut Reader<'_>) -> Result<(), RdbError> {
        const PLAIN: u64 = 1;
        const PACKED: u64 = 2;
        for _ in 0..reader.count(1)? {
            let form = match kind {
                types::LIST_QUICKLIST_2 => Some(reader.plain()?),
                _ => None,
            };
            let node = self.string(reader)?;
            match form {
                None => {
                    ziplist::entries(&node, |item| self.item(item))?;
                }
                Some(PACKED) => {
                    listpack::entries(&node, |item| self.item(item))?;
                }
                Some(PLAIN) => self.push(&node)?,
                Some(_) => return Err(RdbError::Malformed),
            }
        }
        Ok(())
    }

    /// Members with scores that are doubles or, before Redis 4, text.
    fn members(&mut self, kind: u8, reader: &mut Reader<'_>) -> Result<(), RdbError> {
        let is_text = kind == types::SORTED_SET_TEXT;
        for _ in 0..reader.count(if is_text { 2 } else { 9 })? {
            self.plain_item(reader)?;
            let score = match is_text {
                true => text_score(reader)?,
                false => f64::from_le_bytes(reader.array()?),
            };
            self.score(score)?;
        }
        Ok(())
    }

    fn member_or_score(&mut self, item: Item<'_>, is_score: &mut bool) -> Result<(), RdbError> {
        *is_score = !*is_score;
        match item {
            _ if *is_score => self.item(item),
            Item::Integer(number) => self.score(number as f64),
            Item::Bytes(text) => {
                let score = float::parse_f64(text);
                self.score(score.ok_or(RdbError::Malformed)?)
            }
        }
    }

    fn score(&mut self, score: f64) -> Result<(), RdbError> {
        if score.is_nan() {
            return Err(RdbError::Malformed);
        }
        self.scores.push(score);
        Ok(())
    }

    fn plain_item(&mut self, reader: &mut Reader<'_>) -> Result<(), RdbError> {
        let item = self.string(reader)?;
        self.push(&item)
    }

    fn item(&mut self, item: Item<'_>) -> Result<(), RdbError> {
        match item {
            Item::Bytes(bytes) => self.push(bytes),
            Item::Integer(number) => self.push(itoa::Buffer::new().format(number).as_bytes()),
        }
    }

    fn push(&mut self, item: &[u8]) -> Result<(), RdbError> {
        self.check(item.len() + 2 * size_of::<usize>())?;
        self.items.push(item);
        Ok(())
    }

    /// Whether `more` further bytes are within the limit.
    fn check(&self, more: usize) -> Result<(), RdbError> {
        let taken = self.items.weight() + self.scores.len() * size_of::<f64>();
        match self.max_bytes.checked_sub(taken) {
            Some(left) if more <= left => Ok(()),
            _ => Err(RdbError::TooLarge),
        }
    }

    /// A string: its bytes, an integer, or compressed.
    fn string<'a>(&self, reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, RdbError> {
        let integer = |number: i64| Cow::Owned(itoa::Buffer::new().format(number).into());
        Ok(match reader.length()? {
            Length::Plain(len) => {
                let len = usize::try_from(len).map_err(|_| RdbError::Malformed)?;
                Cow::Borrowed(reader.take(len)?)
            }
            Length::Special(0) => integer(reader.signed::<1>()?),
            Length::Special(1) => integer(reader.signed::<2>()?),
            Length::Special(2) => integer(reader.signed::<4>()?),
            Length::Special(3) => {
                let (compressed, len) = (reader.plain_len()?, reader.plain_len()?);
                let compressed = reader.take(compressed)?;
                self.check(len)?;
                Cow::Owned(lzf::decompress(compressed, len)?)
            }
            Length::Special(_) => return Err(RdbError::Malformed),
        })
    }
}

/// A length and decimal text; three lengths that no text has stand for what is not finite.
fn text_score(reader: &mut Reader<'_>) -> Result<f64, RdbError> {
    match reader.byte()? {
        255 => Ok(f64::NEG_INFINITY),
        254 => Ok(f64::INFINITY),
        253 => Err(RdbError::Malformed),
        len => {
            let text = reader.take(usize::from(len))?;
            float::parse_f64(text).ok_or(RdbError::Malformed)
        }
    }
}
