//! All that a cluster has agreed on, in one epoch.

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
    /// Who is to have what, of the members that do not drain.
    pub ring: Ring,
    /// Who has it.
    pub chains: Chains,
}

impl Mapping {
    /// A cluster without members, which is to have so many copies of a slot.
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

    /// Whether it is sound in itself. Who gets a mapping from elsewhere asks
    /// before it acts by it; ring and chains are checked where they are made.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.members.len() > MAX_MEMBERS {
            return Err(Invalid("there are more members than there may be"));
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
            return Err(Invalid("who is in the ring is no member"));
        }
        for (_, chain) in self.chains.ranges() {
            chain.check()?;
            if chain.since > self.epoch {
                return Err(Invalid("a chain is of an epoch to come"));
            }
            if !chain.named().all(|no| self.members.contains_key(&no)) {
                return Err(Invalid("who is in a chain is no member"));
            }
        }
        Ok(())
    }

    /// Whether it may be the mapping after another one: numbers are given once,
    /// and no chain loses all who have its data. Nobody should act by one that
    /// is not, whoever has planned it.
    pub fn follows(&self, before: &Mapping) -> Result<(), Invalid> {
        if self.epoch != before.epoch + 1 {
            return Err(Invalid("the epoch is not the next one"));
        }
        self.keeps_numbers(before)?;
        self.each_pair(before, |was, is| is.follows(was))
    }

    /// As [`Mapping::follows`], where epochs between the two may not be known
    /// here. Then it cannot be seen who had a chain's data meanwhile; but chains
    /// are never empty again, nor born twice, nor do they change in an epoch
    /// that was before.
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
            return Err(Invalid("numbers that were given are to be given again"));
        }
        for (no, member) in &self.members {
            let was = before.members.get(no);
            if was.is_some_and(|was| {
                was.incarnation == member.incarnation && was.workers != member.workers
            }) {
                return Err(Invalid("a node has other workers than it has started with"));
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

    /// Chains of the same slots, then and now.
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
