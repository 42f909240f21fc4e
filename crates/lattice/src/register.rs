//! A register whose last write wins, whose increments add up, and whose deadline is set by itself.
//!
//! A pair of two parts that merge independently. The first is lexicographic [Anna §VI-C]: the stamp of the write, then
//! the written value and the later increments, by replica. A write with a higher stamp replaces value and increments,
//! both those that it has seen and concurrent ones; increments of one write add up.
//!
//! The second is the deadline, with the stamp at which it was set: the later one wins, whatever the value is. So a
//! deadline that is set where an old value is still shown does not restore that value, and counts are not written
//! again. A write sets both parts; [`Register::rewritten`] keeps the deadline.
//!
//! When the deadline has passed, every replica by itself raises the deadline's stamp to that of its expiry
//! ([`Stamp::expired`]), which hides the value without dropping it: a later deadline of a replica that did not know of
//! the expiry shows it again. What is counted from then on begins a new life, as a removal with the stamp
//! [`Register::end`], which is the same at all replicas.
//!
//! Implemented directly, not with [`crate::Lexicographic`]: its encoding is the record of a string, which is
//! overwritten in place.
//!
//! ```text
//! form  stamp  then
//! 00    12     the value                            a plain write
//! 01    12                                          deleted, or never written
//! 02    12     deadline, 8 bytes; the value         a write that expires
//! 03    12     deadline, 8 bytes, 0 for none; length of the value and one, or 0 where there is
//!              none, as a varint; the value; counter; float counter      counted since
//! 05    12     stamp of the deadline, 12 bytes; then as 03               the deadline is another write's
//! ```
//!
//! In forms 00 to 03 the deadline, or that there is none, has the stamp of the write. A state has form 05 only if no
//! other form can express it. Form 04 is used by records alone.

#[cfg(test)]
mod tests;

use crate::code::{Coded, Malformed, Reader, put_varint};
use crate::deadline::time_of;
use crate::{Counter, FloatCounter, Lattice, Stamp};

/// See the module's description. A register that was never written has no value and no deadline, but may have been
/// incremented.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Register {
    stamp: Stamp,
    value: Option<Vec<u8>>,
    /// When it was set, and Unix milliseconds, 0 for none. The stamp of one that has passed is that of its expiry.
    deadline: (Stamp, u64),
    pub counter: Counter,
    pub floats: FloatCounter,
}

/// The byte before the stamp.
pub mod form {
    pub const PLAIN: u8 = 0;
    pub const GONE: u8 = 1;
    pub const TIMED: u8 = 2;
    pub const COUNTED: u8 = 3;
    /// 4 is a form of records.
    pub const DATED: u8 = 5;
}

impl Register {
    /// A write. The stamp must not be [`Stamp::ZERO`]; a deadline is in Unix
    /// milliseconds, 0 for none.
    pub fn written(stamp: Stamp, value: Vec<u8>, unix_ms: u64) -> Self {
        debug_assert!(stamp > Stamp::ZERO);
        Self {
            stamp,
            value: Some(value),
            deadline: (stamp, unix_ms),
            ..Self::default()
        }
    }

    pub fn deleted(stamp: Stamp) -> Self {
        Self {
            stamp,
            deadline: (stamp, 0),
            ..Self::default()
        }
    }

    /// A write that keeps the deadline, or that a value has none. It clears one that has passed, also where that was
    /// before the content began, or may be forgotten here: another replica may have it, and would hide the new value.
    pub fn rewritten(&self, stamp: Stamp, value: Vec<u8>) -> Self {
        let written = Self::written(stamp, value, 0);
        let (dated, at) = self.deadline;
        let may_be_forgotten = self.value.is_none() && at == 0;
        if !self.is_there() || dated == dated.expired() || may_be_forgotten {
            return written;
        }
        Self {
            deadline: self.deadline,
            ..written
        }
    }

    /// The stamp of the write.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// No stamp in it is newer.
    pub fn newest(&self) -> Stamp {
        self.stamp.max(self.deadline.0)
    }

    /// The written value, without later increments, even if it has expired.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    /// Unix milliseconds from which on it is hidden; 0 for none, or if there is nothing to hide.
    pub fn deadline(&self) -> u64 {
        let (stamp, at) = self.deadline;
        let is_pending = stamp != stamp.expired() && self.has_content();
        if is_pending { at } else { 0 }
    }

