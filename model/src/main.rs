//! The command line of the model.
#![forbid(unsafe_code)]

use clap::Parser;
use rufous_model::bounds::{self, Bounds, Sync};
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
    /// Random histories, of logs that are synced always and of those synced later each
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

/// Returns whether something was found.
fn run(line: &Line, off: Option<Off>) -> Result<bool, String> {
    for (name, bounds) in bounds::small() {
        let began = Instant::now();
        let found = search::every(&bounds, off, line.states)?;
        if tell(name, &bounds, &found, began) {
            return Ok(true);
        }
    }
    for sync in [Sync::Always, Sync::Later] {
        let (began, bounds) = (Instant::now(), bounds::large(sync));
        let found = search::random(&bounds, off, line.from..line.from + line.histories)?;
        if tell("random", &bounds, &found, began) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn tell(name: &str, bounds: &Bounds, found: &Found, began: Instant) -> bool {
    let how = match (name, found.all) {
        ("random", _) => "steps of random histories",
        (_, true) => "states, which are all",
        (_, false) => "states",
    };
    println!(
        "  {name} (sync {:?}): {} {how}, {:.1} s: {}",
        bounds.sync,
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
