//! `cargo xtask <command>`: the one entry for people and CI.
//!
//! It needs nothing but a Rust toolchain to start; what single commands need beyond that
//! (the Redis client tools, Tcl, a Python environment) they install themselves.
//!
//! Map: `tidy` keeps the rules of the house, `house` measures how it is built, `levels` counts the lines of consistency levels, `check` is the whole test run, `suite` runs the tests
//! that others wrote, `chart` tries the Helm chart, `node` starts servers and passes arguments on to the load generator, `fuzz`
//! runs the fuzz targets, `sim` the simulator, `model` the model of chains, `algebra` tries what data types state, `docs` writes the generated pages, `diff` compares
//! with redis-server, `network` breaks the network of clusters, `durable` kills nodes and audits them, `types` runs programs on the data types, `merge` those on lattice keyspaces, `install` gets tools, `process` and `project` are shared helpers.

#![forbid(unsafe_code)]

mod algebra;
mod chart;
mod check;
mod diff;
mod docs;
mod durable;
mod fuzz;
mod house;
mod install;
mod levels;
mod merge;
mod model;
mod network;
mod node;
mod process;
mod project;
mod sim;
mod suite;
mod tidy;
mod types;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Builds, checks and measures Rufous",
    after_help = "Examples:\n  \
        cargo xtask test                    install what tests need, then run all of them\n  \
        cargo xtask test --quick            formatting, lints, unit tests and tidiness only\n  \
        cargo xtask test --only tidy        one step\n  \
        cargo xtask house                   how the code is built, before and now\n  \
        cargo xtask levels                  lines of code that each consistency level needs\n  \
        cargo xtask suite tcl               Redis's own suite against the release build\n  \
        cargo xtask suite tcl --unit unit/expire --reference\n  \
        cargo xtask sim                     simulate a node until stopped (--seeds N, --scenario NAME)\n  \
        cargo xtask model                   try chains alone, in every order (--off each: without each rule)\n  \
        cargo xtask algebra                 try what data types state (--rounds N, --seed X)\n  \
        cargo xtask docs --write            write docs/reference and docs/types from the code\n  \
        cargo xtask diff --family list      random commands, side by side with redis-server\n  \
        cargo xtask network                 clusters in network namespaces, their network broken\n  \
        cargo xtask demo node               a node, a benchmark and YCSB A to F\n  \
        cargo xtask demo types              a leaderboard, sessions, jobs and an auction\n  \
        cargo xtask demo durable            kill -9 again and again, every key audited\n  \
        cargo xtask demo merge              replicas that take writes at once, and merge\n  \
        cargo xtask demo elastic            nodes join, drain and are killed, every write audited\n  \
        cargo xtask demo faults             full disks, partitions, kills, lost folders: what clients see\n  \
        cargo xtask demo bank               transactions over nodes under the same faults, to the cent\n  \
        cargo xtask demo levels             what each level promises while a node is killed, and what eventual shows\n  \
        cargo xtask bench-peers --help      side by side with Redis and Valkey\n  \
        cargo xtask figures anna4           updates in process beside concurrent maps\n  \
        cargo xtask figures anna6           one worker, two workers, two nodes\n  \
        cargo xtask figures anna8           replicas over TCP beside Redis and Redis Cluster\n  \
        cargo xtask figures anna10          every consistency level beside eventual consistency\n  \
        cargo xtask figures converting      how long changes of keyspaces stop a node\n  \
        cargo xtask figures warp9           transactions beside the same operations alone\n  \
        cargo xtask figures warp14          transactions over 4 to 256 simulated servers\n  \
        cargo xtask figures warp15          payments by card, every balance audited\n  \
        cargo xtask figures warp16          aborted transactions by the keys that they share\n  \
        cargo xtask figures node-added      a node joins under load\n  \
        cargo xtask figures node-killed     a node is killed under load, beside Redis Cluster\n  \
        cargo xtask figures scale           what a cluster says to itself, to 1,000 nodes"
)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what tests need and run all of them; ends with `N passed, N failed`
    Test(check::Args),
    /// Check the layout and style rules of the repository
    Tidy {
        /// First lower the figures in `xtask/limits.toml` to what they are now
        #[arg(long)]
        lower: bool,
    },
    /// Measure types, packages, cycles of calls and lengths, beside the figures of an earlier commit
    House(house::Args),
    /// Count the lines of code that each consistency level needs
    Levels(levels::Args),
    /// Run a test suite that others wrote against a server
    Suite(suite::Args),
    /// Run the fuzz targets for a while (needs a nightly toolchain and cargo-fuzz)
    Fuzz(fuzz::Args),
    /// Run the simulator: seeds in a row until stopped, or one
    Sim(sim::Args),
    /// Try chains alone in every order of what may happen; arguments go to `rufous-model`
    Model(model::Args),
    /// Run clusters in network namespaces, break their network, and judge what clients saw
    Network(network::Args),
    /// Try what data types state, and show how much of what is independent they recognise
    Algebra(algebra::Args),
    /// Compare the generated pages of docs with the code, or write them (--write)
    Docs(docs::Args),
    /// Send the same random commands to redis-server and Rufous, and compare
    Diff(diff::Args),
    /// Lint and render the Helm chart, and check what it tells the program
    Chart,
    /// Compare with Redis and Valkey; arguments go to `rufous-bench bench-peers`
    BenchPeers(node::PassThrough),
    /// Measure what the papers' figures show; arguments go to `rufous-figures`
    Figures(node::PassThrough),
    /// Run the YCSB workloads; arguments go to `rufous-bench ycsb`
    Ycsb(node::PassThrough),
    /// Show what the store can do, on a server started for the occasion
    Demo(node::DemoArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Task::Test(args) => check::run(&args),
        Task::Tidy { lower: true } => tidy::lower(),
        Task::Tidy { lower: false } => tidy::run(),
        Task::House(args) => house::run(&args),
        Task::Levels(args) => levels::run(&args),
        Task::Suite(args) => suite::run(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Sim(args) => sim::run(&args),
        Task::Model(args) => model::run(&args),
        Task::Network(args) => network::run(&args),
        Task::Algebra(args) => algebra::run(&args),
        Task::Docs(args) => docs::run(&args),
        Task::Diff(args) => diff::run(&args),
        Task::Chart => chart::run(),
        Task::BenchPeers(args) => node::bench("bench-peers", &args),
        Task::Figures(args) => node::figures(&args),
        Task::Ycsb(args) => node::bench("ycsb", &args),
        Task::Demo(args) => node::demo(&args),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
