//! Where things are: the repository's root, cargo's target directory, and the files under version
//! control (found by walking, so that a source archive without git works too).

use crate::tidy::Source;
use anyhow::{Context, Result};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Names of what holds build products, downloads or version control, never sources of ours.
const NOT_SOURCES: [&str; 6] = [
    ".git",
    "target",
    "node_modules",
    "corpus",
    "artifacts",
    "__pycache__",
];

/// The directory of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Cargo's target directory: `CARGO_TARGET_DIR` where set, else `target` in the root.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// Downloads and scratch files of third-party suites; never committed.
pub(crate) fn third_party() -> PathBuf {
    target().join("third-party")
}

/// What suites and demonstrations run, if it is not the release build.
static TESTED: AtomicBool = AtomicBool::new(false);

/// From now on [`server_binary`] is the build that the tests of the workspace run, whose assertions are on.
pub(crate) fn run_tested_build() {
    TESTED.store(true, Ordering::Relaxed);
}

/// The server that suites and demonstrations run.
pub(crate) fn server_binary() -> PathBuf {
    let is_tested = TESTED.load(Ordering::Relaxed);
    target().join(if is_tested {
        "debug/rufous"
    } else {
        "release/rufous"
    })
}

/// One file of the repository, as the rules see it.
pub(crate) struct File {
    /// Path from the root, with `/` as the separator.
    pub(crate) path: String,
    /// The contents; bytes that are not UTF-8 are replaced.
    pub(crate) text: String,
    /// Read when a rule first asks for it.
    source: OnceCell<Source>,
}

impl File {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
            source: OnceCell::new(),
        }
    }

    /// The file as Rust source.
    pub(crate) fn source(&self) -> &Source {
        self.source
            .get_or_init(|| Source::read(&self.path, &self.text))
    }
}

/// All text files of the repository, ordered by path.
pub(crate) fn files(root: &Path) -> Result<Vec<File>> {
    let mut found = Vec::new();
    walk(root, root, &mut found)?;
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

fn walk(root: &Path, directory: &Path, found: &mut Vec<File>) -> Result<()> {
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        // In a linked working tree `.git` is a file.
        if NOT_SOURCES.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(root, &path, found)?;
            continue;
        }
        // A file that others remove while we walk is no error of the repository.
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        if bytes.iter().take(8192).any(|byte| *byte == 0) {
            continue;
        }
        let relative = path.strip_prefix(root).unwrap_or(&path);
        found.push(File::new(
            relative.to_string_lossy().replace('\\', "/"),
            String::from_utf8_lossy(&bytes),
        ));
    }
    Ok(())
}
