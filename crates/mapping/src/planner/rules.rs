//! The rules that derive a chain of the next epoch from the present one.

use super::held::{self, Loss, Presence, Verdict};
use super::seen::{Limits, Seen};
use crate::chains::{Chain, Chains, MAX_CHAIN, Members, Phase};
use crate::mapping::Mapping;
use crate::member::{Folder, Member, NodeNo};
use crate::planted::{self, Planted};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Which members are away or have restarted.
pub(super) struct MemberStates<'a> {
    seen: &'a Seen,
    /// The epoch that is planned.
    epoch: u64,
    /// Gone, or unfit.
    pub(super) away: BTreeSet<NodeNo>,
    /// Alive with a later incarnation than the mapping has.
    pub(super) restarted: BTreeMap<NodeNo, &'a Member>,
    /// Alive and unfit.
    unfit: BTreeSet<NodeNo>,
    /// The starts of the members, as the mapping has them, and their folders.
    starts: BTreeMap<NodeNo, (u64, Folder)>,
}

/// The slots that each node copies at present, and the limit.
pub(super) struct Learning {
    slots: BTreeMap<NodeNo, usize>,
    limit: usize,
}

impl Learning {
    pub(super) fn of(chains: &Chains, limit: usize) -> Self {
        let mut slots = BTreeMap::new();
        for (range, chain) in chains.ranges() {
            if let Some(learner) = chain.learner {
                *slots.entry(learner).or_default() += range.len();
            }
        }
        Self { slots, limit }
    }

    /// How many of `slots` more the node may copy.
    pub(super) fn take(&mut self, node: NodeNo, slots: usize) -> usize {
        let count = self.slots.entry(node).or_default();
        let room = self.limit.saturating_sub(*count).min(slots);
        *count += room;
        room
    }
}

impl<'a> MemberStates<'a> {
    /// Of the members of a mapping whose epoch is the one that is planned.
    pub(super) fn of(mapping: &Mapping, seen: &'a Seen) -> Self {
        let mut state = Self {
            seen,
            epoch: mapping.epoch,
            away: BTreeSet::new(),
            restarted: BTreeMap::new(),
            unfit: BTreeSet::new(),
            starts: BTreeMap::new(),
        };
        for (no, member) in &mapping.members {
            let start = (member.incarnation, member.folder);
            state.starts.insert(*no, start);
            match seen.alive.get(&member.id) {
                Some(now) if now.id != member.id || now.check().is_err() => {
                    state.away.insert(*no);
                }
                None => {
                    state.away.insert(*no);
                }
                Some(now)
                    if now.incarnation != member.incarnation
                        && !planted::is(Planted::RestartUnnoticed) =>
                {
                    state.restarted.insert(*no, now);
                }
                Some(_) if seen.unfit.contains(no) => {
                    state.away.insert(*no);
                    state.unfit.insert(*no);
                }
                Some(_) => (),
            }
        }
        state
    }

    /// Whether the member does not run.
    pub(super) fn is_gone(&self, mapping: &Mapping, no: NodeNo) -> bool {
        let member = mapping.members.get(&no);
        member.is_some_and(|member| !self.seen.alive.contains_key(&member.id))
    }

    /// Whether a node and all members of a chain hear one another.
    fn is_heard(&self, node: NodeNo, chain: &Chain) -> bool {
        let pair = |no: &NodeNo| (node.min(*no), node.max(*no));
        !chain
            .members
            .iter()
            .any(|no| self.seen.apart.contains(&pair(no)))
    }

    /// The chain of a range of slots in the next epoch, if it changes.
    pub(super) fn plan(
        &self,
        chain: &Chain,
        slots: &Range<u16>,
        wanted: &[NodeNo],
        limits: &Limits,
    ) -> Option<Chain> {
        let all_stayed = self.away.is_empty() && self.restarted.is_empty();
        let is_settled = all_stayed && chain.phase == Phase::Acts;
        if is_settled && chain.learner.is_none() && *chain.members == *wanted {
            return None;
        }
        let mut next = *chain;
        let changed = match chain.phase {
            Phase::Halted { .. } => self.resume(&mut next, slots.start, limits),
            Phase::Confirms { .. } => self.renew(&mut next) || self.confirm(&mut next, slots.start),
            Phase::Acts => self.renew(&mut next) || self.advance(&mut next, slots, wanted),
        };
        changed.then_some(next)
    }

    /// A halted chain continues with one member, if that is decided. A member without a copy has to be
    /// told that it has all of the slot, whatever its files have of it: so the slot is born again. It
    /// acts only after that member has confirmed, and so has heard of the birth.
    fn resume(&self, chain: &mut Chain, slot: u16, limits: &Limits) -> bool {
        let (chosen, begins, loss) = match self.verdict(chain, slot, limits) {
            Verdict::Continues(no, loss) => (no, false, loss),
            Verdict::Begins(no, loss) => (no, !planted::is(Planted::NotBornAgain), loss),
            Verdict::Waits(_) | Verdict::NoCopy => return false,
        };
        // If it continued with loss and never acted since, the same writes are missing, and the node that
        // goes on may be another one. A birth counts as acting, although a slot that is born again without
        // loss has had no write since its birth.
        let never_acted = chain.lost > chain.acted() || begins && chain.lost == chain.acted();
        if loss != Loss::None || never_acted {
            chain.lost = self.epoch;
        }
        lose(chain, |no| no == chosen);
        if begins {
            let (former, acted) = (chain.former(), 0);
            (chain.born, chain.phase) = (0, Phase::Confirms { former, acted });
        }
        true
    }

