//! The lines that are there because of a level: of each mention of its name, or of a name that means it, the smallest statement,
//! condition with what it guards, or arm; and of functions that are called only from such lines all.

use super::read::{Range, Unit};
use crate::project::File;
use std::collections::{BTreeMap, BTreeSet};

/// The one file among the levels' whose lines are glue: predicates of levels.
pub(super) const PREDICATES: &str = "crates/store/src/level/mod.rs";

/// Lines of files, by number; both count from zero.
pub(super) type Lines = BTreeSet<(usize, usize)>;

/// All files, read.
pub(super) struct Glue<'f> {
    files: &'f [&'f File],
    units: Vec<Unit>,
    /// Lines with code.
    code: Lines,
}

/// Lines (from zero) of a file with code of it, but for imports and tests.
pub(super) fn code_lines(file: &File) -> impl Iterator<Item = usize> {
    let shipped = file.source().shipped();
    let mut imports = false;
    shipped.filter_map(move |(line, code)| {
        let code = code.trim();
        let begins = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        imports |= begins.iter().any(|begin| code.starts_with(begin));
        let is_import = imports;
        imports &= !code.ends_with(';');
        (!code.is_empty() && !is_import).then_some(line)
    })
}

impl<'f> Glue<'f> {
    pub(super) fn new(files: &'f [&'f File], units: Vec<Unit>) -> Self {
        let files_with_numbers = files.iter().enumerate();
        let code = files_with_numbers
            .flat_map(|(number, file)| code_lines(file).map(move |line| (number, line)));
        Self {
            files,
            units,
            code: code.collect(),
        }
    }

    /// All code of the files whose paths satisfy `f`.
    pub(super) fn whole(&self, f: impl Fn(&str) -> bool) -> Lines {
        let fits = |(file, _): &&(usize, usize)| f(&self.files[*file].path);
        self.code.iter().filter(fits).copied().collect()
    }

    /// Of which of the levels the level in the file at `path` has the parts.
    pub(super) fn named_in(&self, path: &str, levels: &[String]) -> BTreeSet<String> {
        let number = self.files.iter().position(|file| file.path == path);
        let mentions = number.map_or(&[][..], |number| &self.units[number].mentions);
        let text = number.map_or("", |number| &self.files[number].text);
        let has_parts = |line| {
            let line = text.lines().nth(line);
            line.is_some_and(|line| line.contains("LEVEL.parts"))
        };
        let is_named = |level: &&String| {
            let name = format!("{level}::LEVEL");
            mentions
                .iter()
                .any(|mention| mention.name == name && has_parts(mention.line))
        };
        let found: BTreeSet<String> = levels.iter().filter(is_named).cloned().collect();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let deeper = found
            .iter()
            .flat_map(|part| self.named_in(&format!("{folder}/{part}.rs"), levels));
        deeper.chain(found.iter().cloned()).collect()
    }

    /// The glue of a level outside of the files whose paths satisfy `is_counted`.
    pub(super) fn of(&self, level: &str, is_counted: impl Fn(&str) -> bool) -> Lines {
        let names = self.names_of(level);
        let mut lines = Lines::new();
        for (number, unit) in self.units.iter().enumerate() {
            if is_counted(&self.files[number].path) {
                continue;
            }
            let global = |name: &str| format!("{number}/{name}");
            for mention in &unit.mentions {
                if names.contains(&mention.name) || names.contains(&global(&mention.name)) {
                    self.add(number, mention.guards, &mut lines);
                }
            }
        }
        self.add_called(&mut lines);
        lines
    }

    fn add(&self, number: usize, (first, last): Range, lines: &mut Lines) {
        lines.extend(self.code.range((number, first)..=(number, last)));
    }

    /// The names that mean the level. Those of local variables begin with the number of their file.
    fn names_of(&self, level: &str) -> BTreeSet<String> {
        let own = format!("/level/{level}.rs");
        let own = self.files.iter().position(|file| file.path.ends_with(&own));
        let functions = own.map_or(&[][..], |number| &self.units[number].functions);
        let functions = functions.iter().map(|function| function.name.as_str());
        let own = functions
            .chain(["LEVEL"])
            .map(|name| format!("{level}::{name}"));
        let mut names: BTreeSet<String> = own.collect();
        loop {
            let more: BTreeSet<String> = self.meaning(&names).difference(&names).cloned().collect();
            if more.is_empty() {
                return names;
            }
            names.extend(more);
        }
    }

    /// What means one of these names.
    fn meaning(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut others = BTreeSet::new();
        for (number, unit) in self.units.iter().enumerate() {
            let path = &self.files[number].path;
            if path.starts_with(super::LEVELS) && path != PREDICATES {
                continue;
            }
            for meaning in &unit.meanings {
                let is_named = |name: &String| {
                    names.contains(name) || names.contains(&format!("{number}/{name}"))
                };
                let means = meaning.of.iter().any(is_named);
                match (means, meaning.is_function) {
                    (true, _) if meaning.name.contains('#') => {
                        found.insert(format!("{number}/{}", meaning.name));
                    }
                    (true, _) => {
                        found.insert(meaning.name.clone());
                    }
                    // One that asks another type's function of its name means the same.
                    (false, true) if !meaning.of.contains(&meaning.name) => {
                        others.insert(&meaning.name);
                    }
                    (false, _) => {}
                }
            }
        }
        found.retain(|name| !others.contains(name));
        found
    }

    /// Adds functions that are called from these lines alone, until there are none.
    fn add_called(&self, lines: &mut Lines) {
        let mut calls: BTreeMap<&str, Lines> = BTreeMap::new();
        let mut defined: BTreeMap<&str, Vec<(usize, Range)>> = BTreeMap::new();
        for (number, unit) in self.units.iter().enumerate() {
            for mention in &unit.mentions {
                let of = calls.entry(&mention.name).or_default();
                of.insert((number, mention.line));
            }
            for function in &unit.functions {
                let of = defined.entry(&function.name).or_default();
                // One of a trait is called through it.
                let twice = if function.is_of_trait { 2 } else { 1 };
                of.extend([(number, function.lines)].repeat(twice));
            }
        }
        let once = defined.iter().filter_map(|(name, all)| match &all[..] {
            [one] => Some((calls.get(name)?, *one)),
            _ => None,
        });
        let once: Vec<_> = once.collect();
        loop {
            let before = lines.len();
            for &(calls, (number, range)) in &once {
                let is_inside = |&(file, line): &(usize, usize)| {
                    file == number && (range.0..=range.1).contains(&line)
                };
                let mut outside = calls.iter().filter(|call| !is_inside(call)).peekable();
                if outside.peek().is_some() && outside.all(|call| lines.contains(call)) {
                    self.add(number, range, lines);
                }
            }
            if lines.len() == before {
                return;
            }
        }
    }
}
