//! The result of a command on one worker's data, as bytes: the contents of logs and snapshots.
//!
//! Effects state the result for a key, not the command: replaying them needs no clock, randomness or command, and
//! gives the same data. An effect is a tag byte, the database, and parts whose lengths are varints (docs/format).

mod book;
mod bytes;
mod mark;
pub mod repeated;

pub use book::entry_set;
use bytes::database;
pub use bytes::{byte, put_varint, slice, varint, word};
pub use mark::SlotMark;
use rufous_base::limits::SLOTS;
use rufous_datatype::object::Tag;
use rufous_lattice::Stamp;
use std::fmt;

/// One change. Effects are applied in order, starting with an empty shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect<'a> {
    /// The key has this value and expiry (Unix milliseconds), whatever it had before.
    Set {
        db: u8,
        key: &'a [u8],
        value: &'a [u8],
        expire_at: Option<u64>,
    },
    /// The key has this value, and keeps the expiry that it had, if any.
    SetKeep {
        db: u8,
        key: &'a [u8],
        value: &'a [u8],
    },
    Delete {
        db: u8,
        key: &'a [u8],
    },
    /// Appends bytes to the value; creates a missing key.
    Append {
        db: u8,
        key: &'a [u8],
        tail: &'a [u8],
    },
    /// Overwrites bytes from `at` on; creates a missing key, and extends a shorter value with zeros first.
    Write {
        db: u8,
        key: &'a [u8],
        at: u64,
        bytes: &'a [u8],
    },
    Expire {
        db: u8,
        key: &'a [u8],
        at: Option<u64>,
    },
    /// Committed operations of a type, encoded by it, on the key's value, or on an empty one if the key is missing. A
    /// value without elements is not kept.
    Update {
        db: u8,
        key: &'a [u8],
        tag: Tag,
        ops: &'a [u8],
    },
    /// The key has a value of this type with these first elements, and this expiry (Unix milliseconds), whatever it
    /// had before.
    Put {
        db: u8,
        key: &'a [u8],
        tag: Tag,
        chunk: &'a [u8],
        expire_at: Option<u64>,
    },
    /// More elements of a value that was put; of a replicated value also what was received from another node.
    More {
        db: u8,
        key: &'a [u8],
        tag: Tag,
        chunk: &'a [u8],
    },
    /// Moves the value and expiry of a key to the other key, whatever that had; the first key is removed.
    Move {
        db: u8,
        key: &'a [u8],
        to_db: u8,
        to: &'a [u8],
    },
    /// Copies the value and expiry of a key to the other key.
    Copy {
        db: u8,
        key: &'a [u8],
        to_db: u8,
        to: &'a [u8],
    },
    FlushDb {
        db: u8,
    },
    SwapDb {
        a: u8,
        b: u8,
    },
    /// Replaces the table of keyspaces by this encoded one, unless this one is older.
    Keyspaces {
        bytes: &'a [u8],
    },
    /// The writer of the following effects may have forgotten removals up to this time of a stamp.
    Horizon {
        time: u64,
    },
    /// All writes below this stamp to the key's replicas, while they had this type, have gone for good, and the
    /// writer has forgotten them.
    Gone {
        db: u8,
        key: &'a [u8],
        tag: Tag,
        cut: Stamp,
    },
    /// All elements of the key's replicas of this type were removed, up to this stamp, and the writer has forgotten
    /// that. Counts have gone only if a removal names them.
    Ended {
        db: u8,
        key: &'a [u8],
        tag: Tag,
        end: Stamp,
    },
    /// How much of a slot's chain is here, from here on.
    Slot {
        slot: u16,
        mark: Option<SlotMark>,
    },
    /// From here on the replicated keys are those of the node with this number.
    Node {
        number: u16,
    },
    /// The writer has reported to other nodes that it has sent all its changes up to this time of a stamp.
    Reported {
        time: u64,
    },
}

