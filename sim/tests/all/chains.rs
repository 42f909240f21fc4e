//! The scenario of chains: some seeds pass; each planted fault is caught; and the search for an
//! order that judges the other scenarios judges these histories alike.

use crate::common::{first, run};
use rufous_chain::planted::{self, Planted};
use rufous_chain::{Envelope, Item, Message, Peer, Replica, Store};
use rufous_mapping::planted as planner;
use rufous_mapping::{Chain, Chains, Mapping, Member, Members, NodeId, NodeNo};
use rufous_resp::Reply;
use rufous_sim::chains;
use rufous_sim::chains::oracle::{self, Operation, What};
use rufous_sim::engine::clock::Clock;
use rufous_sim::engine::probes::Probes;
use rufous_sim::engine::{Fault, Scenario, keep_panics_quiet, run_world};
use rufous_sim::history::{History, Kind, Outcome, Record, Unit};
use rufous_sim::model::act::{Act, End};
use rufous_sim::model::{Op, Step, World};
use rufous_sim::oracle::linear;
use std::sync::Arc;

#[test]
fn some_seeds_pass_and_reach_what_is_rare() {
    let mut reached = Probes::default();
    let (mut epochs, mut acknowledged, mut reads) = (0, 0, 0);
    for seed in 0..40 {
        let report = run::<chains::World>(seed);
        assert_eq!(report.failure, None, "seed {seed}");
        epochs += report.count("epochs");
        acknowledged += report.count("acknowledged writes");
        reads += report.count("reads");
        reached.merge(&report.probes);
    }
    assert!(
        epochs > 400 && acknowledged > 8_000 && reads > 8_000,
        "{epochs}, {acknowledged}, {reads}"
    );
    let missing = reached.missing(chains::World::ABOUT.probes);
    assert!(missing.is_empty(), "{missing:?}");
}

#[track_caller]
fn caught(fault: Fault, within: u64) {
    crate::common::caught::<chains::World>(&fault.name(), 0..within);
}

#[test]
fn a_chain_that_acts_before_leases_have_run_out() {
    caught(Fault::Chain(Planted::NotOutwaited), 100);
}

#[test]
fn leases_that_a_start_forgets() {
    caught(Fault::Chain(Planted::GrantsForgotten), 400);
}

#[test]
fn leases_that_bring_chains_to_life_again() {
    caught(Fault::Chain(Planted::GrantsUnknowing), 400);
}

#[test]
fn a_learner_that_is_reported_too_early() {
    caught(Fault::Chain(Planted::LearnedEarly), 100);
}

#[test]
fn a_first_node_that_continues_with_an_emptied_folder() {
    caught(Fault::Mapping(planner::Planted::FirstBack), 100);
}

#[test]
fn a_member_that_is_dropped_before_the_others_confirm() {
    let fault = Fault::Mapping(planner::Planted::DroppedAtOnce);
    crate::common::caught::<chains::World>(&fault.name(), first(173, 0..200));
}

#[test]
fn a_restart_that_is_not_noticed() {
    caught(Fault::Mapping(planner::Planted::RestartUnnoticed), 100);
}

#[test]
fn a_slot_without_any_copy_that_continues_as_if_it_had_one() {
    caught(Fault::Mapping(planner::Planted::NotBornAgain), 20);
}

#[test]
fn a_new_head_that_asks_nobody() {
    caught(Fault::Chain(Planted::NotHandedOver), 100);
}

/// Whether the head of a new chain answers: when it has taken over what the other
/// one has, and when that one has acknowledged it.
fn answers_of_a_new_head() -> [bool; 2] {
    let (mut store, item) = (Applied::default(), written());
    let mut replica = Replica::new(NodeNo(0), 0, 1, 1, 1_000_000, None);
    let taken = replica.take_up(&of_two(1), &mut store, 0);
    assert_eq!(taken, Ok(true));
    let (slot, since, seq) = (7, 1, 1);
    let items = vec![item];
    let mut says = |message| {
        let envelope = Envelope { epoch: 1, message };
        replica.receive(worker_of(1), envelope, &mut store, 0);
        replica.serves(slot, 0).is_ok()
    };
    says(Message::Grant { asked_us: 0 });
    let took_over = says(Message::State {
        slot,
        since,
        seq,
        items,
    });
    [took_over, says(Message::Ack { slot, since, seq })]
}

