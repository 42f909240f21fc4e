//! The same seed gives the same run, line by line.

use rufous_sim::faults::Fault;
use rufous_sim::plan::Limits;
use rufous_sim::runs;

#[test]
fn a_seed_repeats_and_others_differ() {
    runs::keep_panics_quiet();
    let run = |seed| runs::run(seed, &Limits::default(), Fault::None, true);
    let mut hashes = Vec::new();
    for seed in 0..12 {
        let (first, second) = (run(seed), run(seed));
        assert_eq!(first.lines, second.lines, "seed {seed}");
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert!(first.events > 100, "seed {seed}");
        hashes.push(first.hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 12);
}
