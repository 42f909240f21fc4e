//! What a worker says in one turn to a worker of another node about chains and transactions, as one message.
//!
//! The parts follow one another, without gaps. A number is a varint (LEB128, at most ten bytes):
//!
//! ```text
//!   0  Ack     slot since seq
//!   1  Items   slot since all count, and count times: seq length effect
//!   2  Items   slot since all seq length length length, before common after: one write
//!   3  Items   slot since all seq length length, before after: one write, with the common bytes of the last part 2
//!   4  Letter  from_slot from_since to_slot to_since length message
//! ```

use super::{Body, Letter, MAX_ITEMS};
use bytes::Bytes;
use prost::encoding::encode_varint;
use rufous_base::limits::SLOTS;
use rufous_chain::{Item, Message};
use std::ops::Range;
use std::sync::Arc;

/// Limit on the parts of one message.
pub const MAX_PARTS: usize = 4096;
/// No part begins behind so many bytes, so that a message is not split into pieces where nothing in it is large.
pub const FULL: usize = 256 << 10;
/// Larger writes are messages of their own, which are not copied once more.
const LARGE: usize = 16 << 10;
/// Limit on the bytes of effects in one message, common ones counted for each write.
pub const MAX_JOINED_BYTES: usize = 16 << 20;

const ACK: u8 = 0;
const ITEMS: u8 = 1;
const BASE: u8 = 2;
const LIKE: u8 = 3;
const LETTER: u8 = 4;

/// See the module's description.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Joined {
    #[prost(bytes = "bytes", tag = "1")]
    pub parts: Bytes,
}

/// A message within another one.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A message of chains; [`Message::Items`] and [`Message::Ack`] can be joined.
    Chain(Message),
    Letter(Letter),
}

impl Part {
    /// The effect of its write, if it has only one.
    pub fn only_effect(&self) -> Option<&[u8]> {
        match self {
            Self::Chain(Message::Items { items, .. }) => match &items[..] {
                [item] => Some(&item.effect),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The message by itself.
impl From<Part> for Body {
    fn from(part: Part) -> Self {
        match part {
            Part::Chain(message) => message.into(),
            Part::Letter(letter) => Self::Letter(letter),
        }
    }
}

impl Body {
    /// The messages that this one stands for, if it stands for several.
    pub fn parts(&self) -> Option<Vec<Self>> {
        match self {
            Self::Alike(alike) => Some(alike.clone().each().map(Self::Items).collect()),
            Self::Joined(joined) => Some(joined.each().map(Self::from).collect()),
            _ => None,
        }
    }
}

/// A part as it is read.
enum Raw<'a> {
    Ack {
        slot: u64,
        since: u64,
        seq: u64,
    },
    Items {
        head: [u64; 3],
        count: u64,
        items: &'a [u8],
    },
    /// One write: the effect is in three pieces.
    One {
        head: [u64; 3],
        seq: u64,
        effect: [&'a [u8]; 3],
    },
    Letter {
        places: [u64; 4],
        message: &'a [u8],
    },
}

impl Joined {
    /// The parts, in order.
    pub fn each(&self) -> impl Iterator<Item = Part> + '_ {
        // invariant: `check` has found no part that cannot be read
        let raw = Parts::of(&self.parts).map_while(Result::ok);
        raw.map(|raw| part(raw, &self.parts))
    }

    /// The slot of each part about chains; `None` for letters.
    pub fn slots(&self) -> impl Iterator<Item = Option<u16>> + '_ {
        let raw = Parts::of(&self.parts).map_while(Result::ok);
        raw.map(|raw| match raw {
            Raw::Ack { slot, .. } => Some(slot as u16),
            Raw::Items { head, .. } | Raw::One { head, .. } => Some(head[0] as u16),
            Raw::Letter { .. } => None,
        })
    }

    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let (mut count, mut writes, mut bytes) = (0, 0, 0_usize);
        for raw in Parts::of(&self.parts) {
            count += 1;
            let slot = match raw? {
                Raw::Ack { slot, .. } => slot,
                Raw::Items { head, count, items } => {
                    writes += count;
                    bytes += items.len();
                    head[0]
                }
                Raw::One { head, effect, .. } => {
                    writes += 1;
                    bytes += effect.iter().map(|piece| piece.len()).sum::<usize>();
                    head[0]
                }
                Raw::Letter { places, message } => {
                    let [from, from_since, to, to_since] = places;
                    let narrow = |slot| u32::try_from(slot).unwrap_or(u32::MAX);
                    Letter {
                        from_slot: narrow(from),
                        from_since,
                        to_slot: narrow(to),
                        to_since,
                        message: self.parts.slice_ref(message),
                    }
                    .check()?;
                    0
                }
            };
            if slot >= SLOTS as u64 {
                return Err("there is no such slot");
            }
        }
        if !(1..=MAX_PARTS).contains(&count) {
            return Err("no parts, or too many");
        }
        if writes > MAX_ITEMS as u64 || bytes > MAX_JOINED_BYTES {
            return Err("too many writes at once");
        }
        Ok(())
    }
}

fn part(raw: Raw<'_>, all: &Bytes) -> Part {
    match raw {
        Raw::Ack { slot, since, seq } => Part::Chain(Message::Ack {
            slot: slot as u16,
            since,
            seq,
        }),
        Raw::Items { head, count, items } => {
            let mut read = Reader { rest: items };
            // invariant: they were read before
            let items = (0..count).map_while(|_| {
                let (seq, effect) = read.item().ok()?;
                let effect = Arc::from(effect);
                Some(Item { seq, effect })
            });
            Part::Chain(items_of(head, items.collect()))
        }
        Raw::One { head, seq, effect } => {
            let effect = match effect {
                [only, [], []] => Arc::from(only),
                pieces => Arc::from(pieces.concat()),
            };
            Part::Chain(items_of(head, vec![Item { seq, effect }]))
        }
        Raw::Letter { places, message } => {
            let [from, from_since, to, to_since] = places;
            Part::Letter(Letter {
                from_slot: from as u32,
                from_since,
                to_slot: to as u32,
                to_since,
                message: all.slice_ref(message),
            })
        }
    }
}

fn items_of([slot, since, all]: [u64; 3], items: Vec<Item>) -> Message {
    Message::Items {
        slot: slot as u16,
        since,
        all,
        items,
    }
}

/// Reads parts, up to the first that is none.
struct Parts<'a> {
    reader: Reader<'a>,
    common: Option<&'a [u8]>,
    is_over: bool,
}