    /// A chain acts when the logs of all its members have it.
    fn confirm(&self, chain: &mut Chain, slot: u16) -> bool {
        let since = chain.since;
        let confirms = |no: &NodeNo| match self.presence(*no) {
            Presence::Reports(report, _) => report.has_mark_of(slot, since),
            _ => false,
        };
        let all = chain.members.iter().all(confirms);
        if all {
            chain.phase = Phase::Acts;
        }
        all
    }

    pub(super) fn verdict(&self, chain: &Chain, slot: u16, limits: &Limits) -> Verdict {
        let is_only = self.starts.len() == 1;
        held::decide(chain, slot, (limits.reunion_ms, is_only), |no| {
            self.presence(no)
        })
    }

    /// A node may report again what it had before a later restart: only the start that the mapping
    /// has counts.
    fn presence(&self, no: NodeNo) -> Presence<'_> {
        if !self.away.contains(&no) || self.unfit.contains(&no) {
            let report = self.seen.held.of(no);
            let start = self.starts.get(&no).copied().unwrap_or_default();
            return match report.filter(|report| report.incarnation == start.0) {
                Some(report) if !self.restarted.contains_key(&no) => {
                    Presence::Reports(report, start.1)
                }
                _ => Presence::Silent,
            };
        }
        if self.seen.draining.contains(&no) {
            return Presence::Removed;
        }
        Presence::Away(self.seen.away_ms.get(&no).copied().unwrap_or(0))
    }

    /// It has been alive since the mapping named it.
    fn stayed(&self, no: NodeNo) -> bool {
        !self.away.contains(&no) && !self.restarted.contains_key(&no)
    }

    /// Rule 1. True if the chain has changed, and must not change further in this epoch.
    fn renew(&self, chain: &mut Chain) -> bool {
        let learner_left = chain.learner.is_some_and(|learner| !self.stayed(learner));
        if learner_left {
            chain.learner = None;
        }
        if chain.members.is_empty() || chain.members.iter().all(|no| self.stayed(*no)) {
            return learner_left;
        }
        if chain.members.iter().any(|no| self.stayed(*no)) {
            lose(chain, |no| self.stayed(no));
            return true;
        }
        // A member that is alive and unfit has all data: it continues when it is fit again.
        let has_data = |no: &NodeNo| self.unfit.contains(no);
        let is_back = |no: NodeNo| self.restarted.contains_key(&no) || self.stayed(no);
        if chain.holders().any(is_back) && !chain.members.iter().any(has_data) {
            *chain = chain.halted();
            return true;
        }
        learner_left
    }

    /// Rules 2 to 4. True if the chain has changed.
    fn advance(&self, chain: &mut Chain, slots: &Range<u16>, wanted: &[NodeNo]) -> bool {
        if chain.members.is_empty() {
            // No node ever had the slots: there is nothing to learn.
            chain.members = Members::first_of(wanted);
            return !wanted.is_empty();
        }
        if !chain.members.iter().any(|no| self.stayed(*no)) {
            return false;
        }
        if let Some(learner) = chain.learner {
            if !wanted.contains(&learner) {
                chain.learner = None;
                return true;
            }
            let longer = chain.members.with(learner);
            let longer = longer.filter(|_| self.seen.learned.has(slots, learner, chain.since));
            if let Some(members) = longer {
                chain.members = members;
                chain.learner = None;
            }
            return longer.is_some();
        }
        match wanted.iter().find(|no| !chain.members.contains(no)) {
            None if !wanted.is_empty() && *chain.members != *wanted => {
                // A head leaves as the last member: those after it may not have acknowledged its
                // last writes yet, whose clients wait. So it stays in the chain until it reports
                // that they have.
                let waits = |last: &&NodeNo| {
                    !wanted.contains(last) && !self.seen.learned.has(slots, **last, chain.since)
                };
                if chain.members.last().filter(waits).is_some() {
                    return false;
                }
                let head = chain.head().filter(|head| !wanted.contains(head));
                let ordered = Members::first_of(wanted);
                chain.members = head.and_then(|head| ordered.with(head)).unwrap_or(ordered);
                true
            }
            Some(learner) if self.stayed(*learner) && self.is_heard(*learner, chain) => {
                if chain.members.len() == MAX_CHAIN {
                    // Makes room: members that the ring does not want leave, the last first.
                    let unwanted = |no: &&NodeNo| !wanted.contains(no);
                    let surplus = chain.members.iter().copied().rev().find(|no| unwanted(&no));
                    chain.members.retain(|no| Some(no) != surplus);
                }
                chain.learner = Some(*learner);
                true
            }
            _ => false,
        }
    }
}

/// A chain goes on with some of its members. The others keep their copies until these have confirmed
/// that they have the slot: they may have stopped unnoticed.
fn lose(chain: &mut Chain, stays: impl Fn(NodeNo) -> bool) {
    let (before, acted) = (*chain, chain.acted());
    chain.members.retain(stays);
    chain.learner = None;
    // Members are added only where no node is lost: there is room for all.
    let former = before.holders().filter(|no| !chain.members.contains(no));
    let former = former.fold(Members::default(), |all, no| all.with(no).unwrap_or(all));
    chain.phase = if former.is_empty() || planted::is(Planted::DroppedAtOnce) {
        Phase::Acts
    } else {
        Phase::Confirms { former, acted }
    };
}
