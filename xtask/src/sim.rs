//! `cargo xtask sim`: builds the simulator and runs seeds, those that failed once first.

use crate::{process, project};
use anyhow::{Context, Result};

/// How many seeds the whole test run takes: of each world a minute at most.
const CI_SEEDS: u64 = 500;
const CI_SEEDS_OF_CLUSTERS: u64 = 30;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run so many seeds (default: until stopped)
    #[arg(long)]
    pub(crate) seeds: Option<u64>,
    /// Run this seed only, and tell what it stands for
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// The world of replicas instead of that of nodes (-- --mode LEVEL: clients of that level only)
    #[arg(long)]
    pub(crate) replicas: bool,
    /// The world of chains
    #[arg(long, conflicts_with = "replicas")]
    pub(crate) chains: bool,
    /// The world of whole nodes of a cluster (-- --nodes N: of so many)
    #[arg(long, conflicts_with_all = ["replicas", "chains"])]
    pub(crate) cluster: bool,
    /// The world of nodes that share lattice keyspaces
    #[arg(long, conflicts_with_all = ["replicas", "chains", "cluster"])]
    pub(crate) gossip: bool,
    /// Do not build the simulator first
    #[arg(long)]
    pub(crate) no_build: bool,
    /// Further arguments of rufous-sim, such as --verbose, --trace FILE or --from N
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

impl Args {
    /// What the test run does: each seed twice, so that a trace that differs is found.
    pub(crate) fn short() -> Self {
        Self {
            seeds: Some(CI_SEEDS),
            seed: None,
            replicas: false,
            chains: false,
            cluster: false,
            gossip: false,
            no_build: true,
            arguments: vec!["--twice".into()],
        }
    }

    /// Likewise in the world of replicas.
    pub(crate) fn short_replicas() -> Self {
        Self {
            replicas: true,
            ..Self::short()
        }
    }

    /// Likewise in the world of chains.
    pub(crate) fn short_chains() -> Self {
        Self {
            chains: true,
            ..Self::short()
        }
    }

    /// Likewise in that of whole nodes of a cluster.
    pub(crate) fn short_cluster() -> Self {
        Self {
            cluster: true,
            seeds: Some(CI_SEEDS_OF_CLUSTERS),
            ..Self::short()
        }
    }

    /// Likewise in that of nodes that share lattice keyspaces.
    pub(crate) fn short_gossip() -> Self {
        Self {
            gossip: true,
            ..Self::short()
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    // The profile of tests: assertions of the node are on, and it is optimised enough.
    if !args.no_build {
        process::run(process::cargo().args(["build", "--package", "rufous-sim"]))?;
    }
    let mut sim = std::process::Command::new(project::target().join("debug/rufous-sim"));
    sim.current_dir(project::root());
    match args.seed {
        Some(seed) => {
            sim.args(["--seed", &seed.to_string()]);
        }
        None if args.replicas || args.chains || args.cluster || args.gossip => {}
        None => {
            sim.args(["--replay", "sim/seeds.txt"]);
        }
    }
    if args.replicas {
        sim.arg("--replicas");
    }
    if args.chains {
        sim.arg("--chains");
    }
    if args.cluster {
        sim.arg("--cluster");
    }
    if args.gossip {
        sim.arg("--gossip");
    }
    if let Some(seeds) = args.seeds {
        sim.args(["--seeds", &seeds.to_string()]);
    }
    let status = sim
        .args(&args.arguments)
        .status()
        .context("cannot run rufous-sim")?;
    Ok(status.success())
}
