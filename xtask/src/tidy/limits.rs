//! Limits that today's code does not keep everywhere: a type has its `impl` in at most three files, a
//! function at most five parameters (tuples counted through), nothing matches on a bool, and comments
//! and documents use none of the paraphrases in `PHRASES`.
//!
//! `xtask/limits.toml` holds today's excess, which may only shrink. Types and functions are entered by
//! name alone, and the rest as one sum, so that code can move between files and crates without an edit
//! there. What became better needs no edit either: tidy says that an entry can be lowered, and
//! `cargo xtask tidy --lower` rewrites the file.

use super::{Violation, rust};
use crate::house::{MOST_FILES_OF_A_TYPE, MOST_PARAMETERS, read, types};
use crate::project::File;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const RULE: &str = "limits";
const LIST: &str = "xtask/limits.toml";

/// Words and phrases that hide the subject or the object of a sentence. The style guide of the
/// repository names the field's noun instead: client, node, replica, worker, caller.
const PHRASES: [&str; 20] = [
    "who",
    "whom",
    "somebody",
    "someone",
    "anybody",
    "nobody",
    "everybody",
    "anew",
    "what is there",
    "what was there",
    "what there is",
    "it comes",
    "what comes",
    "what came",
    "gets done",
    "get done",
    "got done",
    "begun anew",
    "of before",
    "all that is there",
];

/// What exceeds a limit, and by how much.
#[derive(Serialize, Deserialize, Default, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Excess {
    /// How often the code outside of tests matches on a bool.
    #[serde(default)]
    bool_matches: usize,
    /// Files with an `impl`, by name of the type.
    #[serde(default)]
    impl_files: BTreeMap<String, usize>,
    /// Parameters, by name of the function.
    #[serde(default)]
    parameters: BTreeMap<String, usize>,
    /// How often comments and documents use a phrase.
    #[serde(default)]
    phrases: BTreeMap<String, usize>,
}

/// Places of what was counted, to print the worst of them.
#[derive(Default)]
struct Places {
    bool_matches: BTreeMap<String, usize>,
    phrases: BTreeMap<String, usize>,
}

/// What the files exceed, compared with the list; notes go to standard output.
pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let Some(list) = files.iter().find(|file| file.path == LIST) else {
        return vec![Violation::new(RULE, LIST, "is missing")];
    };
    let allowed: Excess = match toml::from_str(&list.text) {
        Ok(allowed) => allowed,
        Err(error) => return vec![Violation::new(RULE, LIST, error.to_string())],
    };
    let (now, places) = match measure(files) {
        Ok(measured) => measured,
        Err(error) => return vec![Violation::new(RULE, "Rust files", format!("{error:#}"))],
    };
    let found = compare(&now, &allowed, &places);
    for line in summary(&now, &allowed, &places) {
        println!("{line}");
    }
    found
}

/// Rewrites the list with what is exceeded today, where that is less than it says.
pub(crate) fn lower(root: &Path, files: &[File]) -> Result<()> {
    let (now, _) = measure(files)?;
    let list = root.join(LIST);
    let lowered = match std::fs::read_to_string(&list) {
        Ok(text) => least(
            &now,
            &toml::from_str(&text).with_context(|| format!("cannot read {LIST}"))?,
        ),
        Err(_) => now,
    };
    let text = format!(
        "# What exceeds the limits of xtask/src/tidy/limits.rs. Figures may only fall:\n\
         # `cargo xtask tidy --lower` writes this file and raises none of them.\n\n{}",
        toml::to_string(&lowered)?
    );
    std::fs::write(&list, text).with_context(|| format!("cannot write {LIST}"))
}

