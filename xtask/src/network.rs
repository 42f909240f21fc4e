//! `cargo xtask network`: builds the server and the harness of `network/`, and runs clusters in
//! network namespaces under faults.

use crate::{process, project};
use anyhow::{Context, Result};
use std::process::Command;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What goes wrong, and when (default: by the time of day)
    #[arg(long)]
    seed: Option<u64>,
    /// Faults, one after the other; the first 13 are one of each kind
    #[arg(long)]
    rounds: Option<u64>,
    /// Nodes, from 3 on
    #[arg(long)]
    nodes: Option<u64>,
    /// Further arguments of rufous-network
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Args {
    /// What a full test run does: each kind of fault several times.
    pub(crate) fn of_check() -> Self {
        Self {
            seed: None,
            rounds: Some(130),
            nodes: None,
            arguments: Vec::new(),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    process::build_tests()?;
    let mut network = program();
    for (name, value) in [
        ("--seed", args.seed),
        ("--rounds", args.rounds),
        ("--nodes", args.nodes),
    ] {
        if let Some(value) = value {
            network.args([name, &value.to_string()]);
        }
    }
    network.arg("--keep").arg(project::target().join("network"));
    let status = network.args(&args.arguments).status();
    Ok(status.context("cannot run rufous-network")?.success())
}

/// Each fault in turn under the clients of `what`, and a table of what they saw.
pub(crate) fn demo(what: &str, arguments: &[String]) -> Result<bool> {
    process::build_tests()?;
    let status = program().arg(what).args(arguments).status();
    Ok(status.context("cannot run rufous-network")?.success())
}

/// What keeps this machine from it.
pub(crate) fn obstacle() -> Result<Option<String>> {
    process::build_tests()?;
    let said = process::output(program().arg("obstacle"))?;
    let said = said.trim();
    Ok((!said.is_empty()).then(|| said.to_owned()))
}

fn program() -> Command {
    let mut network = Command::new(project::target().join("debug/rufous-network"));
    network.current_dir(project::root());
    network
}
