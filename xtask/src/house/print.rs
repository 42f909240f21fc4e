//! The tables of `cargo xtask house`, before and now side by side.

use super::cycles::Cycle;
use super::figures::{Figures, MOST_FILES_OF_A_TYPE, OfType, Package};
use std::collections::{BTreeMap, BTreeSet};

/// Prints all tables with at most `rows` rows each.
pub(crate) fn tables(before: &Figures, now: &Figures, rows: usize) {
    println!("before: {}, now: {}", before.commit, now.commit);
    sums(before, now);
    types(before, now, rows);
    packages(before, now);
    cycles(before, now, rows);
    counted(
        "parameters (more than five, tuples counted through)",
        &before.parameters,
        &now.parameters,
        rows,
    );
    counted(
        "match on a bool, by file",
        &before.bool_matches,
        &now.bool_matches,
        rows,
    );
    counted("longest files (lines)", &before.files, &now.files, rows);
    counted(
        "longest functions (lines)",
        &before.functions,
        &now.functions,
        rows,
    );
}

/// `before → now`, `-` where there is nothing.
fn pair(before: Option<usize>, now: Option<usize>) -> String {
    let text =
        |value: Option<usize>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    format!("{:>7} {:>7}", text(before), text(now))
}

fn sums(before: &Figures, now: &Figures) {
    let row = |name: &str, of: &dyn Fn(&Figures) -> usize| {
        println!("  {:<52} {}", name, pair(Some(of(before)), Some(of(now))));
    };
    println!("\n{:<54} {:>7} {:>7}", "sums", "before", "now");
    row("lines outside of tests", &|of| {
        of.packages.values().map(|of| of.production).sum()
    });
    row("lines of tests", &|of| {
        of.packages.values().map(|of| of.test).sum()
    });
    row("types with impl in more than three files", &|of| {
        of.types
            .values()
            .filter(|of| of.files > MOST_FILES_OF_A_TYPE)
            .count()
    });
    row("files in cycles of calls", &|of| {
        of.cycles.values().flatten().map(Vec::len).sum()
    });
    row("files in the largest cycle", &|of| {
        of.cycles
            .values()
            .flatten()
            .map(Vec::len)
            .max()
            .unwrap_or_default()
    });
    row("functions with more than five parameters", &|of| {
        of.parameters.len()
    });
    row("match on a bool", &|of| of.bool_matches.values().sum());
    row("files over 500 lines", &|of| {
        of.files.values().filter(|lines| **lines > 500).count()
    });
    row("functions over 70 lines", &|of| {
        of.functions.values().filter(|lines| **lines > 70).count()
    });
}

fn types(before: &Figures, now: &Figures, rows: usize) {
    let size = |of: &OfType| (of.files, of.methods);
    let mut names: Vec<&String> = now.types.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(size(&now.types[*name])));
    names.truncate(rows);
    let mut old: Vec<&String> = before.types.keys().collect();
    old.sort_by_key(|name| std::cmp::Reverse(size(&before.types[*name])));
    old.truncate(rows);
    old.retain(|name| !names.contains(name));
    println!(
        "\n{:<42} {:>15} {:>15} {:>15} {:>15}",
        "types (`-`: gone, new, or below every limit)", "files", "methods", "fields", "all fields"
    );
    for name in names.into_iter().chain(old) {
        let (was, is) = (before.types.get(name), now.types.get(name));
        let column = |of: fn(&OfType) -> usize| pair(was.map(of), is.map(of));
        println!(
            "  {name:<40} {} {} {} {}",
            column(|of| of.files),
            column(|of| of.methods),
            column(|of| of.fields),
            column(|of| of.reach)
        );
    }
}

fn packages(before: &Figures, now: &Figures) {
    println!(
        "\n{:<42} {:>15} {:>15} {:>15}",
        "packages", "production", "tests", "uses packages"
    );
    let names: BTreeSet<&String> = before.packages.keys().chain(now.packages.keys()).collect();
    for name in names {
        let (was, is) = (before.packages.get(name), now.packages.get(name));
        let column = |of: fn(&Package) -> usize| pair(was.map(of), is.map(of));
        println!(
            "  {name:<40} {} {} {}",
            column(|of| of.production),
            column(|of| of.test),
            column(|of| of.edges)
        );
    }
}

fn cycles(before: &Figures, now: &Figures, rows: usize) {
    println!(
        "\n{:<42} {:>15}",
        "cycles of calls between files (by name)", "files"
    );
    let names: BTreeSet<&String> = before.cycles.keys().chain(now.cycles.keys()).collect();
    let none = Vec::new();
    for name in names {
        let was = before.cycles.get(name).unwrap_or(&none);
        let is = now.cycles.get(name).unwrap_or(&none);
        for at in 0..was.len().max(is.len()).min(rows) {
            let files = |of: &[Cycle]| of.get(at).map(Vec::len);
            let example = is.get(at).or(was.get(at)).map(some).unwrap_or_default();
            println!("  {name:<40} {} {example}", pair(files(was), files(is)));
        }
    }
}

/// The names of some files of a cycle, to tell it by.
fn some(cycle: &Cycle) -> String {
    let short = |path: &String| {
        path.split_once("/src/")
            .map_or(path.clone(), |(_, rest)| rest.to_owned())
    };
    let names: Vec<String> = cycle.iter().take(4).map(short).collect();
    let more = if cycle.len() > names.len() {
        ", …"
    } else {
        ""
    };
    format!(" {}{more}", names.join(", "))
}

fn counted(
    title: &str,
    before: &BTreeMap<String, usize>,
    now: &BTreeMap<String, usize>,
    rows: usize,
) {
    println!("\n{title:<82} {:>7} {:>7}", "before", "now");
    let mut names: Vec<&String> = now.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(now[*name]));
    for name in names.into_iter().take(rows) {
        println!(
            "  {name:<80} {}",
            pair(before.get(name).copied(), now.get(name).copied())
        );
    }
    let gone = before
        .keys()
        .filter(|name| !now.contains_key(*name))
        .count();
    println!(
        "  {} then, {} now; {gone} of those of then are gone or moved",
        before.len(),
        now.len()
    );
}
