//! Messages between replicas, as bytes.
//!
//! An epoch consists of batches of states and deltas, followed by a report: how far its sender has sent and received
//! changes. Batches of keys with replicas on the same workers are encoded once and shared. A batch of a keyspace with
//! causal cuts has the sender's vector: what its writes may depend on, and first the sender's last epoch with such changes.
//!
//! Received data is not trusted: bytes that are not a valid batch are an error.

use rufous_base::limits::DATABASES;
use rufous_datatype::object::Tag;
use rufous_store::effect::{NotAnEffect, byte, put_varint, slice, varint};
use rufous_store::planted::{self, Planted};
use std::sync::Arc;

/// The approximate size of one message; a larger item has a message of its own. A worker that merges a message serves
/// no requests meanwhile, and the message should fit the nearer caches.
pub const BATCH_BYTES: usize = 64 << 10;

const ITEMS: u8 = 1;
const ORDERED: u8 = 2;
const REPORT: u8 = 3;
const TOLD_AGAIN: u8 = 4;
const BEGIN: u8 = 5;

/// Part of the state of a key, or operations on it: either can be merged with the key's value of that type, in any
/// order and repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    pub db: u8,
    pub key: &'a [u8],
    pub tag: Tag,
    pub chunk: &'a [u8],
}

/// The end of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The date of the epoch: all changes made before it that may be sent have been sent.
    pub sent: u64,
    /// All changes of the sender up to this time have been sent, and it will make no more with such stamps.
    pub upto: u64,
    /// The time up to which the sender has received the changes of all others.
    pub least: u64,
    /// The sender's horizon.
    pub horizon: u64,
    /// The sender wants to forget removals up to this time; 0: nothing.
    pub wanted: u64,
    /// When the first of the epoch's changes was made, in Unix microseconds; 0 if there were none.
    pub since_us: u64,
    /// The epoch of the sender's mapping; 0 without one.
    pub epoch: u64,
}

/// The first message to another node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// The number of workers of the sender's node.
    pub workers: u64,
    /// The sender has forgotten removals up to this time.
    pub forgotten: u64,
}

/// A decoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    pub from: u16,
    /// How often the sender's databases had been flushed.
    pub flushes: u64,
    /// No stamp in it has a higher time.
    pub newest: u64,
    pub body: Body<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    Items(Items<'a>),
    /// To be applied together with all others of its epoch, when the receiver itself has received everything up to
    /// these times.
    Ordered {
        after: Vec<(u16, u64)>,
        items: Items<'a>,
    },
    Report(Report),
    /// Whole states, for another node that may have missed changes.
    ToldAgain(Items<'a>),
    /// The first message of a worker of another node; the following ones begin with its whole state.
    Begin(Begin),
}

/// The items of a batch, up to the first invalid one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items<'a>(&'a [u8]);

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, NotAnEffect>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let next = decode_item(&mut self.0);
        if next.is_err() {
            self.0 = &[];
        }
        Some(next)
    }
}

fn decode_item<'a>(from: &mut &'a [u8]) -> Result<Item<'a>, NotAnEffect> {
    let db = byte(from)?;
    let tag = Tag::from_byte(byte(from)?).ok_or(NotAnEffect)?;
    let key_len = varint(from)?;
    let key = slice(from, key_len)?;
    let chunk_len = varint(from)?;
    let chunk = slice(from, chunk_len)?;
    if usize::from(db) >= DATABASES {
        return Err(NotAnEffect);
    }
    let item = Item {
        db,
        key,
        tag,
        chunk,
    };
    Ok(item)
}

/// Whose changes of an epoch another worker sends on, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayed {
    pub origin: u16,
    /// The date of the origin's last epoch before with such changes, and of this one.
    pub prev: u64,
    pub date: u64,
}

impl<'a> Batch<'a> {
    /// What this is of, if its sender sends on what another one had sent. Its vector ends with the sender's own entry, with which
    /// all others begin. An earlier program passes over these, and takes the changes for the sender's, which does no harm.
    pub fn relayed(&self) -> Option<Relayed> {
        let Body::Ordered { after, .. } = &self.body else {
            return None;
        };
        let [.., (origin, prev), (from, date)] = after[..] else {
            return None;
        };
        (from == self.from && origin != from).then_some(Relayed { origin, prev, date })
    }

