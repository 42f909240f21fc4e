//! Small searches: the rules hold, and those that a small search notices are noticed.

use crate::bounds::{self, Sync};
use crate::rules::Off;
use crate::search;

/// States of each search: a part of all, which `cargo xtask model` visits.
const STATES: usize = 3_000;

#[test]
fn nothing_is_wrong_within_small_bounds() {
    for (name, bounds) in bounds::small() {
        let found = search::every(&bounds, None, STATES).expect("a cluster");
        assert_eq!(found.broken, None, "{name}");
        assert!(found.states >= STATES || found.all, "{name}");
    }
}

#[test]
fn nothing_is_wrong_in_random_histories() {
    for sync in [Sync::Always, Sync::Later] {
        let found = search::random(&bounds::large(sync), None, 0..20).expect("a cluster");
        assert_eq!(found.broken, None, "{sync:?}");
    }
}

/// The fault that lost 335 of 500 keys: the first node that is back continues.
#[test]
fn a_choice_by_who_is_first_is_noticed() {
    let off = Off::named("first-back");
    let found = search::random(&bounds::large(Sync::Always), off, 0..400).expect("a cluster");
    assert!(found.broken.is_some());
}
