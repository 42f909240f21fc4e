//! How a test reports that it cannot run on this machine, and how `cargo xtask test` reads that.
//!
//! Rust's test harness cannot skip a test while it runs: a test that returns early counts as passed.
//! Such a test calls [`skip`] before it returns. That writes one line to standard error, which the
//! harness does not capture; `cargo xtask test` finds the line in the output ([`read`]), names the
//! test, and counts it as skipped instead of passed.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

const BEGIN: &str = "skipped test ";
const PROGRAM: &str = "needs the program ";

/// What a test misses.
#[derive(Clone, Copy)]
pub enum Missing<'a> {
    /// A program on the search path. The run fails where the test command installs that program.
    Program(&'a str),
    /// A permission or a limit that only the machine's owner can change.
    Permission(&'a str),
}

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(name) => write!(f, "{PROGRAM}{name}"),
            Self::Permission(what) => write!(f, "needs {what}"),
        }
    }
}

/// Reports that the test of this thread cannot run. The test returns afterwards.
pub fn skip(missing: Missing<'_>) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("unknown");
    let line = format!("\n{BEGIN}{}::{test}: {missing}\n", binary());
    // One write, and not by `eprintln!`: the harness would show that for failed tests only.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether the program can be started; reports the test as skipped where it cannot.
pub fn has_program(name: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
    });
    if !found {
        skip(Missing::Program(name));
    }
    found
}

/// The name of the test binary without the hash that cargo appends.
fn binary() -> String {
    let path = std::env::args_os().next().unwrap_or_default();
    let stem = std::path::Path::new(&path).file_stem().unwrap_or_default();
    let stem = stem.to_string_lossy();
    match stem.rsplit_once('-') {
        Some((name, _)) => name.to_owned(),
        None => stem.into_owned(),
    }
}

/// Tests that reported themselves as skipped in this output, with what each of them misses. A test
/// that reported twice is in it once.
pub fn read(output: &str) -> BTreeMap<String, String> {
    let lines = output.lines().filter_map(|line| line.strip_prefix(BEGIN));
    lines
        .filter_map(|line| line.split_once(": "))
        .map(|(test, why)| (test.to_owned(), why.to_owned()))
        .collect()
}

/// The program that was missing, where a reason from [`read`] names one.
pub fn missing_program(reason: &str) -> Option<&str> {
    reason.strip_prefix(PROGRAM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_found_among_other_output_and_counted_once() {
        let output = "running 3 tests\ntest a ... \nskipped test all::a: needs the program etcd\n\
            ok\nskipped test all::a: needs the program etcd\ntest b ... ok\n\
            skipped test node::c: needs permission to mount\n";
        let skipped = read(output);
        assert_eq!(skipped.len(), 2);
        assert_eq!(missing_program(&skipped["all::a"]), Some("etcd"));
        assert_eq!(skipped["node::c"], "needs permission to mount");
        assert_eq!(missing_program(&skipped["node::c"]), None);
    }

    #[test]
    fn a_program_on_the_path_is_found() {
        assert!(has_program("sh"));
    }
}
