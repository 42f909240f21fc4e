//! Large sorted sets: the items in a counted tree, and a table from members to
//! scores.
//!
//! A range of items is cut out of the tree in one piece, whatever its size. In
//! the table its members are scattered, and removing a million of them would
//! stall the worker. So they stay there as *shadows*, and the piece is kept
//! beside the tree until [`Large::sweep`] has processed it step by step. The
//! tree alone decides which members exist:
//!
//! - An entry of the table whose item is not in the tree is a shadow: no reader
//!   sees it, and an addition writes over it.
//! - Every shadow's item, with the score that the table has, is in the cut-out
//!   piece. The reverse need not hold: its member may have come back, or its
//!   shadow be gone already. So sweeping looks at the tree before it takes an
//!   entry out.
//!
//! The number of shadows is the number of entries that the table has more than the
//! tree. If there are none, no lookup checks the tree as well.

use super::order::Item;
use super::score::{item_rank, member_of, whole, whole_rank};
use super::{Outcome, Reply};
use crate::algebra::{Applied, Tuning};
use crate::dict::Dict;
use crate::pack::{self, Pack};
use crate::seq::Seq;
use rufous_base::rng::Rng;
use std::ops::Range;

/// Each element is in both.
#[derive(Clone, Debug)]
pub struct Large {
    /// From members to the ranks of their scores; shadows among them.
    scores: Dict,
    /// Items in order.
    pub(super) order: Seq,
    /// Items that were cut out, in no order, whose shadows are to be swept.
    cut: Seq,
}

/// How many members leave the table at once. Small in tests, so that shadows are
/// everywhere.
const AT_ONCE: usize = if cfg!(test) { 12 } else { 128 };

/// What an addition sweeps while there are shadows: more than it adds, so that
/// they become fewer however fast ranges are filled and removed.
const PER_ADDITION: usize = 2;

impl Large {
    pub(super) fn new(scores: Dict, order: Seq) -> Self {
        let cut = Seq::new();
        Self { scores, order, cut }
    }

    pub(super) fn of_pack(items: Pack<'_>, tuning: &Tuning) -> Self {
        let mut scores = Dict::new(tuning.seed);
        for item in items {
            scores.insert(member_of(item), &whole(item_rank(item)));
        }
        Self::new(scores, Seq::from_pack(items))
    }

    pub(super) fn scores(&self) -> &Dict {
        &self.scores
    }

    pub(super) fn scores_mut(&mut self) -> &mut Dict {
        &mut self.scores
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.scores.bytes() + self.order.bytes() + self.cut.bytes()
    }

    /// See `DataType::own_bytes`.
    pub(super) fn own_bytes(&self) -> usize {
        self.scores.own_bytes() + self.order.own_bytes() + self.cut.own_bytes()
    }

    /// The rank of a member's score.
    #[inline]
    pub(super) fn rank_of(&self, member: &[u8]) -> Option<u64> {
        let rank = whole_rank(self.scores.get(member)?);
        self.is_real(rank, member).then_some(rank)
    }

    /// Whether what the table says is so.
    #[inline]
    fn is_real(&self, rank: u64, member: &[u8]) -> bool {
        self.shadows() == 0 || self.order.rank(&Item::new(rank, member)).is_ok()
    }

    /// How many members are in the table only.
    #[inline]
    pub(super) fn shadows(&self) -> usize {
        self.scores.len() - self.order.len()
    }

    /// Gives a member its score, whether it is there or not.
    #[inline]
    pub(super) fn set(&mut self, member: &[u8], rank: u64) -> Applied<Reply> {
        let bytes = whole(rank);
        let outcome = match self.rank_of(member) {
            None => {
                self.scores.insert(member, &bytes);
                Outcome::Added
            }
            Some(old) if old == rank => Outcome::Kept,
            Some(old) => {
                self.scores
                    .overwrite(member, |value| value.copy_from_slice(&bytes));
                self.order.remove_sorted(&Item::new(old, member));
                Outcome::Updated
            }
        };
        let changed = outcome != Outcome::Kept;
        if changed {
            self.order.insert_sorted(&Item::new(rank, member));
        }
        if outcome == Outcome::Added && !self.cut.is_empty() {
            self.sweep(&mut { PER_ADDITION });
        }
        Applied {
            reply: Reply::Add(outcome),
            changed,
        }
    }

    /// Removes a member that is there.
    pub(super) fn remove(&mut self, member: &[u8]) {
        let mut rank = 0;
        if self
            .scores
            .remove_with(member, |value| rank = whole_rank(value))
        {
            self.order.remove_sorted(&Item::new(rank, member));
        }
    }

    pub(super) fn remove_span(&mut self, span: Range<usize>) {
        if span.len() <= Self::FEW {
            let mut members = Vec::new();
            let items = self.order.iter_from(span.start).take(span.len());
            items.for_each(|item| pack::push(&mut members, item));
            for item in Pack(&members) {
                self.scores.remove(member_of(item));
            }
            self.order.remove_range(span);
            return;
        }
        let removed = self.order.remove_range(span);
        self.cut.append(removed);
        self.sweep(&mut { AT_ONCE });
    }

    /// Up to this many elements leave the table at once, by a copy of their items; larger
    /// spans are cut out of the tree and swept.
    const FEW: usize = 8;

    /// Processes as many cut-out items as the budget allows, which it reduces,
    /// and removes their shadows from the table. Returns whether any are left.
    pub(super) fn sweep(&mut self, budget: &mut usize) -> bool {
        let Self { scores, order, cut } = self;
        while *budget > 0 && !cut.is_empty() {
            *budget -= 1;
            cut.pop_back_with(|item| {
                let member = member_of(item);
                let listed = scores.get(member) == Some(&whole(item_rank(item)));
                // A member that was added again with the same score stays.
                if listed && order.rank(item).is_err() {
                    scores.remove(member);
                }
            });
        }
        !cut.is_empty()
    }

    /// Any element, each with the same chance.
    pub(super) fn random(&self, rng: &mut Rng) -> Option<&[u8]> {
        self.order.get(rng.below(self.order.len() as u64) as usize)
    }

    /// Shows members and ranks of scores; see [`Dict::scan`].
    pub(super) fn scan(&self, cursor: u64, count: usize, see: &mut dyn FnMut(&[u8], u64)) -> u64 {
        self.scores.scan(cursor, count, &mut |member, rank| {
            let rank = whole_rank(rank);
            if self.is_real(rank, member) {
                see(member, rank);
            }
        })
    }

    /// Adds an item that comes after all others; false if its member is there.
    pub(super) fn push(&mut self, item: &[u8]) -> bool {
        let member = member_of(item);
        let is_shadow = self.shadows() > 0 && self.rank_of(member).is_none();
        let is_new = self.scores.insert(member, &whole(item_rank(item)));
        self.order.push_back(item);
        is_new || is_shadow
    }

    /// Asserts the invariants. It walks over everything: for tests.
    #[cfg(test)]
    pub(super) fn check(&self) {
        self.scores.check();
        self.order.check();
        self.cut.check();
        for item in &self.order {
            assert_eq!(
                self.scores.get(member_of(item)),
                Some(&whole(item_rank(item))[..])
            );
        }
        let cut: std::collections::BTreeSet<&[u8]> = self.cut.iter().collect();
        for (member, rank) in self.scores.iter() {
            let item = Item::new(whole_rank(rank), member);
            let shadow = self.order.rank(&item).is_err();
            assert!(!shadow || cut.contains(&item[..]), "a shadow nobody sweeps");
        }
    }
}
