//! `cargo xtask levels`: how many lines of code each consistency level needs beyond `eventual`.
//!
//! A level's lines are those of its own file, of the files that exist for it alone ([`OWN`]), and of its glue: what names the level or a
//! predicate of it, as `glue` finds it. Comments, empty lines, imports and tests do not count.
//!
//! It reads names, not types. So it counts too few where a value that depends on a level is passed on (as
//! `Runs::UnderStamp`), and too many where a condition on a level has an `else` that would stay without it. `--show` prints what is
//! counted. A level of transactions has the lower ones as parts: it needs their promises, though not all of their code.

mod glue;
mod read;

use crate::project::{self, File};
use crate::tidy::{is_test_file, shipped};
use anyhow::{Context, Result, bail};
use clap::Args as Arguments;
use glue::{Glue, Lines};
use std::collections::{BTreeMap, BTreeSet};

/// The folder of the levels, a file each.
const LEVELS: &str = "crates/store/src/level/";
/// What the others are compared with.
const BASE: &str = "eventual";
/// The most lines that a level is meant to need.
const LIMIT: usize = 60;

/// Files and folders that exist for one level alone, beside its own file.
const OWN: [(&str, &str); 8] = [
    ("causal", "crates/command/src/causal/"),
    ("causal", "crates/datatype/src/replicated/siblings.rs"),
    ("causal", "crates/kernel/src/worker/contexts.rs"),
    ("causal", "crates/lattice/src/siblings.rs"),
    ("causal", "crates/lattice/src/siblings/"),
    ("causal", "crates/store/src/shard/causal.rs"),
    ("causal", "crates/store/src/shard/contexts.rs"),
    (
        "read_uncommitted",
        "crates/server/src/front/transaction/promises.rs",
    ),
];

/// What several levels share, and none has for itself.
const SHARED: [&str; 3] = [
    "crates/replicate/src/transaction.rs",
    "crates/replicate/src/transaction/isolation.rs",
    "crates/server/src/front/transaction/begun.rs",
];

/// Options of `cargo xtask levels`.
#[derive(Arguments)]
pub(crate) struct Args {
    /// Print each line that is counted for this level
    #[arg(long, value_name = "LEVEL")]
    show: Option<String>,
}

/// A level's lines.
struct Counted {
    file: Lines,
    own: Lines,
    glue: Lines,
    /// The levels that it is composed of, and theirs.
    parts: BTreeSet<String>,
}

impl Counted {
    fn all(&self) -> Lines {
        let some = [&self.file, &self.own, &self.glue];
        some.into_iter().flatten().copied().collect()
    }
}

/// Prints the table; always true.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let files = project::files(&project::root())?;
    let files: Vec<&File> = shipped(&files)
        .filter(|file| file.path.starts_with("crates/") && !is_test_file(&file.path))
        .collect();
    let all = count(&files)?;
    match &args.show {
        Some(level) => show(&files, &all, &level.replace('-', "_"))?,
        None => print(&files, &all),
    }
    Ok(true)
}

fn count(files: &[&File]) -> Result<BTreeMap<String, Counted>> {
    let units = files.iter().map(|file| {
        let unit = read::read(&file.text);
        unit.with_context(|| format!("cannot parse {}", file.path))
    });
    let glue = Glue::new(files, units.collect::<Result<_>>()?);
    let stem = |path: &str| Some(path.strip_prefix(LEVELS)?.strip_suffix(".rs")?.to_owned());
    let levels = files.iter().filter_map(|file| stem(&file.path));
    let levels: Vec<String> = levels.filter(|stem| stem != "mod").collect();
    let of = |level: &String| {
        let path = format!("{LEVELS}{level}.rs");
        let own = OWN.iter().filter(|(of, _)| of == level);
        let own: Vec<&str> = own.map(|(_, path)| *path).collect();
        let is_own = |path: &str| own.iter().any(|own| path.starts_with(own));
        let counted = Counted {
            file: glue.whole(|file| file == path),
            own: glue.whole(is_own),
            glue: glue.of(level, |file| {
                file.starts_with(LEVELS) && file != glue::PREDICATES || is_own(file)
            }),
            parts: glue.named_in(&path, &levels),
        };
        (level.clone(), counted)
    };
    Ok(levels.iter().map(of).collect())
}

