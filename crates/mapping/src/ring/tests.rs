//! Shares are fair, and only slots that have to move do.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn ring_of(members: u16, copies: usize) -> Ring {
    let mut ring = Ring::new(copies);
    (0..members).for_each(|node| ring.join(NodeNo(node), 100, ""));
    ring
}

/// Owners that a slot has in one ring and not in the other.
fn new_copies(before: &Ring, after: &Ring) -> Vec<NodeNo> {
    let slots = 0..SLOTS as u16;
    let new = |slot| {
        let had = before.owners(slot);
        after
            .owners(slot)
            .iter()
            .copied()
            .filter(move |node| !had.contains(node))
    };
    slots.flat_map(new).collect()
}

/// The invariants of every ring.
fn check(ring: &Ring) {
    for slot in 0..SLOTS as u16 {
        let owners = ring.owners(slot);
        assert_eq!(owners.len(), ring.copies.min(ring.len()), "{owners:?}");
        assert!(owners.iter().all(|node| ring.has(*node)), "{owners:?}");
        let twice = owners
            .iter()
            .enumerate()
            .any(|(i, node)| owners[..i].contains(node));
        assert!(!twice, "{owners:?}");
    }
}

/// Whether the shares at a place are within about a tenth of `fair`.
fn is_even(shares: &BTreeMap<NodeNo, usize>, fair: impl Fn(NodeNo) -> f64) -> bool {
    let off = |(node, share): (&NodeNo, &usize)| (*share as f64 - fair(*node)).abs();
    shares
        .iter()
        .all(|share| off(share) <= 1.0 + fair(*share.0) / 10.0)
}

#[test]
fn a_member_joins_and_leaves_with_its_share_and_nothing_else_moves() {
    for (copies, members) in [(1, 1), (2, 1), (2, 2), (3, 3), (2, 8), (3, 16), (3, 50)] {
        let ring = ring_of(members, copies);
        check(&ring);
        let places = copies.min(usize::from(members));
        for place in 0..places {
            let fair = SLOTS as f64 / f64::from(members);
            assert!(is_even(&ring.shares(place), |_| fair), "{members} members");
        }
        let mut larger = ring.clone();
        larger.join(NodeNo(members), 100, "");
        let new = new_copies(&ring, &larger);
        assert!(new.iter().all(|node| *node == NodeNo(members)));
        let places = copies.min(usize::from(members) + 1);
        let share: usize = (0..places)
            .map(|i| larger.shares(i)[&NodeNo(members)])
            .sum();
        assert_eq!(new.len(), share);
        larger.leave(NodeNo(0));
        check(&larger);
        let mut smaller = ring.clone();
        smaller.leave(NodeNo(0));
        let lost: usize = (0..copies).map(|i| ring.shares(i)[&NodeNo(0)]).sum();
        let refilled = if usize::from(members) > copies {
            lost
        } else {
            0
        };
        assert_eq!(new_copies(&ring, &smaller).len(), refilled);
    }
}

#[test]
fn what_one_leaves_is_taken_by_all_others() {
    let ring = ring_of(8, 2);
    let mut behind: BTreeMap<NodeNo, usize> = BTreeMap::new();
    for slot in 0..SLOTS as u16 {
        if let [NodeNo(0), second] = ring.owners(slot) {
            *behind.entry(*second).or_default() += 1;
        }
    }
    assert_eq!(behind.len(), 7, "{behind:?}");
    assert!(
        behind.values().all(|share| *share < SLOTS / 8 / 2),
        "{behind:?}"
    );
}

