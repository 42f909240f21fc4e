//! The command line's part for the world of replicas.

use crate::Args;
use rufous_sim::replicas::faults::Fault;
use rufous_sim::replicas::plan::Mode;
use rufous_sim::replicas::{self, Report};
use std::collections::BTreeMap;
use std::time::Instant;

pub(crate) fn run(args: &Args) -> Result<bool, String> {
    let fault = match &args.fault {
        None => Fault::None,
        Some(name) => Fault::named(name).ok_or_else(|| {
            let names: Vec<_> = Fault::ALL.iter().map(|(_, name)| *name).collect();
            format!("no such fault; there are: {}", names.join(", "))
        })?,
    };
    let mode = match &args.mode {
        None => None,
        Some(name) => Some(Mode::named(name).ok_or_else(|| {
            let names: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
            format!("no such level; there are: {}", names.join(", "))
        })?),
    };
    match args.seed {
        Some(seed) => one(args, seed, mode, fault),
        None => Ok(many(args, mode, fault)),
    }
}

fn one(args: &Args, seed: u64, mode: Option<Mode>, fault: Fault) -> Result<bool, String> {
    let report = replicas::run(seed, mode, fault, true);
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

fn many(args: &Args, mode: Option<Mode>, fault: Fault) -> bool {
    let started = Instant::now();
    let last = args.seeds.map_or(u64::MAX, |n| args.from.saturating_add(n));
    let (mut operations, mut failed) = (0, Vec::new());
    let mut levels: BTreeMap<&str, u64> = BTreeMap::new();
    let mut seeds = 0;
    for seed in args.from..last {
        let report = replicas::run(seed, mode, fault, false);
        (seeds, operations) = (seeds + 1, operations + report.operations);
        *levels.entry(report.plan.mode.name()).or_default() += 1;
        let again = || replicas::run(seed, mode, fault, false);
        if let Some(failure) = failure(&report, args.twice.then(again)) {
            println!(
                "seed {seed}, {}, FAILED: {failure}",
                report.plan.mode.name()
            );
            println!("replay with: cargo xtask sim --replicas --seed {seed} -- --verbose\n");
            failed.push(seed);
            if !args.keep_going {
                break;
            }
        }
        if seeds % 5_000 == 0 {
            println!("{seeds} seeds of replicas, {} failed", failed.len());
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds of replicas in {seconds:.0} s, {} failed, {operations} operations; {levels:?}",
        failed.len()
    );
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
