//! Short searches; `cargo xtask model` has the long ones.

use super::bounds;
use super::exhaustive;
use super::search::random;
use super::world::Bounds;
use rufous_linear::planted::{ALL, Off};

#[test]
fn transactions_are_whole_and_in_one_order() {
    for (name, bounds) in bounds::all() {
        let found = random(&bounds, None, 0..2_000);
        assert_eq!(found.broken, None, "{name}");
    }
}

/// Rules whose faults need longer searches: `cargo xtask model --off each` notices them, too.
const RARE: [&str; 5] = [
    "ties",
    "aborts",
    "aborts-synced",
    "together",
    "ahead-not-told",
];

#[test]
fn each_rule_is_noticed_when_it_is_off() {
    for (name, off) in ALL.into_iter().filter(|(name, _)| !RARE.contains(name)) {
        let of_types = matches!(off, Off::Keys | Off::Limits);
        let all = bounds::all().into_iter();
        // What nothing notices is needed by its own rules alone, and takes time for the others.
        let of_small = matches!(off, Off::Free);
        let is_small = |of: &Bounds| of.resends > 0 || of.busy > 0 || of.access;
        let all: Vec<_> = all
            .filter(|(_, bounds)| (bounds.typed || !of_types) && is_small(bounds) == of_small)
            .collect();
        // Some seeds of each in turn: most rules are noticed within few bounds, and there soon.
        let mut seeds = (0..10).map(|part| part * 1_000..(part + 1) * 1_000);
        let noticed = seeds.any(|seeds| {
            let mut all = all.iter();
            all.any(|(_, bounds)| random(bounds, Some(off), seeds.clone()).broken.is_some())
        });
        assert!(noticed, "{name}");
    }
}

/// Requests on single keys are no part of the protocol, so what they show must not be ordered behind later transactions.
#[test]
fn requests_notice_where_transactions_that_depend_on_one_another_are_ordered() {
    let bounds = bounds::ordered_requests();
    let found = random(&bounds, None, 0..20_000);
    let broken = found.broken.expect("it is noticed");
    assert!(
        broken.why.contains("not strictly serializable"),
        "{}",
        broken.why
    );
}

#[test]
fn small_cases_are_right_in_every_order() {
    for (name, bounds, plans) in exhaustive::cases() {
        let (found, all) = exhaustive::every(&bounds, &plans, None, 3_000);
        assert_eq!(found.broken, None, "{name}");
        assert!(all || found.steps >= 3_000, "{name}");
    }
}
