//! Turns of a worker whose slots other nodes have, too.

use crate::workers::{COMMANDS, NOW, SEED, TestProgram, write};
use rufous_base::WorkerId;
use rufous_chain::Message;
use rufous_kernel::Worker;
use rufous_kernel::placement::Placement;
use rufous_kernel::shard::WatchId;
use rufous_kernel::worker::{ChainSettings, Past};
use rufous_mapping::{Chain, Chains, Mapping, Member, Members, NodeId, NodeNo};
use std::sync::Arc;

/// Nodes 0 and 1; all slots have this chain since this epoch.
fn mapping(epoch: u64, members: &[NodeNo], learner: Option<NodeNo>) -> Arc<Mapping> {
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
    let chain = Chain {
        members: Members::of(members).expect("few"),
        learner,
        born: 1,
        since: epoch,
    };
    Arc::new(Mapping {
        epoch,
        members: (0..2).map(|n| (NodeNo(n.into()), member(n))).collect(),
        next: 2,
        chains: Chains::of_ranges([(0..16384, chain)]).expect("all slots"),
        ..Mapping::new(2)
    })
}

fn worker() -> Worker<TestProgram> {
    let mut worker = Worker::<TestProgram>::new(WorkerId(0), Placement::new(1), COMMANDS, SEED);
    worker.join_chains(ChainSettings {
        incarnation: 1,
        lease_us: 1_000_000,
        has_run: false,
        move_rate: 0,
        past: Past::Unknown,
    });
    worker
}

/// A key that is watched, and whose slot is another node's at EXEC.
#[test]
fn a_watched_key_that_is_not_served_here_any_more_fails_the_transaction() {
    let mut worker = worker();
    worker.on_mapping(NOW, &mapping(1, &[NodeNo(0)], None), Some(NodeNo(0)));
    worker.end_turn(NOW);
    let watched = [(0, b"key"[..].into())];
    let id = WatchId(1);
    let key = worker.shard.key(b"key");
    worker.shard.watch(0, key, id, NOW);
    assert!(
        !worker.is_dirty_here(id, &watched, NOW),
        "it is served here"
    );
    let next = mapping(2, &[NodeNo(0)], Some(NodeNo(1)));
    worker.on_mapping(NOW, &next, Some(NodeNo(0)));
    assert!(
        worker.is_dirty_here(id, &watched, NOW),
        "it waits for the lease of the other node"
    );
}

/// A node of two that share all slots, without a log.
#[test]
fn without_a_log_a_write_goes_along_its_chain_in_its_turn() {
    let both = [NodeNo(0), NodeNo(1)];
    let mut worker = worker();
    worker.on_mapping(NOW, &mapping(1, &both, None), Some(NodeNo(0)));
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
