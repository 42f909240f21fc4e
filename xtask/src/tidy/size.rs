//! Files stay under 500 lines and functions under 70. What is longer is listed, with its length, in
//! `xtask/size-exceptions.toml`, which may only shrink: an entry that is no longer needed, or names
//! more lines than there are, fails as well.

use super::{Violation, rust};
use crate::project::File;
use serde::Deserialize;

const RULE: &str = "size";
const EXCEPTIONS: &str = "xtask/size-exceptions.toml";
const MOST_FILE_LINES: usize = 500;
const MOST_FUNCTION_LINES: usize = 70;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    #[serde(default)]
    file: Vec<Exception>,
    #[serde(default)]
    function: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    path: String,
    /// The function's name; empty for a file.
    #[serde(default)]
    name: String,
    lines: usize,
    why: String,
}

/// Something with a length.
struct Measured {
    path: String,
    name: String,
    line: usize,
    lines: usize,
}

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let Some(list) = files.iter().find(|file| file.path == EXCEPTIONS) else {
        return vec![Violation::new(RULE, EXCEPTIONS, "is missing")];
    };
    let exceptions: Exceptions = match toml::from_str(&list.text) {
        Ok(exceptions) => exceptions,
        Err(error) => return vec![Violation::new(RULE, EXCEPTIONS, error.to_string())],
    };
    let (mut lengths, mut functions) = (Vec::new(), Vec::new());
    for file in rust(files) {
        let lines = file.text.lines().count();
        lengths.push(Measured {
            path: file.path.clone(),
            name: String::new(),
            line: 0,
            lines,
        });
        for function in file.source().functions() {
            let (line, lines) = (function.first, function.lines());
            functions.push(Measured {
                path: file.path.clone(),
                name: function.name.clone(),
                line,
                lines,
            });
        }
    }
    let mut found = compare(&lengths, &exceptions.file, MOST_FILE_LINES);
    found.extend(compare(
        &functions,
        &exceptions.function,
        MOST_FUNCTION_LINES,
    ));
    found
}

fn compare(measured: &[Measured], exceptions: &[Exception], most: usize) -> Vec<Violation> {
    let mut found = Vec::new();
    for item in measured.iter().filter(|item| item.lines > most) {
        let matching = exceptions
            .iter()
            .find(|entry| entry.path == item.path && entry.name == item.name);
        let allowed = matching.map_or(most, |entry| entry.lines);
        if item.lines > allowed {
            let what = format!(
                "{}{} lines, {allowed} allowed: split it",
                label(&item.name),
                item.lines
            );
            found.push(Violation::at(RULE, &item.path, item.line, what));
        }
    }
    for entry in exceptions {
        let longest = measured
            .iter()
            .filter(|item| item.path == entry.path && item.name == entry.name)
            .map(|item| item.lines)
            .max()
            .unwrap_or(0);
        let place = format!("{EXCEPTIONS} ({} {})", entry.path, entry.name);
        if entry.why.trim().is_empty() {
            found.push(Violation::new(RULE, &place, "gives no reason"));
        }
        if longest <= most {
            found.push(Violation::new(
                RULE,
                &place,
                "is no longer needed: remove the entry",
            ));
        } else if longest < entry.lines {
            found.push(Violation::new(
                RULE,
                &place,
                format!("has shrunk: lower the entry to {longest} lines"),
            ));
        }
    }
    found
}

fn label(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!("fn {name}: ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    fn complaints(text: &str, exceptions: &str) -> Vec<String> {
        let files = repository(&[("src/a.rs", text), (EXCEPTIONS, exceptions)]);
        check(&files)
            .into_iter()
            .map(|violation| violation.to_string())
            .collect()
    }

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    const WHY: &str = "why = \"generated\"\n";

    #[test]
    fn long_files_and_functions_fail() {
        assert!(complaints(&function(70), "").is_empty());
        assert_eq!(complaints(&function(71), "").len(), 1);
        assert!(complaints(&"// x\n".repeat(500), "").is_empty());
        assert_eq!(complaints(&"// x\n".repeat(501), "").len(), 1);
    }

    #[test]
    fn exceptions_cover_their_length_only() {
        let entry = |lines| {
            format!("[[function]]\npath = \"src/a.rs\"\nname = \"long\"\nlines = {lines}\n{WHY}")
        };
        assert!(complaints(&function(90), &entry(90)).is_empty());
        assert!(complaints(&function(91), &entry(90))[0].contains("90 allowed"));
    }

    #[test]
    fn stale_exceptions_fail() {
        let entry = |lines| format!("[[file]]\npath = \"src/a.rs\"\nlines = {lines}\n{WHY}");
        assert!(
            complaints(&"// x\n".repeat(600), &entry(601))[0].contains("lower the entry to 600")
        );
        assert!(complaints(&"// x\n".repeat(400), &entry(600))[0].contains("no longer needed"));
        assert!(
            complaints(
                "",
                "[[file]]\npath = \"src/gone.rs\"\nlines = 600\nwhy = \"\"\n"
            )
            .len()
                == 2
        );
    }
}
