//! The scenario of nodes that share lattice keyspaces: some seeds pass, and each mechanism, switched off, is missed.

use crate::common::{caught_saying, run};
use rufous_sim::engine::probes::Probes;
use rufous_sim::engine::{self, Fault, Scenario, keep_panics_quiet};
use rufous_sim::gossip::World;
use rufous_sim::gossip::plan::Mode;
use std::ops::Range;

/// Looks among these seeds for one that fails with the fault alone, and says so.
#[track_caller]
fn caught_in(mode: &str, fault: &str, what: &str, seeds: Range<u64>) {
    let mode = Mode::named(mode).expect("a mode");
    caught_saying::<World>(fault, &Some(mode), what, seeds);
}

#[track_caller]
fn caught(fault: &str, seeds: Range<u64>) {
    caught_in("shared", fault, "", seeds);
}

#[test]
fn some_seeds_pass_and_reach_what_is_rare() {
    keep_panics_quiet();
    let mut reached = Probes::default();
    for seed in 0..60 {
        let report = run::<World>(seed);
        assert_eq!(report.failure, None, "seed {seed}");
        reached.merge(&report.probes);
    }
    for seed in 0..12 {
        let report = engine::run::<World>(seed, &Some(Mode::Cut), Fault::None, false);
        reached.merge(&report.probes);
    }
    let missing = reached.missing(World::ABOUT.probes);
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_level_keeps_what_it_promises() {
    keep_panics_quiet();
    for mode in Mode::ALL {
        for seed in 0..20 {
            let report = engine::run::<World>(seed, &Some(mode), Fault::None, false);
            assert_eq!(report.failure, None, "seed {seed}, {}", mode.name());
            let again = engine::run::<World>(seed, &Some(mode), Fault::None, false);
            assert_eq!(report.hash, again.hash, "seed {seed}, {}", mode.name());
        }
    }
}

#[test]
fn nodes_that_start_while_others_are_away_lose_nothing_and_undo_nothing() {
    keep_panics_quiet();
    let mode = Some(Mode::Away);
    let mut served = 0;
    for seed in 0..60 {
        let report = engine::run::<World>(seed, &mode, Fault::None, true);
        assert_eq!(report.failure, None, "seed {seed}");
        let excuses = |line: &&String| line.contains("does not wait for");
        served += report.lines.iter().filter(excuses).count();
    }
    assert!(
        served > 100,
        "only {served} starts met nodes that were away"
    );
}

#[test]
fn a_clock_that_is_ahead_of_what_others_admit() {
    keep_panics_quiet();
    let mode = Mode::named("ahead").expect("a mode");
    for seed in 0..30 {
        let report = engine::run::<World>(seed, &Some(mode), Fault::None, false);
        assert_eq!(report.failure, None, "seed {seed}");
    }
    caught_in("ahead", "lead-admitted", "lead its wall clock", 0..10);
}

#[test]
fn an_epoch_that_is_not_taken_together() {
    let what = "was written before what the reader had read";
    for mode in ["monotonic-writes", "pram"] {
        caught_in(mode, "epoch-in-parts", what, 0..50);
    }
}

#[test]
fn changes_before_what_they_depend_on() {
    let what = "was in the past of the read";
    caught_in("cut", "cut-not-kept", what, 0..50);
}

#[test]
fn what_a_node_had_sent_that_is_away_and_others_do_not_send_on() {
    caught_in("cut", "relay-not-sent", "is away", 0..200);
}

#[test]
fn sessions_that_go_on_where_something_is_missing() {
    for mode in ["read-your-writes", "pram", "cut"] {
        caught_in(mode, "session-not-awaited", "there is no order", 0..20);
        caught_in(mode, "own-not-seen", "there is no order", 0..20);
    }
    caught_in("monotonic-reads", "open-not-seen", "was read before", 0..50);
}

#[test]
fn the_first_node_that_starts_among_others_as_if_it_were_alone() {
    caught_in("saved", "join-unnoticed", "does not serve", 0..20);
}

#[test]
fn removals_that_are_forgotten_at_once() {
    caught_in("saved", "forgotten-early", "again", 0..100);
}

#[test]
fn removals_that_are_forgotten_while_a_snapshot_is_made() {
    caught_in("saved", "snapshot-misses-forgotten", "again", 0..100);
}

#[test]
fn counts_that_go_with_removals_that_do_not_name_them() {
    caught_in("saved", "end-takes-counts", "has lost", 0..100);
}

#[test]
fn changes_that_others_are_not_told() {
    for mode in ["shared", "eventual"] {
        caught_in(mode, "change-not-sent", "after quiet", 0..50);
    }
}

#[test]
fn what_is_not_acknowledged_and_not_sent_again() {
    caught("not-sent-again", 0..20);
}

#[test]
fn what_was_missed_and_is_not_compared() {
    caught("not-compared", 0..20);
}

#[test]
fn forgetting_without_waiting_for_other_nodes() {
    caught("node-not-awaited", 0..40);
}

#[test]
fn logs_that_do_not_have_what_was_said_to_be_known() {
    caught("told-not-logged", 0..100);
}

#[test]
fn members_that_come_back_with_what_they_had() {
    caught("keeps-old-data", 0..20);
}

#[test]
fn nodes_that_serve_before_they_have_heard() {
    caught("serves-at-once", 0..100);
}

#[test]
fn reports_whose_date_is_not_logged() {
    caught_in("away", "report-not-logged", "", 0..60);
}

#[test]
fn new_nodes_that_serve_although_they_reach_none_that_does() {
    caught_in("away", "new-serves-alone", "", 0..60);
}

/// Seeds whose clients set deadlines.
#[test]
fn deadlines_that_write_the_value_anew() {
    caught_in("shared", "deadline-writes-value", "not from", 8..32);
    let what = "again, which a write that was acknowledged had replaced";
    caught_in("shared", "deadline-writes-value", what, 8..48);
}

#[test]
fn nodes_that_are_no_members_any_more_and_are_awaited() {
    caught("gone-awaited", 0..10);
}
