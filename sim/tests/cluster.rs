//! Seeds of the world of clusters that failed once, and faults on purpose, each of
//! which has to be caught within so many seeds.

use rufous_sim::cluster::faults::Fault;
use rufous_sim::cluster::run;
use rufous_sim::runs;
use std::ops::Range;

fn failure(seed: u64, fault: Fault) -> Option<String> {
    run(seed, fault, false).failure
}

/// Looks for a seed of these that fails with the fault alone.
#[track_caller]
fn caught(fault: &str, seeds: Range<u64>) {
    runs::keep_panics_quiet();
    let fault = Fault::named(fault).expect("a known fault");
    let fails = |seed: &u64| failure(*seed, fault).is_some();
    let found = seeds
        .clone()
        .find(|seed| fails(seed) && failure(*seed, Fault::None).is_none());
    assert!(found.is_some(), "{fault:?} is not caught by {seeds:?}");
}

#[test]
fn seeds_that_failed_once() {
    runs::keep_panics_quiet();
    // 7: a learner of slots that were never written counted as having all.
    // 19, 32: writes that a head lost with its chain were acknowledged.
    for seed in [7, 19, 32] {
        assert_eq!(failure(seed, Fault::None), None, "seed {seed}");
    }
}

#[test]
fn a_seed_is_the_same_each_time() {
    for seed in 0..3 {
        let (first, second) = (run(seed, Fault::None, false), run(seed, Fault::None, false));
        assert_eq!(first.hash, second.hash, "seed {seed}");
    }
}

#[test]
fn replies_that_do_not_wait_for_chains() {
    caught("gates-open", 0..20);
}

#[test]
fn what_others_sent_goes_along_the_chains_again() {
    caught("carried-as-own", 0..20);
}

/// All that have it must lose power in the instant between the two: one seed in some
/// hundreds gets there.
#[test]
fn what_is_said_before_it_is_logged() {
    caught("said-before-logged", 0..900);
}

#[test]
fn marks_that_are_not_written() {
    caught("marks-not-written", 0..50);
}
