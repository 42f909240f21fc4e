//! `cargo xtask algebra`: tries what data types state of themselves, shows how much of what is
//! independent they recognise, or writes docs/types anew.

use crate::{process, project};
use anyhow::{Context, Result};

#[derive(clap::Args)]
#[command(
    after_help = "Exit status 0 when nothing was found. A failure names the seed that repeats it."
)]
pub(crate) struct Args {
    /// Rounds for each type
    #[arg(long, default_value_t = 2_000)]
    rounds: u64,
    /// Where to begin: round n of seed s is the first of seed s + n
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only types with this in their name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Show an example of each pair that is independent and not recognised
    #[arg(long)]
    missed: bool,
    /// Write docs/types from what the code says, and stop
    #[arg(long, conflicts_with_all = ["rounds", "seed", "only"])]
    write: bool,
}

/// Writes docs/types.
pub(crate) fn write() -> Result<bool> {
    run(&Args {
        rounds: 0,
        seed: 0,
        only: None,
        missed: false,
        write: true,
    })
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    // In the crate itself, so that this program needs nothing of the workspace to be built.
    let mut command = process::cargo();
    command.args([
        "run",
        "--quiet",
        "--package",
        "rufous-datatype",
        "--example",
        "algebra",
        "--",
    ]);
    if args.write {
        command
            .arg("--write")
            .arg(project::root().join("docs/types"));
    } else {
        command.args(["--rounds", &args.rounds.to_string()]);
        command.args(["--seed", &args.seed.to_string()]);
    }
    if let Some(only) = &args.only {
        command.args(["--only", only]);
    }
    if args.missed {
        command.arg("--missed");
    }
    let status = command
        .status()
        .context("cannot run the checker of data types")?;
    Ok(status.success())
}
