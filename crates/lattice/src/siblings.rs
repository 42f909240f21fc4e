//! Concurrent values of a string: a register with causal order.
//!
//! The live writes, each with its dot, and a vector of all writes that were seen: a dotted version vector set. A
//! merge keeps a write that the other side has too, or has not seen; one that it has seen and does not have was
//! replaced there. The paper's pair of vector clock and value is not associative; this is.
//!
//! Each write has state that merges on its own: increments of it (a [`Counter`]), and its last deadline. They are
//! dropped with the write. Increments where nothing was ever written belong to a write of [`Stamp::ZERO`], which is
//! replaced by the first real write that is seen, whatever its writer.
//!
//! When the deadline of a write has passed, every replica by itself marks it as *expired*: the value is dropped, and
//! nothing is shown. That state is above the same write before its deadline, so that no merge restores it. But a
//! later deadline that was set at another replica, which did not know yet, is above that and does: the extension
//! wins, as with registers. An expired write is kept until no replica can have extended it any more
//! ([`Siblings::until`]), or until a write that has seen it replaces it.
//!
//! Only whole states are merged: so what a state has seen is exactly its vector. It is a [`crate::MultiValue`] whose
//! dots are stamps and whose context needs no separate dots, since no write arrives early.
//!
//! ```text
//! seen              live  stamp  form  length  text  …   the latest stamp first
//! a version vector  01    12     00    01      61
//! form 01           … then the deadline's stamp and the deadline
//! form 02           … then the length of what was written, that, and the counter;
//!                   before them the text is what it adds up to
//! form 04           it has expired; there is no text
//! ```

mod bytes;
#[cfg(test)]
mod tests;

pub use bytes::{len, next_deadline, seen_of, texts, timed};

use crate::code::{Coded, Malformed, Reader, put_varint};
use crate::counter::Overflow;
use crate::deadline::time_of;
use crate::{Counter, Lattice, Stamp, VersionVector};
use std::borrow::Cow;

/// A live write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sibling {
    pub stamp: Stamp,
    /// As it was written; empty once it has expired.
    pub value: Vec<u8>,
    /// Later increments.
    pub counter: Counter,
    /// The last deadline, with the stamp at which it was set: Unix milliseconds, 0 for none.
    pub deadline: (Stamp, u64),
    /// Whether the deadline has passed.
    pub has_expired: bool,
}

/// What a writer has seen: everything up to a vector, and of later writes only its own last one. Its own write does
/// not imply that it has seen earlier writes of other clients at the same replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub all: VersionVector,
    /// [`Stamp::ZERO`] for none.
    pub own: Stamp,
}

impl Seen {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.own == Stamp::ZERO
    }

    fn covers(&self, stamp: Stamp) -> bool {
        stamp != Stamp::ZERO && (stamp == self.own || self.all.covers(stamp))
    }

    /// Adds what another has seen; of two own writes the later is kept.
    pub fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        self.own = self.own.max(other.own);
        if self.all.covers(self.own) {
            self.own = Stamp::ZERO;
        }
    }
}

impl From<VersionVector> for Seen {
    fn from(all: VersionVector) -> Self {
        let own = Stamp::ZERO;
        Self { all, own }
    }
}

impl Coded for Seen {
    fn encode(&self, out: &mut Vec<u8>) {
        self.all.encode(out);
        out.extend_from_slice(&self.own.to_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let (all, own) = (VersionVector::read(&mut reader)?, Stamp::read(&mut reader)?);
        reader.end()?;
        Ok(Self { all, own })
    }
}

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Siblings {
    /// Includes expired writes. Stamps descend; all of them were seen.
    live: Vec<Sibling>,
    seen: VersionVector,
}

/// The most values that a write leaves: it replaces the oldest ones whether it has seen them or not. Merges drop
/// none, since the order of merges would matter then.
pub const MAX_SIBLINGS: usize = 32;

/// Approximate bytes of an encoded write besides its value.
const BESIDE: usize = 24;

const DEADLINE: u8 = 1;
const COUNTED: u8 = 2;
const EXPIRED: u8 = 4;

impl Sibling {
    /// The text that is read: the value with its increments.
    pub fn text(&self) -> Cow<'_, [u8]> {
        if self.counter.is_empty() || self.has_expired {
            return Cow::Borrowed(&self.value);
        }
        let base = str::from_utf8(&self.value).map_or(Ok(0), str::parse::<i64>);
        let sum = i128::from(base.unwrap_or(0)) + self.counter.sum();
        let sum = sum.clamp(i64::MIN.into(), i64::MAX.into());
        Cow::Owned(sum.to_string().into_bytes())
    }

    fn is_due(&self, now_ms: u64) -> bool {
        !self.has_expired && (1..=now_ms).contains(&self.deadline.1)
    }

    fn expire(&mut self) {
        self.has_expired = true;
        self.value = Vec::new();
    }

