//! Both shapes of a sorted set, and changing them.
//!
//! Packed: the items in order in one buffer. Large: see `large`.

use super::Reply;
use super::large::Large;
use super::order::Item;
use super::score::{item_rank, rank_of, score_of, whole, whole_rank};
use super::step::Step;
use super::view::{View, find, place, place_from};
use crate::algebra::{Applied, MAX_PACKED, Tuning};
use crate::dict::Dict;
use crate::pack::{self, Pack};
use crate::seq::Seq;
use std::ops::Range;

#[derive(Clone, Debug)]
pub enum State {
    /// Items in order.
    Packed(Vec<u8>),
    Large(Box<Large>),
    /// A set that has lost all its elements at once: it looks empty and drops
    /// what was in it wherever it is dropped itself.
    Emptied(Box<Large>),
}

impl Default for State {
    fn default() -> Self {
        State::Packed(Vec::new())
    }
}

impl State {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        match self {
            State::Packed(items) => View::Packed(items),
            State::Large(large) => View::Large(large),
            State::Emptied(_) => View::Packed(&[]),
        }
    }

    /// Members of a large one and their scores, as [`super::kept_score`] reads
    /// them.
    pub(crate) fn scores(&self) -> Option<&Dict> {
        match self {
            State::Large(large) => Some(large.scores()),
            State::Packed(_) | State::Emptied(_) => None,
        }
    }

    pub(crate) fn scores_mut(&mut self) -> Option<&mut Dict> {
        match self {
            State::Large(large) => Some(large.scores_mut()),
            State::Packed(_) | State::Emptied(_) => None,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            State::Packed(_) => 0,
            State::Large(large) | State::Emptied(large) => size_of::<Large>() + large.heap_bytes(),
        }
    }

    pub(super) fn own_bytes(&self) -> usize {
        match self {
            State::Packed(_) => 0,
            State::Large(large) | State::Emptied(large) => size_of::<Large>() + large.own_bytes(),
        }
    }

    /// Takes a step with one member.
    #[inline]
    pub(super) fn step(&mut self, member: &[u8], step: Step, tuning: &Tuning) -> Applied<Reply> {
        if let (State::Large(large), Step::Add { score, only }) = (&mut *self, step)
            && only.bits() == 0
        {
            return large.set(member, rank_of(score));
        }
        let place = match self.view() {
            View::Packed(items) => Some(find(items, member)),
            View::Large(_) => None,
        };
        let old = match &place {
            Some(found) => found.as_ref().ok().map(|found| found.rank),
            None => self.view().rank_of_member(member),
        };
        let next = step.from(old.map(score_of));
        let new = next.score.map(rank_of);
        let changed = new != old;
        match (place, new) {
            _ if !changed => {}
            (Some(Ok(found)), Some(new)) => {
                self.move_packed((found.index, found.offset), member, new, tuning);
            }
            (Some(Ok(found)), None) => {
                if let State::Packed(items) = self {
                    pack::remove(items, found.offset, 1);
                }
            }
            (Some(Err(count)), Some(new)) => {
                self.add_packed(count, member, new, tuning);
            }
            (None, Some(new)) => {
                if let State::Large(large) = self {
                    large.set(member, new);
                }
            }
            (None, None) => {
                if let State::Large(large) = self {
                    large.remove(member);
                }
            }
            (Some(Err(_)), None) => {}
        }
        Applied {
            reply: next.reply,
            changed,
        }
    }

    /// Gives a member its score in a packed set where it is known where its item
    /// is, or how many there are. Answers the number of its item then, while the
    /// set is packed.
    pub(crate) fn put_packed(
        &mut self,
        at: Result<(usize, usize), usize>,
        member: &[u8],
        score: f64,
        tuning: &Tuning,
    ) -> usize {
        let rank = rank_of(score);
        match at {
            Ok((index, offset)) => {
                let State::Packed(items) = self else {
                    return index;
                };
                let old = Pack(items).entry_at(offset).unwrap_or_default();
                if item_rank(old) == rank {
                    return index;
                }
                self.move_packed((index, offset), member, rank, tuning)
            }
            Err(count) => self.add_packed(count, member, rank, tuning),
        }
    }

    /// Gives a packed item another score. Answers its number then, while the set
    /// is packed.
    fn move_packed(
        &mut self,
        (index, offset): (usize, usize),
        member: &[u8],
        rank: u64,
        tuning: &Tuning,
    ) -> usize {
        let State::Packed(items) = self else {
            return index;
        };
        let item = Item::new(rank, member);
        let old = Pack(items).entry_at(offset).unwrap_or_default();
        let rises = old < &item[..];
        let (old, size) = (pack::entry_size(old.len()), pack::entry_size(item.len()));
        if items.len() - old + size > MAX_PACKED {
            self.grow(tuning);
            if let State::Large(large) = self {
                large.set(member, rank);
            }
            return index;
        }
        // Its old item stands before the place or at it, and leaves with it.
        let (passed, to) = place_from(items, if rises { offset } else { 0 }, &item);
        let index = if rises { index + passed - 1 } else { passed };
        if size != old {
            pack::remove(items, offset, 1);
            let to = if to > offset { to - old } else { to };
            pack::insert(items, to, &item);
            return index;
        }
        let at = if to > offset {
            items[offset..to].rotate_left(size);
            to - size
        } else {
            items[to..offset + size].rotate_right(size);
            to
        };
        items[at + size - item.len()..at + size].copy_from_slice(&item);
        index
    }

    /// Adds a member to `count` packed items. Answers the number of its item
    /// then, while the set is packed.
    fn add_packed(&mut self, count: usize, member: &[u8], rank: u64, tuning: &Tuning) -> usize {
        if let State::Emptied(_) = self {
            *self = State::default();
        }
        if let State::Packed(items) = self
            && count < tuning.sorted_set.entries
            && member.len() <= tuning.sorted_set.bytes
            && let item = Item::new(rank, member)
            && items.len() + pack::entry_size(item.len()) <= MAX_PACKED
        {
            let (index, offset) = place(items, &item);
            pack::insert(items, offset, &item);
            return index;
        }
        self.grow(tuning);
        if let State::Large(large) = self {
            large.set(member, rank);
        }
        count
    }

    /// Makes it large.
    fn grow(&mut self, tuning: &Tuning) {
        if let State::Packed(items) = self {
            *self = State::Large(Box::new(Large::of_pack(Pack(items), tuning)));
        }
    }

    /// See `DataType::sweep`.
    pub(super) fn sweep(&mut self, budget: &mut usize) -> bool {
        match self {
            State::Large(large) => large.sweep(budget),
            State::Packed(_) | State::Emptied(_) => false,
        }
    }

    /// Removes what is at these positions; answers how many that were.
    pub(super) fn remove_span(&mut self, span: Range<usize>) -> usize {
        let len = self.view().len();
        let span = span.start.min(len)..span.end.min(len);
        let count = span.len();
        match self {
            _ if count == 0 => {}
            State::Packed(items) => {
                let from = Pack(items).offset_of(span.start).unwrap_or(items.len());
                pack::remove(items, from, count);
            }
            State::Large(_) if count == len => {
                if let State::Large(large) = std::mem::take(self) {
                    *self = State::Emptied(large);
                }
            }
            State::Large(large) => large.remove_span(span),
            State::Emptied(_) => {}
        }
        count
    }
}

