//! The command line of the simulator: seeds of a scenario in a row, or one with its trace.
#![forbid(unsafe_code)]

use clap::Parser;
use rufous_sim::engine::runner::{self, Args};
use rufous_sim::{chains, cluster, engine, gossip, node};
use std::process::ExitCode;

/// Runs a simulated world, one seed after the other.
#[derive(Parser)]
#[command(max_term_width = 100)]
struct Line {
    /// What is simulated: node, chains, cluster or gossip
    #[arg(long, default_value = "node")]
    scenario: String,
    #[command(flatten)]
    args: Args,
}

fn main() -> ExitCode {
    let Line { scenario, args } = Line::parse();
    engine::keep_panics_quiet();
    let passed = match &*scenario {
        "node" => runner::main::<node::World>(&args),
        "chains" => runner::main::<chains::World>(&args),
        "cluster" => runner::main::<cluster::World>(&args),
        "gossip" => runner::main::<gossip::World>(&args),
        other => Err(format!("there is no scenario '{other}'")),
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
