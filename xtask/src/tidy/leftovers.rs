//! Nothing unfinished is left behind: no `todo!`, `unimplemented!` or `dbg!`, and no ignored test
//! without its reason.

use super::source::words;
use super::{Violation, rust};
use crate::project::File;

const RULE: &str = "leftovers";

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in rust(files) {
        let source = file.source();
        for (line, code) in source.code.iter().enumerate() {
            for name in ["todo", "unimplemented", "dbg"] {
                if words(code, name).any(|at| code[at + name.len()..].starts_with('!')) {
                    found.push(Violation::at(
                        RULE,
                        &file.path,
                        line,
                        format!("{name}! is left behind"),
                    ));
                }
            }
            if ignored_without_reason(code, file.text.lines().nth(line).unwrap_or_default()) {
                found.push(Violation::at(
                    RULE,
                    &file.path,
                    line,
                    "#[ignore] needs a reason: #[ignore = \"why\"]",
                ));
            }
        }
    }
    found
}

/// `code` has string contents blanked and decides whether this is an attribute at all; `raw` is the
/// line as written.
fn ignored_without_reason(code: &str, raw: &str) -> bool {
    if !code.trim_start().starts_with("#[") || words(code, "ignore").next().is_none() {
        return false;
    }
    let reason = raw
        .split_once("ignore")
        .and_then(|(_, rest)| rest.split('"').nth(1));
    reason.is_none_or(|reason| reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    #[test]
    fn each_leftover_fails() {
        let bad = [
            "fn f() { todo!() }",
            "fn f() { unimplemented!(\"x\") }",
            "let a = dbg!(b);",
            "#[ignore]\nfn f() {}",
            "#[ignore = \"\"]",
            "#[cfg_attr(miri, ignore)]",
        ];
        for text in bad {
            assert_eq!(check(&repository(&[("a.rs", text)])).len(), 1, "{text}");
        }
    }

    #[test]
    fn words_alone_are_fine() {
        let text = "// todo!\nlet todo = \"dbg!\";\n#[ignore = \"needs 16 GiB\"]\nfn ignore() {}\nif todo != 1 {}";
        assert!(check(&repository(&[("a.rs", text)])).is_empty());
    }
}