fn print(files: &[&File], all: &BTreeMap<String, Counted>) {
    println!("lines of code for each level, beyond {BASE}; * more than {LIMIT}\n");
    println!(
        "{:<22}{:>6}{:>11}{:>6}{:>8}{:>17}",
        "level", "file", "own files", "glue", "total", "with its parts"
    );
    for (level, counted) in all.iter().filter(|(level, _)| *level != BASE) {
        let mut with_parts = counted.all();
        for part in &counted.parts {
            with_parts.extend(all[part].all());
        }
        let [total, with_parts] = [counted.all(), with_parts].map(|lines| {
            let mark = if lines.len() > LIMIT { "*" } else { "" };
            format!("{}{mark:<1}", lines.len())
        });
        println!(
            "{:<22}{:>6}{:>11}{:>6}{total:>8}{with_parts:>17}",
            level.replace('_', "-"),
            counted.file.len(),
            counted.own.len(),
            counted.glue.len(),
        );
    }
    println!("\nshared by several levels, counted above only where they name one");
    for path in SHARED {
        let found = files.iter().find(|file| file.path == path);
        let lines = found.map_or(0, |file| glue::code_lines(file).count());
        println!("{lines:>6}  {path}");
    }
}

fn show(files: &[&File], all: &BTreeMap<String, Counted>, level: &str) -> Result<()> {
    let Some(counted) = all.get(level) else {
        bail!("no level '{level}'");
    };
    for (file, line) in counted.all() {
        let file = files[file];
        let text = file.text.lines().nth(line).unwrap_or_default();
        println!("{}:{}:{text}", file.path, line + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(files: &[(&str, &str)], level: &str) -> Vec<(String, usize)> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File::new(*path, *text))
            .collect();
        let files: Vec<&File> = files.iter().collect();
        let all = count(&files).expect("samples parse");
        let all = all[level].all().into_iter();
        let name = |file: usize| {
            files[file]
                .path
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        all.map(|(file, line)| (name(file), line + 1)).collect()
    }

    const SOLID: (&str, &str) = (
        "crates/store/src/level/solid.rs",
        "//! Words.\nuse super::Spec;\n\npub const LEVEL: Spec = Spec;\n",
    );
    const MOD: (&str, &str) = (
        "crates/store/src/level/mod.rs",
        "pub mod solid;\nimpl Level {\n fn is_solid(self) -> bool {\n  self.has(&solid::LEVEL)\n }\n fn other() {}\n}",
    );

    fn glue(text: &str) -> Vec<usize> {
        let sample = ("crates/a/src/lib.rs", text);
        let found = lines(&[sample, SOLID, MOD], "solid").into_iter();
        found
            .filter(|(file, _)| file == "lib.rs")
            .map(|(_, line)| line)
            .collect()
    }

    #[test]
    fn a_level_has_its_file_and_its_predicates() {
        let found = lines(&[SOLID, MOD], "solid");
        let at = |file: &str, line| (file.to_owned(), line);
        let of_mod = [3, 4, 5].map(|line| at("mod.rs", line));
        assert_eq!(found, [&[at("solid.rs", 4)][..], &of_mod].concat());
    }

    #[test]
    fn what_a_condition_on_it_guards_is_counted() {
        let text =
            "fn f(l: Level) {\n a();\n if l.is_solid() {\n  b();\n  // why\n  c();\n }\n a();\n}";
        assert_eq!(glue(text), [3, 4, 6, 7]);
        let text = "fn f(l: Level) {\n let solid = l.has(&solid::LEVEL);\n a();\n if x && solid {\n  b();\n }\n}";
        assert_eq!(glue(text), [2, 4, 5, 6]);
        let text = "fn f(l: Level) {\n match x {\n  A => a(),\n  B if l.is_solid() => {\n   b();\n  }\n }\n}";
        assert_eq!(glue(text), [4, 5, 6]);
    }

    #[test]
    fn what_is_only_called_there_is_counted_and_what_tests_say_is_not() {
        let text = "fn f(l: Level) {\n if l.is_solid() {\n  b();\n  c();\n }\n c();\n}\nfn b() {\n d();\n}\n\
                    fn c() {\n}\nfn d() {\n}\n#[cfg(test)]\nmod tests {\n fn t(l: Level) {\n  l.is_solid();\n }\n}";
        assert_eq!(glue(text), [2, 3, 4, 5, 8, 9, 10, 13, 14]);
    }

    #[test]
    fn a_predicate_whose_name_others_have_is_not_followed() {
        let other = "struct A;\nimpl A {\n fn is_solid(self) -> bool {\n  true\n }\n}\nfn f(a: A) {\n if a.is_solid() {}\n}";
        assert_eq!(glue(other), [] as [usize; 0]);
    }
}