impl<'a> Parts<'a> {
    fn of(parts: &'a [u8]) -> Self {
        Self {
            reader: Reader { rest: parts },
            common: None,
            is_over: false,
        }
    }

    fn part(&mut self) -> Result<Raw<'a>, &'static str> {
        let read = &mut self.reader;
        Ok(match read.bytes(1)?[0] {
            ACK => {
                let [slot, since, seq] = read.numbers()?;
                Raw::Ack { slot, since, seq }
            }
            ITEMS => {
                let [slot, since, all, count] = read.numbers()?;
                let from = read.rest;
                let mut last = None;
                for _ in 0..count {
                    let (seq, _) = read.item()?;
                    if last.is_some_and(|last| last >= seq) {
                        return Err("writes of a slot that are not in order");
                    }
                    last = Some(seq);
                }
                Raw::Items {
                    head: [slot, since, all],
                    count,
                    items: &from[..from.len() - read.rest.len()],
                }
            }
            BASE => {
                let [slot, since, all, seq, before, common, after] = read.numbers()?;
                let before = read.bytes(before)?;
                let common = read.bytes(common)?;
                self.common = Some(common);
                Raw::One {
                    head: [slot, since, all],
                    seq,
                    effect: [before, common, read.bytes(after)?],
                }
            }
            LIKE => {
                let [slot, since, all, seq, before, after] = read.numbers()?;
                let common = self.common.ok_or("a write like none before it")?;
                Raw::One {
                    head: [slot, since, all],
                    seq,
                    effect: [read.bytes(before)?, common, read.bytes(after)?],
                }
            }
            LETTER => {
                let [from, from_since, to, to_since, len] = read.numbers()?;
                Raw::Letter {
                    places: [from, from_since, to, to_since],
                    message: read.bytes(len)?,
                }
            }
            _ => return Err("a part of an unknown kind"),
        })
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Result<Raw<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over || self.reader.rest.is_empty() {
            return None;
        }
        let part = self.part();
        self.is_over = part.is_err();
        Some(part)
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn numbers<const N: usize>(&mut self) -> Result<[u64; N], &'static str> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Ok(numbers)
    }

