//! That `docs/reference/errors.md` names each error code that the source sends, and no other.

use super::root;
use rufous_server::command::table;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Words in upper case with which texts begin that are no errors: options of commands, and others.
const NO_CODES: [&str; 14] = [
    "AND", "CUT", "ENCODING", "FREQ", "GETREG", "HTTP", "IDLETIME", "KINDS", "LEVEL", "REFCOUNT",
    "SECONDS", "STORE", "TLS", "VERSION",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs")
            && !path.to_string_lossy().contains("test")
        {
            found.push(path);
        }
    }
}

/// The first word of each string that begins with a word in upper case and a blank.
fn codes(source: &str, found: &mut BTreeSet<String>) {
    let shipped = source.split("#[cfg(test)]\nmod tests {").next();
    for literal in shipped.unwrap_or_default().split('"').skip(1) {
        let literal = literal.strip_prefix('-').unwrap_or(literal);
        if let Some((word, _)) = literal.split_once(' ')
            && word.len() >= 3
            && word.bytes().all(|byte| byte.is_ascii_uppercase())
        {
            found.insert(word.to_owned());
        }
    }
}

#[test]
fn every_error_code_is_described() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut sent = BTreeSet::new();
    for file in files {
        let path = file.to_string_lossy();
        if path.contains("/src/") && !path.contains("/client/") && !path.contains("/reference/") {
            codes(&std::fs::read_to_string(&file).expect("text"), &mut sent);
        }
    }
    sent.retain(|word| {
        let is_command = table().find(word.as_bytes()).is_some();
        !is_command && !NO_CODES.contains(&word.as_str())
    });
    let page = std::fs::read_to_string(root().join("docs/reference/errors.md")).expect("the page");
    let described: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'))
        .map(str::to_owned)
        .collect();
    let missing: Vec<_> = sent.difference(&described).collect();
    let unused: Vec<_> = described.difference(&sent).collect();
    assert!(
        missing.is_empty() && unused.is_empty(),
        "docs/reference/errors.md: missing {missing:?}, not sent any more {unused:?}"
    );
}
