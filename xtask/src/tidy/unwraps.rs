//! Nothing that comes from outside of the process may panic: in the crates that handle it, `unwrap`
//! and `expect` need a comment with `invariant:`, on their line or directly above.

use super::source::Source;
use super::{Violation, crate_of, shipped};
use crate::project::File;

const RULE: &str = "unwraps";

/// Crates that hold input from sockets, files or the command line in their hands.
const GUARDED: [&str; 11] = [
    "resp",
    "server",
    "node",
    "kernel",
    "store",
    "durable",
    "replicate",
    "runtime",
    "command",
    "wire",
    "coordinator",
];

const PANICS: [&str; 5] = [
    ".unwrap()",
    ".expect(",
    ".unwrap_err()",
    ".expect_err(",
    ".unwrap_unchecked()",
];

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in shipped(files)
        .filter(|file| crate_of(&file.path).is_some_and(|name| GUARDED.contains(&name)))
    {
        let source = file.source();
        for (line, code) in source.shipped() {
            // A parser's own method `expect` is no panic.
            let code = code
                .split_whitespace()
                .collect::<String>()
                .replace("self.expect(", "");
            let panics = PANICS.iter().find(|name| code.contains(**name));
            if let Some(name) = panics.filter(|_| !explained(source, line)) {
                let what = format!("{name} without a comment that states its `invariant:`");
                found.push(Violation::at(RULE, &file.path, line, what));
            }
        }
    }
    found
}

/// Whether the line, or the comment block directly above, states the invariant. The statement may
/// have begun some lines above, so a chain of method calls is followed to its first line.
fn explained(source: &Source, line: usize) -> bool {
    let stated = |line: usize| source.comments[line].contains("invariant:");
    if stated(line) {
        return true;
    }
    let mut above = line;
    while above > 0 && source.code[above].trim_start().starts_with('.') {
        above -= 1;
        if stated(above) {
            return true;
        }
    }
    while above > 0
        && source.code[above - 1].trim().is_empty()
        && !source.comments[above - 1].is_empty()
    {
        above -= 1;
        if stated(above) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    fn count(path: &str, text: &str) -> usize {
        check(&repository(&[(path, text)])).len()
    }

    #[test]
    fn bare_unwraps_fail_in_guarded_crates() {
        assert_eq!(count("crates/resp/src/a.rs", "let a = b.unwrap();"), 1);
        assert_eq!(
            count("crates/server/src/a.rs", "let a = b.expect(\"x\");"),
            1
        );
        assert_eq!(
            count(
                "crates/kernel/src/a.rs",
                "let a = b\n    .c()\n    .unwrap();"
            ),
            1
        );
        assert_eq!(
            count(
                "crates/kernel/src/a.rs",
                "// invariant: far away\nlet x = 1;\nlet a = b.unwrap();"
            ),
            1
        );
        assert_eq!(count("crates/datatype/src/a.rs", "let a = b.unwrap();"), 0);
    }

    #[test]
    fn a_stated_invariant_passes() {
        assert_eq!(
            count(
                "crates/resp/src/a.rs",
                "let a = b.unwrap(); // invariant: b was checked"
            ),
            0
        );
        assert_eq!(
            count(
                "crates/resp/src/a.rs",
                "// invariant: b was checked\n// two lines up\nlet a = b.unwrap();"
            ),
            0
        );
        assert_eq!(
            count(
                "crates/resp/src/a.rs",
                "// invariant: checked\nlet a = b\n    .unwrap();"
            ),
            0
        );
    }

    #[test]
    fn a_method_of_the_same_name_passes() {
        assert_eq!(
            count("crates/resp/src/a.rs", "self.expect(next, Stage::Header);"),
            0
        );
        assert_eq!(count("crates/resp/src/a.rs", "self.next.expect(\"x\");"), 1);
    }

    #[test]
    fn tests_may_unwrap() {
        assert_eq!(
            count(
                "crates/resp/src/a.rs",
                "#[cfg(test)]\nmod tests { fn f() { a.unwrap(); } }"
            ),
            0
        );
        assert_eq!(count("crates/node/tests/a.rs", "fn f() { a.unwrap(); }"), 0);
        assert_eq!(
            count(
                "crates/resp/src/a.rs",
                "let a = b.unwrap_or(0); // .unwrap()"
            ),
            0
        );
    }
}
