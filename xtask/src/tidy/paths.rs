//! Documents name only what exists: paths in backticks in the guiding documents, and relative links
//! in every Markdown file.
//!
//! A path in backticks counts when it starts with a directory of the root or a crate's name, or
//! ends like a source file. It is looked up from the root, then under `crates/`; a bare file name
//! must be the name of some file. `{a,b}` stands for several paths.

use super::Violation;
use crate::project::File;

const RULE: &str = "paths";

/// Documents that must exist.
const REQUIRED: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "docs/walkthrough/get.md",
    "docs/walkthrough/put.md",
];

const ENDINGS: [&str; 6] = [".rs", ".md", ".toml", ".tcl", ".service", ".yml"];

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for required in REQUIRED
        .iter()
        .filter(|required| !files.iter().any(|file| file.path == **required))
    {
        found.push(Violation::new(RULE, *required, "is missing"));
    }
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, text) in file.text.lines().enumerate() {
            let mut missing: Vec<String> = links(text)
                .filter(|link| !linked(files, &file.path, link))
                .collect();
            if is_guide(&file.path) {
                missing.extend(quoted(text, files).filter(|path| !exists(files, path)));
            }
            for path in missing {
                found.push(Violation::at(
                    RULE,
                    &file.path,
                    line,
                    format!("names {path}, which does not exist"),
                ));
            }
        }
    }
    found
}

/// Documents whose paths in backticks are checked.
fn is_guide(path: &str) -> bool {
    matches!(path, "README.md" | "ARCHITECTURE.md" | "CONTRIBUTING.md")
        || path.starts_with("docs/walkthrough/")
}

/// Targets of relative links, without their anchors.
fn links(text: &str) -> impl Iterator<Item = String> {
    text.split("](").skip(1).filter_map(|rest| {
        let target = rest.split(')').next()?.split(['#', ' ']).next()?;
        let foreign = target.contains("://") || target.starts_with("mailto:");
        (!target.is_empty() && !foreign).then(|| target.to_owned())
    })
}

/// Whether `link` in the document at `from` leads to a file or directory.
fn linked(files: &[File], from: &str, link: &str) -> bool {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.is_empty() || present(files, &parts.join("/"))
}

/// Paths in backticks that claim to be in this repository.
fn quoted(text: &str, files: &[File]) -> impl Iterator<Item = String> {
    let spans: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let mut paths = Vec::new();
    for span in spans {
        let path = span.trim_end_matches('/');
        let shaped = path
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./{},".contains(c));
        if shaped && claims_to_exist(path, files) {
            paths.extend(expand(path));
        }
    }
    paths.into_iter()
}

fn claims_to_exist(path: &str, files: &[File]) -> bool {
    let is_name = path.len() > 3 && ENDINGS.iter().any(|ending| path.ends_with(ending));
    let Some((first, _)) = path.split_once('/') else {
        return is_name && !path.starts_with('.');
    };
    let is_crate = !first.is_empty()
        && files
            .iter()
            .any(|file| super::crate_of(&file.path) == Some(first));
    let is_top = !first.is_empty()
        && files.iter().any(|file| {
            file.path
                .split_once('/')
                .is_some_and(|(top, _)| top == first)
        });
    first != "target" && (is_name || is_crate || is_top)
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expand(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![path.to_owned()];
    };
    let Some((choices, after)) = rest.split_once('}') else {
        return vec![path.to_owned()];
    };
    choices
        .split(',')
        .flat_map(|choice| expand(&format!("{before}{choice}{after}")))
        .collect()
}

fn exists(files: &[File], path: &str) -> bool {
    if !path.contains('/') {
        return files
            .iter()
            .any(|file| file.path.rsplit('/').next() == Some(path));
    }
    present(files, path) || present(files, &format!("crates/{path}"))
}

/// Whether `path` is a file or a directory that holds one.
fn present(files: &[File], path: &str) -> bool {
    files.iter().any(|file| {
        file.path == path
            || file
                .path
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let mut files = repository(&[
            (path, text),
            ("crates/resp/src/parse.rs", ""),
            ("crates/server/src/command/get.rs", ""),
            ("docs/adr/0001-x.md", ""),
        ]);
        for required in REQUIRED.iter().filter(|required| **required != path) {
            files.extend(repository(&[(*required, "")]));
        }
        check(&files)
            .into_iter()
            .map(|violation| violation.what)
            .collect()
    }

    #[test]
    fn paths_that_exist_pass() {
        let text = "`crates/resp/src/parse.rs`, `resp/src/parse.rs`, `parse.rs`, `crates/resp/`, `docs/adr`,\n\
            `GET/SET`, `/metrics`, `cargo run`, `target/release/rufous`, `docs/{adr,walkthrough}`";
        assert!(complaints("ARCHITECTURE.md", text).is_empty());
    }

    #[test]
    fn each_kind_of_stale_path_fails() {
        for stale in [
            "crates/gone/src",
            "resp/src/gone.rs",
            "gone.rs",
            "docs/{adr,gone}",
            "server/connection",
        ] {
            assert_eq!(
                complaints("docs/walkthrough/get.md", &format!("see `{stale}`")).len(),
                1,
                "{stale}"
            );
        }
    }

    #[test]
    fn other_documents_are_checked_for_links_only() {
        assert!(
            complaints(
                "docs/b.md",
                "`gone.rs` [a](adr/0001-x.md#why) [b](../README.md) [c](https://x.org)"
            )
            .is_empty()
        );
        assert_eq!(complaints("docs/b.md", "[a](gone.md)").len(), 1);
    }

    #[test]
    fn required_documents_must_exist() {
        assert_eq!(check(&repository(&[("a.rs", "")])).len(), REQUIRED.len());
    }
}
