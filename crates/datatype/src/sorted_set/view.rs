//! Reading a sorted set, in either shape.

use super::Element;
use super::large::Large;
use super::order::{Cut, Item, Zone};
use super::score::{item_rank, parts, rank_of, score_len, score_of, word_of};
use super::state::State;
use crate::pack::{self, Pack};
use rufous_base::rng::Rng;
use std::ops::Range;

/// A sorted set to be read.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// Items in order.
    Packed(&'a [u8]),
    Large(&'a Large),
}

/// As many items as packed sets have by default.
const FEW_PACKED: usize = 128;

/// Where a member's item is in packed items, and its score's rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) index: usize,
    pub(super) offset: usize,
    pub(super) rank: u64,
}

/// The member's item, or how many items there are.
#[inline]
pub(super) fn find(items: &[u8], member: &[u8]) -> Result<Found, usize> {
    let (mut at, mut index) = (0, 0);
    while let Some(&first) = items.get(at) {
        // Nearly all lengths are a single byte.
        let (start, end) = if first < 0x80 {
            (at + 1, at + 1 + usize::from(first))
        } else {
            let Some(item) = Pack(items).entry_at(at) else {
                break;
            };
            let end = at + pack::entry_size(item.len());
            (end - item.len(), end)
        };
        // Most members of one length differ at their ends.
        if end - start > member.len()
            && (member.is_empty() || items.get(end - 1) == member.last())
            && items.get(end - member.len()..end) == Some(member)
            && score_len(items.get(start..end).unwrap_or_default()) == end - start - member.len()
        {
            return Ok(Found {
                index,
                offset: at,
                rank: items.get(start..end).map_or(0, item_rank),
            });
        }
        at = end;
        index += 1;
    }
    Err(index)
}

/// Likewise the number of its item, where it begins, and its score.
pub(crate) fn find_packed(items: &[u8], member: &[u8]) -> Result<(usize, usize, f64), usize> {
    let found = find(items, member)?;
    Ok((found.index, found.offset, score_of(found.rank)))
}

/// Members and scores of packed items, in order.
pub(crate) fn packed_elements(items: &[u8]) -> impl Iterator<Item = (&[u8], f64)> {
    Pack(items).iter().map(|item| {
        let (score, member) = parts(item);
        (member, score)
    })
}

/// Index and offset of the first item that is not before these bytes.
#[inline]
pub(super) fn place(items: &[u8], bytes: &[u8]) -> (usize, usize) {
    place_from(items, 0, bytes)
}

/// The same among the items from an offset on.
#[inline]
pub(super) fn place_from(items: &[u8], offset: usize, bytes: &[u8]) -> (usize, usize) {
    let word = word_of(bytes);
    let mut index = 0;
    for (offset, item) in Pack(items).entries_from(offset) {
        let other = word_of(item);
        if other > word || other == word && item >= bytes {
            return (index, offset);
        }
        index += 1;
    }
    (index, items.len())
}

impl<'a> View<'a> {
    pub fn len(self) -> usize {
        match self {
            View::Packed(items) => Pack(items).count(),
            View::Large(large) => large.order.len(),
        }
    }

    /// What the view shows, to be kept; what is large is shared.
    pub fn to_state(self) -> State {
        match self {
            View::Packed(items) => State::Packed(items.to_vec()),
            View::Large(large) => State::Large(Box::new(large.clone())),
        }
    }

    pub fn is_empty(self) -> bool {
        match self {
            View::Packed(items) => items.is_empty(),
            View::Large(large) => large.order.is_empty(),
        }
    }

    #[inline]
    pub(super) fn rank_of_member(self, member: &[u8]) -> Option<u64> {
        match self {
            View::Packed(items) => find(items, member).ok().map(|found| found.rank),
            View::Large(large) => large.rank_of(member),
        }
    }