    /// The stamp at which the deadline was set, or that of its expiry.
    pub fn dated(&self) -> Stamp {
        self.deadline.0
    }

    /// Sets another deadline in Unix milliseconds, 0 for none; returns whether there is a value to have one. A time
    /// that the clock of the stamps has reached counts as passed, whatever the local time: when all replicas have
    /// received stamps beyond a deadline, none may extend it any more.
    pub fn set_deadline(&mut self, stamp: Stamp, unix_ms: u64) -> bool {
        let before = self.deadline();
        if before > 0 && stamp.time >= time_of(before) {
            self.expire();
        }
        let is_there = self.is_there();
        if is_there {
            self.deadline = self.deadline.max((stamp, unix_ms));
        }
        is_there
    }

    /// What every replica does when the deadline has passed.
    pub fn expire(&mut self) {
        if self.deadline() > 0 {
            self.deadline.0 = self.deadline.0.expired();
        }
    }

    /// The part of its state that says that the deadline has passed.
    pub fn expiry(&self) -> Self {
        let (stamp, at) = self.deadline;
        Self {
            deadline: (stamp.expired(), at),
            ..Self::default()
        }
    }

    /// Whether a passed deadline hides the content. Content that began after an expiry has that expiry's stamp.
    pub fn has_expired(&self) -> bool {
        let dated = self.deadline.0;
        let is_since = self.stamp == self.stamp.expired() && self.stamp >= dated;
        dated == dated.expired() && !is_since
    }

    /// The stamp of the removal that an expiry, or a removal, is to what is counted from then on.
    fn end(&self) -> Stamp {
        if self.has_expired() {
            self.end_by_expiry()
        } else {
            self.stamp
        }
    }

    /// That of the expiry. Its time is no earlier than the deadline, so that it is later than each deadline that the
    /// same lifetime may have got at other replicas.
    fn end_by_expiry(&self) -> Stamp {
        Stamp {
            time: self.until(),
            ..self.newest()
        }
        .expired()
    }

    /// Called before an increment: if nothing is shown, what has expired is dropped, and a deadline that was set at
    /// another replica before it learned of a removal does not apply to what is counted from now on.
    pub fn begin_count(&mut self, stamp: Stamp) {
        if self.is_there() {
            return;
        }
        let (dated, at) = self.deadline;
        if at > 0 && !self.has_expired() {
            self.deadline = if stamp.time >= time_of(at) {
                (dated.expired(), at)
            } else {
                self.deadline.max((stamp, 0))
            };
        }
        *self = Self {
            stamp: self.end(),
            deadline: self.deadline,
            ..Self::default()
        };
    }

    /// The time of a stamp that all replicas must have received before this state can be forgotten, if it shows
    /// nothing: then no replica shows the value any more, or can extend a deadline that had passed. A deadline on a
    /// removal is kept as long, or replicas that have forgotten it would count without it, and others with it.
    pub fn until(&self) -> u64 {
        let at = match self.deadline.1 {
            0 => 0,
            at => time_of(at),
        };
        self.newest().time.max(at)
    }

    /// Whether there is a value to read: a written one, or increments on nothing.
    pub fn is_there(&self) -> bool {
        self.has_content() && !self.has_expired()
    }

    /// Where only counts without a stamp have expired, and all replicas have received everything up to the horizon:
    /// the stamp up to which they have gone. What is counted later may have no stamp either.
    pub fn gone(&self, horizon: u64) -> Stamp {
        if self.stamp == Stamp::ZERO && self.has_expired() && self.until() <= horizon {
            self.deadline.0
        } else {
            Stamp::ZERO
        }
    }

    fn has_content(&self) -> bool {
        self.value.is_some() || self.is_counted()
    }

    /// Whether it is one write without a deadline, and nothing else.
    pub fn is_plain(&self) -> bool {
        self.form() == form::PLAIN
    }

    pub fn is_counted(&self) -> bool {
        !(self.counter.is_empty() && self.floats.is_empty())
    }

    /// Whether it shows increments on nothing, or on a removal.
    pub fn only_counts(&self) -> bool {
        self.value.is_none() && self.is_there()
    }

