//! A register whose last write wins, and whose increments add up.
//!
//! A lexicographic pair [Anna §VI-C]: the stamp of the write, then the written value and the later increments, by
//! replica. A write with a higher stamp replaces value and increments, both those that it has seen and concurrent
//! ones; increments of one write add up.
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
//! ```

use crate::code::{Coded, Malformed, Reader, put_varint};
use crate::{Counter, FloatCounter, Lattice, Stamp};

/// See the module's description. A register that was never written has no value and no deadline, but may have been
/// incremented.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Register {
    stamp: Stamp,
    value: Option<Vec<u8>>,
    deadline: u64,
    pub counter: Counter,
    pub floats: FloatCounter,
}

/// The byte before the stamp.
pub mod form {
    pub const PLAIN: u8 = 0;
    pub const GONE: u8 = 1;
    pub const TIMED: u8 = 2;
    pub const COUNTED: u8 = 3;
}

impl Register {
    /// A write. The stamp must not be [`Stamp::ZERO`]; a deadline is in Unix
    /// milliseconds, 0 for none.
    pub fn written(stamp: Stamp, value: Vec<u8>, deadline: u64) -> Self {
        debug_assert!(stamp > Stamp::ZERO);
        Self {
            stamp,
            value: Some(value),
            deadline,
            ..Self::default()
        }
    }

    pub fn deleted(stamp: Stamp) -> Self {
        Self {
            stamp,
            ..Self::default()
        }
    }

    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The written value, without later increments.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    /// Unix milliseconds from which on it counts as deleted by [`Stamp::expired`]; 0 for none.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// The result at each replica when its deadline has passed.
    pub fn expired(&self) -> Self {
        Self::deleted(self.stamp.expired())
    }

    /// Whether there is a value to read: a written one, or increments on nothing.
    pub fn is_there(&self) -> bool {
        self.value.is_some() || self.is_counted()
    }

    pub fn is_counted(&self) -> bool {
        !(self.counter.is_empty() && self.floats.is_empty())
    }

    /// Whether it consists of increments on nothing, or on a removal.
    pub fn only_counts(&self) -> bool {
        self.value.is_none() && self.is_counted()
    }

    /// Called before a merge by a replica that has received every write up to the horizon, a [`Stamp::time`].
    /// Increments of a writer that has forgotten a removal have no stamp, and those of a writer that has not have the
    /// removal's stamp: both belong to one lifetime, as the writer without a stamp knew of the removal. They get the
    /// higher stamp, or that of its expiry if the other side still has a value with it, which has gone here. Returns
    /// whether anything changed.
    pub fn meet(&mut self, other: &Self, horizon: u64) -> bool {
        let (mine, theirs) = (self.stamp, other.stamp);
        if !self.only_counts() || !Stamp::are_of_one_life(mine, theirs, horizon) {
            return false;
        }
        if mine < theirs {
            self.stamp = match other.value {
                Some(_) => theirs.expired(),
                None => theirs,
            };
            return true;
        }
        let counted = other.only_counts() && self.counter.merge(&other.counter);
        other.only_counts() && self.floats.merge(&other.floats) || counted
    }
}

impl Lattice for Register {
    fn merge(&mut self, other: &Self) -> bool {
        if self.stamp != other.stamp {
            let later = other.stamp > self.stamp;
            if later {
                self.clone_from(other);
            }
            return later;
        }
        // Two values of one stamp do not occur; the order is total nevertheless.
        let is_less = (&self.value, self.deadline) < (&other.value, other.deadline);
        if is_less {
            self.value.clone_from(&other.value);
            self.deadline = other.deadline;
        }
        let counted = self.counter.merge(&other.counter);
        self.floats.merge(&other.floats) || counted || is_less
    }
}