    /// Merges two states of the same write: the later deadline determines whether it is expired.
    fn merge(&mut self, other: &Self) -> bool {
        let counted = self.counter.merge(&other.counter);
        let rank = |of: &Self| (of.deadline, of.has_expired);
        // Two values of one stamp do not occur; the order is total nevertheless.
        let theirs = (rank(other), &other.value) > (rank(self), &self.value);
        if theirs {
            self.value.clone_from(&other.value);
            (self.deadline, self.has_expired) = rank(other);
        }
        theirs || counted
    }
}

impl Siblings {
    /// Writes a value, or a deletion, that replaces everything that `context` has seen, or everything here if there
    /// is no context. The stamp must be newer than all of its replica. Returns whether that changed anything: a
    /// deletion of nothing does not.
    pub fn write(&mut self, stamp: Stamp, value: Option<Vec<u8>>, context: Option<&Seen>) -> bool {
        let before = self.live.len();
        let mut changed = value.is_some();
        match context {
            None => self.live.clear(),
            Some(context) => {
                let context = Seen {
                    all: context.all.below(stamp),
                    own: context.own,
                };
                let is_left = |dot: Stamp| dot != Stamp::ZERO && !context.covers(dot);
                self.live.retain(|sibling| is_left(sibling.stamp));
                // Writes that were seen elsewhere and are not received here yet are replaced as well; but an own
                // write does not imply those before it there.
                changed |= self.seen.merge(&context.all);
            }
        }
        changed |= self.live.len() != before;
        if let Some(value) = value {
            self.make_room();
            let at = self.live.partition_point(|sibling| sibling.stamp > stamp);
            let sibling = Sibling {
                stamp,
                value,
                ..Sibling::default()
            };
            self.live.insert(at, sibling);
        }
        if changed {
            self.seen.raise(stamp);
        }
        changed
    }

    /// Makes room for one more: beyond the limit, drops expired writes first, then the oldest.
    fn make_room(&mut self) {
        while self.live.len() >= MAX_SIBLINGS {
            let expired = self.live.iter().rposition(|sibling| sibling.has_expired);
            self.live.remove(expired.unwrap_or(self.live.len() - 1));
        }
    }

    /// Adds to the write of `stamp`, in the entry of a replica. [`Stamp::ZERO`] stands for a missing write.
    pub fn add(&mut self, stamp: Stamp, replica: u16, by: i64) -> Result<(), Overflow> {
        if stamp == Stamp::ZERO && self.seen.is_empty() && self.live.is_empty() {
            self.live.push(Sibling::default());
        }
        match place(&self.live, stamp) {
            Some(at) => self.live[at].counter.add(replica, by),
            None => Ok(()),
        }
    }

    /// Sets a deadline in Unix milliseconds on everything that is shown, or the part of it that `context` has seen; 0
    /// removes it. Returns whether there was any. A write whose deadline the clock of the stamps has passed expires
    /// instead, whatever the local time: when all have received stamps beyond a deadline, no replica may extend it
    /// any more.
    pub fn set_deadline(&mut self, stamp: Stamp, unix_ms: u64, context: Option<&Seen>) -> bool {
        let mut any = false;
        let is_meant =
            |dot: Stamp| context.is_none_or(|context| dot == Stamp::ZERO || context.covers(dot));
        for sibling in self.live.iter_mut().filter(|s| is_meant(s.stamp)) {
            let (_, before) = sibling.deadline;
            if before > 0 && stamp.time >= time_of(before) {
                sibling.expire();
            }
            if !sibling.has_expired {
                sibling.deadline = sibling.deadline.max((stamp, unix_ms));
                any = true;
            }
        }
        any
    }

    /// Sets the deadline of one write.
    pub fn set_deadline_of(&mut self, stamp: Stamp, unix_ms: u64) {
        if let Some(at) = place(&self.live, stamp) {
            self.live[at].deadline = (stamp, unix_ms);
        }
    }

    /// When the next write expires.
    pub fn next_deadline(&self) -> Option<u64> {
        let deadlines = self.live().map(|sibling| sibling.deadline.1);
        deadlines.filter(|&at| at > 0).min()
    }

    /// Expires the writes whose deadline is at or before this time.
    pub fn expire(&mut self, now_ms: u64) {
        let due = self.live.iter_mut().filter(|s| s.is_due(now_ms));
        due.for_each(Sibling::expire);
    }

    /// The writes that are shown, the latest first.
    pub fn live(&self) -> impl DoubleEndedIterator<Item = &Sibling> {
        self.live.iter().filter(|sibling| !sibling.has_expired)
    }

    /// The context of the writer of `stamp`, whose context was `context`: everything here, if no other write is live.
    pub fn seen_by_writer(&self, stamp: Stamp, context: &Seen) -> Seen {
        match self.live.iter().all(|sibling| sibling.stamp == stamp) {
            true => self.seen.clone().into(),
            false => Seen {
                all: context.all.below(stamp),
                own: stamp,
            },
        }
    }

    /// The context of a reader of all live writes.
    pub fn seen(&self) -> &VersionVector {
        &self.seen
    }

    /// No stamp in it is newer.
    pub fn newest(&self) -> Stamp {
        let deadlines = self.live.iter().map(|sibling| sibling.deadline.0);
        deadlines.fold(self.seen.newest(), Stamp::max)
    }