    #[inline]
    fn number(&mut self) -> Result<u64, &'static str> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err("a part that is cut")
    }

    fn bytes(&mut self, len: u64) -> Result<&'a [u8], &'static str> {
        let len = usize::try_from(len).map_err(|_| "a part that is cut")?;
        let (bytes, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or("a part that is cut")?;
        self.rest = rest;
        Ok(bytes)
    }

    fn item(&mut self) -> Result<(u64, &'a [u8]), &'static str> {
        let [seq, len] = self.numbers()?;
        Ok((seq, self.bytes(len)?))
    }
}

/// A message that parts are added to.
#[derive(Debug, Default)]
pub struct Joining {
    parts: Vec<u8>,
    count: usize,
    writes: usize,
    /// Bytes of effects, and where those are that the last write with a long part has in common with others.
    bytes: usize,
    common: Range<usize>,
    likes: usize,
}

impl Joining {
    /// Adds a part. `common`: where its only write has bytes that others may have, too. False if there is no room, or it is
    /// not a part of this kind of message, or too large for it.
    pub fn add(&mut self, part: &Part, common: Option<Range<usize>>) -> bool {
        if self.count >= MAX_PARTS {
            return false;
        }
        let is_added = match (part, common) {
            (Part::Chain(Message::Ack { slot, since, seq }), _) => {
                self.has_room(0) && self.put(ACK, &[u64::from(*slot), *since, *seq], &[])
            }
            (Part::Chain(message @ Message::Items { items, .. }), Some(common)) => match &items[..]
            {
                [item] => self.add_one(message, item, common),
                _ => false,
            },
            (
                Part::Chain(Message::Items {
                    slot,
                    since,
                    all,
                    items,
                }),
                None,
            ) => self.add_items([u64::from(*slot), *since, *all], items),
            (Part::Chain(_), _) => false,
            (Part::Letter(letter), _) => {
                let numbers = [
                    u64::from(letter.from_slot),
                    letter.from_since,
                    u64::from(letter.to_slot),
                    letter.to_since,
                    letter.message.len() as u64,
                ];
                self.has_room(letter.message.len())
                    && self.put(LETTER, &numbers, &[&letter.message])
            }
        };
        self.count += usize::from(is_added);
        is_added
    }

    fn add_items(&mut self, head: [u64; 3], items: &[Item]) -> bool {
        let len = items.iter().map(|item| item.effect.len()).sum();
        let writes = self.writes + items.len();
        if len > LARGE || writes > MAX_ITEMS || !self.has_room(len) || !self.takes(FULL) {
            return false;
        }
        self.put(ITEMS, &head, &[]);
        encode_varint(items.len() as u64, &mut self.parts);
        let before = self.parts.len();
        for item in items {
            encode_varint(item.seq, &mut self.parts);
            encode_varint(item.effect.len() as u64, &mut self.parts);
            self.parts.extend_from_slice(&item.effect);
        }
        self.writes += items.len();
        self.bytes += self.parts.len() - before;
        true
    }

    /// Adds one write, whose common bytes may be the last ones.
    fn add_one(&mut self, message: &Message, item: &Item, common: Range<usize>) -> bool {
        let (Some((slot, since)), Message::Items { all, .. }) = (message.chain(), message) else {
            return false;
        };
        let effect = &item.effect[..];
        let (Some(inner), false) = (effect.get(common.clone()), self.writes >= MAX_ITEMS) else {
            return false;
        };
        let (before, after) = (&effect[..common.start], &effect[common.end..]);
        let len = |piece: &[u8]| piece.len() as u64;
        let [slot, since, all, seq] = [u64::from(slot), since, *all, item.seq];
        let is_like = !self.common.is_empty() && self.parts[self.common.clone()] == *inner;
        let fits = if is_like {
            self.has_room(effect.len() - inner.len())
        } else {
            self.count == 0 || self.parts.len() + effect.len() <= FULL
        };
        if !fits || !self.takes(effect.len()) {
            return false;
        }
        if is_like {
            let numbers = [slot, since, all, seq, len(before), len(after)];
            self.put(LIKE, &numbers, &[before, after]);
            self.likes += 1;
        } else {
            let numbers = [slot, since, all, seq, len(before), len(inner), len(after)];
            self.put(BASE, &numbers, &[before, inner, after]);
            let end = self.parts.len() - after.len();
            self.common = end - inner.len()..end;
        }
        self.writes += 1;
        self.bytes += effect.len();
        true
    }

    /// Whether so many more bytes leave it small. What is like a large write adds only a few.
    fn has_room(&self, len: usize) -> bool {
        let large = self.common.len();
        self.parts.len() - large.min(self.parts.len()) + len <= FULL
    }

    fn takes(&self, bytes: usize) -> bool {
        self.bytes + bytes <= MAX_JOINED_BYTES
    }

    fn put(&mut self, kind: u8, numbers: &[u64], pieces: &[&[u8]]) -> bool {
        self.parts.push(kind);
        for number in numbers {
            encode_varint(*number, &mut self.parts);
        }
        for piece in pieces {
            self.parts.extend_from_slice(piece);
        }
        true
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Parts that share the bytes of an earlier one.
    pub fn likes(&self) -> usize {
        self.likes
    }

    pub fn finish(self) -> Joined {
        let parts = self.parts.into();
        Joined { parts }
    }
}
