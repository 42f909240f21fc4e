//! The command line of the model.
#![forbid(unsafe_code)]

use clap::Parser;
use rufous_model::bounds;
use rufous_model::rules::{ALL, Off};
use rufous_model::search::{self, Found};
use std::process::ExitCode;
use std::time::Instant;

/// Tries chains alone, with the planner and the replicas that nodes run: every order of what may
/// happen within small bounds, then random histories within larger ones.
#[derive(Parser)]
#[command(max_term_width = 100)]
struct Line {
    /// States to visit in each search, at most
    #[arg(long, default_value_t = 1_000_000)]
    states: usize,
    /// Random histories within each of the larger bounds
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
}

fn main() -> ExitCode {
    let line = Line::parse();
    if line.rules {
        ALL.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let passed = match line.off.as_deref() {
        None => run(&line, None).map(|noticed| !noticed),
        Some("each") => ALL.iter().try_fold(true, |all, (name, off)| {
            println!("without {name}:");
            let noticed = run(&line, Some(*off))?;
            if !noticed {
                println!("  NOT NOTICED");
            }
            Ok(all && noticed)
        }),
        Some(name) => match Off::named(name) {
            Some(off) => run(&line, Some(off)),
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
fn run(line: &Line, off: Option<Off>) -> Result<bool, String> {
    match off {
        None => Ok(every(line, off)? || random(line, off)?),
        Some(_) => Ok(random(line, off)? || every(line, off)?),
    }
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
