//! Invalid mappings, and mappings that cannot follow one another.

use super::*;
use crate::chains::{Chain, Members, Phase};
use crate::planner::{self, Limits, Seen};
use rufous_base::limits::SLOTS;

fn node(n: u8) -> Member {
    Member {
        id: NodeId([n; 20]),
        incarnation: 1,
        peer: format!("10.0.0.{n}:7000"),
        plain: format!("10.0.0.{n}:6379"),
        cluster: format!("10.0.0.{n}:6380"),
        zone: String::new(),
        weight: 100,
        workers: 1,
        drains: false,
        folder: Default::default(),
    }
}

/// A mapping of three nodes, and the next one after a fourth has joined.
fn two() -> (Mapping, Mapping) {
    let mut seen = Seen::default();
    seen.alive.extend((0..3).map(|n| (node(n).id, node(n))));
    let first = planner::next(&Mapping::new(2), &seen, &Limits::default()).expect("a mapping");
    seen.alive.insert(node(3).id, node(3));
    let second = planner::next(&first, &seen, &Limits::default()).expect("another one");
    (first, second)
}

fn with_chain(mapping: &Mapping, change: impl Fn(&mut Chain)) -> Mapping {
    let mut chains: Vec<_> = mapping
        .chains
        .ranges()
        .map(|(slots, chain)| (slots, *chain))
        .collect();
    change(&mut chains[1].1);
    let chains = Chains::of_ranges(chains).expect("all slots");
    Mapping {
        chains,
        ..mapping.clone()
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let (mapping, _) = two();
    assert_eq!(mapping.check(), Ok(()));
    let refused = |spoil: &dyn Fn(&mut Mapping)| {
        let mut spoilt = mapping.clone();
        spoil(&mut spoilt);
        assert!(spoilt.check().is_err(), "{spoilt:?}");
    };
    refused(&|m| m.next = 2);
    refused(&|m| drop(m.members.remove(&NodeNo(1))));
    refused(&|m| m.epoch = 0);
    refused(&|m| drop(m.members.insert(NodeNo(2), node(1))));
    refused(&|m| {
        drop(m.members.insert(
            NodeNo(2),
            Member {
                weight: 0,
                ..node(2)
            },
        ))
    });
    for workers in [0, 257] {
        refused(&|m| drop(m.members.insert(NodeNo(2), Member { workers, ..node(2) })));
    }
    refused(&|m| {
        let zone = "z".repeat(1000);
        m.members.insert(NodeNo(2), Member { zone, ..node(2) });
    });
    refused(&|m| m.ring.join(NodeNo(9), 100, ""));
    let members = |nos: &[u16]| {
        let nos: Vec<NodeNo> = nos.iter().map(|no| NodeNo(*no)).collect();
        Members::of(&nos).expect("few")
    };
    refused(&|m| *m = with_chain(m, |chain| chain.members = members(&[1, 1])));
    refused(&|m| *m = with_chain(m, |chain| chain.members = members(&[7])));
    refused(&|m| *m = with_chain(m, |chain| chain.members = members(&[])));
    refused(&|m| *m = with_chain(m, |chain| chain.learner = chain.head()));
    refused(&|m| *m = with_chain(m, |chain| chain.learner = Some(NodeNo(7))));
    refused(&|m| *m = with_chain(m, |chain| chain.since += 1));
    refused(&|m| *m = with_chain(m, |chain| chain.born += 1));
    assert_eq!(Members::of(&[NodeNo(0); 7]), None);
}

#[test]
fn what_is_no_successor_is_refused() {
    let (first, second) = two();
    assert_eq!(second.follows(&first), Ok(()));
    assert!(first.follows(&second).is_err() && first.follows(&first).is_err());
    let refused = |spoil: &dyn Fn(&mut Mapping)| {
        let mut spoilt = second.clone();
        spoil(&mut spoilt);
        assert!(spoilt.follows(&first).is_err(), "{spoilt:?}");
    };
    refused(&|m| m.epoch += 1);
    refused(&|m| m.next = 1);
    refused(&|m| drop(m.members.insert(NodeNo(1), node(9))));
    let wider = |incarnation| Member {
        workers: 4,
        incarnation,
        ..node(1)
    };
    refused(&|m| drop(m.members.insert(NodeNo(1), wider(1))));
    let mut started = second.clone();
    started.members.insert(NodeNo(1), wider(2));
    assert_eq!(started.follows(&first), Ok(()), "a start may change it");
    refused(&|m| *m = with_chain(m, |chain| chain.members = Members::default()));
    refused(&|m| {
        *m = with_chain(m, |chain| {
            (chain.since, chain.members) = (2, Members::of(&[NodeNo(3)]).expect("one"));
        });
    });
    refused(&|m| *m = with_chain(m, |chain| (chain.since, chain.born) = (2, 2)));
    refused(&|m| {
        *m = with_chain(m, |chain| {
            (chain.since, chain.learner) = (1, Some(NodeNo(1)))
        })
    });
    let gone = Chains::of_ranges([(0..SLOTS as u16, Chain::default())]).expect("all slots");
    refused(&|m| m.chains = gone.clone());
}

#[test]
fn epochs_may_be_missed_but_not_undone() {
    let (first, second) = two();
    let later = Mapping {
        epoch: second.epoch + 5,
        ..second.clone()
    };
    assert_eq!(second.comes_after(&first), Ok(()));
    assert_eq!(later.comes_after(&first), Ok(()));
    assert!(later.follows(&first).is_err());
    assert!(first.comes_after(&later).is_err() && later.comes_after(&later).is_err());
    let refused = |spoil: &dyn Fn(&mut Mapping)| {
        let mut spoilt = later.clone();
        spoil(&mut spoilt);
        assert!(spoilt.comes_after(&first).is_err(), "{spoilt:?}");
        assert_eq!(spoilt.epoch, later.epoch);
    };
    let nobody = Chain {
        since: 4,
        phase: Default::default(),
        ..Chain::default()
    };
    let gone = Chains::of_ranges([(0..SLOTS as u16, nobody)]).expect("all slots");
    refused(&|m| m.next = 1);
    refused(&|m| drop(m.members.insert(NodeNo(1), node(9))));
    refused(&|m| m.chains = gone.clone());
    // It has to be halted first, in an epoch of its own.
    refused(&|m| *m = with_chain(m, |chain| (chain.since, chain.born) = (4, 2)));
    let other = Members::of(&[NodeNo(3)]).expect("one");
    refused(&|m| {
        *m = with_chain(m, |chain| {
            (chain.since, chain.members) = (first.epoch, other)
        });
    });
    // It is unknown here which nodes had the data meanwhile.
    let moved = with_chain(&later, |chain| (chain.since, chain.members) = (4, other));
    assert_eq!(moved.comes_after(&first), Ok(()));
    // As the very next epoch it is known to be wrong.
    let moved = Mapping { epoch: 2, ..moved };
    assert!(moved.comes_after(&first).is_err());
}

#[test]
fn a_learner_alone_never_follows_its_chain() {
    let members = Members::of(&[NodeNo(0), NodeNo(1)]).expect("two");
    let before = Chain {
        members,
        learner: Some(NodeNo(2)),
        born: 1,
        since: 4,
        lost: 0,
        phase: Default::default(),
    };
    let after = |nos: &[u16]| {
        let nos: Vec<NodeNo> = nos.iter().map(|no| NodeNo(*no)).collect();
        Chain {
            members: Members::of(&nos).expect("few"),
            learner: None,
            since: 5,
            phase: Default::default(),
            ..before
        }
    };
    assert!(after(&[0, 1, 2]).follows(&before).is_ok());
    assert!(after(&[1]).follows(&before).is_ok());
    assert!(after(&[2]).follows(&before).is_err());
    assert!(after(&[0, 3]).follows(&before).is_err());
}

#[test]
fn ranges_that_are_not_all_slots_are_refused() {
    let end = SLOTS as u16;
    let chain = Chain::default();
    for ranges in [
        vec![],
        vec![(0..end - 1, chain)],
        vec![(1..end, chain)],
        vec![(0..5, chain), (6..end, chain)],
        vec![(0..5, chain), (5..5, chain), (5..end, chain)],
        vec![(0..5, chain), (5..end + 1, chain)],
    ] {
        assert!(Chains::of_ranges(ranges).is_err());
    }
    assert_eq!(
        Chains::of_ranges([(0..5, chain), (5..end, chain)]),
        Ok(Chains::default())
    );
}

/// A node may miss that a chain was confirmed, and hear that it is halted.
#[test]
fn phases_may_be_missed_but_not_undone() {
    let of = |nos: &[u16]| {
        let nos: Vec<NodeNo> = nos.iter().map(|no| NodeNo(*no)).collect();
        Members::of(&nos).expect("few")
    };
    let chain = |members: &[u16], phase| Chain {
        members: of(members),
        learner: None,
        born: 1,
        since: 4,
        lost: 0,
        phase,
    };
    let former = of(&[1, 2]);
    let confirms = chain(&[0], Phase::Confirms { former, acted: 3 });
    let acts = chain(&[0], Phase::Acts);
    let halted = chain(&[0], Phase::Halted { acted: 4 });
    let all = chain(&[0, 1, 2], Phase::Halted { acted: 3 });
    for (before, after) in [(confirms, acts), (confirms, all), (acts, halted)] {
        assert_eq!(after.follows(&before), Ok(()));
        assert_eq!(after.comes_after(&before, 5), Ok(()));
        assert!(before.comes_after(&after, 5).is_err(), "{after:?}");
    }
    assert!(halted.follows(&confirms).is_err(), "in one epoch");
    assert_eq!(halted.comes_after(&confirms, 5), Ok(()));
}

/// What a slot had is given up only after all nodes that may have it were asked.
#[test]
fn a_slot_is_born_again_only_after_its_chain_was_halted() {
    let members = Members::of(&[NodeNo(0), NodeNo(1)]).expect("two");
    let acts = Chain {
        members,
        learner: None,
        born: 1,
        since: 4,
        lost: 0,
        phase: Phase::Acts,
    };
    let halted = acts.halted();
    let born = |epoch| Chain {
        members: Members::of(&[NodeNo(1)]).expect("one"),
        born: epoch,
        since: epoch,
        ..acts
    };
    assert_eq!(born(7).follows(&halted), Ok(()));
    assert!(born(7).follows(&acts).is_err());
    assert_eq!(born(7).comes_after(&halted, 6), Ok(()));
    assert_eq!(born(8).comes_after(&acts, 6), Ok(()), "halted meanwhile");
    assert!(born(7).comes_after(&acts, 6).is_err());
    assert!(halted.comes_after(&born(7), 8).is_err());
    assert!(acts.follows(&born(3)).is_err());
}

/// Nodes act on it when they take up a chain of an epoch that they do not know.
#[test]
fn loss_is_noted_only_with_a_new_epoch() {
    let acts = Chain {
        members: Members::of(&[NodeNo(0), NodeNo(1)]).expect("two"),
        learner: None,
        born: 1,
        since: 4,
        lost: 2,
        phase: Phase::Acts,
    };
    let lossy = |chain: Chain, lost| Chain { lost, ..chain };
    assert!(acts.check().is_ok() && lossy(acts, 4).check().is_ok());
    assert!(lossy(acts, 5).check().is_err());
    let halted = acts.halted();
    assert_eq!((halted.lost, halted.follows(&acts)), (2, Ok(())));
    for lost in [3, 4] {
        for before in [acts, halted] {
            assert!(lossy(halted, lost).follows(&before).is_err());
            assert!(lossy(halted, lost).comes_after(&before, 4).is_err());
        }
    }
    // Older programs drop it.
    assert_eq!(lossy(halted, 0).follows(&acts), Ok(()));
    assert_eq!(lossy(acts, 0).comes_after(&acts, 5), Ok(()));
    let later = Chain {
        since: 6,
        lost: 6,
        ..acts
    };
    assert_eq!(later.follows(&halted), Ok(()));
    assert_eq!(later.comes_after(&acts, 4), Ok(()), "halted meanwhile");
}
