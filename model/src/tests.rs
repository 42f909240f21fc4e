//! Small searches: the rules hold, and those that a small search notices are noticed.

use crate::bounds;
use crate::rules::ALL;
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
    for (name, bounds) in bounds::large() {
        let found = search::random(&bounds, None, 0..20).expect("a cluster");
        assert_eq!(found.broken, None, "{name}");
    }
}

/// Rules whose faults need longer searches: `cargo xtask model --off each` notices them, too.
const RARE: [&str; 3] = ["old-chain-taken", "not-outwaited", "no-lease"];

#[test]
fn every_rule_is_noticed_when_it_is_switched_off() {
    for (name, off) in ALL.into_iter().filter(|(name, _)| !RARE.contains(name)) {
        let parts = (0..10).map(|part| part * 50..(part + 1) * 50);
        let noticed = parts.into_iter().any(|seeds| {
            let mut all = bounds::large().into_iter();
            all.any(|(_, bounds)| {
                let found = search::random(&bounds, Some(off), seeds.clone());
                found.expect("a cluster").broken.is_some()
            })
        });
        assert!(noticed, "{name}");
    }
}