    /// Called before a merge by a replica that has received every write up to the horizon, a [`Stamp::time`].
    /// Increments of a writer that has forgotten a removal have no stamp, and those of a writer that has not have the
    /// removal's stamp: both belong to one lifetime, as the writer without a stamp knew of the removal. They get the
    /// higher stamp, or that of its expiry if the other side still has a value with it, which has gone here. A
    /// deadline of what has gone does not apply to them. But a stamp beyond their own deadline ended their lifetime.
    /// Returns whether anything changed.
    pub fn meet(&mut self, other: &Self, horizon: u64) -> bool {
        let (mine, theirs) = (self.stamp, other.stamp);
        if !self.only_counts()
            || !Stamp::are_of_one_life(mine, theirs, horizon)
            || self.is_ended_by(other)
            || other.is_ended_by(self)
        {
            return false;
        }
        if mine < theirs {
            if other.only_counts() {
                self.stamp = theirs;
                return true;
            }
            let is_void = other.deadline.1 > 0 && other.dated().time <= horizon;
            if is_void {
                self.deadline = self.deadline.max(other.expiry().deadline);
            }
            self.stamp = match &other.value {
                None if !is_void => theirs,
                _ => other.end_by_expiry(),
            };
            return true;
        }
        let counted = other.only_counts() && self.counter.merge(&other.counter);
        other.only_counts() && self.floats.merge(&other.floats) || counted
    }

    /// Whether a later lifetime than its own has this stamp: a deadline is set in the lifetime that it ends.
    fn is_ended_by(&self, later: &Self) -> bool {
        let set = self.deadline.0;
        set > self.stamp && later.stamp > set
    }

    /// The form of its encoding.
    fn form(&self) -> u8 {
        let (dated, at) = self.deadline;
        if dated != self.stamp || self.value.is_none() && at > 0 {
            form::DATED
        } else if self.is_counted() {
            form::COUNTED
        } else if self.value.is_none() {
            form::GONE
        } else if at > 0 {
            form::TIMED
        } else {
            form::PLAIN
        }
    }
}

impl Lattice for Register {
    fn merge(&mut self, other: &Self) -> bool {
        let is_dated = other.deadline > self.deadline;
        let deadline = self.deadline.max(other.deadline);
        if self.stamp != other.stamp {
            let later = other.stamp > self.stamp;
            if later {
                self.clone_from(other);
            }
            self.deadline = deadline;
            return later || is_dated;
        }
        self.deadline = deadline;
        // Two values of one stamp do not occur; the order is total nevertheless.
        let is_less = self.value < other.value;
        if is_less {
            self.value.clone_from(&other.value);
        }
        let counted = self.counter.merge(&other.counter);
        self.floats.merge(&other.floats) || counted || is_less || is_dated
    }
}

impl Coded for Register {
    fn encode(&self, out: &mut Vec<u8>) {
        let form = self.form();
        out.push(form);
        out.extend_from_slice(&self.stamp.to_bytes());
        let (dated, at) = self.deadline;
        if form == form::DATED {
            out.extend_from_slice(&dated.to_bytes());
        }
        if matches!(form, form::TIMED | form::COUNTED | form::DATED) {
            out.extend_from_slice(&at.to_be_bytes());
        }
        let value = self.value.as_deref();
        let is_whole = matches!(form, form::COUNTED | form::DATED);
        if is_whole {
            put_varint(out, value.map_or(0, |value| value.len() as u64 + 1));
        }
        out.extend_from_slice(value.unwrap_or_default());
        if is_whole {
            self.counter.encode(out);
            self.floats.encode(out);
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let form = reader.byte()?;
        let mut register = Register::deleted(Stamp::read(&mut reader)?);
        if form == form::DATED {
            register.deadline.0 = Stamp::read(&mut reader)?;
        }
        if matches!(form, form::TIMED | form::COUNTED | form::DATED) {
            register.deadline.1 = reader.u64()?;
        }
        match form {
            form::PLAIN | form::TIMED => register.value = Some(reader.rest().to_vec()),
            form::GONE => {}
            form::COUNTED | form::DATED => {
                if let Some(len) = reader.varint()?.checked_sub(1) {
                    register.value = Some(reader.bytes(len)?.to_vec());
                }
                register.counter = Counter::read(&mut reader)?;
                register.floats = FloatCounter::read(&mut reader)?;
            }
            _ => return Err(Malformed),
        }
        reader.end()?;
        let is_written = register.value.is_none() || register.stamp > Stamp::ZERO;
        // No deadline was set without a stamp.
        let is_dated = register.deadline.1 == 0 || register.dated() > Stamp::ZERO;
        let is_sound = is_written && is_dated && register.form() == form;
        is_sound.then_some(register).ok_or(Malformed)
    }
}
