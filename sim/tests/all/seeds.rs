//! Saved seeds pass, and stand for the plans that they once stood for.

use crate::common::caught_saying;
use rufous_sim::engine::seeds::{self, Saved};
use rufous_sim::engine::{self, Fault, Scenario, keep_panics_quiet};
use rufous_sim::{chains, cluster, gossip, node};
use std::path::Path;

fn saved() -> Vec<Saved> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds.txt");
    seeds::read(&file).expect("saved seeds")
}

/// A seed without a fault passes; a seed with one fails by that alone.
fn check<S: Scenario>() {
    keep_panics_quiet();
    let mut wrong = Vec::new();
    for saved in saved()
        .iter()
        .filter(|saved| saved.scenario == S::ABOUT.name)
    {
        let seed = saved.seed;
        wrong.extend(saved.change::<S>().expect("flags of the scenario"));
        let (options, _) = saved.flags.meaning::<S>().expect("flags of the scenario");
        match &saved.flags.fault {
            Some(fault) => caught_saying::<S>(fault, &options, "", [seed]),
            None => {
                let failure = engine::run::<S>(seed, &options, Fault::None, false).failure;
                wrong.extend(failure.map(|failure| format!("seed {seed}: {failure}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_the_node() {
    check::<node::World>();
}

#[test]
fn of_chains() {
    check::<chains::World>();
}

#[test]
fn of_clusters() {
    check::<cluster::World>();
}

#[test]
fn of_gossip() {
    check::<gossip::World>();
}

#[test]
fn each_is_of_a_scenario() {
    let known = ["node", "chains", "cluster", "gossip"];
    for saved in saved() {
        assert!(known.contains(&&*saved.scenario), "{}", saved.scenario);
    }
}
