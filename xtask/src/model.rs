//! `cargo xtask model`: builds the model of chains and searches it.

use crate::{process, project};
use anyhow::{Context, Result};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Do not build the model first
    #[arg(long)]
    no_build: bool,
    /// Arguments of rufous-model, such as --states N, --histories N, --off RULE or --rules
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    if !args.no_build {
        process::run(process::cargo().args(["build", "--package", "rufous-model"]))?;
    }
    let mut model = std::process::Command::new(project::target().join("debug/rufous-model"));
    model.current_dir(project::root());
    let status = model
        .args(&args.arguments)
        .status()
        .context("cannot run rufous-model")?;
    Ok(status.success())
}
