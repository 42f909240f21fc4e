//! A score whose last write wins, and whose increments add up: a [`crate::Register`] of a number, implemented
//! directly for the same reason.
//!
//! ```text
//! form  stamp  then
//! 00    12     score, 8 bytes                    a plain write
//! 01    12                                       removed, or never written
//! 02    12     float counter                     counted from nothing
//! 03    12     score, 8 bytes; float counter     counted since the write
//! ```

use crate::code::{Coded, Malformed, Reader};
use crate::counter::read_float;
use crate::{FloatCounter, Lattice, Stamp};

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    stamp: Stamp,
    /// Neither NaN nor negative zero.
    written: Option<f64>,
    pub floats: FloatCounter,
}

impl Score {
    /// A write. The stamp must not be [`Stamp::ZERO`], the score not NaN.
    pub fn written(stamp: Stamp, score: f64) -> Self {
        debug_assert!(stamp > Stamp::ZERO && !score.is_nan());
        Self {
            stamp,
            written: Some(score + 0.0),
            ..Self::default()
        }
    }

    pub fn removed(stamp: Stamp) -> Self {
        Self {
            stamp,
            ..Self::default()
        }
    }

    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The written score plus later increments. Infinities of both signs add up to zero: a score is never NaN.
    pub fn score(&self) -> Option<f64> {
        if self.written.is_none() && self.floats.is_empty() {
            return None;
        }
        let sum = self
            .floats
            .totals()
            .fold(self.written.unwrap_or(0.0), |sum, total| sum + total);
        Some(if sum.is_nan() { 0.0 } else { sum + 0.0 })
    }

    /// Whether it consists of increments on nothing, or on a removal.
    pub fn only_counts(&self) -> bool {
        self.written.is_none() && !self.floats.is_empty()
    }

    /// See [`crate::Register::meet`].
    pub fn meet(&mut self, other: &Self, horizon: u64) -> bool {
        let (mine, theirs) = (self.stamp, other.stamp);
        if !self.only_counts() || !Stamp::are_of_one_life(mine, theirs, horizon) {
            return false;
        }
        if mine < theirs {
            self.stamp = match other.written {
                Some(_) => theirs.expired(),
                None => theirs,
            };
            return true;
        }
        other.only_counts() && self.floats.merge(&other.floats)
    }
}

impl Lattice for Score {
    fn merge(&mut self, other: &Self) -> bool {
        if self.stamp != other.stamp {
            let later = other.stamp > self.stamp;
            if later {
                self.clone_from(other);
            }
            return later;
        }
        // Two scores of one stamp do not occur; the order is total nevertheless.
        let is_less = match (self.written, other.written) {
            (mine, Some(theirs)) => mine.is_none_or(|mine| mine < theirs),
            (_, None) => false,
        };
        if is_less {
            self.written = other.written;
        }
        self.floats.merge(&other.floats) || is_less
    }
}

const WRITTEN: u8 = 0;
const NOTHING: u8 = 1;
const COUNTED: u8 = 2;
const BOTH: u8 = 3;

/// Stamp and score of an encoded score, if that is a plain write. Accepts any bytes.
#[inline]
pub fn write(bytes: &[u8]) -> Option<(Stamp, f64)> {
    let (&[WRITTEN], rest) = bytes.split_first_chunk()? else {
        return None;
    };
    let (&stamp, score) = rest.split_first_chunk()?;
    let stamp = Stamp::from_bytes(stamp);
    let mut reader = Reader(score);
    let score = read_float(&mut reader).ok()?;
    (reader.0.is_empty() && stamp > Stamp::ZERO).then_some((stamp, score))
}

