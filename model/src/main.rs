//! The command line of the model.
#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum};
use rufous_linear::planted as linear_rules;
use rufous_model::bounds;
use rufous_model::linear;
use rufous_model::rules::{ALL, Off};
use rufous_model::search::{self, Found};
use std::process::ExitCode;
use std::time::Instant;

/// Tries chains alone, with the planner and the replicas that nodes run: every order of what may
/// happen within small bounds, then random histories within larger ones. Then random histories of
/// linear transactions over slots.
#[derive(Parser)]
#[command(max_term_width = 100)]
struct Line {
    /// States to visit in each search, at most
    #[arg(long, default_value_t = 1_000_000)]
    states: usize,
    /// Random histories within each of the larger bounds; four times as many of transactions
    #[arg(long, default_value_t = 20_000)]
    histories: u64,
    /// The first seed of random histories
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Switch this rule off; the search has to notice it. 'each': one after the other
    #[arg(long, value_name = "RULE")]
    off: Option<String>,
    /// Print the names of the rules
    #[arg(long)]
    rules: bool,
    /// Search chains alone, or transactions alone
    #[arg(long, value_name = "WHAT")]
    only: Option<What>,
    /// Print the history of this seed of transactions, within the bounds that --bounds names
    #[arg(long, value_name = "SEED", requires = "bounds")]
    explain: Option<u64>,
    /// Search transactions within these bounds alone, such as 'heads and links'
    #[arg(long, value_name = "NAME")]
    bounds: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Chains,
    Transactions,
}

/// A rule of either model.
#[derive(Clone, Copy)]
enum Rule {
    Chains(Off),
    Transactions(linear_rules::Off),
}

fn rules() -> Vec<(&'static str, Rule)> {
    let chains = ALL.iter().map(|(name, off)| (*name, Rule::Chains(*off)));
    let transactions = linear_rules::ALL.iter();
    let transactions = transactions.map(|(name, off)| (*name, Rule::Transactions(*off)));
    chains.chain(transactions).collect()
}

fn main() -> ExitCode {
    let line = Line::parse();
    if line.rules {
        rules().iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let passed = match line.off.as_deref() {
        None => run(&line, None).map(|noticed| !noticed),
        Some("each") => rules().into_iter().try_fold(true, |all, (name, rule)| {
            println!("without {name}:");
            let noticed = run(&line, Some(rule))?;
            if !noticed {
                println!("  NOT NOTICED");
            }
            Ok(all && noticed)
        }),
        Some(name) => match rules().into_iter().find(|(known, _)| *known == name) {
            Some((_, rule)) => run(&line, Some(rule)),
            None => Err(format!("there is no rule '{name}'; --rules lists them")),
        },
    };
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether something was found. What is switched off is found soonest at random.
fn run(line: &Line, rule: Option<Rule>) -> Result<bool, String> {
    let small = line.bounds.is_none();
    let (chains, transactions) = (
        line.only != Some(What::Transactions) && line.bounds.is_none(),
        line.only != Some(What::Chains),
    );
    match rule {
        None => Ok((chains && (every(line, None)? || random(line, None)?))
            || (transactions && small && every_linear(line, None))
            || (transactions && linearly(line, None)?)),
        Some(Rule::Chains(off)) => {
            Ok(chains && (random(line, Some(off))? || every(line, Some(off))?))
        }
        Some(Rule::Transactions(off)) => Ok(transactions && linearly(line, Some(off))?),
    }
}

/// So many histories of transactions for each of chains: they are shorter, and some rules need them.
const HISTORIES: u64 = 4;

/// Every order of small cases of transactions; so many states for each of chains.
fn every_linear(line: &Line, off: Option<linear_rules::Off>) -> bool {
    for (name, bounds, plans) in linear::exhaustive::cases() {
        let began = Instant::now();
        let most = line.states / 5;
        let (found, all) = linear::exhaustive::every(&bounds, &plans, off, most);
        let all = if all { ", which are all" } else { "" };
        let (states, seconds) = (found.steps, began.elapsed().as_secs_f64());
        let broken = found.broken;
        let why = broken.as_ref().map_or("no violation", |broken| &broken.why);
        println!("  transactions, {name}: {states} states{all}, {seconds:.1} s: {why}");
        if let Some(broken) = broken {
            println!("    {:?}", broken.trace);
            return true;
        }
    }
    false
}

/// Random histories of transactions.
fn linearly(line: &Line, off: Option<linear_rules::Off>) -> Result<bool, String> {
    let all = linear::bounds::all();
    let is_wanted = |name: &str| line.bounds.as_deref().is_none_or(|wanted| wanted == name);
    if !all.iter().any(|(name, _)| is_wanted(name)) {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        return Err(format!("bounds of transactions are: {}", names.join(", ")));
    }
    for (name, bounds) in all.into_iter().filter(|(name, _)| is_wanted(name)) {
        if let Some(seed) = line.explain {
            println!("{}", linear::search::explain(&bounds, off, seed));
            continue;
        }
        let began = Instant::now();
        let seeds = line.from..line.from + HISTORIES * line.histories;
        let found = linear::search::random(&bounds, off, seeds);
        let (histories, steps) = (found.histories, found.steps);
        let seconds = began.elapsed().as_secs_f64();
        let broken = found.broken;
        let why = broken.as_ref().map_or("no violation", |broken| &broken.why);
        println!(
            "  transactions, {name}: {histories} histories of {steps} steps, {seconds:.1} s: {why}"
        );
        if let Some(broken) = broken {
            let seed = broken.seed;
            println!("    cargo xtask model --bounds '{name}' --explain {seed} prints it");
            return Ok(true);
        }
    }
    Ok(false)
}

fn every(line: &Line, off: Option<Off>) -> Result<bool, String> {
    for (name, bounds) in bounds::small() {
        let began = Instant::now();
        let found = search::every(&bounds, off, line.states)?;
        let all = if found.all { ", which are all" } else { "" };
        let how = format!("states{all}");
        if tell(name, &how, &found, began) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn random(line: &Line, off: Option<Off>) -> Result<bool, String> {
    for (name, bounds) in bounds::large() {
        let began = Instant::now();
        let found = search::random(&bounds, off, line.from..line.from + line.histories)?;
        if tell(name, "steps of random histories", &found, began) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn tell(name: &str, how: &str, found: &Found, began: Instant) -> bool {
    println!(
        "  {name}: {} {how}, {:.1} s: {}",
        found.states,
        began.elapsed().as_secs_f64(),
        found
            .broken
            .as_ref()
            .map_or("no violation", |broken| &broken.why)
    );
    if let Some(broken) = &found.broken {
        println!("    {:?}", broken.trace);
    }
    found.broken.is_some()
}
