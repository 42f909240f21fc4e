//! Consistent hashing with virtual nodes [Anna §VII-C, Anna-auto §4]: which nodes are to have a
//! slot.
//!
//! Each slot has a list of owners, its primary first: the order of its chain. Neighbouring slots
//! with the same owner at the same place are a *virtual node*; a member of weight 100 gets about
//! [`VIRTUAL`] of them at each place.
//!
//! Virtual nodes are not placed by hashes, nor other copies at the next members around a circle:
//! with a hundred virtual nodes both are uneven by a fifth and more. Instead each member has its
//! fair share at each *place* of the lists, by one rule (`settle.rs`): a member with too many slots
//! gives the ends of its longest runs to one with too few. A member that joins takes slots from all
//! others; one that leaves leaves its places empty, and they are filled. Only slots that have to
//! move do. The price: a ring depends on its history, so it is stored, and not computed from names.

mod balance;
mod settle;
#[cfg(test)]
mod tests;

use crate::invalid::Invalid;
use crate::member::NodeNo;
use rufous_base::limits::SLOTS;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Virtual nodes of a member of weight 100, at each place.
pub const VIRTUAL: usize = 100;

/// The largest weight; the usual one is 100.
pub const MAX_WEIGHT: u16 = 1000;

/// Limit on the copies of a slot.
pub const MAX_COPIES: usize = 5;

/// An empty place.
const NOBODY: NodeNo = NodeNo(u16::MAX);

type Owners = [NodeNo; MAX_COPIES];

/// A member of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weight {
    /// The member's share is proportional to this.
    pub weight: u16,
    /// Copies of a slot are in different zones if there are enough zones.
    pub zone: String,
}

/// See the module's description. Invariants: a list contains no member twice, a list has as many
/// owners as there are members, up to `copies`, and all of them are members.
#[derive(Clone, PartialEq, Eq)]
pub struct Ring {
    copies: usize,
    members: BTreeMap<NodeNo, Weight>,
    slots: Vec<Owners>,
}

/// Without the owners of all slots.
impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Ring");
        shown.field("copies", &self.copies);
        shown.field("members", &self.members);
        shown.finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring without members. `copies` of each slot, from 1 to [`MAX_COPIES`].
    pub fn new(copies: usize) -> Self {
        Self {
            copies: copies.clamp(1, MAX_COPIES),
            members: BTreeMap::new(),
            slots: vec![[NOBODY; MAX_COPIES]; SLOTS],
        }
    }

    /// Makes a ring of the values of [`Ring::copies`], [`Ring::members`] and [`Ring::ranges`], and
    /// checks them.
    pub fn of_parts<'a>(
        copies: usize,
        members: BTreeMap<NodeNo, Weight>,
        ranges: impl IntoIterator<Item = (Range<u16>, &'a [NodeNo])>,
    ) -> Result<Self, Invalid> {
        if !(1..=MAX_COPIES).contains(&copies) {
            return Err(Invalid("too many copies"));
        }
        let known = |no: &NodeNo| *no != NOBODY && members.contains_key(no);
        if members
            .iter()
            .any(|(no, m)| !known(no) || m.weight == 0 || m.weight > MAX_WEIGHT)
        {
            return Err(Invalid(
                "a member of the ring has a number or weight that none has",
            ));
        }
        let count = copies.min(members.len());
        let mut slots = Vec::with_capacity(SLOTS);
        for (range, owners) in ranges {
            let follows = usize::from(range.start) == slots.len() && range.start < range.end;
            if !follows || usize::from(range.end) > SLOTS {
                return Err(Invalid(
                    "ranges of the ring are not all slots, one after the other",
                ));
            }
            let twice = |(at, no)| owners[..at].contains(no);
            if owners.len() != count
                || !owners.iter().all(known)
                || owners.iter().enumerate().any(twice)
            {
                return Err(Invalid(
                    "owners in the ring are too few, too many, unknown or the same",
                ));
            }
            let mut list = [NOBODY; MAX_COPIES];
            list[..count].copy_from_slice(owners);
            slots.resize(usize::from(range.end), list);
        }
        if slots.len() != SLOTS {
            return Err(Invalid(
                "ranges of the ring are not all slots, one after the other",
            ));
        }
        Ok(Self {
            copies,
            members,
            slots,
        })
    }

    pub fn copies(&self) -> usize {
        self.copies
    }

    pub fn members(&self) -> &BTreeMap<NodeNo, Weight> {
        &self.members
    }

    pub fn has(&self, node: NodeNo) -> bool {
        self.members.contains_key(&node)
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The nodes that are to have a slot, the primary first.
    pub fn owners(&self, slot: u16) -> &[NodeNo] {
        let owners = self
            .slots
            .get(usize::from(slot))
            .map_or(&[][..], |owners| owners);
        let count = owners.iter().take_while(|node| **node != NOBODY).count();
        &owners[..count]
    }

    /// Neighbouring slots with the same owners.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<u16>, &[NodeNo])> {
        let same = self.slots.chunk_by(|a, b| a == b);
        same.scan(0, |start: &mut u16, chunk| {
            let slots = *start..*start + chunk.len() as u16;
            *start = slots.end;
            Some((slots.clone(), self.owners(slots.start)))
        })
    }

    /// Slots of each member at a place.
    pub fn shares(&self, place: usize) -> BTreeMap<NodeNo, usize> {
        let mut shares: BTreeMap<_, _> = self.members.keys().map(|node| (*node, 0)).collect();
        for owner in self.slots.iter().filter_map(|owners| owners.get(place)) {
            if let Some(share) = shares.get_mut(owner) {
                *share += 1;
            }
        }
        shares
    }

    /// Adds a member, with its share, or changes its weight.
    pub fn join(&mut self, node: NodeNo, weight: u16, zone: &str) {
        if node == NOBODY {
            return;
        }
        let weight = weight.clamp(1, MAX_WEIGHT);
        let zone = zone.to_owned();
        self.members.insert(node, Weight { weight, zone });
        settle::settle(self);
    }

    /// Removes a member.
    pub fn leave(&mut self, node: NodeNo) {
        self.leave_all([node]);
    }

    /// Removes members, all at once.
    pub fn leave_all(&mut self, nodes: impl IntoIterator<Item = NodeNo>) {
        let mut gone = vec![false; usize::from(u16::MAX) + 1];
        let mut any = false;
        for node in nodes
            .into_iter()
            .filter(|node| self.members.remove(node).is_some())
        {
            gone[usize::from(node.0)] = true;
            any = true;
        }
        if !any {
            return;
        }
        for owner in self
            .slots
            .iter_mut()
            .flatten()
            .filter(|owner| gone[usize::from(owner.0)])
        {
            *owner = NOBODY;
        }
        settle::settle(self);
    }
}
