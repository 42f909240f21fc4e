//! Every paper that a comment or document cites, as in `[Anna §V]`, is described in docs/papers.md
//! under a heading with its key.

use super::{Violation, rust};
use crate::project::File;

const RULE: &str = "papers";
const LIST: &str = "docs/papers.md";

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let Some(list) = files.iter().find(|file| file.path == LIST) else {
        return vec![Violation::new(RULE, LIST, "is missing")];
    };
    let known: Vec<&str> = list
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(str::trim)
        .collect();
    let mut found = Vec::new();
    let mut report = |path: &str, line: usize, text: &str| {
        for key in citations(text).filter(|key| !known.contains(key)) {
            found.push(Violation::at(
                RULE,
                path,
                line,
                format!("cites {key}, which {LIST} does not describe"),
            ));
        }
    };
    for file in rust(files) {
        for (line, comment) in file.source().comments.iter().enumerate() {
            report(&file.path, line, comment);
        }
    }
    for file in files
        .iter()
        .filter(|file| file.path.ends_with(".md") && file.path != LIST)
    {
        for (line, text) in file.text.lines().enumerate() {
            report(&file.path, line, text);
        }
    }
    found
}

/// The keys of citations in `text`: in brackets, a key and then a section or a year.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    text.split('[').skip(1).filter_map(|rest| {
        let inside = rest.split(']').next()?;
        let (key, place) = inside.split_once(' ')?;
        let is_key = key.starts_with(|c: char| c.is_ascii_uppercase())
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let year: String = place.chars().take_while(char::is_ascii_digit).collect();
        let is_year = year.len() == 4 && (year.starts_with("19") || year.starts_with("20"));
        (is_key && (place.starts_with('§') || is_year)).then_some(key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    const PAPERS: (&str, &str) = (
        "docs/papers.md",
        "# Papers\n\n## Anna\n\ntext\n\n## Anna-auto\n",
    );

    #[test]
    fn unknown_keys_fail_in_comments_and_documents() {
        let files = repository(&[
            PAPERS,
            (
                "a.rs",
                "//! As in [Anna §V] and [Anna-auto §4.3].\n// [Warp §2.3]\nlet a = \"[Wrap §1]\";\n",
            ),
            ("b.md", "see [Litwin 1980] and [a link](b.md), [Not a key]"),
        ]);
        let found: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a.rs:2") && found[0].contains("Warp"));
        assert!(found[1].starts_with("b.md:1") && found[1].contains("Litwin"));
    }

    #[test]
    fn a_missing_list_fails() {
        assert_eq!(check(&repository(&[("a.rs", "")])).len(), 1);
    }
}
