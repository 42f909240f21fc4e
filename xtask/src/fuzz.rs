//! `cargo xtask fuzz`: builds the targets of `fuzz/` with coverage and the address sanitizer and
//! runs each for a while. It passes the compiler flags that cargo-fuzz would pass, so that a nightly
//! toolchain is all it needs.

use crate::process::{self, watch};
use crate::{install, project};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Building with the sanitizer takes long on a small machine.
const BUILD_LIMIT: Duration = Duration::from_secs(900);
/// Targets that run at a time.
const TOGETHER: usize = 2;
/// What a target may take beyond its time to report and end.
const GRACE: Duration = Duration::from_secs(60);

const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions";
/// Runs that are shorter than this are not worth the time that optimising takes.
const OPTIMISED_FROM_S: u64 = 60;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u64,
    /// Only this target (default: all of them)
    #[arg(long)]
    pub(crate) target: Option<String>,
}

/// Why fuzzing is impossible on this machine, and what would make it possible.
pub(crate) fn obstacle() -> Option<&'static str> {
    if !project::root().join("fuzz/Cargo.toml").is_file() {
        Some("there are no fuzz targets")
    } else if !install::has_nightly() {
        Some("no nightly toolchain: rustup toolchain install nightly --profile minimal")
    } else {
        None
    }
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    Ok(run_counted(args)?.is_empty())
}

/// Answers the targets that failed, each with why.
pub(crate) fn run_counted(args: &Args) -> Result<Vec<String>> {
    if let Some(obstacle) = obstacle() {
        anyhow::bail!("cannot fuzz: {obstacle}");
    }
    let all = targets()?;
    let targets: Vec<&String> = all
        .iter()
        .filter(|name| args.target.as_ref().is_none_or(|wanted| wanted == *name))
        .collect();
    ensure!(
        !targets.is_empty(),
        "no such fuzz target; there are: {}",
        all.join(", ")
    );
    let triple = host()?;
    let build_directory = project::target().join("fuzz");
    let is_long = args.seconds >= OPTIMISED_FROM_S;
    let (level, parts) = if is_long { ("3", "1") } else { ("1", "16") };
    let flags = format!("{FLAGS} -Ccodegen-units={parts}");
    let mut build = Command::new("cargo");
    // Inside of a cargo started by rustup the toolchain is pinned; the nightly is named anew.
    build
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("RUSTFLAGS", flags)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level)
        .env("CARGO_TARGET_DIR", &build_directory);
    build.current_dir(project::root().join("fuzz")).args([
        "+nightly",
        "build",
        "--release",
        "--bins",
    ]);
    build.args(["--target", &triple]);
    ensure!(
        watch(&mut build, BUILD_LIMIT, true)?.success(),
        "the fuzz targets do not build"
    );
    let binaries = build_directory.join(&triple).join("release");
    let mut failures = Vec::new();
    for some in targets.chunks(TOGETHER) {
        let run = |target: &&String| one(target, &binaries.join(target), args.seconds);
        let ended: Vec<Result<Option<String>>> = std::thread::scope(|scope| {
            let runs: Vec<_> = some.iter().map(|of| scope.spawn(move || run(of))).collect();
            let ended = runs.into_iter().map(|run| run.join());
            let ended = ended.map(|run| run.unwrap_or_else(|_| bail!("a run of fuzzing panicked")));
            ended.collect()
        });
        for (target, failure) in some.iter().zip(ended) {
            let failure = failure?;
            println!(
                "fuzz {target}: {} after {} s",
                failure.as_deref().map_or("nothing found", |_| "FAILED"),
                args.seconds
            );
            failures.extend(failure.map(|failure| format!("{target}: {failure}")));
        }
    }
    Ok(failures)
}

/// Runs a target; answers why it failed, if it has.
fn one(target: &str, binary: &Path, seconds: u64) -> Result<Option<String>> {
    let home = project::root().join("fuzz");
    let corpus = home.join("corpus").join(target);
    let artifacts = home.join("artifacts").join(target);
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(binary);
    command
        .current_dir(&home)
        .arg(format!("-max_total_time={seconds}"))
        .arg("-rss_limit_mb=2048");
    command
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&corpus);
    let seeds = home.join("seeds").join(target);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    let finished = watch(&mut command, Duration::from_secs(seconds) + GRACE, false)?;
    if finished.success() {
        return Ok(None);
    }
    println!("{}", finished.text);
    Ok(Some(verdict(&finished.text)))
}

/// Where the target panicked and what the input was.
fn verdict(text: &str) -> String {
    let mut panicked = text
        .lines()
        .skip_while(|line| !line.contains("panicked at"));
    let panicked: Vec<&str> = panicked.by_ref().take(2).collect();
    let told = ["SUMMARY:", "Base64:"];
    let rest = text
        .lines()
        .filter(|line| told.iter().any(|told| line.starts_with(told)));
    let all: Vec<&str> = panicked.into_iter().chain(rest).collect();
    all.join(" | ")
}

/// The triple that the compiler builds for, which the sanitizer must be told.
fn host() -> Result<String> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not tell its host")
}

/// The targets' names, from the files in `fuzz/fuzz_targets`.
fn targets() -> Result<Vec<String>> {
    let directory = project::root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&directory)
        .with_context(|| format!("cannot list {}", directory.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_suffix(".rs")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    Ok(names)
}