/// A sorted set that is built whole.
#[derive(Debug)]
pub struct Builder {
    scores: Dict,
}

impl Builder {
    pub fn new(tuning: &Tuning) -> Self {
        Self {
            scores: Dict::new(tuning.seed),
        }
    }

    /// The score that a member has so far.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores
            .get(member)
            .map(|rank| score_of(whole_rank(rank)))
    }

    /// Gives a member its score, in place of the one that it had.
    pub fn set(&mut self, member: &[u8], score: f64) {
        self.scores.insert(member, &whole(rank_of(score)));
    }

    /// Gives a member the score that `change` makes of the one that it has.
    pub fn change(&mut self, member: &[u8], change: impl FnOnce(Option<f64>) -> f64) {
        let score = change(self.score(member));
        self.set(member, score);
    }

    pub fn remove(&mut self, member: &[u8]) {
        self.scores.remove(member);
    }

    pub fn len(&self) -> usize {
        self.scores.len()
    }

    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// The set, as this tuning shapes it.
    pub fn finish(self, tuning: &Tuning) -> State {
        let mut all: Vec<(u64, &[u8])> = self
            .scores
            .iter()
            .map(|(member, rank)| (whole_rank(rank), member))
            .collect();
        all.sort_unstable();
        let bytes: usize = all
            .iter()
            .map(|&(rank, member)| pack::entry_size(Item::new(rank, member).len()))
            .sum();
        let packing = tuning.sorted_set;
        if all.len() <= packing.entries
            && bytes <= MAX_PACKED
            && all.iter().all(|(_, member)| member.len() <= packing.bytes)
        {
            let mut items = Vec::with_capacity(bytes);
            for (rank, member) in all {
                pack::push(&mut items, &Item::new(rank, member));
            }
            return State::Packed(items);
        }
        let mut order = Seq::new();
        for (rank, member) in all {
            order.push_back(&Item::new(rank, member));
        }
        let scores = self.scores;
        State::Large(Box::new(Large::new(scores, order)))
    }
}
