//! The nodes that have a slot now: the chain in force [Warp §2.5, chain replication].
//!
//! Every acknowledged write is at every member of the chain, and may be nowhere else. So a chain
//! may lose members, or change its order, from one epoch to the next; but a node becomes a member
//! only after it has received everything as the chain's *learner*. A chain that had members is
//! never empty again: if its last member fails, the slot waits for it.

use crate::invalid::Invalid;
use crate::member::NodeNo;
use crate::ring::MAX_COPIES;
use rufous_base::limits::SLOTS;
use std::fmt;
use std::ops::{Deref, Range};

/// Limit on the members of a chain: while owners change there can be one more than there are
/// copies.
pub const MAX_CHAIN: usize = MAX_COPIES + 1;

/// Nodes of a chain, the head first. A small value: a mapping has thousands of them, and the
/// planner makes all of them again for each epoch.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Members {
    count: u8,
    /// Zero after the last member.
    nodes: [NodeNo; MAX_CHAIN],
}

impl Members {
    /// `None` if these are too many.
    pub fn of(nodes: &[NodeNo]) -> Option<Self> {
        let mut members = Self::default();
        members.nodes.get_mut(..nodes.len())?.copy_from_slice(nodes);
        members.count = nodes.len() as u8;
        Some(members)
    }

    /// The first nodes of a list, as many as a chain may have.
    pub(crate) fn first_of(nodes: &[NodeNo]) -> Self {
        Self::of(&nodes[..nodes.len().min(MAX_CHAIN)]).unwrap_or_default()
    }

    pub(crate) fn with(&self, node: NodeNo) -> Option<Self> {
        let mut members = *self;
        *members.nodes.get_mut(usize::from(self.count))? = node;
        members.count += 1;
        Some(members)
    }

    pub(crate) fn retain(&mut self, mut stays: impl FnMut(NodeNo) -> bool) {
        let before = *self;
        *self = Self::default();
        for node in before.iter().copied().filter(|node| stays(*node)) {
            self.nodes[usize::from(self.count)] = node;
            self.count += 1;
        }
    }
}

impl Deref for Members {
    type Target = [NodeNo];

    fn deref(&self) -> &[NodeNo] {
        &self.nodes[..usize::from(self.count)]
    }
}

impl IntoIterator for Members {
    type Item = NodeNo;
    type IntoIter = std::iter::Take<std::array::IntoIter<NodeNo, MAX_CHAIN>>;

    fn into_iter(self) -> Self::IntoIter {
        self.nodes.into_iter().take(usize::from(self.count))
    }
}

impl<'a> IntoIterator for &'a Members {
    type Item = &'a NodeNo;
    type IntoIter = std::slice::Iter<'a, NodeNo>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The nodes that have a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The head first, the tail last. Empty if the slot was never owned.
    pub members: Members,
    /// The node that receives a copy to become a member.
    pub learner: Option<NodeNo>,
    /// The epoch in which the slot got its first members, which have all of its data: none. A slot of
    /// which no copy is left is born again.
    pub born: u64,
    /// The epoch in which this chain took effect. Messages along the chain name it, so that an
    /// epoch that changes other chains disturbs no message here.
    pub since: u64,
    /// The epoch in which it continued although writes that were acknowledged may be missing; 0: it
    /// never has. A member that had a copy before that epoch goes on with one that may lack them.
    pub lost: u64,
    pub phase: Phase,
}

/// Whether the nodes of a chain act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Its members acknowledge writes.
    #[default]
    Acts,
    /// The chain has lost these nodes, which have all of the slot, too. They keep their copies, and no
    /// node acts, until all members have reported that their logs have this chain: a member may
    /// have stopped as well, and come back without its copy.
    Confirms { former: Members, acted: u64 },
    /// All members have stopped, and the copy that continues is not decided. In this phase and the
    /// one before, `acted` is the epoch of the last chain of the slot that may have acknowledged writes.
    Halted { acted: u64 },
}

impl Chain {
    pub fn is_halted(&self) -> bool {
        matches!(self.phase, Phase::Halted { .. })
    }

    /// The nodes that the chain has lost and that keep their copies.
    pub fn former(&self) -> Members {
        match self.phase {
            Phase::Confirms { former, .. } => former,
            Phase::Acts | Phase::Halted { .. } => Members::default(),
        }
    }

