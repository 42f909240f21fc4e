//! The scenario of nodes that share lattice keyspaces: some seeds pass, and each mechanism, switched off, is missed.

use crate::common::{caught, run};
use rufous_sim::engine::probes::Probes;
use rufous_sim::engine::{Scenario, keep_panics_quiet};
use rufous_sim::gossip::World;

#[test]
fn some_seeds_pass_and_reach_what_is_rare() {
    keep_panics_quiet();
    let mut reached = Probes::default();
    for seed in 0..60 {
        let report = run::<World>(seed);
        assert_eq!(report.failure, None, "seed {seed}");
        reached.merge(&report.probes);
    }
    let missing = reached.missing(World::ABOUT.probes);
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn what_is_not_acknowledged_and_not_sent_again() {
    caught::<World>("not-sent-again", 0..20);
}

#[test]
fn what_was_missed_and_is_not_compared() {
    caught::<World>("not-compared", 0..20);
}

#[test]
fn forgetting_without_waiting_for_other_nodes() {
    caught::<World>("node-not-awaited", 0..40);
}

#[test]
fn logs_that_do_not_have_what_was_said_to_be_known() {
    caught::<World>("told-not-logged", 0..100);
}

#[test]
fn members_that_come_back_with_what_they_had() {
    caught::<World>("keeps-old-data", 0..20);
}

#[test]
fn nodes_that_serve_before_they_have_heard() {
    caught::<World>("serves-at-once", 0..60);
}
