//! The pages of `docs/reference`, written from the tables of the code: only tests build this.
//!
//! `cargo xtask docs --write` writes the pages; otherwise a test compares them.
//!
//! - [`commands`]: the command table, and the commands of Redis that are missing
//! - [`settings`]: the table of settings
//! - [`metrics`]: the metrics of the admin port
//! - [`errors`]: that the page of error codes names each code that the source has

mod commands;
mod errors;
mod metrics;
mod settings;

use std::path::PathBuf;

/// Set by `cargo xtask docs --write`.
const WRITE: &str = "RUFOUS_WRITE_DOCS";

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Writes a page, or compares it with the committed one.
#[track_caller]
fn keep(name: &str, text: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(path, text).expect("written");
        return;
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == text,
        "docs/reference/{name} differs from the code: run cargo xtask docs --write"
    );
}

/// Text as it stands in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The same as code; nothing where there is none.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("`{}`", cell(text))
}
