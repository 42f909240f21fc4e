//! What the tests of scenarios share.

use rufous_sim::engine::{self, Fault, Report, Scenario, keep_panics_quiet};

/// A seed without faults.
pub(crate) fn run<S: Scenario>(seed: u64) -> Report {
    engine::run::<S>(seed, &S::Options::default(), Fault::None, false)
}

/// A seed that is known to show a fault, and then the others, should it mean something else by now.
pub(crate) fn first(
    known: u64,
    others: impl IntoIterator<Item = u64>,
) -> impl Iterator<Item = u64> {
    std::iter::once(known).chain(others)
}

/// Looks among these for a seed that fails with the fault alone.
#[track_caller]
pub(crate) fn caught<S: Scenario>(fault: &str, seeds: impl IntoIterator<Item = u64>) {
    caught_saying::<S>(fault, &S::Options::default(), "", seeds);
}

/// Likewise, where the failure says this. A seed that fails anyway proves nothing.
#[track_caller]
pub(crate) fn caught_saying<S: Scenario>(
    fault: &str,
    options: &S::Options,
    what: &str,
    seeds: impl IntoIterator<Item = u64>,
) {
    keep_panics_quiet();
    let planted = Fault::named(fault, S::ABOUT.faults).expect("a known fault");
    let failure = |seed, fault| engine::run::<S>(seed, options, fault, false).failure;
    let mut tried = 0;
    let found = seeds.into_iter().find(|&seed| {
        tried += 1;
        let says = failure(seed, planted).is_some_and(|text| text.contains(what));
        says && failure(seed, Fault::None).is_none()
    });
    assert!(found.is_some(), "{fault} is not caught by {tried} seeds");
}
