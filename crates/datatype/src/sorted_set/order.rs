//! Scores as bytes, and places in the order of a sorted set.
//!
//! An item is eight bytes of score and the member. Scores are written so that
//! comparing bytes compares scores, and so comparing items compares elements:
//!
//! ```text
//! score -1.5                      member "ab"
//! 40 07 ff ff ff ff ff ff         61 62
//! ```

use std::ops::Deref;

/// Bytes of a score.
pub(super) const SCORE: usize = 8;

/// A number that is less where the score is. The two zeros are one.
#[inline]
pub(super) fn rank_of(score: f64) -> u64 {
    // Makes -0.0 a positive zero and leaves all others as they are.
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// The score of a number that [`rank_of`] gave.
#[inline]
pub(super) fn score_of(rank: u64) -> f64 {
    f64::from_bits(if rank >> 63 == 1 {
        rank & !(1 << 63)
    } else {
        !rank
    })
}

/// Whether [`rank_of`] gives this number for some score.
pub(super) fn is_rank(rank: u64) -> bool {
    let score = score_of(rank);
    !score.is_nan() && rank_of(score) == rank
}

/// The number at the beginning of an item; that of the least where there are
/// fewer bytes.
#[inline]
pub(super) fn item_rank(item: &[u8]) -> u64 {
    item.first_chunk().map_or(0, |&b| u64::from_be_bytes(b))
}

/// Score and member of an item.
#[inline]
pub(super) fn parts(item: &[u8]) -> (f64, &[u8]) {
    (score_of(item_rank(item)), member_of(item))
}

#[inline]
pub(super) fn member_of(item: &[u8]) -> &[u8] {
    item.get(SCORE..).unwrap_or_default()
}

/// An item being made: on the stack unless the member is long.
pub(super) struct Item {
    short: [u8; Item::SHORT],
    long: Vec<u8>,
    len: usize,
}

impl Item {
    const SHORT: usize = 120;

    #[inline]
    pub(super) fn new(rank: u64, member: &[u8]) -> Self {
        Self::with_tail(rank, member, &[])
    }

    #[inline]
    fn with_tail(rank: u64, member: &[u8], tail: &[u8]) -> Self {
        let len = SCORE + member.len() + tail.len();
        let mut item = Self {
            short: [0; Self::SHORT],
            long: Vec::new(),
            len,
        };
        if len <= Self::SHORT {
            item.short[..SCORE].copy_from_slice(&rank.to_be_bytes());
            item.short[SCORE..SCORE + member.len()].copy_from_slice(member);
            item.short[SCORE + member.len()..len].copy_from_slice(tail);
        } else {
            item.long = [&rank.to_be_bytes(), member, tail].concat();
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
