//! The command line's part for the world of clusters.

use crate::Args;
use rufous_sim::cluster::faults::Fault;
use rufous_sim::cluster::plan::Size;
use rufous_sim::cluster::{self, PROBES, Report};
use std::collections::BTreeMap;
use std::time::Instant;

/// A run of so many seeds has to reach every probe.
const MANY: u64 = 300;

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

fn size(args: &Args) -> Size {
    args.nodes.map_or(Size::Any, Size::Of)
}

fn one(args: &Args, seed: u64, fault: Fault) -> Result<bool, String> {
    let report = cluster::run_of(seed, size(args), fault, true);
    let text = report.lines.join("\n") + "\n";
    if args.verbose {
        print!("{text}");
    }
    if let Some(path) = &args.trace {
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    println!("{} events, {} operations", report.events, report.operations);
    match &report.failure {
        None => println!("seed {seed} passed, trace {:016x}", report.hash),
        Some(failure) => println!("seed {seed} FAILED: {failure}"),
    }
    Ok(report.failure.is_none())
}

fn many(args: &Args, fault: Fault) -> bool {
    let started = Instant::now();
    let last = args.seeds.map_or(u64::MAX, |n| args.from.saturating_add(n));
    let (mut seeds, mut epochs, mut operations, mut unsure) = (0, 0, 0, 0);
    let (mut failed, mut probes) = (Vec::new(), BTreeMap::<&str, u64>::new());
    for seed in args.from..last {
        let report = cluster::run_of(seed, size(args), fault, false);
        seeds += 1;
        epochs += report.epochs;
        (operations, unsure) = (operations + report.operations, unsure + report.unsure);
        for (probe, count) in &report.probes {
            *probes.entry(probe).or_default() += count;
        }
        let again = || cluster::run_of(seed, size(args), fault, false);
        if let Some(failure) = failure(&report, args.twice.then(again)) {
            println!("seed {seed} FAILED: {failure}");
            let nodes = args
                .nodes
                .map_or(String::new(), |n| format!("--nodes {n} "));
            println!("replay with: cargo xtask sim --cluster --seed {seed} -- {nodes}--verbose\n");
            failed.push(seed);
            if !args.keep_going {
                break;
            }
        }
        if seeds % 20 == 0 {
            println!("{seeds} seeds of clusters, {} failed", failed.len());
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds of clusters in {seconds:.0} s, {} failed, {epochs} epochs, {operations} operations, {unsure} searches given up",
        failed.len()
    );
    println!("rare states that were reached: {probes:#?}");
    let missing: Vec<_> = PROBES
        .iter()
        .filter(|probe| !probes.contains_key(*probe))
        .collect();
    if seeds >= MANY && !missing.is_empty() && fault == Fault::None {
        println!("never reached: {missing:?}");
        return false;
    }
    if !failed.is_empty() {
        println!("failed seeds: {failed:?}");
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
