//! Turns of a worker whose slots other nodes have, too.

use crate::workers::{COMMANDS, NOW, SEED, TestProgram, write};
use rufous_base::WorkerId;
use rufous_chain::Message;
use rufous_kernel::Worker;
use rufous_kernel::placement::Placement;
use rufous_kernel::worker::ChainSettings;
use rufous_mapping::{Chain, Chains, Mapping, Member, Members, NodeId, NodeNo};
use std::sync::Arc;

/// A node of two that share all slots, without a log.
#[test]
fn without_a_log_a_write_goes_along_its_chain_in_its_turn() {
    let member = |n: u8| Member {
        id: NodeId([n; 20]),
        incarnation: 1,
        peer: String::new(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        workers: 1,
        drains: false,
    };
    let both = [NodeNo(0), NodeNo(1)];
    let chain = Chain {
        members: Members::of(&both).expect("few"),
        learner: None,
        born: 1,
        since: 1,
    };
    let mapping = Arc::new(Mapping {
        epoch: 1,
        members: (0..2).map(|n| (NodeNo(n.into()), member(n))).collect(),
        next: 2,
        chains: Chains::of_ranges([(0..16384, chain)]).expect("all slots"),
        ..Mapping::new(2)
    });
    let mut worker = Worker::<TestProgram>::new(WorkerId(0), Placement::new(1), COMMANDS, SEED);
    worker.join_chains(ChainSettings {
        incarnation: 1,
        lease_us: 1_000_000,
        has_run: false,
        move_rate: 0,
    });
    worker.on_mapping(NOW, &mapping, Some(NodeNo(0)));
    worker.end_turn(NOW);
    worker.take_peer_messages();

    write(&mut worker.shard, 0, b"key", 7);
    let gate = worker.end_turn(NOW);
    assert!(gate.is_some(), "its reply waits for the other node");
    let said = worker.take_peer_messages();
    let items = said
        .iter()
        .filter(|said| matches!(said.envelope.message, Message::Items { .. }));
    assert_eq!(
        items.count(),
        1,
        "without waiting for a later turn: {said:?}"
    );
}
