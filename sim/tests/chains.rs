//! The world of chains: some seeds pass, each twice alike; each planted fault
//! is caught; and the search for an order that judges the other worlds judges
//! these histories alike.

use rufous_chain::planted::Planted;
use rufous_resp::Reply;
use rufous_sim::chains::faults::Fault;
use rufous_sim::chains::oracle::{self, Operation, What};
use rufous_sim::chains::{self, PROBES};
use rufous_sim::clock::Clock;
use rufous_sim::history::{History, Kind, Outcome, Record, Unit};
use rufous_sim::model::act::{Act, End};
use rufous_sim::model::{Op, Step, World};
use rufous_sim::oracle::linear;
use rufous_sim::runs;
use std::collections::BTreeSet;

#[test]
fn some_seeds_pass_and_reach_what_is_rare() {
    let mut reached = BTreeSet::new();
    let (mut epochs, mut acknowledged, mut reads) = (0, 0, 0);
    for seed in 0..40 {
        let report = chains::run(seed, Fault::None, false);
        assert_eq!(report.failure, None, "seed {seed}");
        epochs += report.epochs;
        (acknowledged, reads) = (acknowledged + report.acknowledged, reads + report.reads);
        reached.extend(report.probes.into_keys());
    }
    assert!(
        epochs > 400 && acknowledged > 8_000 && reads > 8_000,
        "{epochs}, {acknowledged}, {reads}"
    );
    let missing: Vec<_> = PROBES
        .iter()
        .filter(|probe| !reached.contains(*probe))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [3, 8] {
        let run = || chains::run(seed, Fault::None, true);
        let (one, other) = (run(), run());
        assert_eq!((one.hash, &one.lines), (other.hash, &other.lines));
        assert!(one.lines.len() > 10);
    }
}

#[track_caller]
fn caught(fault: Fault, within: u64) {
    runs::keep_panics_quiet();
    let failure = |seed, fault| chains::run(seed, fault, false).failure;
    let found = (0..within)
        .find(|seed| failure(*seed, fault).is_some() && failure(*seed, Fault::None).is_none());
    assert!(found.is_some(), "{fault:?} is not caught by {within} seeds");
}

#[test]
fn a_chain_that_acts_before_leases_have_run_out() {
    caught(Fault::Planted(Planted::NotOutwaited), 100);
}

#[test]
fn leases_that_a_start_forgets() {
    caught(Fault::Planted(Planted::GrantsForgotten), 400);
}

#[test]
fn leases_that_bring_chains_to_life_again() {
    caught(Fault::Planted(Planted::GrantsUnknowing), 400);
}

#[test]
fn a_learner_that_is_reported_too_early() {
    caught(Fault::Planted(Planted::LearnedEarly), 100);
}

#[test]
fn a_new_head_that_asks_nobody() {
    caught(Fault::Planted(Planted::NotHandedOver), 100);
}

#[test]
fn an_acknowledgement_for_others() {
    caught(Fault::Planted(Planted::AckedEarly), 100);
}

#[test]
fn messages_of_an_earlier_chain() {
    caught(Fault::Planted(Planted::OldChainTaken), 200);
}

#[test]
fn answers_without_a_lease() {
    caught(Fault::Planted(Planted::NoLease), 100);
}

#[test]
fn a_link_after_which_nobody_repeats() {
    caught(Fault::Planted(Planted::NotRepeated), 100);
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
    runs::keep_panics_quiet();
    let (mut fine, mut wrong) = (0, 0);
    for seed in 0..4 {
        for fault in [
            Fault::None,
            Fault::Planted(Planted::AckedEarly),
            Fault::Planted(Planted::NoLease),
        ] {
            let report = chains::run(seed, fault, false);
            for (place, (operations, list)) in &report.histories {
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
