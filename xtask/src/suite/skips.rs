//! Lists of tests that are left out. A `[section]` names what the entries below belong to, a comment
//! states the reason of the entries that follow it up to the next empty line, and each other line is
//! one entry. An entry without a reason is an error, so that none comes in silently.

use anyhow::{Context, Result, ensure};
use std::path::Path;

/// One test, or a pattern for several, that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) section: String,
    pub(crate) entry: String,
    pub(crate) reason: String,
}

pub(crate) fn read(path: &Path) -> Result<Vec<Skip>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Vec<Skip>> {
    let (mut section, mut reason, mut in_comment) = (String::new(), String::new(), false);
    let mut skips: Vec<Skip> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if let Some(comment) = line.strip_prefix('#') {
            if in_comment {
                reason.push(' ');
            } else {
                reason.clear();
            }
            reason.push_str(comment.trim());
            in_comment = true;
            continue;
        }
        in_comment = false;
        if line.is_empty() {
            reason.clear();
        } else if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name.to_owned();
            reason.clear();
        } else {
            ensure!(
                !reason.is_empty(),
                "line {}: an entry needs a comment with its reason above it",
                number + 1
            );
            let skip = Skip {
                section: section.clone(),
                entry: line.to_owned(),
                reason: reason.clone(),
            };
            ensure!(!skips.contains(&skip), "line {}: listed twice", number + 1);
            skips.push(skip);
        }
    }
    Ok(skips)
}

/// Whether `text` matches `pattern`, in which `*` stands for anything and all else for itself.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(head) else {
        return false;
    };
    let mut pieces: Vec<&str> = tail.split('*').collect();
    // The last piece must end the text; those between may stand anywhere, in order.
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_carry_section_and_reason() {
        let text = "# what this file is\n\n[unit/a]\n# needs lists,\n# which come later\nfirst test\nsecond [x]\n\n[unit/b]\n# no debug\n/^third\n";
        let skips = parse(text).unwrap();
        assert_eq!(skips.len(), 3);
        assert_eq!(skips[0].section, "unit/a");
        assert_eq!(skips[1].entry, "second [x]");
        assert_eq!(skips[1].reason, "needs lists, which come later");
        assert_eq!(
            (skips[2].section.as_str(), skips[2].reason.as_str()),
            ("unit/b", "no debug")
        );
    }

    #[test]
    fn entries_without_reason_or_twice_are_refused() {
        assert!(parse("[unit/a]\ntest\n").is_err());
        assert!(parse("[unit/a]\n# why\none\n\ntwo\n").is_err());
        assert!(parse("[unit/a]\n# why\none\none\n").is_err());
    }

    #[test]
    fn globs_match_whole_texts() {
        assert!(glob("a::test_z*", "a::test_zadd[x]"));
        assert!(glob("*::test_lpop", "tests/a.py::T::test_lpop"));
        assert!(glob("a*c*e", "abcde"));
        assert!(glob("abc", "abc"));
        for (pattern, text) in [
            ("a::test_z*", "b::test_zadd"),
            ("a*c", "abcd"),
            ("abc", "abcd"),
            ("a*c*e", "aec"),
        ] {
            assert!(!glob(pattern, text), "{pattern} {text}");
        }
    }
}
