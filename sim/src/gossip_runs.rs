//! The command line's part for the world of nodes that share lattice keyspaces.

use crate::Args;
use rufous_sim::gossip::faults::Fault;
use rufous_sim::gossip::{self, PROBES, Report};
use std::collections::BTreeMap;
use std::time::Instant;

/// A run of so many seeds has to reach every probe.
const MANY: u64 = 1_000;

pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let fault = match &args.fault {
        None => Fault::None,
        Some(name) => Fault::named(name).ok_or_else(|| {
            let names: Vec<_> = Fault::ALL.iter().map(|(_, name)| *name).collect();
            format!("no such fault; there are: {}", names.join(", "))
        })?,
    };
    match args.seed {
        Some(seed) => one(args, seed, fault),
        None => Ok(many(args, fault)),
    }
}

fn one(args: &Args, seed: u64, fault: Fault) -> Result<bool, String> {
    let report = gossip::run(seed, fault, true);
    print!("{}", report.plan);
    let text = report.lines.join("\n") + "\n";
    if args.verbose {
        print!("{text}");
    }
    if let Some(path) = &args.trace {
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    match &report.failure {
        None => println!("seed {seed} passed, trace {:016x}", report.hash),
        Some(failure) => println!("seed {seed} FAILED: {failure}"),
    }
    Ok(report.failure.is_none())
}

fn many(args: &Args, fault: Fault) -> bool {
    let started = Instant::now();
    let last = args.seeds.map_or(u64::MAX, |n| args.from.saturating_add(n));
    let (mut seeds, mut operations) = (0, 0);
    let (mut failed, mut probes) = (Vec::new(), BTreeMap::<&str, u64>::new());
    for seed in args.from..last {
        let report = gossip::run(seed, fault, false);
        (seeds, operations) = (seeds + 1, operations + report.operations);
        for (probe, count) in &report.probes {
            *probes.entry(probe).or_default() += count;
        }
        let again = || gossip::run(seed, fault, false);
        if let Some(failure) = failure(&report, args.twice.then(again)) {
            println!("seed {seed} FAILED: {failure}");
            println!("replay with: cargo xtask sim --gossip --seed {seed} -- --verbose\n");
            failed.push(seed);
            if !args.keep_going {
                break;
            }
        }
        if seeds % 1_000 == 0 {
            println!("{seeds} seeds of gossip, {} failed", failed.len());
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds of gossip in {seconds:.0} s, {} failed, {operations} operations",
        failed.len()
    );
    println!("rare states that were reached: {probes:#?}");
    if !failed.is_empty() {
        println!("failed seeds: {failed:?}");
    }
    let is_missing = |probe: &&&str| !probes.contains_key(*probe);
    let missing: Vec<_> = PROBES.iter().filter(is_missing).collect();
    if seeds >= MANY && !missing.is_empty() && fault == Fault::None {
        println!("never reached: {missing:?}");
        return false;
    }
    failed.is_empty()
}

fn failure(report: &Report, again: Option<Report>) -> Option<String> {
    let differs = again.filter(|again| again.hash != report.hash);
    let text = differs.map(|again| {
        format!(
            "the trace differs: {:016x}, then {:016x}",
            report.hash, again.hash
        )
    });
    report.failure.clone().or(text)
}