impl Coded for Score {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match (self.written, self.floats.is_empty()) {
            (Some(_), true) => WRITTEN,
            (None, true) => NOTHING,
            (None, false) => COUNTED,
            (Some(_), false) => BOTH,
        });
        out.extend_from_slice(&self.stamp.to_bytes());
        if let Some(score) = self.written {
            out.extend_from_slice(&score.to_bits().to_be_bytes());
        }
        if !self.floats.is_empty() {
            self.floats.encode(out);
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let form = reader.byte()?;
        let mut score = Score::removed(Stamp::read(&mut reader)?);
        if form == WRITTEN || form == BOTH {
            score.written = Some(read_float(&mut reader)?);
        }
        if form == COUNTED || form == BOTH {
            score.floats = FloatCounter::read(&mut reader)?;
            if score.floats.is_empty() {
                return Err(Malformed);
            }
        }
        reader.end()?;
        let is_sound = score.written.is_none() || score.stamp > Stamp::ZERO;
        (form <= BOTH && is_sound).then_some(score).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::{floats, ordered};
    use crate::laws::{self, Draw};
    use crate::{Lexicographic, Max, Product};

    fn stamp(time: u64) -> Stamp {
        Stamp::new(time, 1)
    }

    fn score(draw: &mut Draw) -> Score {
        let time = draw.below(4);
        let mut score = match draw.below(3) {
            0 => Score::removed(stamp(time)),
            n if time > 0 => Score::written(stamp(time), n as f64 - 2.5),
            _ => Score::default(),
        };
        if draw.below(2) == 0 {
            score.floats = floats(draw);
        }
        score
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Score>(60, 1, score).unwrap();
        laws::check_code(600, 1, score).unwrap();
    }

    #[test]
    fn a_plain_write_is_told_from_all_else() {
        let slow = |score: &Score| {
            let written = score.written.filter(|_| score.floats.is_empty())?;
            Some((score.stamp, written))
        };
        laws::check_reading(600, 1, score, write, slow).unwrap();
        let plain = Score::written(stamp(7), 1.5);
        assert_eq!(write(&plain.encoded()), Some((stamp(7), 1.5)));
        let of = |stamp: Stamp, score: f64| {
            let number = score.to_bits().to_be_bytes();
            write(&[&[WRITTEN][..], &stamp.to_bytes(), &number].concat())
        };
        assert!(of(stamp(1), f64::INFINITY).is_some());
        // Invalid scores.
        assert_eq!(of(Stamp::ZERO, 1.5), None);
        assert_eq!(of(stamp(1), -0.0), None);
        assert_eq!(of(stamp(1), f64::NAN), None);
    }

    #[test]
    fn a_score_is_a_lexicographic_pair() {
        type Written = Max<Option<i64>>;
        type Model = Lexicographic<Max<Stamp>, Product<Written, FloatCounter>>;
        laws::check_model::<Score, Model>(120, 1, score, |score| Lexicographic {
            rank: Max(score.stamp),
            value: Product(Max(score.written.map(ordered)), score.floats.clone()),
        })
        .unwrap();
    }

    #[test]
    fn increments_add_up_and_are_never_nan() {
        let mut a = Score::written(stamp(1), 1.0);
        let mut b = a.clone();
        a.floats.set(1, 0.5);
        b.floats.set(2, 2.0);
        a.merge(&b);
        assert_eq!(a.score(), Some(3.5));
        a.floats.set(1, f64::INFINITY);
        a.floats.set(2, f64::NEG_INFINITY);
        assert_eq!(a.score(), Some(0.0));
        a.merge(&Score::removed(stamp(2)));
        assert_eq!(a.score(), None);
        assert_eq!(Score::default().score(), None);
    }

    #[test]
    fn golden_bytes() {
        let head = |form| [&[form][..], &stamp(7).to_bytes()].concat();
        let mut score = Score::written(stamp(7), 1.5);
        let number = [0x3f, 0xf8, 0, 0, 0, 0, 0, 0];
        assert_eq!(score.encoded(), [&head(0)[..], &number].concat());
        assert_eq!(Score::removed(stamp(7)).encoded(), head(1));
        score.floats.set(2, 1.5);
        let floats = [&[1, 0, 2, 1][..], &number].concat();
        assert_eq!(score.encoded(), [&head(3)[..], &number, &floats].concat());
        let mut counted = Score::removed(stamp(7));
        counted.floats.set(2, 1.5);
        assert_eq!(counted.encoded(), [&head(2)[..], &floats].concat());
    }
}
