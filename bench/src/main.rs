//! The command line of the benchmarks.
#![forbid(unsafe_code)]

use anyhow::Result;
use clap::{Parser, Subcommand};
use rufous_bench::{options, sections};

/// Measure Rufous, alone and beside its peers.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Rufous beside redis-server and valkey-server; writes docs/benchmarks
    BenchPeers(Box<options::Options>),
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::BenchPeers(options) => sections::run(*options),
    }
}