impl Coded for Register {
    fn encode(&self, out: &mut Vec<u8>) {
        let form = match (&self.value, self.deadline) {
            _ if self.is_counted() => form::COUNTED,
            (None, _) => form::GONE,
            (Some(_), 0) => form::PLAIN,
            (Some(_), _) => form::TIMED,
        };
        out.push(form);
        out.extend_from_slice(&self.stamp.to_bytes());
        if matches!(form, form::TIMED | form::COUNTED) {
            out.extend_from_slice(&self.deadline.to_be_bytes());
        }
        let value = self.value.as_deref();
        if form == form::COUNTED {
            put_varint(out, value.map_or(0, |value| value.len() as u64 + 1));
        }
        out.extend_from_slice(value.unwrap_or_default());
        if form == form::COUNTED {
            self.counter.encode(out);
            self.floats.encode(out);
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let form = reader.byte()?;
        let mut register = Register::deleted(Stamp::read(&mut reader)?);
        if matches!(form, form::TIMED | form::COUNTED) {
            register.deadline = reader.u64()?;
        }
        match form {
            form::PLAIN => register.value = Some(reader.rest().to_vec()),
            form::GONE => {}
            form::TIMED if register.deadline > 0 => register.value = Some(reader.rest().to_vec()),
            form::COUNTED => {
                if let Some(len) = reader.varint()?.checked_sub(1) {
                    register.value = Some(reader.bytes(len)?.to_vec());
                }
                register.counter = Counter::read(&mut reader)?;
                register.floats = FloatCounter::read(&mut reader)?;
                if !register.is_counted() {
                    return Err(Malformed);
                }
            }
            _ => return Err(Malformed),
        }
        reader.end()?;
        let is_written = register.stamp > Stamp::ZERO;
        let is_sound = match register.value {
            Some(_) => is_written,
            None => register.deadline == 0,
        };
        is_sound.then_some(register).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::{counter, floats};
    use crate::laws::{self, Draw};
    use crate::{Lexicographic, Max, Product};

    fn stamp(time: u64) -> Stamp {
        Stamp::new(time, 1)
    }

    fn register(draw: &mut Draw) -> Register {
        let time = draw.below(4);
        let value = draw.below(3).checked_sub(1).map(|n| vec![b'0' + n as u8]);
        let mut register = match (value, time) {
            (Some(value), 1..) => Register::written(stamp(time), value, draw.below(2) * 5),
            (_, 0) => Register::default(),
            _ => Register::deleted(stamp(time)),
        };
        if draw.below(2) == 0 {
            register.counter = counter(draw);
            register.floats = floats(draw);
        }
        register
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Register>(60, 1, register).unwrap();
        laws::check_code(600, 1, register).unwrap();
    }

    #[test]
    fn a_register_is_a_lexicographic_pair() {
        type Written = Max<(Option<Vec<u8>>, u64)>;
        type Model = Lexicographic<Max<Stamp>, Product<Written, Product<Counter, FloatCounter>>>;
        laws::check_model::<Register, Model>(150, 1, register, |register| {
            let written = Max((register.value.clone(), register.deadline));
            let added = Product(register.counter.clone(), register.floats.clone());
            Lexicographic {
                rank: Max(register.stamp),
                value: Product(written, added),
            }
        })
        .unwrap();
    }

    #[test]
    fn a_write_replaces_what_was_counted_and_counts_of_one_write_add_up() {
        let mut a = Register::written(stamp(1), b"10".to_vec(), 0);
        let mut b = a.clone();
        a.counter.add(1, 2).unwrap();
        b.counter.add(2, 3).unwrap();
        assert!(a.merge(&b));
        assert_eq!(a.counter.sum(), 5);
        let later = Register::written(stamp(2), b"1".to_vec(), 0);
        assert!(a.merge(&later) && !a.is_counted());
        assert!(!a.merge(&b));
        assert_eq!(a.value(), Some(&b"1"[..]));
    }

    #[test]
    fn counts_with_and_without_a_removal_that_all_know_of_add_up() {
        let (mut a, mut b) = (Register::default(), Register::deleted(stamp(2)));
        a.counter.add(1, 2).unwrap();
        b.counter.add(2, 3).unwrap();
        let both = |mut mine: Register, theirs: &Register, horizon| {
            let met = mine.meet(theirs, horizon);
            mine.merge(theirs);
            (met, mine.counter.sum(), mine.stamp())
        };
        assert_eq!(both(a.clone(), &b, 2), (true, 5, stamp(2)));
        assert_eq!(both(b.clone(), &a, 2), (true, 5, stamp(2)));
        // A newer stamp drops the counts that did not know of it.
        assert_eq!(both(a.clone(), &b, 1), (false, 3, stamp(2)));
        // A forgotten removal or value that arrives again has no effect.
        let gone = Register::deleted(stamp(2));
        assert_eq!(both(a.clone(), &gone, 2), (true, 2, stamp(2)));
        let value = Register::written(stamp(2), b"7".to_vec(), 1);
        assert_eq!(both(a, &value, 2), (true, 2, stamp(2).expired()));
        assert_eq!(both(value.clone(), &b, 2), (false, 3, stamp(2)));
    }

    #[test]
    fn expiry_is_above_the_write_and_below_the_next() {
        let write = Register::written(stamp(1), b"x".to_vec(), 5);
        let mut late = write.clone();
        late.counter.add(1, 1).unwrap();
        let mut gone = write.expired();
        assert!(!gone.merge(&late) && !gone.is_there());
        assert!(gone.merge(&Register::written(stamp(2), b"y".to_vec(), 0)));
    }

    #[test]
    fn golden_bytes() {
        let head = |form| [&[form][..], &stamp(7).to_bytes()].concat();
        let mut all = Register::written(stamp(7), b"ab".to_vec(), 0);
        assert_eq!(all.encoded(), [&head(0)[..], b"ab"].concat());
        assert_eq!(Register::deleted(stamp(7)).encoded(), head(1));
        let timed = Register::written(stamp(7), b"ab".to_vec(), 9);
        let deadline = 9u64.to_be_bytes();
        assert_eq!(timed.encoded(), [&head(2)[..], &deadline, b"ab"].concat());
        all.counter.add(1, 5).unwrap();
        let counted = [&head(3)[..], &[0; 8], b"\x03ab\x01\0\x01\x05\0\0"].concat();
        assert_eq!(all.encoded(), counted);
        let mut never = Register::default();
        never.floats.set(2, 1.5);
        let counted = [
            &[3][..],
            &[0; 20],
            b"\0\0\x01\0\x02\x01\x3f\xf8\0\0\0\0\0\0",
        ]
        .concat();
        assert_eq!(never.encoded(), counted);
    }
}
