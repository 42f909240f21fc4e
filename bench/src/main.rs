//! The command line of the benchmarks.
#![forbid(unsafe_code)]

use anyhow::Result;
use clap::{Parser, Subcommand};
use rufous_bench::{adhoc, callgrind, elastic, options, sections, ycsb};
use std::process::ExitCode;

/// Stores that allocate are measured with the allocator that the server has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    /// YCSB A–F against a running server
    Ycsb(ycsb::run::Options),
    /// Instructions per command by callgrind, beside the stored ones
    Callgrind(callgrind::Options),
    /// One load against a running server
    Load(adhoc::Options),
    /// A cluster whose nodes join, drain and are killed under clients that remember
    Elastic(elastic::Options),
}

fn main() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::BenchPeers(options) => sections::run(*options),
        Command::Ycsb(options) => ycsb::run::run(&options),
        Command::Callgrind(options) => callgrind::run(&options),
        Command::Load(options) => adhoc::run(&options),
        Command::Elastic(options) => match elastic::run(&options)? {
            true => Ok(()),
            false => return Ok(ExitCode::FAILURE),
        },
    }?;
    Ok(ExitCode::SUCCESS)
}
