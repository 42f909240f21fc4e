//! The writes of replicated strings in one turn, processed together: the effect of many SETs that arrive in one turn.
//!
//! A turn is one instant: nothing is read between its writes. Of two writes of one string only the later one survives
//! a merge, so it replaces the earlier ones before either is stored: in each turn, a key's record is looked up, its
//! stamp written and its change recorded once, however often it is written [Anna §V: merge at the sender].

use super::databases::Databases;
use super::lattice::Keyed;
use super::overwrite::put_again;
use super::types::Key;
use super::writes::write_replica;
use rufous_base::Now;
use rufous_datatype::object::Tag;
use rufous_datatype::replicated::{Writer, register};
use rufous_lattice::Stamp;

/// Slots for the written keys, by their marks.
const SLOTS: usize = 64;
/// The most writes that are processed together: the number of a write is kept in a byte, in which 0 marks a free
/// slot.
const TOGETHER: usize = 255;

/// The last writes of up to [`Databases::WARMED`] keys.
struct Last {
    /// By the mark of its key, the number of the last write plus one; 0: none.
    by_mark: [u8; SLOTS],
    /// The marks in use, in the order of the keys' first writes.
    marks: [u8; Databases::WARMED],
    keys: usize,
}

/// A hash of the last bytes of a key. Keys with equal marks share a slot; a wrong guess only means that a key is
/// stored again instead of being joined with its later writes.
#[inline(always)]
fn mark(key: &[u8]) -> u8 {
    let bits = match (key.last_chunk(), key.last()) {
        (Some(&last), _) => u64::from_le_bytes(last),
        (None, Some(&last)) => u64::from(last),
        (None, None) => 0,
    };
    (bits.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as u8
}

impl Last {
    const NONE: Self = Self {
        by_mark: [0; SLOTS],
        marks: [0; Databases::WARMED],
        keys: 0,
    };

    /// Takes as many of the writes as it has room for, starting with number `from`; returns the number at which it
    /// stopped.
    #[inline(always)]
    fn take<K: AsRef<[u8]> + PartialEq>(&mut self, writes: &[K], from: usize) -> usize {
        for (at, key) in writes.iter().enumerate().skip(from) {
            let mark = mark(key.as_ref());
            let slot = &mut self.by_mark[usize::from(mark) % SLOTS];
            match usize::from(*slot).checked_sub(1) {
                Some(before) if writes[before] == *key => {}
                None if self.keys < self.marks.len() => {
                    self.marks[self.keys] = mark;
                    self.keys += 1;
                }
                _ => return at,
            }
            *slot = at as u8 + 1;
        }
        writes.len()
    }

    /// The number of the last write of each key.
    #[inline(always)]
    fn writes(&self) -> impl Iterator<Item = usize> {
        let marks = self.marks[..self.keys].iter();
        marks.map(|&mark| usize::from(self.by_mark[usize::from(mark) % SLOTS]) - 1)
    }
}

impl Databases {
    /// See [`Shard::put_register`](super::Shard::put_register).
    #[inline]
    pub(super) fn put_register(
        &mut self,
        db: usize,
        key: Key<'_>,
        (stamp, is_shared): (Stamp, bool),
        value: &[u8],
        now: Now,
    ) {
        let keyed = Keyed {
            strings: Tag::Register,
            is_shared,
        };
        if !put_again(&mut self.at(db, key, now), keyed, stamp, value) {
            self.put_register_anew((db, key), keyed, stamp, value, now);
        }
    }

    #[inline(never)]
    pub(super) fn put_register_anew(
        &mut self,
        (db, key): (usize, Key<'_>),
        keyed: Keyed,
        stamp: Stamp,
        value: &[u8],
        now: Now,
    ) {
        self.env.begin_lattice(Writer { stamp });
        let at = &mut self.at(db, key, now);
        write_replica(at, (keyed, Tag::Register), |_, writer, ops| {
            register::set(writer, value, 0, ops);
        });
        self.env.end_lattice();
    }

    /// See [`Shard::put_turn`](super::Shard::put_turn).
    #[inline]
    pub(super) fn put_turn<'v, K: AsRef<[u8]> + PartialEq>(
        &mut self,
        db: usize,
        keys: &[K],
        value: impl Fn(usize) -> &'v [u8],
        (first, shared): (Stamp, bool),
        now: Now,
    ) {
        for (part, keys) in keys.chunks(TOGETHER).enumerate() {
            let mut from = 0;
            while from < keys.len() {
                let mut last = Last::NONE;
                let end = last.take(keys, from);
                let joined = (end - from - last.keys) as u64;
                self.env.counters.changes += joined;
                if shared {
                    self.env.lattice.changes().joined(joined);
                }
                from = end;
                let mut puts = [(0, 0); Self::WARMED];
                for (put, at) in puts.iter_mut().zip(last.writes()) {
                    *put = (at, self.key(keys[at].as_ref()).hash);
                }
                let puts = &puts[..last.keys];
                self.warm(puts.iter().map(|put| (db, put.1)));
                for &(at, hash) in puts {
                    let bytes = keys[at].as_ref();
                    let nth = part * TOGETHER + at;
                    let stamp = Stamp {
                        time: first.time.saturating_add(nth as u64),
                        ..first
                    };
                    self.put_register(db, Key { bytes, hash }, (stamp, shared), value(nth), now);
                }
            }
        }
    }
}
