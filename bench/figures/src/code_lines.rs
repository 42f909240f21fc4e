//! How much code each level is: lines of its file, without comments, empty lines and tests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

/// Where the kernel keeps its levels, a file each, seen from the root of the repository.
const LEVELS: &str = "crates/store/src/level";
/// What several of them stand on.
const SHARED: [&str; 5] = [
    "crates/lattice/src/register.rs",
    "crates/lattice/src/siblings.rs",
    "crates/store/src/level/mod.rs",
    "crates/replicate/src/transaction.rs",
    "crates/store/src/shard/contexts.rs",
];

/// Lines of C++ that Anna needs for a level on top of simple eventual consistency: in the lattice, the
/// server and the client's proxy [Anna Fig. 3].
const ANNA: [(&str, [u32; 3]); 9] = [
    ("causal", [20, 12, 22]),
    ("read-uncommitted", [17, 7, 4]),
    ("read-committed", [17, 10, 9]),
    ("item-cut", [17, 7, 10]),
    ("monotonic-reads", [17, 7, 4]),
    ("monotonic-writes", [17, 7, 4]),
    ("writes-follow-reads", [17, 7, 18]),
    ("read-your-writes", [17, 7, 4]),
    ("pram", [17, 7, 4]),
];

/// The lines of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Counted {
    /// The level's name; of shared files the path.
    pub name: String,
    pub lines: usize,
    /// Anna's, where the paper has it.
    pub anna: Option<[u32; 3]>,
}

/// Every level's file, and what they share, as they are below the current directory.
pub(crate) fn count() -> Result<(Vec<Counted>, Vec<Counted>)> {
    let mut levels = Vec::new();
    for entry in fs::read_dir(LEVELS).with_context(|| format!("looking for {LEVELS}"))? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_rust = path.extension().is_some_and(|end| end == "rs");
        if let Some(stem) = stem.filter(|stem| is_rust && *stem != "mod") {
            levels.push(counted(stem.replace('_', "-"), &path)?);
        }
    }
    levels.sort_by(|a, b| a.name.cmp(&b.name));
    let shared = SHARED
        .iter()
        .filter(|path| Path::new(path).is_file())
        .map(|path| counted((*path).to_owned(), Path::new(path)));
    Ok((levels, shared.collect::<Result<_>>()?))
}

fn counted(name: String, path: &Path) -> Result<Counted> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let anna = ANNA.iter().find(|(level, _)| *level == name);
    Ok(Counted {
        lines: code(&text),
        anna: anna.map(|(_, lines)| *lines),
        name,
    })
}

/// Lines with code before the tests, which end a file here, or are named in a line of it.
fn code(text: &str) -> usize {
    let mut lines = text.lines().map(str::trim);
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            if lines.next().is_some_and(|next| next.ends_with('{')) {
                break;
            }
        } else if !line.is_empty() && !line.starts_with("//") {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_counts() {
        let text = "//! Words.\n\nuse a;\n\n/// Says.\nfn f() {\n    // why\n    g(); // here\n}\n\n\
                    #[cfg(test)]\nmod tests {\n    fn t() {}\n}\n";
        assert_eq!(code(text), 4);
        assert_eq!(code("use a;\n#[cfg(test)]\nmod tests;\n\nfn f() {}\n"), 2);
        assert_eq!(code(""), 0);
    }

    #[test]
    fn every_level_of_the_paper_has_a_file_here() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (name, _) in ANNA {
            let path = root.join(LEVELS).join(name.replace('-', "_") + ".rs");
            let counted = counted(name.to_owned(), &path).unwrap();
            assert!(counted.lines > 0 && counted.anna.is_some(), "{counted:?}");
        }
        for path in SHARED {
            assert!(root.join(path).is_file(), "{path}");
        }
    }
}
