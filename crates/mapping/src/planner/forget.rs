//! A member that is gone for good leaves without announcing it, at the request of an operator.

use crate::chains::{Chain, Chains};
use crate::mapping::Mapping;
use crate::member::NodeNo;
use crate::planted::{self, Planted};
use std::fmt;

/// Why a member stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// There is no such member.
    Unknown,
    /// It has the only copies of this many slots: their keys would be lost.
    OnlyCopies(usize),
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Unknown => f.write_str("it is no member of the cluster"),
            Kept::OnlyCopies(slots) => write!(
                f,
                "it has the only copies of {slots} slots, whose keys would be lost: start it again, or restart the others with cluster-accept-loss yes"
            ),
        }
    }
}

/// The next epoch, in which a member begins to leave: it gets no slots any more, and is dropped when
/// no chain has it. Halted chains do not wait for its copies any more. `None` if it leaves already. A
/// member that is alive ends that by its announcement ([`next`](super::next)).
pub fn forget(mapping: &Mapping, no: NodeNo) -> Result<Option<Mapping>, Kept> {
    let member = mapping.members.get(&no).ok_or(Kept::Unknown)?;
    let is_alone = |members: &[NodeNo]| members == [no];
    let only = mapping.chains.ranges();
    let only = only.filter(|(_, chain)| is_alone(&chain.members));
    let slots: usize = only.map(|(slots, _)| slots.len()).sum();
    if slots > 0 {
        return Err(Kept::OnlyCopies(slots));
    }
    let waits = |chain: &Chain| chain.is_halted() && chain.members.contains(&no);
    let is_awaited = mapping.chains.ranges().any(|(_, chain)| waits(chain));
    if member.drains && !mapping.ring.has(no) && !is_awaited {
        return Ok(None);
    }
    let mut next = mapping.clone();
    next.epoch += 1;
    next.chains = Chains::with_room_for(mapping.chains.ranges().len());
    for (slots, chain) in mapping.chains.ranges() {
        let mut chain = *chain;
        if waits(&chain) && !planted::is(Planted::ForgottenHeld) {
            chain.members.retain(|member| member != no);
        }
        next.chains.push(slots.start, chain);
    }
    if let Some(member) = next.members.get_mut(&no) {
        member.drains = true;
    }
    if next.ring.has(no) {
        next.ring.leave(no);
    }
    Ok(Some(next))
}

