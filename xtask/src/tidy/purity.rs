//! Pure crates stay pure, and `unsafe` stays in the runtime.
//!
//! A pure crate's shipped code names no socket, file, thread, clock, async runtime or hasher with a
//! seed of its own; its tests may. Every crate but the runtime forbids unsafe code in its root.

use super::source::{Source, is_word, words};
use super::{PURE, Violation, crate_of, is_crate_root, rust, shipped};
use crate::project::File;

const RULE: &str = "purity";

/// Names that reach outside of the process or differ from run to run.
const FORBIDDEN: [(&str, &str); 11] = [
    ("std::net", "sockets"),
    ("std::fs", "files"),
    ("std::thread", "threads"),
    ("std::os", "the operating system"),
    ("Instant::now", "a clock"),
    ("SystemTime::now", "a clock"),
    ("tokio", "an async runtime"),
    ("std::collections::HashMap", "an unseeded hasher"),
    ("std::collections::HashSet", "an unseeded hasher"),
    ("RandomState", "an unseeded hasher"),
    ("thread_rng", "randomness of its own"),
];

pub(crate) fn check(files: &[File]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in rust(files) {
        let source = file.source();
        if crate_of(&file.path) != Some("runtime") {
            found.extend(unsafe_code(file, source));
        }
    }
    for file in
        shipped(files).filter(|file| crate_of(&file.path).is_some_and(|name| PURE.contains(&name)))
    {
        found.extend(impurities(&file.path, file.source()));
    }
    found
}

fn impurities(path: &str, source: &Source) -> Vec<Violation> {
    let shipped: Vec<(usize, String)> = source
        .shipped()
        .map(|(line, code)| (line, code.split_whitespace().collect::<String>()))
        .collect();
    let mut found = Vec::new();
    for (line, code) in &shipped {
        for (name, what) in FORBIDDEN {
            if words(code, name).next().is_some() {
                found.push(Violation::at(
                    RULE,
                    path,
                    *line,
                    format!("{name}: a pure crate may not use {what}"),
                ));
            }
        }
    }
    found.extend(grouped(path, &shipped));
    found
}

/// Finds `use std::{fs, net::TcpStream}` and `use std::collections::{HashMap, …}`, over lines too.
fn grouped(path: &str, shipped: &[(usize, String)]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut prefix: Option<(&str, i32)> = None;
    for (line, code) in shipped {
        let mut rest = code.as_str();
        if prefix.is_none() {
            for candidate in ["std::collections::", "std::"] {
                if let Some(at) = code.find(&format!("{candidate}{{")) {
                    prefix = Some((candidate, 0));
                    rest = &code[at + candidate.len()..];
                    break;
                }
            }
        }
        let Some((start, mut depth)) = prefix else {
            continue;
        };
        let mut name = String::new();
        for c in rest.chars() {
            if is_word(c) || c == ':' {
                name.push(c);
                continue;
            }
            found.extend(named_in_group(path, *line, start, &name, depth));
            name.clear();
            depth += i32::from(c == '{') - i32::from(c == '}');
        }
        found.extend(named_in_group(path, *line, start, &name, depth));
        prefix = (depth > 0).then_some((start, depth));
    }
    found
}

fn named_in_group(
    path: &str,
    line: usize,
    prefix: &str,
    name: &str,
    depth: i32,
) -> Option<Violation> {
    let full = format!("{prefix}{name}");
    let (name, what) = FORBIDDEN
        .iter()
        .find(|(bad, _)| full == *bad || full.starts_with(&format!("{bad}::")))?;
    (depth == 1).then(|| {
        Violation::at(
            RULE,
            path,
            line,
            format!("{name}: a pure crate may not use {what}"),
        )
    })
}

fn unsafe_code(file: &File, source: &Source) -> Vec<Violation> {
    let mut found: Vec<Violation> = source
        .code
        .iter()
        .enumerate()
        .filter(|(_, code)| words(code, "unsafe").next().is_some())
        .map(|(line, _)| {
            Violation::at(
                RULE,
                &file.path,
                line,
                "unsafe belongs in crates/runtime only",
            )
        })
        .collect();
    let forbids = source
        .code
        .iter()
        .any(|code| code.contains("#![forbid(unsafe_code)]"));
    if is_crate_root(&file.path) && !forbids {
        found.push(Violation::new(
            RULE,
            &file.path,
            "lacks #![forbid(unsafe_code)]",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&repository(&[(path, text)]))
            .into_iter()
            .map(|violation| violation.to_string())
            .collect()
    }

    #[test]
    fn each_forbidden_name_is_found() {
        for (name, _) in FORBIDDEN {
            let found = complaints(
                "crates/kernel/src/a.rs",
                &format!("//! a\nfn f() {{ {name}(); }}"),
            );
            assert_eq!(found.len(), 1, "{name}: {found:?}");
        }
    }

    #[test]
    fn grouped_imports_are_found() {
        let found = complaints(
            "crates/base/src/a.rs",
            "use std::{\n    fmt,\n    net::{TcpStream, fs},\n    fs,\n};\n",
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("a.rs:3") && found[0].contains("std::net"));
        assert!(found[1].contains("a.rs:4") && found[1].contains("std::fs"));
        let found = complaints(
            "crates/base/src/a.rs",
            "use std::collections::{BTreeMap, HashMap};",
        );
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn tests_strings_and_comments_may_name_anything() {
        let text = "//! std::fs\nconst A: &str = \"std::net\";\n#[cfg(test)]\nmod tests {\n use std::fs;\n}";
        assert!(complaints("crates/kernel/src/a.rs", text).is_empty());
        assert!(complaints("crates/runtime/src/a.rs", "use std::net::TcpStream;").is_empty());
    }

    #[test]
    fn unsafe_outside_of_the_runtime_fails() {
        assert_eq!(
            complaints("crates/server/src/a.rs", "fn f() { unsafe { g() } }").len(),
            1
        );
        assert!(complaints("crates/runtime/src/a.rs", "fn f() { unsafe { g() } }").is_empty());
        assert!(complaints("crates/server/src/a.rs", "// unsafe\n").is_empty());
    }

    #[test]
    fn crate_roots_forbid_unsafe() {
        assert_eq!(
            complaints("crates/node/src/main.rs", "fn main() {}").len(),
            1
        );
        assert!(
            complaints("bench/src/main.rs", "#![forbid(unsafe_code)]\nfn main() {}").is_empty()
        );
        assert!(complaints("crates/runtime/src/lib.rs", "fn main() {}").is_empty());
    }
}