    /// The message with which another worker sends on these changes; without any: that there are none up to this date.
    pub fn relay(changes: Option<&Self>, from: u16, of: Relayed) -> Arc<[u8]> {
        let mut after = Vec::new();
        let (mut newest, mut rest) = (0, &[][..]);
        if let Some(changes) = changes
            && let Body::Ordered { after: own, items } = &changes.body
        {
            after.clone_from(own);
            (newest, rest) = (changes.newest, items.0);
        }
        after.extend([(of.origin, of.prev), (from, of.date)]);
        let mut bytes = Writer::ordered(from, 0, newest, &after).head;
        bytes.extend_from_slice(rest);
        bytes.into()
    }

    pub fn decode(mut bytes: &'a [u8]) -> Result<Self, NotAnEffect> {
        let from = &mut bytes;
        let kind = byte(from)?;
        let sender = u16::try_from(varint(from)?).map_err(|_| NotAnEffect)?;
        let flushes = varint(from)?;
        let newest = varint(from)?;
        let body = match kind {
            ITEMS => Body::Items(Items(from)),
            ORDERED => {
                let count = varint(from)?;
                // No replica occurs twice.
                if count > MOST_REPLICAS {
                    return Err(NotAnEffect);
                }
                let after = (0..count).map(|_| dated(from)).collect::<Result<_, _>>()?;
                let items = Items(from);
                Body::Ordered { after, items }
            }
            REPORT => {
                let report = Report {
                    sent: newest,
                    upto: varint(from)?,
                    least: varint(from)?,
                    horizon: varint(from)?,
                    wanted: varint(from)?,
                    since_us: varint(from)?,
                    epoch: varint(from)?,
                };
                ended(from)?;
                Body::Report(report)
            }
            TOLD_AGAIN => Body::ToldAgain(Items(from)),
            BEGIN => {
                let begin = Begin {
                    workers: varint(from)?,
                    forgotten: varint(from)?,
                };
                ended(from)?;
                Body::Begin(begin)
            }
            _ => return Err(NotAnEffect),
        };
        Ok(Self {
            from: sender,
            flushes,
            newest,
            body,
        })
    }
}

const MOST_REPLICAS: u64 = 1 << 16;

fn dated(from: &mut &[u8]) -> Result<(u16, u64), NotAnEffect> {
    let replica = u16::try_from(varint(from)?).map_err(|_| NotAnEffect)?;
    Ok((replica, varint(from)?))
}

fn ended(from: &[u8]) -> Result<(), NotAnEffect> {
    match from.is_empty() {
        true => Ok(()),
        false => Err(NotAnEffect),
    }
}

/// Encodes items into messages.
#[derive(Debug)]
pub struct Writer {
    head: Vec<u8>,
    bytes: Vec<u8>,
    done: Vec<Arc<[u8]>>,
}

impl Writer {
    /// `newest`: no stamp of its items has a higher time.
    pub fn new(from: u16, flushes: u64, newest: u64) -> Self {
        Self::with_head(head(ITEMS, from, flushes, newest))
    }

    /// For keys of keyspaces with causal cuts: `after` is the sender's vector.
    pub fn ordered(from: u16, flushes: u64, newest: u64, after: &[(u16, u64)]) -> Self {
        let mut head = head(ORDERED, from, flushes, newest);
        put_varint(&mut head, after.len() as u64);
        for &(replica, time) in after {
            put_varint(&mut head, u64::from(replica));
            put_varint(&mut head, time);
        }
        Self::with_head(head)
    }

    /// For another node that may have missed changes.
    pub fn again(from: u16, newest: u64) -> Self {
        Self::with_head(head(TOLD_AGAIN, from, 0, newest))
    }

    fn with_head(head: Vec<u8>) -> Self {
        Self {
            bytes: head.clone(),
            head,
            done: Vec::new(),
        }
    }

    pub fn push(&mut self, item: Item<'_>) {
        let Item {
            db,
            key,
            tag,
            chunk,
        } = item;
        let more = key.len() + chunk.len() + 22;
        let room = match planted::is(Planted::EpochInParts) {
            true => 0,
            false => BATCH_BYTES,
        };
        if self.bytes.len() > self.head.len() && self.bytes.len() + more > room {
            self.end();
        }
        let out = &mut self.bytes;
        out.extend_from_slice(&[db, tag as u8]);
        put_varint(out, key.len() as u64);
        out.extend_from_slice(key);
        put_varint(out, chunk.len() as u64);
        out.extend_from_slice(chunk);
    }

    fn end(&mut self) {
        self.done.push(self.bytes.as_slice().into());
        self.bytes.truncate(self.head.len());
    }

    /// Takes the messages that were encoded so far, in order.
    pub fn take(&mut self) -> Vec<Arc<[u8]>> {
        if self.bytes.len() > self.head.len() {
            self.end();
        }
        std::mem::take(&mut self.done)
    }
}