fn measure(files: &[File]) -> Result<(Excess, Places)> {
    let (mut excess, mut places) = (Excess::default(), Places::default());
    let units = read::read(files)?;
    for (name, of) in types(&units) {
        let name = name.rsplit("::").next().unwrap_or(&name);
        raise(&mut excess.impl_files, name, of.files, MOST_FILES_OF_A_TYPE);
    }
    for unit in &units {
        for function in &unit.functions {
            raise(
                &mut excess.parameters,
                &function.name,
                function.parameters,
                MOST_PARAMETERS,
            );
        }
        let matches = unit.bool_matches.len();
        excess.bool_matches += matches;
        raise(&mut places.bool_matches, &unit.path, matches, 0);
    }
    for (path, text) in prose(files) {
        let text = text.to_lowercase();
        let mut in_file = 0;
        for phrase in PHRASES {
            let times = super::source::words(&text, phrase).count();
            if times > 0 {
                *excess.phrases.entry(phrase.to_owned()).or_default() += times;
                in_file += times;
            }
        }
        raise(&mut places.phrases, path, in_file, 0);
    }
    Ok((excess, places))
}

/// Enters `value` where it is above `most` and above what the table has.
fn raise(table: &mut BTreeMap<String, usize>, name: &str, value: usize, most: usize) {
    if value > most {
        let entry = table.entry(name.to_owned()).or_default();
        *entry = value.max(*entry);
    }
}

/// Comments of Rust files and text of documents, but for code blocks; by path.
fn prose(files: &[File]) -> impl Iterator<Item = (&str, String)> {
    let comments = rust(files).map(|file| {
        let comments = &file.source().comments;
        (file.path.as_str(), comments.join("\n"))
    });
    let documents = files.iter().filter(|file| file.path.ends_with(".md"));
    comments.chain(documents.map(|file| {
        let parts = file.text.split("```").step_by(2);
        (file.path.as_str(), parts.collect::<Vec<_>>().join("\n"))
    }))
}

fn compare(now: &Excess, allowed: &Excess, places: &Places) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut tell = |what: String| found.push(Violation::new(RULE, LIST, what));
    for (name, files) in above(&now.impl_files, &allowed.impl_files, MOST_FILES_OF_A_TYPE) {
        let (files, most) = files;
        tell(format!(
            "{name} has `impl` in {files} files, {most} allowed: make it several types"
        ));
    }
    for (name, values) in above(&now.parameters, &allowed.parameters, MOST_PARAMETERS) {
        let (values, most) = values;
        tell(format!(
            "fn {name} has {values} parameters, {most} allowed: pass a struct"
        ));
    }
    if now.bool_matches > allowed.bool_matches {
        tell(format!(
            "{} times `match` on a bool, {} allowed: write `if` (most in {})",
            now.bool_matches,
            allowed.bool_matches,
            worst(&places.bool_matches, 3)
        ));
    }
    for (phrase, (times, most)) in above(&now.phrases, &allowed.phrases, 0) {
        tell(format!(
            "{times} times \"{phrase}\" in comments and documents, {most} allowed: name the subject"
        ));
    }
    found
}

/// Entries of `now` that are above what `allowed` has for them, with both.
fn above<'a>(
    now: &'a BTreeMap<String, usize>,
    allowed: &'a BTreeMap<String, usize>,
    limit: usize,
) -> impl Iterator<Item = (&'a str, (usize, usize))> {
    now.iter().filter_map(move |(name, value)| {
        let most = allowed.get(name).copied().unwrap_or(limit);
        (*value > most).then_some((name.as_str(), (*value, most)))
    })
}

/// The lower one of two figures each; what one does not have keeps the limit and is left out.
fn least(now: &Excess, allowed: &Excess) -> Excess {
    let table = |now: &BTreeMap<String, usize>, allowed: &BTreeMap<String, usize>| {
        let both = now.iter().filter_map(|(name, value)| {
            let most = allowed.get(name)?;
            Some((name.clone(), *value.min(most)))
        });
        both.collect()
    };
    Excess {
        bool_matches: now.bool_matches.min(allowed.bool_matches),
        impl_files: table(&now.impl_files, &allowed.impl_files),
        parameters: table(&now.parameters, &allowed.parameters),
        phrases: table(&now.phrases, &allowed.phrases),
    }
}