/// Two have to stop at the right moment for this to do harm.
#[test]
fn a_new_head_that_shows_what_others_may_not_have() {
    assert_eq!(answers_of_a_new_head(), [false, true]);
    planted::plant(Some(Planted::TakenOverShown));
    let answers = answers_of_a_new_head();
    planted::plant(None);
    assert_eq!(answers, [true, true]);
}

#[test]
fn an_acknowledgement_for_others() {
    caught(Fault::Chain(Planted::AckedEarly), 100);
}

/// What was applied, in order.
#[derive(Default)]
struct Applied(Vec<Vec<u8>>);

impl Store for Applied {
    fn apply(&mut self, _slot: u16, effect: &[u8]) {
        self.0.push(effect.to_vec());
    }

    fn clear(&mut self, _slot: u16) -> bool {
        self.0.clear();
        true
    }

    fn begin_copy(&mut self, _slot: u16) {}

    fn end_copy(&mut self, _slot: u16) {}

    fn note(&mut self, _slot: u16, _effect: &[u8]) {}

    fn copy(&mut self, _slot: u16) -> Option<Vec<u8>> {
        None
    }

    fn load(&mut self, slot: u16, chunk: &[u8]) {
        self.apply(slot, chunk);
    }
}

/// Two nodes with one chain, which came into force in this epoch.
fn of_two(epoch: u64) -> Arc<Mapping> {
    let mut mapping = Mapping::new(2);
    for n in 0..2 {
        let member = Member {
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
        };
        mapping.members.insert(NodeNo(n.into()), member);
    }
    (mapping.epoch, mapping.next) = (epoch, 2);
    let chain = Chain {
        members: Members::of(&[NodeNo(0), NodeNo(1)]).expect("two"),
        learner: None,
        born: 1,
        since: epoch,
        lost: 0,
        phase: Default::default(),
    };
    mapping.chains = Chains::of_ranges([(0..16384, chain)]).expect("all slots");
    Arc::new(mapping)
}

/// A node's one worker.
fn worker_of(node: u16) -> Peer {
    let (node, worker) = (NodeNo(node), 0);
    Peer { node, worker }
}

fn written() -> Item {
    Item {
        seq: 1,
        effect: [1, 2, 3].into(),
    }
}

/// What the second node applies of a write that the first says was done in
/// this epoch's chain.
fn applied_of(since: u64) -> usize {
    let mut store = Applied::default();
    let mut replica = Replica::new(NodeNo(1), 0, 1, 1, 1_000_000, None);
    for epoch in 1..=2 {
        let taken = replica.take_up(&of_two(epoch), &mut store, 0);
        assert_eq!(taken, Ok(true));
    }
    let message = Message::Items {
        slot: 7,
        since,
        all: 1,
        items: vec![written()],
    };
    replica.receive(worker_of(0), Envelope { epoch: 2, message }, &mut store, 0);
    store.0.len()
}

/// Seldom enough that few seeds do harm by it.
#[test]
fn messages_of_an_earlier_chain() {
    assert_eq!((applied_of(2), applied_of(1)), (1, 0));
    planted::plant(Some(Planted::OldChainTaken));
    let taken = applied_of(1);
    planted::plant(None);
    assert_eq!(taken, 1);
}

/// Nobody acts by what cannot come after what is in force, nor by what counts
/// on an earlier life of the node.
#[test]
fn epochs_that_cannot_follow_are_not_taken_up() {
    let mut store = Applied::default();
    let mut replica = Replica::new(NodeNo(1), 0, 1, 1, 1_000_000, None);
    let mut earlier = Replica::new(NodeNo(1), 0, 1, 2, 1_000_000, None);
    assert_eq!(earlier.take_up(&of_two(1), &mut store, 0), Ok(false));
    assert_eq!(replica.take_up(&of_two(1), &mut store, 0), Ok(true));
    for epoch in [2, 5] {
        let mut lost = Mapping::clone(&of_two(epoch));
        let nobody = Chain {
            since: epoch,
            phase: Default::default(),
            ..Chain::default()
        };
        lost.chains = Chains::of_ranges([(0..16384, nobody)]).expect("all slots");
        let taken = replica.take_up(&Arc::new(lost), &mut store, 0);
        assert!(taken.is_err() && replica.epoch() == 1, "{taken:?}");
    }
    assert_eq!(replica.take_up(&of_two(5), &mut store, 0), Ok(true));
    assert_eq!(replica.take_up(&of_two(4), &mut store, 0), Ok(false));
    assert_eq!(replica.epoch(), 5);
}