/// Bytes that are no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnEffect;

impl fmt::Display for NotAnEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an effect")
    }
}

/// Tags never change their meaning; new kinds get new tags. 0x40 and above are for entries of a log that are no
/// effects.
const SET: u8 = 1;
const SET_EXPIRING: u8 = 2;
const SET_KEEP: u8 = 3;
const DELETE: u8 = 4;
const APPEND: u8 = 5;
const WRITE: u8 = 6;
const EXPIRE: u8 = 7;
const PERSIST: u8 = 8;
const FLUSH_DB: u8 = 9;
const SWAP_DB: u8 = 10;
const UPDATE: u8 = 11;
const PUT: u8 = 12;
const PUT_EXPIRING: u8 = 13;
const MORE: u8 = 14;
const MOVE: u8 = 15;
const COPY: u8 = 16;
const KEYSPACES: u8 = 17;
const HORIZON: u8 = 18;
const GONE: u8 = 19;
const SLOT: u8 = 20;
const NODE: u8 = 21;
const ENDED: u8 = 22;
const REPORTED: u8 = 32;

impl<'a> Effect<'a> {
    /// Appends the encoded effect to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Effect::Set {
                db,
                key,
                value,
                expire_at: None,
            } => parts(out, SET, db, key, value),
            Effect::Set {
                db,
                key,
                value,
                expire_at: Some(at),
            } => {
                parts(out, SET_EXPIRING, db, key, value);
                out.extend_from_slice(&at.to_le_bytes());
            }
            Effect::SetKeep { db, key, value } => parts(out, SET_KEEP, db, key, value),
            Effect::Delete { db, key } => parts(out, DELETE, db, key, &[]),
            Effect::Append { db, key, tail } => parts(out, APPEND, db, key, tail),
            Effect::Write { db, key, at, bytes } => {
                parts(out, WRITE, db, key, bytes);
                out.extend_from_slice(&at.to_le_bytes());
            }
            Effect::Expire { db, key, at } => {
                let kind = at.map_or(PERSIST, |_| EXPIRE);
                parts(out, kind, db, key, &[]);
                out.extend(at.into_iter().flat_map(u64::to_le_bytes));
            }
            Effect::FlushDb { db } => out.extend_from_slice(&[FLUSH_DB, db]),
            Effect::SwapDb { a, b } => out.extend_from_slice(&[SWAP_DB, a, b]),
            Effect::Keyspaces { .. }
            | Effect::Horizon { .. }
            | Effect::Gone { .. }
            | Effect::Ended { .. }
            | Effect::Slot { .. }
            | Effect::Node { .. }
            | Effect::Reported { .. } => self.encode_other(out),
            Effect::Update { db, key, tag, ops } => typed(out, UPDATE, db, key, (tag, ops)),
            Effect::More {
                db,
                key,
                tag,
                chunk,
            } => typed(out, MORE, db, key, (tag, chunk)),
            Effect::Put {
                db,
                key,
                tag,
                chunk,
                expire_at,
            } => {
                let kind = expire_at.map_or(PUT, |_| PUT_EXPIRING);
                typed(out, kind, db, key, (tag, chunk));
                if let Some(at) = expire_at {
                    out.extend_from_slice(&at.to_le_bytes());
                }
            }
            Effect::Move { db, key, to_db, to } => {
                parts(out, MOVE, db, key, to);
                out.push(to_db);
            }
            Effect::Copy { db, key, to_db, to } => {
                parts(out, COPY, db, key, to);
                out.push(to_db);
            }
        }
    }

    /// Decodes one effect from the front of `from`, and leaves the rest there.
    pub fn decode(from: &mut &'a [u8]) -> Result<Self, NotAnEffect> {
        let tag = byte(from)?;
        if from.first() == Some(&book::DB) {
            return book::decode(tag, from);
        }
        let db = database(from)?;
        if tag == FLUSH_DB {
            return Ok(Effect::FlushDb { db });
        }
        if tag == SWAP_DB {
            let b = database(from)?;
            return Ok(Effect::SwapDb { a: db, b });
        }
        if (KEYSPACES..=ENDED).contains(&tag) || tag == REPORTED {
            return Self::decode_other((tag, db), from);
        }
        if !(SET..=PERSIST).contains(&tag) && !(UPDATE..=COPY).contains(&tag) {
            return Err(NotAnEffect);
        }
        let (key, value) = names(tag, from)?;
        if (UPDATE..=MORE).contains(&tag) {
            return Self::decode_typed((tag, db), key, value, from);
        }
        Ok(match tag {
            SET => Effect::Set {
                db,
                key,
                value,
                expire_at: None,
            },
            SET_EXPIRING => Effect::Set {
                db,
                key,
                value,
                expire_at: Some(word(from)?),
            },
            SET_KEEP => Effect::SetKeep { db, key, value },
            DELETE => Effect::Delete { db, key },
            APPEND => Effect::Append {
                db,
                key,
                tail: value,
            },
            WRITE => Effect::Write {
                db,
                key,
                at: word(from)?,
                bytes: value,
            },
            EXPIRE => Effect::Expire {
                db,
                key,
                at: Some(word(from)?),
            },
            MOVE => Effect::Move {
                db,
                key,
                to_db: database(from)?,
                to: value,
            },
            COPY => Effect::Copy {
                db,
                key,
                to_db: database(from)?,
                to: value,
            },
            _ => Effect::Expire { db, key, at: None },
        })
    }

    /// Encodes effects that are not a change of one key.
    fn encode_other(&self, out: &mut Vec<u8>) {
        match *self {
            Effect::Keyspaces { bytes } => {
                out.extend_from_slice(&[KEYSPACES, 0]);
                put_varint(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
            Effect::Horizon { time } => {
                out.extend_from_slice(&[HORIZON, 0]);
                put_varint(out, time);
            }
            Effect::Gone { db, key, tag, cut } => stamped(out, GONE, (db, key), (tag, cut)),
            Effect::Ended { db, key, tag, end } => stamped(out, ENDED, (db, key), (tag, end)),
            Effect::Slot { slot, mark } => {
                out.extend_from_slice(&[SLOT, 0]);
                put_varint(out, slot.into());
                mark::put(out, mark);
            }
            Effect::Node { number } => {
                out.extend_from_slice(&[NODE, 0]);
                put_varint(out, number.into());
            }
            Effect::Reported { time } => {
                out.extend_from_slice(&[REPORTED, 0]);
                put_varint(out, time);
            }
            _ => {}
        }
    }

    fn decode_other((kind, db): (u8, u8), from: &mut &'a [u8]) -> Result<Self, NotAnEffect> {
        let number = varint(from)?;
        match kind {
            HORIZON => return Ok(Effect::Horizon { time: number }),
            REPORTED => return Ok(Effect::Reported { time: number }),
            _ => {}
        }
        if kind == NODE {
            let number = u16::try_from(number).map_err(|_| NotAnEffect)?;
            return Ok(Effect::Node { number });
        }
        if kind == SLOT {
            return Self::decode_slot(number, from);
        }
        let bytes = slice(from, number)?;
        if kind == KEYSPACES {
            return Ok(Effect::Keyspaces { bytes });
        }
        let (key, tag) = (bytes, Tag::from_byte(byte(from)?).ok_or(NotAnEffect)?);
        let (&stamp, rest) = from.split_first_chunk().ok_or(NotAnEffect)?;
        *from = rest;
        Ok(match (kind, Stamp::from_bytes(stamp)) {
            (ENDED, end) => Effect::Ended { db, key, tag, end },
            (_, cut) => Effect::Gone { db, key, tag, cut },
        })
    }

    fn decode_slot(slot: u64, from: &mut &'a [u8]) -> Result<Self, NotAnEffect> {
        let slot = u16::try_from(slot).map_err(|_| NotAnEffect)?;
        let mark = mark::take(from)?;
        match usize::from(slot) < SLOTS {
            true => Ok(Effect::Slot { slot, mark }),
            false => Err(NotAnEffect),
        }
    }

    fn decode_typed(
        (kind, db): (u8, u8),
        key: &'a [u8],
        value: &'a [u8],
        from: &mut &'a [u8],
    ) -> Result<Self, NotAnEffect> {
        let (&tag, rest) = value.split_first().ok_or(NotAnEffect)?;
        let tag = Tag::from_byte(tag).ok_or(NotAnEffect)?;
        Ok(match kind {
            UPDATE => Effect::Update {
                db,
                key,
                tag,
                ops: rest,
            },
            MORE => Effect::More {
                db,
                key,
                tag,
                chunk: rest,
            },
            _ => Effect::Put {
                db,
                key,
                tag,
                chunk: rest,
                expire_at: match kind {
                    PUT_EXPIRING => Some(word(from)?),
                    _ => None,
                },
            },
        })
    }

    /// The keys that the effect changes, with their databases; none for whole databases.
    pub fn keys(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let (first, second) = match *self {
            Effect::Set { db, key, .. }
            | Effect::SetKeep { db, key, .. }
            | Effect::Delete { db, key }
            | Effect::Append { db, key, .. }
            | Effect::Write { db, key, .. }
            | Effect::Expire { db, key, .. }
            | Effect::Update { db, key, .. }
            | Effect::Put { db, key, .. }
            | Effect::Gone { db, key, .. }
            | Effect::Ended { db, key, .. }
            | Effect::More { db, key, .. } => (Some((db, key)), None),
            Effect::Move { db, key, to_db, to } | Effect::Copy { db, key, to_db, to } => {
                (Some((db, key)), Some((to_db, to)))
            }
            Effect::FlushDb { .. }
            | Effect::SwapDb { .. }
            | Effect::Keyspaces { .. }
            | Effect::Horizon { .. }
            | Effect::Slot { .. }
            | Effect::Node { .. }
            | Effect::Reported { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// A key, and the value or the other key that follows it with most tags.
#[inline]
fn names<'a>(tag: u8, from: &mut &'a [u8]) -> Result<(&'a [u8], &'a [u8]), NotAnEffect> {
    let key_len = varint(from)?;
    let has_value = !matches!(tag, DELETE | EXPIRE | PERSIST);
    let value_len = if has_value { varint(from)? } else { 0 };
    Ok((slice(from, key_len)?, slice(from, value_len)?))
}

#[inline]
fn parts(out: &mut Vec<u8>, tag: u8, db: u8, key: &[u8], value: &[u8]) {
    out.reserve(2 + 20 + key.len() + value.len() + 8);
    out.extend_from_slice(&[tag, db]);
    put_varint(out, key.len() as u64);
    if !matches!(tag, DELETE | EXPIRE | PERSIST) {
        put_varint(out, value.len() as u64);
    }
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Encodes a note about a key's values of one type, up to a stamp.
fn stamped(out: &mut Vec<u8>, kind: u8, (db, key): (u8, &[u8]), (tag, stamp): (Tag, Stamp)) {
    out.extend_from_slice(&[kind, db]);
    put_varint(out, key.len() as u64);
    out.extend_from_slice(key);
    out.push(tag as u8);
    out.extend_from_slice(&stamp.to_bytes());
}

#[inline]
fn typed(out: &mut Vec<u8>, kind: u8, db: u8, key: &[u8], (tag, bytes): (Tag, &[u8])) {
    out.reserve(3 + 20 + key.len() + bytes.len() + 8);
    out.extend_from_slice(&[kind, db]);
    put_varint(out, key.len() as u64);
    put_varint(out, bytes.len() as u64 + 1);
    out.extend_from_slice(key);
    out.push(tag as u8);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests;