/// The worst offenders of each limit, and whether the list can be lowered.
fn summary(now: &Excess, allowed: &Excess, places: &Places) -> Vec<String> {
    let mut lines = vec![
        format!(
            "impl in more than {MOST_FILES_OF_A_TYPE} files: {}",
            worst(&now.impl_files, 8)
        ),
        format!(
            "more than {MOST_PARAMETERS} parameters: {}",
            worst(&now.parameters, 8)
        ),
        format!(
            "match on a bool, {} times: {}",
            now.bool_matches,
            worst(&places.bool_matches, 4)
        ),
        format!("paraphrases: {}", worst(&now.phrases, 8)),
        format!("files with most of them: {}", worst(&places.phrases, 4)),
    ];
    let sum = |of: &Excess| {
        let tables = [&of.impl_files, &of.parameters, &of.phrases];
        of.bool_matches
            + tables
                .iter()
                .flat_map(|table| table.values())
                .sum::<usize>()
    };
    let (lowered, listed) = (sum(&least(now, allowed)), sum(allowed));
    if lowered < listed {
        lines.push(format!(
            "{LIST} can be lowered (sum of all figures from {listed} to {lowered}): cargo xtask tidy --lower"
        ));
    }
    lines
}

fn worst(table: &BTreeMap<String, usize>, rows: usize) -> String {
    let mut entries: Vec<(&String, &usize)> = table.iter().collect();
    entries.sort_by_key(|(_, value)| std::cmp::Reverse(**value));
    let shown: Vec<String> = entries
        .iter()
        .take(rows)
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let more = entries.len() - shown.len();
    match more {
        0 if shown.is_empty() => "none".to_owned(),
        0 => shown.join(", "),
        _ => format!("{}, {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    fn complaints(code: &str, list: &str) -> Vec<String> {
        let files = repository(&[("crates/a/src/lib.rs", code), (LIST, list)]);
        check(&files)
            .into_iter()
            .map(|violation| violation.what)
            .collect()
    }

    #[test]
    fn parameters_and_matches_over_the_list_fail() {
        let code =
            "fn f(a: (u8, u8), b: u8, c: u8, d: u8, e: bool) { match e { true => 1, _ => 2 }; }";
        let found = complaints(code, "");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("fn f has 6 parameters, 5 allowed"));
        assert!(complaints(code, "bool-matches = 1\n[parameters]\nf = 6\n").is_empty());
    }

    #[test]
    fn better_than_the_list_passes() {
        assert!(complaints("fn f() {}", "bool-matches = 9\n[parameters]\nf = 6\n").is_empty());
    }

    #[test]
    fn an_impl_in_a_fourth_file_fails() {
        let block = "impl A {}";
        let files = repository(&[
            ("crates/a/src/a.rs", "struct A; impl A {}"),
            ("crates/a/src/b.rs", block),
            ("crates/a/src/c.rs", block),
            ("crates/a/src/d.rs", block),
            (LIST, ""),
        ]);
        assert!(check(&files)[0].what.contains("A has `impl` in 4 files"));
    }

    #[test]
    fn paraphrases_are_found_in_prose_and_not_in_code() {
        assert!(complaints("fn who() { say(\"somebody\") }", "").is_empty());
        assert_eq!(complaints("// Somebody\nfn f() {}", "").len(), 1);
        let files = repository(&[("docs/a.md", "```\nwho\n```\nwho\n"), (LIST, "")]);
        assert!(check(&files)[0].what.contains("1 times \"who\""));
    }

    #[test]
    fn lowering_raises_nothing() {
        let of = |text: &str| toml::from_str::<Excess>(text).expect("a sample");
        let now = of("bool-matches = 3\n[parameters]\nf = 7\nnew = 6\n");
        let allowed = of("bool-matches = 5\n[parameters]\nf = 6\ngone = 9\n");
        assert_eq!(
            least(&now, &allowed),
            of("bool-matches = 3\n[parameters]\nf = 6\n")
        );
    }
}
