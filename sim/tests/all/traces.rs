//! The same seed gives the same run, line by line. `cargo xtask sim -- --twice` compares many.

use rufous_sim::engine::{self, Fault, Scenario, keep_panics_quiet};
use rufous_sim::{chains, cluster, gossip, node};

/// Runs some seeds twice each.
fn repeats<S: Scenario>(seeds: u64) {
    keep_panics_quiet();
    let run = |seed| engine::run::<S>(seed, &S::Options::default(), Fault::None, true);
    let mut hashes = Vec::new();
    for seed in 0..seeds {
        let (first, second) = (run(seed), run(seed));
        assert_eq!(first.lines, second.lines, "seed {seed}");
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert!(first.events > 10, "seed {seed}");
        hashes.push(first.hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len() as u64, seeds);
}

#[test]
fn a_seed_repeats_and_others_differ() {
    repeats::<node::World>(4);
    repeats::<chains::World>(2);
    repeats::<cluster::World>(2);
    repeats::<gossip::World>(2);
}