    /// The epoch of the last chain of the slot that may have acknowledged writes.
    pub fn acted(&self) -> u64 {
        match self.phase {
            Phase::Confirms { acted, .. } | Phase::Halted { acted } => acted,
            Phase::Acts => self.since,
        }
    }

    /// Whether a node only keeps its copy of the slot, until it is decided which copy continues.
    pub fn is_idle(&self, node: NodeNo) -> bool {
        self.is_halted() || self.former().contains(&node)
    }

    /// All nodes that have all of the slot, or may have.
    pub fn holders(&self) -> impl Iterator<Item = NodeNo> {
        self.members.into_iter().chain(self.former())
    }

    pub fn head(&self) -> Option<NodeNo> {
        self.members.first().copied()
    }

    pub fn tail(&self) -> Option<NodeNo> {
        self.members.last().copied()
    }

    /// The node after a member.
    pub fn next(&self, node: NodeNo) -> Option<NodeNo> {
        let at = self.members.iter().position(|member| *member == node)?;
        self.members.get(at + 1).copied()
    }

    pub fn names(&self, node: NodeNo) -> bool {
        self.members.contains(&node) || self.learner == Some(node)
    }

    /// All named nodes: the members and the learner.
    pub fn named(&self) -> impl Iterator<Item = NodeNo> {
        self.members.iter().copied().chain(self.learner)
    }

    pub fn check(&self) -> Result<(), Invalid> {
        let twice = |(at, no)| self.members[..at].contains(no);
        if self.members.iter().enumerate().any(twice) {
            return Err(Invalid("a member is twice in a chain"));
        }
        if self
            .learner
            .is_some_and(|no| self.members.contains(&no) || self.members.is_empty())
        {
            return Err(Invalid("a learner is in the chain, or the chain is empty"));
        }
        if self.members.is_empty() != (self.born == 0) || self.born > self.since {
            return Err(Invalid("a chain took effect before it was created"));
        }
        if self.phase != Phase::Acts && self.members.is_empty() {
            return Err(Invalid("a chain without members waits"));
        }
        if self.former().iter().any(|no| self.names(*no)) {
            return Err(Invalid("a chain names a node that it has lost"));
        }
        if !(self.born..=self.since).contains(&self.acted()) {
            return Err(Invalid(
                "a chain acted before it was created, or later than it exists",
            ));
        }
        if self.lost > self.since {
            return Err(Invalid("a chain continued with loss later than it exists"));
        }
        Ok(())
    }

    /// Whether this may be the chain after another one: its members have all writes that were
    /// acknowledged in that one.
    pub fn follows(&self, before: &Chain) -> Result<(), Invalid> {
        if self.is_same(before) {
            return Ok(());
        }
        let is_born = self.born != before.born;
        let may_be_born = before.members.is_empty() || before.is_halted();
        let must_be_born = before.members.is_empty();
        if self.since <= before.since || is_born && !may_be_born || must_be_born && !is_born {
            return Err(Invalid(
                "a chain has changed without a new epoch, or was born twice",
            ));
        }
        if before.members.is_empty() {
            return Ok(());
        }
        if self.members.is_empty() {
            return Err(Invalid("a chain has lost its last member"));
        }
        if !self.members.iter().all(|no| before.names(*no)) {
            return Err(Invalid(
                "a node joins a chain without having learnt its data",
            ));
        }
        let had = |no: &NodeNo| before.members.contains(no);
        if !self.members.iter().any(had) {
            return Err(Invalid("a chain has lost all nodes with its data"));
        }
        Ok(())
    }

    /// The slot gets its first members in this epoch, unless it has had them: nothing was written in
    /// an earlier one.
    pub(crate) fn be_born(&mut self, epoch: u64) {
        if self.born > 0 {
            return;
        }
        self.born = epoch;
        if let Phase::Confirms { acted, .. } = &mut self.phase {
            *acted = epoch;
        }
    }

    /// This chain, halted. It has no epoch of its own: no node acts by it.
    pub(crate) fn halted(&self) -> Chain {
        let former = self.former().into_iter();
        Chain {
            members: former.fold(self.members, |all, no| all.with(no).unwrap_or(all)),
            learner: None,
            phase: Phase::Halted {
                acted: self.acted(),
            },
            ..*self
        }
    }

