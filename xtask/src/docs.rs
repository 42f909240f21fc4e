//! `cargo xtask docs`: compares the documents that are written from tables of the code with these
//! tables, or writes them: docs/reference and docs/types.

use crate::{algebra, process};
use anyhow::{Context, Result};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the pages instead of comparing them
    #[arg(long)]
    write: bool,
}

/// Package, and the tests that compare its pages.
const PAGES: [(&str, &str); 2] = [
    ("rufous-node", "reference::"),
    ("rufous-datatype", "algebra::pages::"),
];

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut fine = true;
    for (package, tests) in PAGES {
        if args.write && package == "rufous-datatype" {
            fine &= algebra::write()?;
            continue;
        }
        let mut command = process::cargo();
        command.args(["test", "--quiet", "--package", package, "--lib", tests]);
        if args.write {
            command.env("RUFOUS_WRITE_DOCS", "1");
        }
        let status = command.status().context("cannot run the tests of pages")?;
        fine &= status.success();
    }
    Ok(fine)
}
