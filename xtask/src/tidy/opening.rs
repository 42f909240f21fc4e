//! Every Rust file opens with `//!` and says what it is for.

use super::{Violation, rust};
use crate::project::File;

const RULE: &str = "opening";

/// Fewer letters than this cannot say what a file is for.
const FEWEST_LETTERS: usize = 12;

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in rust(files) {
        let first = file.text.lines().next().unwrap_or_default();
        match first.strip_prefix("//!") {
            None => found.push(Violation::at(RULE, &file.path, 0, "does not open with //!")),
            Some(text) if text.chars().filter(|c| c.is_alphabetic()).count() < FEWEST_LETTERS => {
                found.push(Violation::at(
                    RULE,
                    &file.path,
                    0,
                    "the opening //! does not say what the file is for",
                ));
            }
            Some(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    #[test]
    fn files_without_an_opening_fail() {
        let files = repository(&[
            ("a.rs", "use std::fmt;\n"),
            ("b.rs", ""),
            ("c.rs", "//! kernel\n"),
            ("d.rs", "//! The hash table of one shard.\n"),
            ("e.md", "text"),
        ]);
        let places: Vec<String> = check(&files)
            .into_iter()
            .map(|violation| violation.place)
            .collect();
        assert_eq!(places, ["a.rs:1", "b.rs:1", "c.rs:1"]);
    }
}