#[test]
fn answers_without_a_lease() {
    caught(Fault::Chain(Planted::NoLease), 100);
}

#[test]
fn leases_that_count_for_the_workers_beside() {
    caught(Fault::Chain(Planted::LeaseOfNode), 300);
}

#[test]
fn a_link_after_which_nobody_repeats() {
    caught(Fault::Chain(Planted::NotRepeated), 300);
}

#[test]
fn a_second_copy_over_the_first() {
    caught(Fault::Chain(Planted::CopiedOver), 300);
}

#[test]
fn a_copy_with_parts_missing() {
    caught(Fault::Chain(Planted::PartsNotCounted), 300);
}

#[test]
fn epochs_that_former_peers_are_not_told() {
    caught(Fault::Chain(Planted::FormerNotTold), 20);
}

/// The bound of clocks is one: beyond it two nodes do answer.
#[test]
fn clocks_that_are_worse_than_allowed() {
    caught(Fault::Drift, 200);
}

/// What the search says of a list, and whether it gave up.
fn searched(operations: &[Operation], list: &[u32]) -> (bool, bool) {
    let key = b"list".to_vec();
    let unit = Unit {
        kind: Kind::List,
        db: 0,
        keys: vec![key],
    };
    let mut history = History::new(vec![unit]);
    let name = |value: &u32| value.to_string().into_bytes();
    // What there is after quiet is one more read.
    let last = Operation {
        what: What::Read(list.to_vec()),
        began: u64::MAX - 2,
        ended: Some(u64::MAX - 1),
    };
    for (number, operation) in operations.iter().chain([&last]).enumerate() {
        let (act, outcome) = match (&operation.what, operation.ended) {
            (What::Append(value), ended) => {
                let at = list.iter().position(|had| had == value);
                let outcome = match (ended, at) {
                    (Some(_), at) => {
                        Outcome::Seen(Reply::Integer(at.map_or(0, |at| at as i64 + 1)))
                    }
                    (None, Some(_)) => Outcome::Open,
                    (None, None) => Outcome::Refused,
                };
                (Act::Push(0, End::Right, vec![name(value)]), outcome)
            }
            (What::Read(_), None) => (Act::LRange(0), Outcome::Refused),
            (What::Read(read), Some(_)) => {
                let values = read.iter().map(|value| Reply::Bulk(name(value))).collect();
                (Act::LRange(0), Outcome::Seen(Reply::Array(values)))
            }
        };
        history.add(
            0,
            0,
            Record {
                op: Op::One(Step::Act(act)),
                outcome,
                connection: number as u64,
                order: 0,
                asked_us: operation.began,
                answered_us: operation.ended.unwrap_or(u64::MAX),
            },
        );
    }
    let clock = Clock::default();
    let world = World {
        clock: &clock,
        evicts: false,
    };
    let verdict = linear::check(&history, 0, &world, u64::MAX);
    (verdict.failure.is_none(), verdict.unsure)
}

#[test]
fn the_search_for_an_order_judges_alike() {
    keep_panics_quiet();
    let (mut fine, mut wrong) = (0, 0);
    for seed in 0..4 {
        for fault in [
            Fault::None,
            Fault::Chain(Planted::AckedEarly),
            Fault::Chain(Planted::NoLease),
        ] {
            let (_, world) = run_world::<chains::World>(seed, &(), fault, false);
            for (place, (operations, list)) in &world.histories() {
                let (found, unsure) = searched(operations, list);
                if unsure {
                    continue;
                }
                let judged = oracle::judge(operations, list);
                assert_eq!(
                    judged.is_ok(),
                    found,
                    "seed {seed}, {fault:?}, {place:?}: {judged:?}"
                );
                *(if found { &mut fine } else { &mut wrong }) += 1;
            }
        }
    }
    assert!(fine > 10 && wrong > 0, "{fine} fine, {wrong} wrong");
}
