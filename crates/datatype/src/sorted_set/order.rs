//! Places in the order of a sorted set.
//!
//! An item is a score and the member. Scores are written ([`super::score`]) so that comparing bytes compares scores,
//! and so comparing items compares elements:
//!
//! ```text
//! score 1.5    member "ab"
//! bf 80 00     61 62
//! ```

use super::score::{SHORT_BYTES, rank_of, write_score};
use std::ops::Deref;

/// An item being made: on the stack unless the member is long.
pub(crate) struct Item {
    short: [u8; Item::SHORT],
    long: Vec<u8>,
    len: usize,
}

impl Item {
    const SHORT: usize = 120;

    #[inline]
    pub(crate) fn new(rank: u64, member: &[u8]) -> Self {
        Self::with_tail(rank, member, &[])
    }

    #[inline]
    fn with_tail(rank: u64, member: &[u8], tail: &[u8]) -> Self {
        let mut item = Self {
            short: [0; Self::SHORT],
            long: Vec::new(),
            len: 0,
        };
        // What is written behind the score is written over.
        let (score, len) = write_score(rank);
        item.len = len + member.len() + tail.len();
        if item.len <= Self::SHORT {
            item.short[..SHORT_BYTES].copy_from_slice(&score);
            item.short[len..len + member.len()].copy_from_slice(member);
            item.short[len + member.len()..item.len].copy_from_slice(tail);
        } else {
            item.long = [&score[..len], member, tail].concat();
        }
        item
    }
}

impl Deref for Item {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        if self.len <= Self::SHORT {
            &self.short[..self.len]
        } else {
            &self.long
        }
    }
}

/// A place between items: all items are before it or behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut<'a> {
    /// Before all items whose scores have this rank or a greater one.
    Rank(u64),
    /// Before the item of this rank and member.
    Before(u64, &'a [u8]),
    /// Behind it.
    Behind(u64, &'a [u8]),
}

impl<'a> Cut<'a> {
    pub const START: Cut<'static> = Cut::Rank(0);
    pub const END: Cut<'static> = Cut::Rank(u64::MAX);

    /// Before all of this score.
    pub fn before_score(score: f64) -> Cut<'static> {
        Cut::Rank(rank_of(score))
    }

    /// Behind all of this score.
    pub fn behind_score(score: f64) -> Cut<'static> {
        Cut::Rank(rank_of(score).saturating_add(1))
    }

    pub fn before(score: f64, member: &'a [u8]) -> Self {
        Cut::Before(rank_of(score), member)
    }

    pub fn behind(score: f64, member: &'a [u8]) -> Self {
        Cut::Behind(rank_of(score), member)
    }

    /// The least bytes that are behind the cut.
    #[inline]
    pub(super) fn bytes(&self) -> Item {
        match *self {
            Cut::Rank(rank) => Item::new(rank, &[]),
            Cut::Before(rank, member) => Item::new(rank, member),
            // Nothing is between some bytes and the same with a zero behind them.
            Cut::Behind(rank, member) => Item::with_tail(rank, member, &[0]),
        }
    }
}

/// All items between two cuts; none if these are in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone<'a> {
    pub low: Cut<'a>,
    pub high: Cut<'a>,
}

impl<'a> Zone<'a> {
    pub const ALL: Zone<'static> = Zone {
        low: Cut::START,
        high: Cut::END,
    };

    /// All scores between two, each of which may be left out.
    pub fn scores(min: f64, without_min: bool, max: f64, without_max: bool) -> Zone<'static> {
        Zone {
            low: match without_min {
                true => Cut::behind_score(min),
                false => Cut::before_score(min),
            },
            high: match without_max {
                true => Cut::before_score(max),
                false => Cut::behind_score(max),
            },
        }
    }

    pub(super) fn has(&self, score: f64, member: &[u8]) -> bool {
        let item = Item::new(rank_of(score), member);
        *self.low.bytes() <= *item && *item < *self.high.bytes()
    }

    /// Whether all that is in `other` is in this one.
    pub(super) fn covers(&self, other: &Zone<'_>) -> bool {
        let (low, high) = (other.low.bytes(), other.high.bytes());
        *low >= *high || *self.low.bytes() <= *low && *high <= *self.high.bytes()
    }

    /// What is in both.
    pub(super) fn common(&self, other: &Zone<'a>) -> Zone<'a> {
        Zone {
            low: if *self.low.bytes() < *other.low.bytes() {
                other.low
            } else {
                self.low
            },
            high: if *self.high.bytes() < *other.high.bytes() {
                self.high
            } else {
                other.high
            },
        }
    }

    pub(super) fn is_void(&self) -> bool {
        *self.low.bytes() >= *self.high.bytes()
    }
}
