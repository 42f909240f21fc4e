//! A head that leaves: which writes it loses with its slots, and when it may leave.

use super::{Replica, Store};
use rufous_mapping::{Chain, Chains, Mapping, Member, Members, NodeId, NodeNo};
use std::sync::Arc;

/// A store that keeps nothing.
struct Nowhere;

impl Store for Nowhere {
    fn apply(&mut self, _: u16, _: &[u8]) {}
    fn clear(&mut self, _: u16) -> bool {
        true
    }
    fn begin_copy(&mut self, _: u16) {}
    fn end_copy(&mut self, _: u16) {}
    fn note(&mut self, _: u16, _: &[u8]) {}
    fn copy(&mut self, _: u16) -> Option<Vec<u8>> {
        None
    }
    fn load(&mut self, _: u16, _: &[u8]) {}
}

const ME: NodeNo = NodeNo(0);
const OTHER: NodeNo = NodeNo(1);
/// Slots from this one on have other chains than those before it.
const SECOND: u16 = 8192;

/// The ring has only the other node.
fn mapping(epoch: u64, first: &[NodeNo], second: &[NodeNo]) -> Arc<Mapping> {
    let mut mapping = Mapping::new(1);
    for no in [ME, OTHER] {
        let member = Member {
            id: NodeId([no.0 as u8; 20]),
            incarnation: 1,
            peer: "127.0.0.1:1".into(),
            plain: String::new(),
            cluster: String::new(),
            zone: String::new(),
            weight: 100,
            workers: 1,
            drains: no == ME,
            folder: Default::default(),
        };
        mapping.members.insert(no, member);
    }
    (mapping.epoch, mapping.next) = (epoch, 2);
    mapping.ring.join(OTHER, 100, "");
    let chain = |members: &[NodeNo]| Chain {
        members: Members::of(members).expect("few"),
        learner: None,
        since: epoch,
        lost: 0,
        phase: Default::default(),
        born: 1,
    };
    let chains = [(0..SECOND, chain(first)), (SECOND..16384, chain(second))];
    mapping.chains = Chains::of_ranges(chains).expect("sound");
    Arc::new(mapping)
}

fn replica(first: &[NodeNo], second: &[NodeNo]) -> Replica {
    let mut replica = Replica::new(ME, 0, 1, 1, 1_000_000, None);
    let taken = replica.take_up(&mapping(1, first, second), &mut Nowhere, 0);
    assert_eq!(taken, Ok(true));
    replica
}

fn write(replica: &mut Replica, slot: u16) {
    replica.append(slot, Arc::from(*b"effect"), &mut Nowhere);
}

#[test]
fn what_was_acknowledged_is_not_lost_though_writes_before_it_wait() {
    let mut replica = replica(&[ME], &[ME, OTHER]);
    write(&mut replica, SECOND);
    write(&mut replica, 0);
    assert_eq!(replica.settled(), 0, "they are told of in their order");
    let taken = replica.take_up(&mapping(9, &[OTHER], &[ME, OTHER]), &mut Nowhere, 0);
    assert_eq!(taken, Ok(true));
    assert!(!replica.take_lost());
    assert_eq!(replica.settled(), 0);
    // A mapping that names the other node is.
    let taken = replica.take_up(&mapping(19, &[OTHER], &[OTHER]), &mut Nowhere, 0);
    assert_eq!(taken, Ok(true));
    assert!(replica.take_lost());
}

#[test]
fn it_may_go_where_nobody_waits_for_its_writes() {
    let mut replica = replica(&[ME, OTHER], &[ME, OTHER]);
    write(&mut replica, SECOND);
    let may_go = |replica: &Replica| -> Vec<u16> {
        let synced = replica.synced();
        let mine = synced.filter(|(_, no, _)| *no == ME);
        mine.map(|(slot, ..)| slot).collect()
    };
    assert_eq!(may_go(&replica), [0; 0], "a head does not go");
    let taken = replica.take_up(&mapping(2, &[OTHER, ME], &[OTHER, ME]), &mut Nowhere, 0);
    assert_eq!(taken, Ok(true));
    let slots = may_go(&replica);
    assert_eq!(slots.len(), 16383);
    assert!(!slots.contains(&SECOND));
    assert!(replica.synced().all(|(_, _, since)| since == 2));
}
