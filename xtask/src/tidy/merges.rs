//! Every lattice is tried by the checker of laws, and is in docs/lattices.md.
//!
//! A lattice of `crates/lattice` is a type with a merge, or the name of a composition of such; the
//! crate's tests call `laws::check::<Name` of each, and `laws::check_total::<Name` of those that are
//! total. Merges of data types need no such rule: what is registered as a type is tried by the
//! checker of algebra, which visits all of them.

use super::source::{is_word, words};
use super::{Violation, rust};
use crate::project::File;

const RULE: &str = "merges";
const CRATE: &str = "crates/lattice/src/";
const LIST: &str = "docs/lattices.md";

/// A lattice, and where it says that it is one.
struct Claim {
    name: String,
    path: String,
    line: usize,
    /// What the tests must call.
    check: &'static str,
}

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let (mut claims, mut tests) = (Vec::new(), String::new());
    for file in rust(files).filter(|file| file.path.starts_with(CRATE)) {
        let source = file.source();
        for (line, code) in source.shipped() {
            claims.extend(claim(code).map(|(name, check)| Claim {
                name,
                path: file.path.clone(),
                line,
                check,
            }));
        }
        for (code, _) in source.code.iter().zip(&source.in_test).filter(|(_, t)| **t) {
            // Calls may be broken over lines.
            tests.extend(code.chars().filter(|c| !c.is_whitespace()));
        }
    }
    let list = files.iter().find(|file| file.path == LIST);
    let mut found = Vec::new();
    for claim in &claims {
        let call = format!("laws::{}::<{}", claim.check, claim.name);
        let is_tried = words(&tests, &call).next().is_some();
        let mut report = |what: String| {
            found.push(Violation::at(RULE, &claim.path, claim.line, what));
        };
        if !is_tried {
            report(format!("no test has {call}…>"));
        }
        if !list.is_some_and(|list| list.text.contains(&format!("`{}`", claim.name))) {
            report(format!("{LIST} does not list {}", claim.name));
        }
    }
    found
}

/// What a line says to be a lattice or total, and by which check it must be tried.
fn claim(code: &str) -> Option<(String, &'static str)> {
    let name = |rest: &str| -> String {
        rest.trim_start()
            .chars()
            .take_while(|c| is_word(*c))
            .collect()
    };
    if let Some(rest) = code.trim_start().strip_prefix("pub type ") {
        return Some((name(rest), "check"));
    }
    // Also where the beginning of a long `impl` is on a line before.
    for (of, check) in [(" Lattice for ", "check"), (" Total for ", "check_total")] {
        if let Some((_, rest)) = code.split_once(of) {
            return Some((name(rest), check));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    const FILE: &str = "crates/lattice/src/a.rs";

    fn found(text: &str, list: &str) -> Vec<String> {
        let files = repository(&[(FILE, text), (LIST, list)]);
        check(&files).iter().map(ToString::to_string).collect()
    }

    const GOOD: &str = "\
impl<T: Ord> Lattice for Max<T> {}
impl<T: Ord> Total for Max<T> {}
pub type Both<T> = Product<Max<T>, Max<T>>;
#[cfg(test)]
mod tests {
    impl Lattice for Planted {}
    fn f() {
        laws::check::<Max<u64>>(1, 1, f);
        laws::check_total::<Max<u64>>(1, 1, f);
        laws::check::<
            Both<u64>,
        >(1, 1, f);
    }
}
";
    const GOOD_LIST: &str = "| `Max` | | `Both` |";

    #[test]
    fn registered_lattices_pass() {
        assert_eq!(found(GOOD, GOOD_LIST), [""; 0]);
    }

    #[test]
    fn each_missing_registration_fails() {
        let without = |line: &str| GOOD.replace(line, "");
        for (text, line, name) in [
            (without("laws::check::<Max<u64>>"), 1, "check::<Max"),
            (
                without("laws::check_total::<Max<u64>>"),
                2,
                "check_total::<Max",
            ),
            (GOOD.replace("Both<u64>,", "Bothered,"), 3, "check::<Both"),
            // A call that ships is not a test.
            (
                without("#[cfg(test)]").replace("impl Lattice for Planted {}", ""),
                1,
                "check::<Max",
            ),
        ] {
            let found = found(&text, GOOD_LIST);
            let place = format!("{FILE}:{line}: [merges]");
            let is_there = |v: &String| v.starts_with(&place) && v.contains(name);
            assert!(found.iter().any(is_there), "{name}: {found:?}");
        }
    }

    #[test]
    fn each_missing_line_in_the_list_fails() {
        assert_eq!(found(GOOD, "| `Max` |").len(), 1);
        assert_eq!(check(&repository(&[(FILE, GOOD)])).len(), 3);
    }

    #[test]
    fn other_crates_have_other_rules() {
        let text = "impl Lattice for Other {}";
        assert!(check(&repository(&[("crates/kernel/src/a.rs", text)])).is_empty());
    }
}
