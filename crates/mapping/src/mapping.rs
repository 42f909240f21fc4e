//! The agreed state of a cluster in one epoch.

#[cfg(test)]
mod tests;

use crate::chains::{Chain, Chains};
use crate::invalid::Invalid;
use crate::member::{MAX_MEMBERS, Member, NodeId, NodeNo};
use crate::ring::Ring;
use std::collections::{BTreeMap, BTreeSet};

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Rises by one with every change.
    pub epoch: u64,
    pub members: BTreeMap<NodeNo, Member>,
    /// The number that the next member gets.
    pub next: u16,
    /// The desired owners, among the members that do not drain.
    pub ring: Ring,
    /// The nodes that have the slots.
    pub chains: Chains,
}

impl Mapping {
    /// A cluster without members, with the given number of copies of a slot.
    pub fn new(copies: usize) -> Self {
        Self {
            epoch: 0,
            members: BTreeMap::new(),
            next: 0,
            ring: Ring::new(copies),
            chains: Chains::default(),
        }
    }

    pub fn number_of(&self, id: NodeId) -> Option<NodeNo> {
        let member = self.members.iter().find(|(_, member)| member.id == id);
        member.map(|(no, _)| *no)
    }

    /// Whether the mapping is consistent. A received mapping has to be checked before it is
    /// applied; ring and chains are checked when they are made.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.members.len() > MAX_MEMBERS {
            return Err(Invalid("too many members"));
        }
        let mut ids = BTreeSet::new();
        for (no, member) in &self.members {
            member.check()?;
            if no.0 >= self.next {
                return Err(Invalid("a member has a number that was not given yet"));
            }
            if !ids.insert(member.id) {
                return Err(Invalid("two members have the same id"));
            }
        }
        if !self
            .ring
            .members()
            .keys()
            .all(|no| self.members.contains_key(no))
        {
            return Err(Invalid("the ring names a node that is no member"));
        }
        for (_, chain) in self.chains.ranges() {
            chain.check()?;
            if chain.since > self.epoch {
                return Err(Invalid("a chain is of a future epoch"));
            }
            let mut known = chain.named().chain(chain.former());
            if !known.all(|no| self.members.contains_key(&no)) {
                return Err(Invalid("a chain names a node that is no member"));
            }
        }
        Ok(())
    }

    /// Whether it may be the mapping after another one: no number is used twice, and no chain loses
    /// all nodes that have its data. No node may apply one that fails this, whichever node has
    /// planned it.
    pub fn follows(&self, before: &Mapping) -> Result<(), Invalid> {
        if self.epoch != before.epoch + 1 {
            return Err(Invalid("the epoch is not the next one"));
        }
        self.keeps_numbers(before)?;
        self.each_pair(before, |was, is| is.follows(was))
    }

    /// As [`Mapping::follows`], if epochs between the two may be unknown here. Then it is unknown
    /// which nodes had a chain's data meanwhile; but chains never become empty again, are not born
    /// again without an epoch in which they were halted, and do not change in an epoch that is over.
    pub fn comes_after(&self, before: &Mapping) -> Result<(), Invalid> {
        if self.epoch <= before.epoch {
            return Err(Invalid("the epoch is not a later one"));
        }
        if self.epoch == before.epoch + 1 {
            return self.follows(before);
        }
        self.keeps_numbers(before)?;
        self.each_pair(before, |was, is| is.comes_after(was, before.epoch))
    }

    fn keeps_numbers(&self, before: &Mapping) -> Result<(), Invalid> {
        if self.next < before.next {
            return Err(Invalid("node numbers would be reused"));
        }
        for (no, member) in &self.members {
            let was = before.members.get(no);
            if was.is_some_and(|was| {
                was.incarnation == member.incarnation && was.workers != member.workers
            }) {
                return Err(Invalid("a node's number of workers changed while it runs"));
            }
        }
        let known = |no: &NodeNo| before.members.get(no).map(|member| member.id);
        let differs = |(no, member): (&NodeNo, &Member)| match known(no) {
            Some(id) => id != member.id,
            None => no.0 < before.next,
        };
        if self.members.iter().any(differs) {
            return Err(Invalid("a number was given twice"));
        }
        Ok(())
    }

    /// The chains of the same slots, before and now.
    fn each_pair(
        &self,
        before: &Mapping,
        check: impl Fn(&Chain, &Chain) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        let mut earlier = before.chains.ranges().peekable();
        for (slots, chain) in self.chains.ranges() {
            while let Some((range, was)) = earlier.peek() {
                check(was, chain)?;
                if range.end > slots.end {
                    break;
                }
                let ends = range.end == slots.end;
                earlier.next();
                if ends {
                    break;
                }
            }
        }
        Ok(())
    }
}
