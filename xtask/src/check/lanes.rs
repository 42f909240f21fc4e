//! All tests of the workspace, in two lanes beside one another: those of the simulator and the models compute, and
//! most others wait for nodes and disks. The simulator takes what time of the processors is left.

use crate::process::{self, Finished, watch};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// A program with tests.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// As cargo announces it.
    title: String,
    executable: PathBuf,
    /// The folder of its package, where it runs.
    package: PathBuf,
}

impl Program {
    fn computes(&self) -> bool {
        let computing = ["sim", "model"];
        computing.iter().any(|name| self.package.ends_with(name))
    }
}

/// A message of cargo.
#[derive(Deserialize)]
struct Built {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Runs what `tests` would: it is a `cargo test` that nothing has been left to compile for. Each lane
/// may take so long.
pub(super) fn run(mut tests: impl FnMut() -> Command, limit: Duration) -> Result<Finished> {
    let mut list = tests();
    list.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let programs = programs(&process::output(&mut list)?);
    let (computing, waiting): (Vec<Program>, _) = programs.into_iter().partition(Program::computes);
    let beside = std::thread::spawn(move || lane(&computing, "10", limit, false));
    let mut all = lane(&waiting, "0", limit, true)?;
    let documentation = watch(tests().arg("--doc"), limit, true)?;
    let Ok(beside) = beside.join() else {
        bail!("running the simulator's tests failed");
    };
    let beside = beside?;
    print!("{}", beside.text);
    for finished in [documentation, beside] {
        all.text.push_str(&finished.text);
        all.status = worse(all.status, finished.status);
    }
    Ok(all)
}

/// Runs programs one after the other, whatever their outcomes.
fn lane(programs: &[Program], niceness: &str, limit: Duration, echo: bool) -> Result<Finished> {
    let deadline = Instant::now() + limit;
    let mut all: Option<Finished> = None;
    for program in programs {
        let title = format!("     Running {}\n", program.title);
        if echo {
            print!("{title}");
        }
        let mut command = Command::new("nice");
        command.args(["-n", niceness]).arg(&program.executable);
        command
            .current_dir(&program.package)
            .env("CARGO_MANIFEST_DIR", &program.package);
        let left = deadline.saturating_duration_since(Instant::now());
        let finished = watch(&mut command, left, echo)?;
        let text = title + &finished.text;
        all = Some(match all {
            None => Finished { text, ..finished },
            Some(before) => Finished {
                status: worse(before.status, finished.status),
                text: before.text + &text,
            },
        });
    }
    all.context("there are no tests")
}

/// A run that was stopped, then one that failed, says how all have ended.
fn worse(one: Option<ExitStatus>, other: Option<ExitStatus>) -> Option<ExitStatus> {
    let (one, other) = (one?, other?);
    Some(if one.success() { other } else { one })
}

/// The programs with tests in the messages of cargo.
fn programs(messages: &str) -> Vec<Program> {
    let messages = messages.lines();
    let built = messages.filter_map(|line| serde_json::from_str::<Built>(line).ok());
    built.filter_map(program).collect()
}

fn program(built: Built) -> Option<Program> {
    built.profile.filter(|profile| profile.test)?;
    let executable = built.executable?;
    let package = built.manifest_path?.parent()?.to_owned();
    let source = built.target?.src_path;
    let source = source.strip_prefix(&package).unwrap_or(&source);
    let kind = if source.starts_with("src") {
        "unittests "
    } else {
        ""
    };
    let shown = executable.strip_prefix(crate::project::root());
    let shown: &Path = shown.unwrap_or(&executable);
    Some(Program {
        title: format!("{kind}{} ({})", source.display(), shown.display()),
        executable,
        package,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT: &str = r#"
{"reason":"compiler-artifact","manifest_path":"/p/crates/store/Cargo.toml","target":{"kind":["lib"],"src_path":"/p/crates/store/src/lib.rs"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/p/crates/store/Cargo.toml","target":{"kind":["lib"],"src_path":"/p/crates/store/src/lib.rs"},"profile":{"test":true},"executable":"/p/target/debug/deps/rufous_store-1f"}
{"reason":"compiler-artifact","manifest_path":"/p/sim/Cargo.toml","target":{"kind":["test"],"src_path":"/p/sim/tests/all/main.rs"},"profile":{"test":true},"executable":"/p/target/debug/deps/all-2a"}
{"reason":"compiler-artifact","manifest_path":"/p/sim/Cargo.toml","target":{"kind":["bin"],"src_path":"/p/sim/src/main.rs"},"profile":{"test":false},"executable":"/p/target/debug/rufous-sim"}
{"reason":"build-finished","success":true}
"#;

    #[test]
    fn programs_with_tests_are_those_that_cargo_names() {
        let found = programs(BUILT);
        let titles: Vec<&str> = found.iter().map(|program| &*program.title).collect();
        let store = "unittests src/lib.rs (/p/target/debug/deps/rufous_store-1f)";
        let sim = "tests/all/main.rs (/p/target/debug/deps/all-2a)";
        assert_eq!(titles, [store, sim]);
        let computes: Vec<bool> = found.iter().map(Program::computes).collect();
        assert_eq!(computes, [false, true]);
        assert_eq!(found[1].package, Path::new("/p/sim"));
    }

    #[test]
    fn a_lane_goes_on_after_a_failure_and_ends_with_it() {
        let program = |executable: &str| Program {
            title: executable.to_owned(),
            executable: executable.into(),
            package: "/".into(),
        };
        let programs = [program("false"), program("pwd")];
        let finished = lane(&programs, "0", Duration::from_secs(60), false).unwrap();
        assert!(!finished.success() && finished.status.is_some());
        assert!(
            finished.text.ends_with("Running pwd\n/\n"),
            "{}",
            finished.text
        );
    }
}
