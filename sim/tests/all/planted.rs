//! The oracles are tested, too: each fault that is planted has to be caught
//! within a stated number of seeds. A seed that fails anyway proves nothing.

use crate::common::caught_saying as caught_among;
use rufous_sim::engine::{self, Fault, keep_panics_quiet};
use rufous_sim::history::Kind;
use rufous_sim::node::plan::Limits;
use rufous_sim::node::world::World;

/// Looks for a seed below `within` that fails with the fault alone.
#[track_caller]
fn caught(fault: &str, within: u64) {
    caught_saying(fault, &Limits::default(), "", within);
}

/// Likewise, where the failure says this.
#[track_caller]
fn caught_saying(fault: &str, limits: &Limits, what: &str, within: u64) {
    caught_among::<World>(fault, limits, what, 0..within);
}

/// No units but of this type.
fn only(kind: Kind) -> Limits {
    Limits {
        only: Some(kind),
        ..Limits::default()
    }
}

/// What the search for an order of the commands says.
const NO_ORDER: &str = "no order of the commands";

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

#[test]
fn clients_served_out_of_their_order_while_all_else_goes_on() {
    let what = "began to wait before it";
    for share in [0.0, 1.0] {
        let limits = Limits {
            sorted_queues: Some(share),
            ..Limits::default()
        };
        caught_saying("later-first", &limits, what, 100);
    }
}

#[test]
fn clients_of_sorted_sets_that_are_not_woken() {
    let limits = Limits {
        sorted_queues: Some(1.0),
        ..Limits::default()
    };
    caught_saying("lost-wake-up", &limits, "which has something", 600);
}

#[test]
fn operations_that_are_answered_and_not_done_on_each_type() {
    for kind in Kind::COLLECTIONS {
        caught_saying("forgotten-commit", &only(kind), NO_ORDER, 50);
    }
}

#[test]
fn quiet_commands_that_do_not_run() {
    caught_saying("quiet-not-run", &Limits::default(), NO_ORDER, 100);
    for kind in [Kind::Counter, Kind::Bag, Kind::Bounded] {
        caught_saying("quiet-not-run", &only(kind), NO_ORDER, 100);
    }
}

#[test]
fn the_change_that_makes_a_collection_large() {
    caught_saying("growth-loses-change", &Limits::default(), NO_ORDER, 100);
}

#[test]
fn a_log_that_gets_but_the_first_chunk() {
    caught_saying("log-loses-chunk", &Limits::default(), NO_ORDER, 400);
}

/// All runs have lattice keyspaces.
fn lattice() -> Limits {
    Limits {
        lattice: Some(true),
        ..Limits::default()
    }
}

#[test]
fn replicas_that_are_not_told_or_do_not_listen() {
    for fault in ["batch-lost", "merge-skipped", "change-not-sent"] {
        caught_saying(fault, &lattice(), "after quiet worker", 50);
    }
}

#[test]
fn replicas_that_do_not_tell_all_they_have_after_a_start() {
    caught_saying("start-not-told", &lattice(), "after quiet worker", 100);
}

#[test]
fn deletions_that_are_forgotten_before_everybody_knows() {
    caught_saying("forgotten-early", &lattice(), "", 100);
}

#[test]
fn counts_that_a_start_takes_for_older_than_what_was_forgotten() {
    caught_saying("counts-not-held", &lattice(), "since it was cleared", 100);
}

#[test]
fn transactions_that_other_workers_are_not_told_of() {
    let what = "what is written together differs";
    caught_saying("dropped-replica-effect", &lattice(), what, 300);
}

#[test]
fn writes_that_are_refused_for_want_of_memory_and_done() {
    caught_saying("refused-and-done", &lattice(), "which was refused", 100);
}

#[test]
fn deadlines_of_collections_that_the_log_is_not_told_of() {
    let what = "whose time has come";
    caught_saying("deadline-not-logged", &lattice(), what, 400);
}

#[test]
fn lattice_keys_that_are_written_while_the_clock_leads() {
    let what = "written while the wall clock had jumped";
    caught_saying("lead-ignored", &lattice(), what, 100);
}

#[test]
fn deadlines_that_count_from_a_wall_clock_behind_the_stamps() {
    let limits = Limits {
        small_jumps: true,
        ..lattice()
    };
    keep_panics_quiet();
    for seed in 0..60 {
        let report = engine::run::<World>(seed, &limits, Fault::None, false);
        assert_eq!(report.failure, None, "seed {seed}");
    }
    caught_among::<World>("deadline-by-wall", &limits, "does not show", [564, 708]);
}

#[test]
fn sketches_that_count_less_than_was_added() {
    let what = "elements, not from";
    caught_saying("dropped-replica-effect", &lattice(), what, 100);
}

#[test]
fn writes_of_transactions_that_others_are_shown_before_they_are_committed() {
    let what = "which was not committed";
    caught_saying("done-at-once", &lattice(), what, 100);
}

#[test]
fn item_cuts_that_read_anew() {
    caught_saying("reads-not-cached", &lattice(), "an item cut reads", 200);
}

#[test]
fn transactions_that_write_at_once_under_several_stamps() {
    let what = "transactions win on one key each";
    caught_among::<World>("stamps-apart", &lattice(), what, 700..800);
}

#[test]
fn transactions_that_are_committed_in_part() {
    caught_saying("commit-loses-command", &lattice(), "and commits", 100);
}

#[test]
fn replicas_that_go_back_behind_what_they_have_shown() {
    caught_saying("merge-skipped", &lattice(), "which it has to", 200);
}

#[test]
fn writes_with_causal_order_that_replace_what_they_have_not_seen() {
    caught_saying("unseen-replaced", &lattice(), "", 100);
}

#[test]
fn writes_with_causal_order_that_leave_what_they_have_seen() {
    caught_saying("seen-not-replaced", &lattice(), "again", 100);
}

/// The seeds of one variety, see `sim/src/node/plan/varieties.rs`.
fn variety(rest: u64, seeds: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
    seeds.filter(move |seed| seed % 16 == rest)
}

#[test]
fn a_log_that_is_said_to_be_on_before_a_start_would_find_it() {
    let limits = Limits::default();
    caught_among::<World>("log-said-early", &limits, NO_ORDER, variety(3, 0..200));
}

#[test]
fn a_stop_that_does_not_wait_for_the_log_that_is_switched_on() {
    let limits = Limits::default();
    let seeds = variety(3, 0..200);
    caught_among::<World>("switch-not-awaited", &limits, NO_ORDER, seeds);
}

#[test]
fn a_flipped_bit_of_the_last_frame_that_is_taken_for_a_torn_write() {
    let limits = Limits::default();
    let seeds = variety(8, 0..200);
    caught_among::<World>("flip-taken-for-torn", &limits, NO_ORDER, seeds);
}

#[test]
fn replies_that_do_not_wait_for_a_long_sync() {
    let limits = Limits::default();
    let seeds = variety(10, 0..120).filter(|seed| seed % 32 == 10);
    caught_among::<World>("bound-not-kept", &limits, NO_ORDER, seeds);
}

#[test]
fn replies_that_do_not_wait_while_many_bytes_are_not_synced() {
    let limits = Limits::default();
    let seeds = variety(10, 0..300).filter(|seed| seed % 32 == 26);
    caught_among::<World>("bound-not-kept", &limits, NO_ORDER, seeds);
}
