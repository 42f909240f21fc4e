//! The oracles are tested, too: each fault that is planted has to be caught
//! within a stated number of seeds. A seed that fails anyway proves nothing.

use rufous_sim::faults::Fault;
use rufous_sim::plan::Limits;
use rufous_sim::runs;

/// Looks for a seed below `within` that fails with the fault alone.
#[track_caller]
fn caught(fault: &str, within: u64) {
    runs::keep_panics_quiet();
    let fault = Fault::named(fault).expect("a known fault");
    let limits = Limits::default();
    let fails = |seed, fault| runs::run(seed, &limits, fault, false).failure.is_some();
    let found = (0..within).find(|&seed| fails(seed, fault) && !fails(seed, Fault::None));
    assert!(found.is_some(), "{fault:?} is not caught by {within} seeds");
}

#[test]
fn a_reply_before_its_sync() {
    caught("reply-before-sync", 100);
}

#[test]
fn keys_that_expire_too_early() {
    caught("expiry-too-early", 100);
}

#[test]
fn a_lost_message() {
    caught("message-lost", 50);
}

#[test]
fn a_checksum_that_nobody_looks_at() {
    caught("skipped-checksum", 400);
}

#[test]
fn a_snapshot_that_misses_a_write() {
    caught("snapshot-misses-write", 1_000);
}

#[test]
fn commands_on_several_keys_without_isolation() {
    caught("no-isolation", 200);
}

#[test]
fn clients_that_are_not_woken() {
    caught("lost-wake-up", 100);
}

#[test]
fn clients_served_out_of_their_order() {
    caught("later-first", 100);
}

#[test]
fn a_snapshot_that_loses_a_part_of_a_collection() {
    caught("snapshot-loses-chunk", 400);
}

#[test]
fn a_change_that_an_owner_is_not_told_of() {
    caught("dropped-effect", 200);
}