    #[inline]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        self.rank_of_member(member).map(score_of)
    }

    /// How many come before a member, and its score.
    pub fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self {
            View::Packed(items) => {
                let found = find(items, member).ok()?;
                Some((found.index, score_of(found.rank)))
            }
            View::Large(large) => {
                let rank = self.rank_of_member(member)?;
                let at = large.order.rank(&Item::new(rank, member)).ok()?;
                Some((at, score_of(rank)))
            }
        }
    }

    /// How many items are before a cut.
    pub fn position(self, cut: &Cut<'_>) -> usize {
        let bytes = cut.bytes();
        match self {
            View::Packed(items) => place(items, &bytes).0,
            View::Large(large) => large.order.rank(&bytes).unwrap_or_else(|at| at),
        }
    }

    /// The positions of what is in a zone.
    pub fn span(self, zone: &Zone<'_>) -> Range<usize> {
        let low = self.position(&zone.low);
        low..self.position(&zone.high).max(low)
    }

    /// The element at a position.
    pub fn at(self, index: usize) -> Option<(&'a [u8], f64)> {
        let item = match self {
            View::Packed(items) => Pack(items).get(index),
            View::Large(large) => large.order.get(index),
        };
        let (score, member) = parts(item?);
        Some((member, score))
    }

    /// Shows the items at these positions, in order.
    pub(super) fn items(self, span: Range<usize>, mut see: impl FnMut(&'a [u8])) {
        let count = span.len();
        match self {
            View::Packed(items) => {
                let from = Pack(items).offset_of(span.start).unwrap_or(items.len());
                let entries = Pack(items).entries_from(from).take(count);
                entries.for_each(|(_, item)| see(item));
            }
            View::Large(large) => large.order.iter_from(span.start).take(count).for_each(see),
        }
    }

    /// The same, last first.
    fn items_back(self, span: Range<usize>, mut see: impl FnMut(&'a [u8])) {
        if span.is_empty() {
            return;
        }
        match self {
            View::Packed(items) => {
                let (mut few, mut many) = ([0_u16; FEW_PACKED], Vec::new());
                let offsets = if span.end <= FEW_PACKED {
                    &mut few[..]
                } else {
                    many.resize(span.end.min(items.len()), 0_u16);
                    &mut many[..]
                };
                let entries = Pack(items).entries().take(span.end);
                let mut len = 0;
                for (slot, (offset, _)) in offsets.iter_mut().zip(entries) {
                    // Packed items are far fewer bytes than 16 bits can count.
                    *slot = offset as u16;
                    len += 1;
                }
                let wanted = offsets[..len].get(span.start..).unwrap_or_default();
                for offset in wanted.iter().rev() {
                    see(Pack(items).entry_at((*offset).into()).unwrap_or_default());
                }
            }
            View::Large(large) => {
                let back = large.order.iter_back_from(span.end - 1);
                back.take(span.len()).for_each(see);
            }
        }
    }

    /// Shows the elements at these positions, in order or last first.
    #[inline]
    pub fn each(self, span: Range<usize>, back: bool, mut see: impl FnMut(&'a [u8], f64)) {
        let see = |item| {
            let (score, member) = parts(item);
            see(member, score);
        };
        match back {
            true => self.items_back(span, see),
            false => self.items(span, see),
        }
    }

    pub(super) fn elements(self, span: Range<usize>) -> Vec<Element> {
        let mut all = Vec::with_capacity(span.len());
        self.each(span, false, |member, score| {
            all.push((member.into(), score))
        });
        all
    }

    /// Whether all scores are the same: then the order is that of members.
    pub fn is_level(self) -> bool {
        let rank = |index| match self {
            View::Packed(items) => Pack(items).get(index).map(item_rank),
            View::Large(large) => large.order.get(index).map(item_rank),
        };
        self.is_empty() || rank(0) == rank(self.len() - 1)
    }

    /// The positions of all members from `low` to below `high`, or to the end,
    /// if these stand together as all scores are the same.
    pub fn lex_span(self, low: &[u8], high: Option<&[u8]>) -> Option<Range<usize>> {
        if !self.is_level() {
            return None;
        }
        let Some((_, score)) = self.at(0) else {
            return Some(0..0);
        };
        Some(self.span(&Zone {
            low: Cut::Before(rank_of(score), low),
            high: match high {
                Some(high) => Cut::Before(rank_of(score), high),
                None => Cut::END,
            },
        }))
    }

    /// Shows all members from `low` to below `high`, or to the end, in order or
    /// last first, until told to stop. This looks at every element unless all
    /// scores are the same.
    pub fn lex(
        self,
        low: &[u8],
        high: Option<&[u8]>,
        back: bool,
        mut see: impl FnMut(&'a [u8], f64) -> bool,
    ) {
        let span = self.lex_span(low, high);
        let level = span.is_some();
        let mut go_on = true;
        self.each(span.unwrap_or(0..self.len()), back, |member, score| {
            let within = level || member >= low && high.is_none_or(|high| member < high);
            if go_on && within {
                go_on = see(member, score);
            }
        });
    }

    /// Any element, each with the same chance.
    pub fn random(self, rng: &mut Rng) -> Option<(&'a [u8], f64)> {
        match self {
            View::Packed([]) => None,
            View::Packed(_) => self.at(rng.below(self.len() as u64) as usize),
            View::Large(large) => {
                let (score, member) = parts(large.random(rng)?);
                Some((member, score))
            }
        }
    }

    /// Shows some elements and answers the cursor for the next ones, 0 at the
    /// end; see [`Dict::scan`](crate::dict::Dict::scan).
    pub fn scan(self, cursor: u64, count: usize, see: &mut dyn FnMut(&[u8], f64)) -> u64 {
        match self {
            View::Packed(_) => {
                self.each(0..self.len(), false, see);
                0
            }
            View::Large(large) => large.scan(cursor, count, &mut |member, rank| {
                see(member, score_of(rank))
            }),
        }
    }

    /// Appends items from position `at` on; see
    /// [`DataType::chunk`](crate::algebra::DataType::chunk).
    pub(super) fn chunk(self, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        let start = out.len();
        let mut at = usize::try_from(at).ok()?;
        let len = self.len();
        while at < len && (out.len() == start || out.len() - start < budget) {
            let left = (budget + start).saturating_sub(out.len());
            let (piece, count) = match self {
                View::Packed(items) => {
                    let from = Pack(items).offset_of(at).unwrap_or(items.len());
                    (&items[from..], len - at)
                }
                View::Large(large) => {
                    let (pack, count) = large.order.chunk(at);
                    (pack.0, count)
                }
            };
            if piece.len() <= left {
                out.extend_from_slice(piece);
                at += count;
            } else {
                pack::push(out, Pack(piece).entry_at(0).unwrap_or_default());
                at += 1;
            }
        }
        (at < len).then_some(at as u64)
    }

    /// The last item.
    pub(super) fn last(self) -> Option<&'a [u8]> {
        match self {
            View::Packed(items) => Pack(items).iter().last(),
            View::Large(large) => large.order.get(large.order.len().checked_sub(1)?),
        }
    }
}
