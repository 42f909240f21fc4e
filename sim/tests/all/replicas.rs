//! The oracles of the levels are tested, too: what each level does is switched
//! off, and has to be missed within a stated number of seeds; and without that
//! no seed fails.

use crate::common::caught_saying;
use rufous_sim::engine::{self, Fault, keep_panics_quiet};
use rufous_sim::replicas::World;
use rufous_sim::replicas::plan::Mode;

/// Looks for a seed below `within` that fails with the fault alone, and says so.
#[track_caller]
fn caught(fault: &str, mode: &str, what: &str, within: u64) {
    let mode = Mode::named(mode).expect("a level");
    caught_saying::<World>(fault, &Some(mode), what, 0..within);
}

const NO_ORDER: &str = "there is no order of these writes";

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
fn reads_that_a_session_does_not_keep() {
    for mode in ["monotonic-reads", "pram", "causal"] {
        caught("reads-not-kept", mode, NO_ORDER, 50);
    }
}

#[test]
fn writes_that_a_session_does_not_keep() {
    for mode in ["read-your-writes", "pram", "causal"] {
        caught("writes-not-kept", mode, NO_ORDER, 50);
    }
}

#[test]
fn writes_that_may_be_below_earlier_ones() {
    caught("not-above-own-writes", "monotonic-writes", NO_ORDER, 50);
}

#[test]
fn writes_that_may_be_below_what_was_read() {
    caught("not-above-reads", "writes-follow-reads", NO_ORDER, 50);
}

#[test]
fn an_epoch_that_is_not_taken_together() {
    let what = "was written before what the reader had read";
    caught("epoch-in-parts", "monotonic-writes", what, 50);
}

#[test]
fn changes_before_what_they_depend_on() {
    caught("cut-not-kept", "cut", "was in the past of the read", 50);
}

#[test]
fn transactions_without_a_stamp_of_their_own() {
    caught("stamp-per-write", "read-uncommitted", NO_ORDER, 50);
}

#[test]
fn transactions_that_write_before_they_commit() {
    let mode = "read-committed";
    caught("writes-at-once", mode, "which was rolled back", 50);
    caught("writes-at-once", mode, "which its transaction replaced", 50);
}

#[test]
fn items_that_are_read_anew() {
    caught("reads-not-cached", "item-cut", "and then v", 50);
}

#[test]
fn removals_that_are_forgotten_at_once() {
    caught("forgotten-early", "shared", "again", 100);
}

#[test]
fn removals_that_are_forgotten_while_a_snapshot_is_made() {
    caught("snapshot-misses-forgotten", "shared", "again", 100);
}

#[test]
fn counts_that_go_with_removals_that_do_not_name_them() {
    caught("end-takes-counts", "shared", "has lost", 100);
}

#[test]
fn changes_that_others_are_not_told() {
    caught("change-not-sent", "shared", "after quiet", 50);
    caught("change-not-sent", "eventual", "after quiet", 50);
}