impl Report {
    pub fn encode(&self, from: u16, flushes: u64) -> Arc<[u8]> {
        let mut out = head(REPORT, from, flushes, self.sent);
        let Self {
            upto,
            least,
            horizon,
            wanted,
            since_us,
            epoch,
            ..
        } = *self;
        for n in [upto, least, horizon, wanted, since_us, epoch] {
            put_varint(&mut out, n);
        }
        out.into()
    }
}

impl Begin {
    pub fn encode(&self, from: u16, newest: u64) -> Arc<[u8]> {
        let mut out = head(BEGIN, from, 0, newest);
        put_varint(&mut out, self.workers);
        put_varint(&mut out, self.forgotten);
        out.into()
    }
}

fn head(kind: u8, from: u16, flushes: u64, newest: u64) -> Vec<u8> {
    let mut out = vec![kind];
    put_varint(&mut out, u64::from(from));
    put_varint(&mut out, flushes);
    put_varint(&mut out, newest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (u8, Vec<u8>, Vec<u8>);

    fn write(writer: &mut Writer, all: &[Owned]) -> Vec<Arc<[u8]>> {
        for (db, key, chunk) in all {
            let (db, tag) = (*db, Tag::Set);
            writer.push(Item {
                db,
                key,
                tag,
                chunk,
            });
        }
        writer.take()
    }

    fn read(messages: &[Arc<[u8]>], after: Option<&[(u16, u64)]>) -> Vec<Owned> {
        let mut all = Vec::new();
        for message in messages {
            let batch = Batch::decode(message).unwrap();
            assert_eq!((batch.from, batch.flushes), (7, 3));
            let items = match batch.body {
                Body::Items(items) if after.is_none() => items,
                Body::Ordered { after: got, items } if Some(&got[..]) == after => items,
                other => panic!("{other:?}"),
            };
            for item in items {
                let item = item.unwrap();
                assert_eq!(item.tag, Tag::Set);
                all.push((item.db, item.key.to_vec(), item.chunk.to_vec()));
            }
        }
        all
    }

    #[test]
    fn items_come_in_order_in_messages_of_bounded_size() {
        let all: Vec<Owned> = (0..1000u32)
            .map(|n| {
                (
                    (n % 16) as u8,
                    n.to_le_bytes().to_vec(),
                    vec![n as u8; 2000],
                )
            })
            .collect();
        let messages = write(&mut Writer::new(7, 3, 9), &all);
        assert!(messages.len() > 5);
        assert!(messages.iter().all(|m| m.len() <= BATCH_BYTES));
        assert_eq!(read(&messages, None), all);
        let large = vec![(0, b"k".to_vec(), vec![1; 3 * BATCH_BYTES])];
        assert_eq!(read(&write(&mut Writer::new(7, 3, 9), &large), None), large);
        assert!(Writer::new(7, 3, 9).take().is_empty());
        let after = [(0, 5), (1, 0), (u16::MAX, u64::MAX)];
        let messages = write(&mut Writer::ordered(7, 3, 9, &after), &all);
        assert_eq!(read(&messages, Some(&after)), all);
    }

    #[test]
    fn reports_say_what_they_said() {
        let report = Report {
            sent: 1 << 60,
            upto: 1 << 59,
            least: 5,
            horizon: 4,
            wanted: 0,
            since_us: 9,
            epoch: 77,
        };
        let bytes = report.encode(7, 3);
        let batch = Batch::decode(&bytes).unwrap();
        assert_eq!(batch.body, Body::Report(report));
        for cut in 0..bytes.len() {
            assert!(Batch::decode(&bytes[..cut]).is_err());
        }
        let begin = Begin {
            workers: 3,
            forgotten: 1 << 61,
        };
        let bytes = begin.encode(7, 5);
        let batch = Batch::decode(&bytes).unwrap();
        assert_eq!((batch.body, batch.newest), (Body::Begin(begin), 5));
    }

    proptest! {
        #[test]
        fn any_bytes_may_come(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..7) {
            let mut all = vec![kind];
            all.extend(&bytes);
            if let Ok(batch) = Batch::decode(&all) {
                match batch.body {
                    Body::Items(items)
                    | Body::ToldAgain(items)
                    | Body::Ordered { items, .. } => {
                        let bad = items.filter(Result::is_err).count();
                        prop_assert!(bad <= 1);
                    }
                    Body::Report(_) | Body::Begin(_) => {}
                }
            }
        }
    }
}
