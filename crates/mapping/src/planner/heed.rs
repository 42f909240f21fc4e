//! Changed announcements of live members: another weight, or a drain that is withdrawn.
//! Restarts are handled in `settle`: announcements of an incarnation that the mapping does not have
//! yet are ignored here.

use super::Seen;
use crate::mapping::Mapping;
use crate::member::Member;

/// True if anything changes.
pub(super) fn heed(next: &mut Mapping, seen: &Seen) -> bool {
    let mut changed = false;
    let ring = &mut next.ring;
    for (no, member) in &mut next.members {
        let now = seen.alive.get(&member.id);
        let Some(now) = now.filter(|now| is_heeded(member, now)) else {
            continue;
        };
        if member.drains && !now.drains && !seen.draining.contains(no) {
            member.drains = false;
            changed = true;
        }
        changed |= member.weight != now.weight;
        member.weight = now.weight;
        let weighs = ring.members().get(no).map(|has| has.weight);
        if !member.drains && weighs != Some(member.weight) {
            ring.join(*no, member.weight, &member.zone);
            changed = true;
        }
    }
    changed
}

fn is_heeded(member: &Member, now: &Member) -> bool {
    now.incarnation == member.incarnation && now.check().is_ok()
}

#[cfg(test)]
mod tests {
    use crate::mapping::Mapping;
    use crate::member::{Member, NodeId, NodeNo};
    use crate::planner::tests::report;
    use crate::planner::{Limits, Seen, next};
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

    /// Plans until nothing changes; learners are complete at once.
    fn settle(mapping: &mut Mapping, seen: &mut Seen) {
        for _ in 0..500 {
            // As the control thread does.
            seen.draining = mapping
                .members
                .iter()
                .filter(|(_, member)| seen.alive.get(&member.id).is_some_and(|now| now.drains))
                .map(|(no, _)| *no)
                .collect();
            let Some(planned) = next(mapping, seen, &Limits::default()) else {
                return;
            };
            *mapping = planned;
            report(mapping, seen);
            seen.learned.clear();
            for (slots, chain) in mapping.chains.ranges() {
                // No client waits for a write of the last member either.
                for no in chain.learner.iter().chain(chain.members.last()) {
                    seen.learned.add(slots.clone(), *no, chain.since);
                }
            }
        }
        panic!("there is no end to it: epoch {}", mapping.epoch);
    }

    fn slots_of(mapping: &Mapping, no: u16) -> usize {
        let ranges = mapping.chains.ranges();
        let of = ranges.filter(|(_, chain)| chain.head() == Some(NodeNo(no)));
        of.map(|(slots, _)| slots.len()).sum()
    }

    fn cluster(nodes: u8) -> (Mapping, Seen) {
        let mut seen = Seen::default();
        for n in 0..nodes {
            seen.alive.insert(node(n).id, node(n));
        }
        let mut mapping = Mapping::new(2);
        settle(&mut mapping, &mut seen);
        (mapping, seen)
    }

    fn says(seen: &mut Seen, n: u8, change: impl FnOnce(&mut Member)) {
        change(seen.alive.get_mut(&NodeId([n; 20])).expect("alive"));
    }

    #[test]
    fn who_has_drained_is_a_member_without_slots_until_it_stops() {
        let (mut mapping, mut seen) = cluster(3);
        says(&mut seen, 2, |node| node.drains = true);
        settle(&mut mapping, &mut seen);
        assert!(!mapping.ring.has(NodeNo(2)) && !mapping.chains.name(NodeNo(2)));
        assert_eq!(mapping.members.len(), 3);
        assert_eq!(next(&mapping, &seen, &Limits::default()), None);
        // The drain is withdrawn: it is the same member.
        says(&mut seen, 2, |node| node.drains = false);
        settle(&mut mapping, &mut seen);
        assert!(slots_of(&mapping, 2) > 0);
        says(&mut seen, 2, |node| node.drains = true);
        settle(&mut mapping, &mut seen);
        let stopped = seen.alive.remove(&node(2).id).expect("alive");
        settle(&mut mapping, &mut seen);
        assert_eq!(mapping.members.len(), 2);
        // It was only silent, and goes on: a member without slots, under another number.
        seen.alive.insert(stopped.id, stopped);
        settle(&mut mapping, &mut seen);
        assert_eq!(mapping.number_of(node(2).id), Some(NodeNo(3)));
        assert!(mapping.members[&NodeNo(3)].drains);
        assert!(!mapping.ring.has(NodeNo(3)) && !mapping.chains.name(NodeNo(3)));
        // It is silent once more, and the drain is withdrawn before the others hear it again.
        let stopped = seen.alive.remove(&node(2).id).expect("alive");
        settle(&mut mapping, &mut seen);
        assert_eq!(mapping.number_of(node(2).id), None);
        let stays = Member {
            drains: false,
            ..stopped
        };
        seen.alive.insert(stays.id, stays);
        settle(&mut mapping, &mut seen);
        assert!(slots_of(&mapping, 4) > 0 && mapping.members.len() == 3);
    }

    #[test]
    fn who_drains_does_not_begin_a_cluster() {
        let mut seen = Seen::default();
        seen.alive.insert(node(0).id, node(0));
        says(&mut seen, 0, |node| node.drains = true);
        let empty = Mapping::new(2);
        assert_eq!(next(&empty, &seen, &Limits::default()), None);
        // It is a member when another one has the slots.
        seen.alive.insert(node(1).id, node(1));
        let mut mapping = empty;
        settle(&mut mapping, &mut seen);
        assert!(mapping.members.len() == 2 && slots_of(&mapping, 0) == SLOTS);
        assert_eq!(mapping.number_of(node(1).id), Some(NodeNo(0)));
    }

    #[test]
    fn who_stays_after_all_gets_its_slots_back() {
        let (mut mapping, mut seen) = cluster(3);
        let before = slots_of(&mapping, 2);
        says(&mut seen, 2, |node| node.drains = true);
        seen.draining.insert(NodeNo(2));
        // Not to the end of the drain.
        mapping = next(&mapping, &seen, &Limits::default()).expect("it begins");
        assert!(mapping.members[&NodeNo(2)].drains && !mapping.ring.has(NodeNo(2)));
        says(&mut seen, 2, |node| node.drains = false);
        settle(&mut mapping, &mut seen);
        assert!(!mapping.members[&NodeNo(2)].drains);
        let after = slots_of(&mapping, 2);
        assert!(after.abs_diff(before) <= SLOTS / 50, "{before} {after}");
    }

    #[test]
    fn who_weighs_less_has_less() {
        let (mut mapping, mut seen) = cluster(3);
        let before = slots_of(&mapping, 1);
        says(&mut seen, 1, |node| node.weight = 50);
        settle(&mut mapping, &mut seen);
        let after = slots_of(&mapping, 1);
        assert!(after * 3 < before * 2, "{before} {after}");
        assert_eq!(mapping.members[&NodeNo(1)].weight, 50);
    }
}
