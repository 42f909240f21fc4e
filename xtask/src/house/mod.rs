//! `cargo xtask house`: how the code is built, before and now.
//!
//! It reads the Rust files of the workspace without compiling them and prints tables: types (files
//! with an `impl`, methods, fields), packages (lines, dependencies), cycles of calls between files,
//! parameter lists, `match` on a bool, the longest files and functions. Each row has the figure of an
//! earlier commit beside that of today. Calls are followed by name; see `cycles` for what that misses.

mod cycles;
mod figures;
mod print;
pub(crate) mod read;

use crate::project;
use crate::tidy::layers;
use anyhow::{Context, Result, ensure};
use clap::Args as Arguments;
use figures::Figures;
pub(crate) use figures::{MOST_FILES_OF_A_TYPE, MOST_PARAMETERS, types};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `cargo xtask house`.
#[derive(Arguments)]
pub(crate) struct Args {
    /// Compare with a file of figures or with a commit
    #[arg(long, default_value = "docs/house/before.toml")]
    against: String,
    /// Write the figures of the commit that `--against` names to this file and print nothing
    #[arg(long)]
    write: Option<PathBuf>,
    /// Rows per table
    #[arg(long, default_value_t = 20)]
    rows: usize,
}

/// Prints the tables; always true, since figures are not judged here (`cargo xtask tidy` does that).
pub(crate) fn run(args: &Args) -> Result<bool> {
    let root = project::root();
    let before = before(&root, &args.against)?;
    if let Some(file) = &args.write {
        let text = toml::to_string(&before).context("cannot write figures as TOML")?;
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
        return Ok(true);
    }
    let mut now = measure(&root)?;
    now.commit = git(&root, &["rev-parse", "--short", "HEAD"]).unwrap_or_default();
    print::tables(&before, &now, args.rows);
    Ok(true)
}

fn measure(root: &Path) -> Result<Figures> {
    let units = read::read(&project::files(root)?)?;
    Ok(figures::measure(&units, &layers::workspace(root)?))
}

/// The figures in the file `against`, or of the commit of that name.
fn before(root: &Path, against: &str) -> Result<Figures> {
    if let Ok(text) = std::fs::read_to_string(root.join(against)) {
        return toml::from_str(&text).with_context(|| format!("cannot read {against}"));
    }
    let commit = git(root, &["rev-parse", "--short", against])
        .with_context(|| format!("{against} is neither a file of figures nor a commit"))?;
    let folder = project::target().join("house").join(&commit);
    if !folder.join("Cargo.toml").exists() {
        std::fs::create_dir_all(&folder)?;
        let archive = folder.with_extension("tar");
        let archive = archive.to_string_lossy();
        git(root, &["archive", "--format=tar", "-o", &archive, &commit])?;
        let unpacked = Command::new("tar")
            .args(["-xf", &archive, "-C"])
            .arg(&folder)
            .status();
        ensure!(unpacked?.success(), "tar cannot unpack {archive}");
    }
    let mut figures = measure(&folder)?;
    figures.commit = commit;
    Ok(figures)
}

fn git(root: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("git").args(args).current_dir(root).output();
    let output = output.context("cannot run git")?;
    ensure!(
        output.status.success(),
        "git {}: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