    /// Whether this is another chain in a later phase, rather than one with an epoch of its own.
    pub(crate) fn is_same(&self, before: &Chain) -> bool {
        // Older programs plan without it.
        let lost = if self.lost == 0 { 0 } else { before.lost };
        let before = &Chain { lost, ..*before };
        self == before || self.is_halt_of(before) || self.is_confirmed(before)
    }

    /// Whether this is another chain that was confirmed and halted since.
    fn has_gone_through(&self, before: &Chain) -> bool {
        let confirmed = Chain {
            phase: Phase::Acts,
            ..*before
        };
        !before.is_halted() && self.is_halt_of(&confirmed)
    }

    /// Whether this is another chain, halted. Members that an operator has removed may be missing.
    fn is_halt_of(&self, before: &Chain) -> bool {
        let mut halted = before.halted();
        halted.members.retain(|no| self.members.contains(&no));
        *self == halted && !self.members.is_empty()
    }

    /// Whether this is another chain, confirmed by its members.
    fn is_confirmed(&self, before: &Chain) -> bool {
        let confirmed = Chain {
            phase: Phase::Acts,
            ..*before
        };
        *self == confirmed && !before.is_halted()
    }

    /// Whether this may be the chain some epochs after `epoch`, in which `before` was the chain.
    pub(crate) fn comes_after(&self, before: &Chain, epoch: u64) -> Result<(), Invalid> {
        if self.is_same(before) || self.has_gone_through(before) {
            return Ok(());
        }
        let was_born = !before.members.is_empty();
        // It is halted in one epoch, and born again in a later one.
        let halted_in = epoch + u64::from(!before.is_halted());
        let is_born_again = self.born != before.born && self.born > halted_in;
        if self.since <= epoch || was_born && self.born != before.born && !is_born_again {
            return Err(Invalid(
                "a chain has changed in an earlier epoch, or was born twice",
            ));
        }
        match was_born && self.members.is_empty() {
            true => Err(Invalid("a chain has lost its last member")),
            false => Ok(()),
        }
    }
}

/// The chains of all slots, each from its first slot up to the next one's. Neighbours differ; the
/// first slot is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chains(Vec<(u16, Chain)>);

impl Default for Chains {
    fn default() -> Self {
        Self(vec![(0, Chain::default())])
    }
}

impl Chains {
    /// Makes chains of ranges of slots, which have to cover all slots in order.
    pub fn of_ranges(
        ranges: impl IntoIterator<Item = (Range<u16>, Chain)>,
    ) -> Result<Self, Invalid> {
        let mut chains = Self(Vec::new());
        let mut end = 0;
        for (slots, chain) in ranges {
            if slots.start != end || slots.is_empty() || usize::from(slots.end) > SLOTS {
                return Err(Invalid(
                    "ranges of chains are not all slots, one after the other",
                ));
            }
            end = slots.end;
            chains.push(slots.start, chain);
        }
        match usize::from(end) == SLOTS {
            true => Ok(chains),
            false => Err(Invalid(
                "ranges of chains are not all slots, one after the other",
            )),
        }
    }

    /// Without any chain yet, for [`Chains::push`].
    pub(crate) fn with_room_for(ranges: usize) -> Self {
        Self(Vec::with_capacity(ranges))
    }

    /// Adds the chain from a slot on; the first slot is 0.
    pub(crate) fn push(&mut self, start: u16, chain: Chain) {
        if self.0.last().is_none_or(|(_, last)| *last != chain) {
            self.0.push((start, chain));
        }
    }

    pub fn of(&self, slot: u16) -> &Chain {
        let after = self.0.partition_point(|(start, _)| *start <= slot);
        &self.0[after.saturating_sub(1)].1
    }

    /// Neighbouring slots with the same chain.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = (Range<u16>, &Chain)> {
        (0..self.0.len()).map(|at| {
            let end = self.0.get(at + 1).map_or(SLOTS as u16, |(start, _)| *start);
            let (start, chain) = &self.0[at];
            (*start..end, chain)
        })
    }

    pub fn name(&self, node: NodeNo) -> bool {
        self.0.iter().any(|(_, chain)| chain.names(node))
    }

    /// Whether a node is a part of a chain, or keeps a copy that may still be needed.
    pub fn need(&self, node: NodeNo) -> bool {
        let mut chains = self.0.iter();
        chains.any(|(_, chain)| chain.names(node) || chain.former().contains(&node))
    }
}