#[test]
fn copies_are_in_different_zones() {
    let mut ring = Ring::new(3);
    let zones = ["a", "b", "c"];
    for node in 0..9 {
        ring.join(NodeNo(node), 100, zones[usize::from(node) % 3]);
    }
    check(&ring);
    let together = |ring: &Ring| {
        let slots = 0..SLOTS as u16;
        let same = slots.filter(|slot| {
            let mut zones: Vec<u16> = ring.owners(*slot).iter().map(|n| n.0 % 3).collect();
            zones.sort_unstable();
            zones.dedup();
            zones.len() < 3
        });
        same.count()
    };
    assert_eq!(together(&ring), 0);
    for node in [4, 8] {
        ring.leave(NodeNo(node));
        check(&ring);
        assert_eq!(together(&ring), 0, "without {node}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn shares_stay_fair_whatever_happens(
        copies in 1usize..=3,
        by_weight in any::<bool>(),
        steps in proptest::collection::vec((any::<u16>(), 0u8..5, 50u16..=300), 1..60),
    ) {
        let mut ring = Ring::new(copies);
        let mut next = 0;
        for (which, what, weight) in steps {
            let weight = if by_weight { weight } else { 100 };
            let known = ring.members.keys().nth(usize::from(which) % ring.len().max(1));
            match (what, known.copied()) {
                (3, Some(node)) if ring.len() > 1 => {
                    let before = ring.clone();
                    ring.leave(node);
                    let new = new_copies(&before, &ring).len();
                    let slots = 0..SLOTS as u16;
                    let lost = slots.filter(|slot| before.owners(*slot).contains(&node));
                    let lost = lost.count();
                    // With few members, not every one can take the slots that have to move.
                    let more = lost / if ring.len() > 2 * copies { 12 } else { 4 };
                    prop_assert!(by_weight || new <= lost + more, "{new} for {lost}");
                }
                (4, Some(node)) if by_weight => ring.join(node, weight, ""),
                _ => {
                    let before = ring.clone();
                    ring.join(NodeNo(next), weight, "");
                    let new = new_copies(&before, &ring);
                    let only = new.iter().all(|node| *node == NodeNo(next));
                    prop_assert!(only || by_weight);
                    next += 1;
                }
            }
            check(&ring);
            let total: u32 = ring.members.values().map(|m| u32::from(m.weight)).sum();
            let fair = |node| {
                let weight = ring.members[&node].weight;
                SLOTS as f64 * f64::from(weight) / f64::from(total)
            };
            let places = if by_weight { 1 } else { copies.min(ring.len()) };
            for place in 0..places {
                let shares = ring.shares(place);
                prop_assert!(is_even(&shares, fair), "place {place}: {shares:?}");
            }
        }
    }
}

/// With as many zones as copies none can be left out; with fewer, all of them have a copy.
#[test]
fn fewer_zones_than_copies_leave_nobody_without_slots() {
    for (copies, zones) in [(2, 1), (3, 1), (3, 2)] {
        let mut ring = Ring::new(copies);
        for no in 0..12 {
            ring.join(NodeNo(no), 100, &format!("zone {}", no % zones));
            check(&ring);
            if !ring.len().is_multiple_of(usize::from(zones)) {
                continue;
            }
            let mut all: BTreeMap<NodeNo, usize> = BTreeMap::new();
            for place in 0..copies.min(ring.len()) {
                for (node, share) in ring.shares(place) {
                    *all.entry(node).or_default() += share;
                }
            }
            let fair = SLOTS * copies.min(ring.len()) / ring.len();
            for (node, share) in &all {
                let is_fair = (fair * 9 / 10..=fair * 11 / 10).contains(share);
                assert!(is_fair, "{copies} copies, {zones} zones, {node}: {all:?}");
            }
            for slot in 0..SLOTS as u16 {
                let zones_of = ring.owners(slot).iter().map(|no| no.0 % zones);
                let found = zones_of.collect::<std::collections::BTreeSet<u16>>();
                assert_eq!(
                    found.len(),
                    usize::from(zones).min(ring.len()),
                    "slot {slot}"
                );
            }
        }
    }
}

#[test]
fn shares_are_fair_up_to_32_members_with_and_without_zones() {
    for (copies, zones) in [(1, 1), (2, 1), (3, 1), (2, 2), (3, 3), (3, 4)] {
        let mut ring = Ring::new(copies);
        let zone = |no: u16| match zones {
            1 => String::new(),
            _ => format!("zone {}", no % zones),
        };
        for no in 0..32 {
            ring.join(NodeNo(no), 100, &zone(no));
            check(&ring);
            // If zones differ in size, nodes of the smaller ones have more slots.
            if !ring.len().is_multiple_of(usize::from(zones)) {
                continue;
            }
            let fair = SLOTS as f64 / ring.len() as f64;
            for place in 0..copies.min(ring.len()) {
                let shares = ring.shares(place);
                assert!(
                    is_even(&shares, |_| fair),
                    "{zones} zones, place {place}: {shares:?}"
                );
            }
            let apart = |slot: u16| {
                let zones = ring.owners(slot).iter().map(|no| no.0 % zones);
                zones.collect::<std::collections::BTreeSet<u16>>().len() == ring.owners(slot).len()
            };
            assert!(zones == 1 || (0..SLOTS as u16).all(apart), "{zones} zones");
        }
    }
}

#[test]
fn all_that_leave_at_once_leave_as_fair_a_ring() {
    let mut ring = ring_of(12, 2);
    ring.leave_all([NodeNo(1), NodeNo(5), NodeNo(6), NodeNo(99)]);
    check(&ring);
    for place in 0..2 {
        assert!(is_even(&ring.shares(place), |_| SLOTS as f64 / 9.0));
    }
}

/// Ranges of slots with their owners, as a ring returns them.
type Ranges = Vec<(Range<u16>, Vec<NodeNo>)>;

#[test]
fn a_ring_is_what_its_parts_say_and_others_are_refused() {
    let ring = ring_of(5, 3);
    let parts = |ring: &Ring| {
        ring.ranges()
            .map(|(r, o)| (r, o.to_vec()))
            .collect::<Vec<_>>()
    };
    let made = |copies: usize, ranges: &[(Range<u16>, Vec<NodeNo>)]| {
        let ranges = ranges
            .iter()
            .map(|(slots, owners)| (slots.clone(), &owners[..]));
        Ring::of_parts(copies, ring.members().clone(), ranges)
    };
    let ranges = parts(&ring);
    assert_eq!(made(3, &ranges), Ok(ring.clone()));
    assert!(made(0, &ranges).is_err() && made(6, &ranges).is_err());
    assert!(made(2, &ranges).is_err(), "too many owners");
    let refused = |spoil: &dyn Fn(&mut Ranges)| {
        let mut spoilt = ranges.clone();
        spoil(&mut spoilt);
        assert!(made(3, &spoilt).is_err());
    };
    refused(&|ranges| drop(ranges.pop()));
    refused(&|ranges| ranges.swap(0, 1));
    refused(&|ranges| ranges.push((0..1, ring.owners(0).to_vec())));
    refused(&|ranges| ranges[3].0.end = u16::MAX);
    refused(&|ranges| ranges[3].1[1] = ranges[3].1[0]);
    refused(&|ranges| ranges[3].1[1] = NodeNo(5));
    refused(&|ranges| ranges[3].1[1] = NOBODY);
    refused(&|ranges| ranges[3].1.truncate(2));
    refused(&|ranges| ranges[3].1 = vec![NodeNo(0); 100]);
}
