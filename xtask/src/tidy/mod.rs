//! `cargo xtask tidy`: the rules of the house, each a module that answers what is wrong.
//!
//! A rule is a pure function from the repository's files (or from what `cargo metadata` says) to
//! violations, so that its unit tests can show it failing on a small bad sample. Rules about parts
//! that do not exist yet (equal simulation traces, golden bytes) come with those parts.

mod indexes;
pub(crate) mod layers;
mod leftovers;
mod limits;
mod machine;
mod merges;
mod opening;
mod papers;
mod paths;
mod purity;
mod size;
mod source;
mod unwraps;

use crate::project::{self, File};
use anyhow::Result;
pub(crate) use source::{Source, is_test_file};
use std::fmt;

/// Crates that hold no clock, socket, file, thread or unseeded hasher.
const PURE: [&str; 14] = [
    "base",
    "lattice",
    "datatype",
    "mapping",
    "chain",
    "cluster",
    "store",
    "durable",
    "replicate",
    "kernel",
    "policy",
    "resp",
    "wire",
    "command",
];

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    rule: &'static str,
    place: String,
    what: String,
}

impl Violation {
    fn new(rule: &'static str, place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            rule,
            place: place.into(),
            what: what.into(),
        }
    }

    /// `line` counts from zero.
    fn at(rule: &'static str, path: &str, line: usize, what: impl Into<String>) -> Self {
        Self::new(rule, format!("{path}:{}", line + 1), what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [{}] {}", self.place, self.rule, self.what)
    }
}

/// Checks the repository and prints what is wrong; true when nothing is.
pub(crate) fn run() -> Result<bool> {
    let root = project::root();
    let files = project::files(&root)?;
    let violations = check(&files, &layers::workspace(&root)?);
    for violation in &violations {
        println!("{violation}");
    }
    println!(
        "tidy: {} files, {} violations",
        files.len(),
        violations.len()
    );
    Ok(violations.is_empty())
}

/// Lowers the figures of the limits that today's code exceeds to what they are now.
pub(crate) fn lower() -> Result<bool> {
    let root = project::root();
    limits::lower(&root, &project::files(&root)?)?;
    run()
}

fn check(files: &[File], workspace: &[layers::Package]) -> Vec<Violation> {
    let mut all = layers::check(files, workspace);
    all.extend(purity::check(files));
    all.extend(opening::check(files));
    all.extend(paths::check(files));
    all.extend(papers::check(files));
    all.extend(size::check(files));
    all.extend(leftovers::check(files));
    all.extend(unwraps::check(files));
    all.extend(machine::check(files));
    all.extend(merges::check(files));
    all.extend(indexes::check(files));
    all.extend(limits::check(files));
    all
}

/// The Rust files among `files`.
fn rust(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.path.ends_with(".rs"))
}

/// The Rust files that are part of what is shipped: not those whose module is declared for tests
/// only, as in `#[cfg(test)] mod testing;`.
pub(crate) fn shipped(files: &[File]) -> impl Iterator<Item = &File> {
    let mut for_tests: Vec<String> = Vec::new();
    for file in rust(files).filter(|file| file.text.contains("cfg(test)")) {
        let source = file.source();
        let directory = match file.path.rsplit_once('/') {
            Some((directory, "lib.rs" | "main.rs" | "mod.rs")) => directory.to_owned(),
            _ => file.path.trim_end_matches(".rs").to_owned(),
        };
        for (line, code) in source
            .code
            .iter()
            .enumerate()
            .filter(|(line, _)| source.in_test[*line])
        {
            let name = source::words(code, "mod")
                .next()
                .and_then(|at| code[at + 3..].trim().strip_suffix(';'));
            if let Some(name) = name.filter(|_| !is_test_file(&file.path) && line > 0) {
                for_tests.push(format!("{directory}/{name}.rs"));
                for_tests.push(format!("{directory}/{name}/"));
            }
        }
    }
    rust(files).filter(move |file| {
        !for_tests
            .iter()
            .any(|path| file.path.starts_with(path.as_str()))
    })
}

/// The crate under `crates/` that `path` belongs to.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

/// Whether `path` is the root file of a crate.
fn is_crate_root(path: &str) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository made of `(path, text)`.
    pub(crate) fn repository(files: &[(&str, &str)]) -> Vec<File> {
        files
            .iter()
            .map(|(path, text)| File::new(*path, *text))
            .collect()
    }

    #[test]
    fn violations_name_rule_and_place() {
        let violation = Violation::at("size", "src/a.rs", 4, "too long");
        assert_eq!(violation.to_string(), "src/a.rs:5: [size] too long");
    }

    #[test]
    fn modules_declared_for_tests_are_not_shipped() {
        let files = repository(&[
            (
                "crates/a/src/lib.rs",
                "pub mod real;\n#[cfg(test)]\npub mod testing;\n",
            ),
            ("crates/a/src/real.rs", "#[cfg(test)]\nmod model;\n"),
            ("crates/a/src/real/model.rs", ""),
            ("crates/a/src/testing/deep.rs", ""),
            ("crates/a/src/testing.rs", ""),
        ]);
        let paths: Vec<&str> = shipped(&files).map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["crates/a/src/lib.rs", "crates/a/src/real.rs"]);
    }

    #[test]
    fn crates_are_told_by_their_directory() {
        assert_eq!(crate_of("crates/resp/src/lib.rs"), Some("resp"));
        assert_eq!(crate_of("bench/src/main.rs"), None);
        assert!(is_crate_root("crates/resp/src/lib.rs"));
        assert!(!is_crate_root("crates/resp/src/parse.rs"));
    }
}
