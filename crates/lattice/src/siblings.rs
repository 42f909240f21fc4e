//! Values of which none has seen the other: a register with causal order.
//!
//! The writes that are alive, each by its dot, and a vector of all writes that
//! were seen: a dotted version vector set. A merge keeps a write that the other
//! side has alive too, or has not seen; one that it has seen and has no longer
//! was replaced there. The paper's pair of vector clock and value is not
//! associative; this is.
//!
//! With each write goes what merges beside it: what was added to it (a
//! [`Counter`]), and the last deadline that it was given. They go with the
//! write. What is added where nothing was ever written belongs to a write of
//! [`Stamp::ZERO`], which the first real one that is seen replaces, whoever
//! made it.
//!
//! When the deadline of a write has come, every replica by itself leaves of it
//! that it has *expired*: what was written is dropped, and nothing is shown.
//! That is above the same write before its time, and so no merge brings it
//! back; but a later deadline that was given at another replica, which did not
//! know yet, is above that and does: the extension wins, as with registers. What
//! has expired is kept until nobody can have extended it any more
//! ([`Siblings::until`]), or a write takes its place that has seen it.
//!
//! Whole states are merged, never parts of one: what a state has seen is then
//! all that the vector says. It is a [`crate::MultiValue`] whose dots are stamps
//! and whose context needs no dots apart, since nothing comes before its turn.
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

/// A write that is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sibling {
    pub stamp: Stamp,
    /// As it was written; empty once it has expired.
    pub value: Vec<u8>,
    /// What was added since.
    pub counter: Counter,
    /// The last that it was given, with the stamp of that: Unix milliseconds,
    /// 0 for none.
    pub deadline: (Stamp, u64),
    /// That has come.
    pub has_expired: bool,
}

/// What a writer has seen: all up to a vector, and of what came later his own
/// last write alone. His own write does not say that he has seen what others
/// have written at the same replica before it.
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

    /// Also what another has seen; of two own writes the later.
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
    /// Also what has expired. Stamps descending; all of them were seen.
    live: Vec<Sibling>,
    seen: VersionVector,
}

/// As many values a write leaves beside each other: it replaces the oldest ones
/// whether it has seen them or not. Merges forget none, for then the order of
/// merges would matter.
pub const MAX_SIBLINGS: usize = 32;

/// About what an encoded write takes beside its value.
const BESIDE: usize = 24;

const DEADLINE: u8 = 1;
const COUNTED: u8 = 2;
const EXPIRED: u8 = 4;

impl Sibling {
    /// As it is read: what was written and what was added to it.
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

    /// Of the same write: the later deadline says what there is.
    fn merge(&mut self, other: &Self) -> bool {
        let counted = self.counter.merge(&other.counter);
        let rank = |of: &Self| (of.deadline, of.has_expired);
        // Two values of one stamp do not happen; the order is total all the same.
        let theirs = (rank(other), &other.value) > (rank(self), &self.value);
        if theirs {
            self.value.clone_from(&other.value);
            (self.deadline, self.has_expired) = rank(other);
        }
        theirs || counted
    }
}

impl Siblings {
    /// Writes a value, or a deletion, in the place of all that `context` has
    /// seen; of all that is here where there is no context. The stamp is newer
    /// than all that its replica has given. Says whether that changed
    /// anything: a deletion of nothing does not.
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
                // What was seen elsewhere and has not come yet is replaced all the
                // same; but one write does not say what was before it there.
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

    /// For one more: of too many what has expired goes first, then the oldest.
    fn make_room(&mut self) {
        while self.live.len() >= MAX_SIBLINGS {
            let expired = self.live.iter().rposition(|sibling| sibling.has_expired);
            self.live.remove(expired.unwrap_or(self.live.len() - 1));
        }
    }

    /// Adds to what the write of `stamp` has written, in the entry of a
    /// replica. What was never written is of [`Stamp::ZERO`].
    pub fn add(&mut self, stamp: Stamp, replica: u16, by: i64) -> Result<(), Overflow> {
        if stamp == Stamp::ZERO && self.seen.is_empty() && self.live.is_empty() {
            self.live.push(Sibling::default());
        }
        match place(&self.live, stamp) {
            Some(at) => self.live[at].counter.add(replica, by),
            None => Ok(()),
        }
    }

    /// Gives everything that is shown, or of that what `context` has seen, a
    /// deadline in Unix milliseconds, or with 0 none; says whether there was any
    /// of that. What the clock of the stamps says is over expires instead,
    /// whatever real time is here: by the time that all have heard of stamps
    /// beyond a deadline, nobody extends it any more.
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

    /// Gives one write a deadline, its own.
    pub fn set_deadline_of(&mut self, stamp: Stamp, unix_ms: u64) {
        if let Some(at) = place(&self.live, stamp) {
            self.live[at].deadline = (stamp, unix_ms);
        }
    }

    /// When the next of them goes.
    pub fn next_deadline(&self) -> Option<u64> {
        let deadlines = self.live().map(|sibling| sibling.deadline.1);
        deadlines.filter(|&at| at > 0).min()
    }

    /// Those whose deadline is not later expire.
    pub fn expire(&mut self, now_ms: u64) {
        let due = self.live.iter_mut().filter(|s| s.is_due(now_ms));
        due.for_each(Sibling::expire);
    }

    /// What is shown, the latest first.
    pub fn live(&self) -> impl DoubleEndedIterator<Item = &Sibling> {
        self.live.iter().filter(|sibling| !sibling.has_expired)
    }

    /// What the writer of this has seen, who had seen `context` before: all
    /// of it where nothing else is alive.
    pub fn seen_by_writer(&self, stamp: Stamp, context: &Seen) -> Seen {
        match self.live.iter().all(|sibling| sibling.stamp == stamp) {
            true => self.seen.clone().into(),
            false => Seen {
                all: context.all.below(stamp),
                own: stamp,
            },
        }
    }

    /// What a reader has seen who has read all that is alive.
    pub fn seen(&self) -> &VersionVector {
        &self.seen
    }

    /// Nothing in it is newer.
    pub fn newest(&self) -> Stamp {
        let deadlines = self.live.iter().map(|sibling| sibling.deadline.0);
        deadlines.fold(self.seen.newest(), Stamp::max)
    }

    /// Where nothing is shown: the time of a stamp from which on, as one that
    /// all have heard of, nobody has to know of this.
    pub fn until(&self) -> u64 {
        let expired = self.live.iter().map(|sibling| time_of(sibling.deadline.1));
        expired.fold(self.newest().time, u64::max)
    }

    /// Nothing was ever done.
    pub fn is_bottom(&self) -> bool {
        self.live.is_empty() && self.seen.is_empty()
    }

    /// Whatever was seen, was seen after the write that never was.
    fn covers(&self, stamp: Stamp) -> bool {
        match stamp == Stamp::ZERO {
            true => !self.seen.is_empty(),
            false => self.seen.covers(stamp),
        }
    }
}

/// Where a write is among some whose stamps descend.
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
            // Elsewhere the text was read as the value.
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

/// A write, and the text that is said to be what it reads as.
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