/// The same for a member that was away for too long, while no chain has it or waits for its copy: what only it may have is
/// not given up without an operator.
pub fn outstayed(mapping: &Mapping, no: NodeNo) -> Option<Mapping> {
    let leaves = !mapping.chains.need(no);
    leaves.then(|| forget(mapping, no).ok().flatten()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::{Member, NodeId};
    use crate::planner::tests::report;
    use crate::planner::{Copy, Limits, Report, Seen, next};
    use rufous_base::limits::SLOTS;

    fn node(n: u8) -> Member {
        Member {
            id: NodeId([n; 20]),
            incarnation: 1,
            peer: String::new(),
            plain: String::new(),
            cluster: String::new(),
            zone: String::new(),
            weight: 100,
            workers: 1,
            drains: false,
            folder: Default::default(),
        }
    }

    fn seen(nodes: &[u8]) -> Seen {
        let alive = nodes.iter().map(|n| (node(*n).id, node(*n)));
        Seen {
            alive: alive.collect(),
            ..Seen::default()
        }
    }

    /// Plans until nothing changes; learners are complete at once.
    fn settle(mapping: &mut Mapping, seen: &mut Seen) {
        while let Some(planned) = next(mapping, seen, &Limits::default()) {
            *mapping = planned;
            report(mapping, seen);
            seen.learned.clear();
            for (slots, chain) in mapping.chains.ranges() {
                for no in chain.learner.iter().chain(chain.members.last()) {
                    seen.learned.add(slots.clone(), *no, chain.since);
                }
            }
        }
    }

    fn cluster(copies: usize) -> Mapping {
        let mut mapping = Mapping::new(copies);
        settle(&mut mapping, &mut seen(&[0, 1, 2]));
        mapping
    }

    #[test]
    fn a_member_that_outstays_leaves_once_no_chain_has_it() {
        let mut mapping = cluster(2);
        assert_eq!(outstayed(&mapping, NodeNo(2)), None, "chains have it");
        settle(&mut mapping, &mut seen(&[0, 1]));
        assert!(mapping.members.contains_key(&NodeNo(2)), "it may be back");
        let mut mapping = outstayed(&mapping, NodeNo(2)).expect("others have all");
        assert_eq!(outstayed(&mapping, NodeNo(2)), None, "it leaves already");
        settle(&mut mapping, &mut seen(&[0, 1]));
        assert!(!mapping.members.contains_key(&NodeNo(2)));
    }

    #[test]
    fn a_member_that_is_gone_leaves_and_others_have_its_slots() {
        let mut mapping = cluster(2);
        let planned = forget(&mapping, NodeNo(2)).expect("may go").expect("news");
        assert_eq!(planned.check(), Ok(()));
        assert_eq!(planned.follows(&mapping), Ok(()));
        mapping = planned;
        assert_eq!(forget(&mapping, NodeNo(2)), Ok(None), "it leaves already");
        settle(&mut mapping, &mut seen(&[0, 1]));
        assert_eq!(mapping.members.len(), 2);
        let has_two = mapping
            .chains
            .ranges()
            .all(|(_, chain)| chain.members.len() == 2);
        assert!(has_two);
        assert_eq!(forget(&mapping, NodeNo(2)), Err(Kept::Unknown));
        // Started from its old folder, it is another member.
        settle(&mut mapping, &mut seen(&[0, 1, 2]));
        assert_eq!(mapping.number_of(node(2).id), Some(NodeNo(3)));
    }

    #[test]
    fn a_member_with_the_only_copies_stays() {
        let mapping = cluster(1);
        let kept = forget(&mapping, NodeNo(2)).expect_err("its keys would be lost");
        assert!(matches!(kept, Kept::OnlyCopies(slots) if slots > 1000));
    }

    /// All members have stopped, and one does not come back: its copies may be the best.
    #[test]
    fn halted_chains_do_not_wait_for_a_member_that_is_gone_for_good() {
        let mut mapping = cluster(2);
        let mut seen = seen(&[0, 1]);
        for member in seen.alive.values_mut() {
            member.incarnation = 2;
        }
        for _ in 0..100 {
            for (no, member) in &mapping.members {
                let mut report = Report::new(member.incarnation, true, false);
                let copy = Some(Copy { since: 1, seq: 7 });
                report.add(0..SLOTS as u16, copy);
                if *no != NodeNo(2) {
                    seen.held.hear(*no, report);
                }
            }
            if let Some(planned) = next(&mapping, &seen, &Limits::default()) {
                assert_eq!(planned.follows(&mapping), Ok(()));
                mapping = planned;
            }
        }
        let halted = |mapping: &Mapping| {
            let mut chains = mapping.chains.ranges();
            chains.any(|(_, chain)| chain.is_halted())
        };
        assert!(halted(&mapping), "chains wait for the copies of the third");
        assert_eq!(outstayed(&mapping, NodeNo(2)), None, "nor is it let go");
        let planned = forget(&mapping, NodeNo(2)).expect("may go").expect("news");
        assert_eq!(planned.check(), Ok(()));
        assert_eq!(planned.follows(&mapping), Ok(()));
        mapping = planned;
        settle(&mut mapping, &mut seen);
        assert!(!halted(&mapping));
        assert_eq!(mapping.members.len(), 2);
    }

    #[test]
    fn a_member_that_is_alive_after_all_stays() {
        let mut mapping = cluster(2);
        mapping = forget(&mapping, NodeNo(2)).expect("may go").expect("news");
        settle(&mut mapping, &mut seen(&[0, 1, 2]));
        assert_eq!(mapping.number_of(node(2).id), Some(NodeNo(2)));
        assert!(!mapping.members[&NodeNo(2)].drains && mapping.ring.has(NodeNo(2)));
    }
}
