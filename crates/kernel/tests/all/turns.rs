//! Turns of a worker whose slots other nodes have, too.

use crate::workers::{COMMANDS, NOW, SEED, TRANSFER, TestProgram, write};
use rufous_base::{Args, ConnId, Output, WorkerId};
use rufous_chain::Message;
use rufous_kernel::batch::{Door, Header};
use rufous_kernel::placement::Placement;
use rufous_kernel::shard::WatchId;
use rufous_kernel::worker::{ChainSettings, Past};
use rufous_kernel::{Message as Between, Outcome, Submitted, Worker};
use rufous_mapping::{Chain, Chains, Mapping, Member, Members, NodeId, NodeNo};
use std::sync::Arc;

/// Nodes 0 and 1, the first with so many workers; all slots have this chain since this epoch.
fn mapping_with(
    workers: u16,
    epoch: u64,
    members: &[NodeNo],
    learner: Option<NodeNo>,
) -> Arc<Mapping> {
    let member = |n: u8| Member {
        id: NodeId([n; 20]),
        incarnation: 1,
        peer: String::new(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        workers: if n == 0 { workers } else { 1 },
        drains: false,
        folder: Default::default(),
    };
    let chain = Chain {
        members: Members::of(members).expect("few"),
        learner,
        born: 1,
        since: epoch,
        lost: 0,
        phase: Default::default(),
    };
    Arc::new(Mapping {
        epoch,
        members: (0..2).map(|n| (NodeNo(n.into()), member(n))).collect(),
        next: 2,
        chains: Chains::of_ranges([(0..16384, chain)]).expect("all slots"),
        ..Mapping::new(2)
    })
}

fn mapping(epoch: u64, members: &[NodeNo], learner: Option<NodeNo>) -> Arc<Mapping> {
    mapping_with(1, epoch, members, learner)
}

fn worker() -> Worker<TestProgram> {
    worker_of(0, 1)
}

/// One of so many workers.
fn worker_of(id: u16, workers: usize) -> Worker<TestProgram> {
    let (id, placement) = (WorkerId(id), Placement::new(workers));
    let mut worker = Worker::<TestProgram>::new(id, placement, COMMANDS, SEED);
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

/// Two keys of the second worker.
fn keys_of_another() -> [Vec<u8>; 2] {
    let placement = Placement::new(2);
    let tags = (0..).map(|n| format!("{{{n}}}").into_bytes());
    let mut there = tags.filter(|tag| placement.owner(tag) == WorkerId(1));
    let tag = there.next().expect("it has slots");
    [b"a", b"b"].map(|name| [&tag[..], name].concat())
}

/// A node leaves a slot between the execution of a command and the arrival of its writes: nothing
/// keeps them any more.
#[test]
fn a_command_is_not_answered_as_done_if_its_slot_has_left_before_its_writes() {
    let mut workers = [worker_of(0, 2), worker_of(1, 2)];
    let alone = mapping_with(2, 1, &[NodeNo(0)], None);
    for worker in &mut workers {
        worker.on_mapping(NOW, &alone, Some(NodeNo(0)));
        worker.end_turn(NOW);
    }
    let keys = keys_of_another();
    let words: [&[u8]; 4] = [b"c", &keys[0], &keys[1], &7_i64.to_le_bytes()];
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    for word in words {
        spans.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word);
    }
    let header = Header {
        conn: ConnId {
            slot: 3,
            generation: 0,
        },
        client: 1,
        seq: 0,
        command: TRANSFER,
        db: 0,
        resp3: false,
        no_touch: false,
        quiet: false,
        door: Door::default(),
        key: 1,
        hash: workers[0].shard.key(&keys[0]).hash,
        strict_in: None,
    };
    let (args, named) = (Args::new(&bytes, &spans, &mut []), [(0, 1), (0, 2)]);
    let submitted = workers[0].submit_many(NOW, &header, &named, args, &mut Output::default());
    assert_eq!(submitted, Submitted::Barrier);
    let (mut has_left, mut outcomes) = (false, Vec::new());
    for _ in 0..10 {
        for (from, to) in [(0, 1), (1, 0)] {
            workers[from].settle(NOW);
            outcomes.extend(std::iter::from_fn(|| workers[from].next_outcome()));
            let mut messages = Vec::new();
            workers[from].take_messages(|_, message| messages.push(message));
            for message in messages {
                if let Between::Release(_) = message {
                    let (one, other) = (NodeNo(0), NodeNo(1));
                    let chains = [
                        (&[one][..], Some(other)),
                        (&[one, other], None),
                        (&[other, one], None),
                    ];
                    for (epoch, (members, learner)) in (2..).zip(chains) {
                        let next = mapping_with(2, epoch, members, learner);
                        workers[to].on_mapping(NOW, &next, Some(one));
                    }
                    has_left = true;
                }
                workers[to].on_message(NOW, WorkerId(from as u16), message);
            }
            workers[to].end_turn(NOW);
        }
    }
    assert!(has_left, "the writes went to the other worker");
    let is_lost = |of: &&Outcome| matches!(of, Outcome::Lost(header) if header.client == 1);
    assert_eq!(outcomes.iter().filter(is_lost).count(), 1, "{outcomes:?}");
    let is_done = |of: &&Outcome| matches!(of, Outcome::Replies(batch) if !batch.is_doubtful);
    assert_eq!(outcomes.iter().filter(is_done).count(), 0, "{outcomes:?}");
    assert_eq!(workers[1].waiting(), 0, "its keys are held no longer");
}