    /// If nothing is shown: the time of a stamp that all replicas must have received before this state can be
    /// forgotten.
    pub fn until(&self) -> u64 {
        let expired = self.live.iter().map(|sibling| time_of(sibling.deadline.1));
        expired.fold(self.newest().time, u64::max)
    }

    /// Whether nothing was ever written.
    pub fn is_bottom(&self) -> bool {
        self.live.is_empty() && self.seen.is_empty()
    }

    /// Every seen write has seen the missing write.
    fn covers(&self, stamp: Stamp) -> bool {
        match stamp == Stamp::ZERO {
            true => !self.seen.is_empty(),
            false => self.seen.covers(stamp),
        }
    }
}

/// The index of a write among others with descending stamps.
fn place(live: &[Sibling], stamp: Stamp) -> Option<usize> {
    let at = live.binary_search_by(|dot| stamp.cmp(&dot.stamp));
    at.ok()
}

impl Lattice for Siblings {
    fn merge(&mut self, other: &Self) -> bool {
        let mut live = std::mem::take(&mut self.live);
        let before = live.len();
        let is_new =
            |theirs: &&Sibling| place(&live, theirs.stamp).is_none() && !self.covers(theirs.stamp);
        let new: Vec<Sibling> = other.live.iter().filter(is_new).cloned().collect();
        let mut changed = !new.is_empty();
        live.retain_mut(|mine| match place(&other.live, mine.stamp) {
            Some(at) => {
                changed |= mine.merge(&other.live[at]);
                true
            }
            None => !other.covers(mine.stamp),
        });
        changed |= live.len() < before;
        live.extend(new);
        live.sort_unstable_by_key(|sibling| std::cmp::Reverse(sibling.stamp));
        self.live = live;
        self.seen.merge(&other.seen) || changed
    }
}

impl Coded for Siblings {
    fn encode(&self, out: &mut Vec<u8>) {
        let each = self.live.iter().map(|sibling| sibling.value.len() + BESIDE);
        out.reserve(each.sum::<usize>() + BESIDE);
        self.seen.encode(out);
        put_varint(out, self.live.len() as u64);
        for sibling in &self.live {
            let Sibling {
                stamp,
                value,
                counter,
                deadline,
                has_expired,
            } = sibling;
            let has_deadline = deadline.0 != Stamp::ZERO;
            let form = u8::from(has_deadline) * DEADLINE
                + u8::from(!counter.is_empty()) * COUNTED
                + u8::from(*has_expired) * EXPIRED;
            out.extend_from_slice(&stamp.to_bytes());
            out.push(form);
            put_bytes(out, &sibling.text());
            if has_deadline {
                out.extend_from_slice(&deadline.0.to_bytes());
                put_varint(out, deadline.1);
            }
            if !counter.is_empty() {
                put_bytes(out, value);
                counter.encode(out);
            }
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let seen = VersionVector::read(&mut reader)?;
        let mut live: Vec<Sibling> = Vec::new();
        for _ in 0..reader.varint()? {
            let (sibling, text) = read(&mut reader)?;
            let is_in_order = live.last().is_none_or(|last| last.stamp > sibling.stamp);
            // Other replicas have shown this text as the value.
            let is_read_so = sibling.counter.is_empty() || *text == *sibling.text();
            if !is_in_order || !is_read_so {
                return Err(Malformed);
            }
            live.push(sibling);
        }
        reader.end()?;
        let is_sound = |sibling: &Sibling| match sibling.stamp == Stamp::ZERO {
            true => {
                let is_counted = sibling.value.is_empty() && !sibling.counter.is_empty();
                is_counted && seen.is_empty()
            }
            false => seen.covers(sibling.stamp),
        };
        let all = live.iter().all(is_sound);
        all.then_some(Siblings { live, seen }).ok_or(Malformed)
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let len = from.varint()?;
    from.bytes(len)
}

/// A write, and its text as encoded.
fn read<'a>(from: &mut Reader<'a>) -> Result<(Sibling, &'a [u8]), Malformed> {
    let stamp = Stamp::read(from)?;
    let form = from.byte()?;
    let text = take_bytes(from)?;
    if form & !(DEADLINE | COUNTED | EXPIRED) != 0 {
        return Err(Malformed);
    }
    let mut deadline = (Stamp::ZERO, 0);
    if form & DEADLINE != 0 {
        deadline = (Stamp::read(from)?, from.varint()?);
        if deadline.0 == Stamp::ZERO {
            return Err(Malformed);
        }
    }
    let (mut value, mut counter) = (text, Counter::default());
    if form & COUNTED != 0 {
        value = take_bytes(from)?;
        counter = Counter::read(from)?;
        if counter.is_empty() {
            return Err(Malformed);
        }
    }
    let has_expired = form & EXPIRED != 0;
    if has_expired && (deadline.1 == 0 || !value.is_empty()) {
        return Err(Malformed);
    }
    let sibling = Sibling {
        stamp,
        value: value.to_vec(),
        counter,
        deadline,
        has_expired,
    };
    Ok((sibling, text))
}
