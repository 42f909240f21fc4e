//! The figures of the house, computed from the files and from `cargo metadata`; `docs/house/before.toml`
//! holds those of an earlier commit.

use super::cycles;
use super::read::{Type, Unit};
use crate::tidy::layers;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Limits of the style guide.
pub(crate) const MOST_FILES_OF_A_TYPE: usize = 3;
pub(crate) const MOST_PARAMETERS: usize = 5;

/// Everything that is measured.
#[derive(Serialize, Deserialize, Default)]
pub(crate) struct Figures {
    /// The commit that was measured.
    pub(crate) commit: String,
    /// Files of every `match` on a bool with their number.
    pub(crate) bool_matches: BTreeMap<String, usize>,
    /// `path name` of functions with more parameters than allowed.
    pub(crate) parameters: BTreeMap<String, usize>,
    /// Lines of the longest files.
    pub(crate) files: BTreeMap<String, usize>,
    /// `path name` of the longest functions with their lines.
    pub(crate) functions: BTreeMap<String, usize>,
    pub(crate) packages: BTreeMap<String, Package>,
    /// Types with `impl` in several files or with many methods, by `package::Name`.
    pub(crate) types: BTreeMap<String, OfType>,
    /// Cycles of calls by package; a cycle is a list of files.
    pub(crate) cycles: BTreeMap<String, Vec<cycles::Cycle>>,
}

/// One package.
#[derive(Serialize, Deserialize, Default, Clone, Copy)]
pub(crate) struct Package {
    pub(crate) production: usize,
    pub(crate) test: usize,
    /// Packages of the workspace that it depends on, but for tests.
    pub(crate) edges: usize,
}

/// One struct or enum.
#[derive(Serialize, Deserialize, Default, Clone, Copy)]
pub(crate) struct OfType {
    /// Files with an `impl` of it.
    pub(crate) files: usize,
    pub(crate) methods: usize,
    pub(crate) fields: usize,
    /// Fields of it and of all structs of the package that its fields lead to.
    pub(crate) reach: usize,
}

/// Measures `units`; `packages` are what `cargo metadata` says.
pub(crate) fn measure(units: &[Unit], packages: &[layers::Package]) -> Figures {
    let mut figures = Figures {
        types: types(units),
        ..Figures::default()
    };
    for unit in units {
        let of = figures.packages.entry(unit.package.clone()).or_default();
        of.production += unit.lines - unit.test_lines;
        of.test += unit.test_lines;
        if !unit.bool_matches.is_empty() {
            figures
                .bool_matches
                .insert(unit.path.clone(), unit.bool_matches.len());
        }
        figures.files.insert(unit.path.clone(), unit.lines);
        for function in &unit.functions {
            let name = format!("{} {}", unit.path, function.name);
            if function.parameters > MOST_PARAMETERS {
                raise(&mut figures.parameters, &name, function.parameters);
            }
            raise(&mut figures.functions, &name, function.lines);
        }
    }
    figures.files.retain(|_, lines| *lines > 480);
    figures.functions.retain(|_, lines| *lines > 65);
    figures
        .types
        .retain(|_, of| of.files > MOST_FILES_OF_A_TYPE || of.methods > 40 || of.fields > 20);
    for package in packages {
        if let Some(of) = figures.packages.get_mut(package.folder()) {
            of.edges = package.edges(packages).count();
        }
    }
    for name in figures.packages.keys() {
        let files: Vec<&Unit> = units.iter().filter(|unit| unit.package == *name).collect();
        let found = cycles::cycles(&files);
        if !found.is_empty() {
            figures.cycles.insert(name.clone(), found);
        }
    }
    figures
}

fn raise(table: &mut BTreeMap<String, usize>, name: &str, to: usize) {
    let entry = table.entry(name.to_owned()).or_default();
    *entry = to.max(*entry);
}

/// Every type of the packages, by `package::Name`, or `package::module::Name` where the package has
/// several of that name.
pub(crate) fn types(units: &[Unit]) -> BTreeMap<String, OfType> {
    let all = Types::new(units);
    let mut files: BTreeMap<(usize, usize), BTreeSet<&str>> = BTreeMap::new();
    let mut methods: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for unit in units {
        for block in &unit.impls {
            if let Some(at) = all.resolve(unit, &block.of) {
                files.entry(at).or_default().insert(&unit.path);
                *methods.entry(at).or_default() += block.methods;
            }
        }
    }
    let mut found = BTreeMap::new();
    for (unit_at, unit) in units.iter().enumerate() {
        for (type_at, ty) in unit.types.iter().enumerate() {
            let at = (unit_at, type_at);
            let of = OfType {
                files: files.get(&at).map_or(0, BTreeSet::len),
                methods: methods.get(&at).copied().unwrap_or_default(),
                fields: ty.fields.len(),
                reach: all.reach(at),
            };
            found.insert(all.label(unit, ty), of);
        }
    }
    found
}

/// All types, to be found by package and name. A type is named by the positions of its file and of
/// itself in the file.
struct Types<'a> {
    units: &'a [Unit],
    by_name: BTreeMap<(&'a str, &'a str), Vec<(usize, usize)>>,
}

impl<'a> Types<'a> {
    fn new(units: &'a [Unit]) -> Self {
        let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (unit_at, unit) in units.iter().enumerate() {
            for (type_at, ty) in unit.types.iter().enumerate() {
                let name = (unit.package.as_str(), ty.name.as_str());
                by_name.entry(name).or_default().push((unit_at, type_at));
            }
        }
        Self { units, by_name }
    }

    /// The type that `name` means in `unit`: the only one, the one in the file, the one that is
    /// imported, else the one that is nearest by path.
    fn resolve(&self, unit: &Unit, name: &str) -> Option<(usize, usize)> {
        let candidates = self.by_name.get(&(unit.package.as_str(), name))?;
        let imported: Option<&str> = unit.imports.iter().find_map(|path| {
            let (last, before) = path.split_last()?;
            (last == name)
                .then(|| before.last().map(String::as_str))
                .flatten()
        });
        candidates.iter().copied().max_by_key(|(at, _)| {
            let path = self.units[*at].path.as_str();
            let shared = path
                .bytes()
                .zip(unit.path.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            (path == unit.path, imported == Some(stem(path)), shared)
        })
    }

    fn label(&self, unit: &Unit, ty: &Type) -> String {
        let several = self
            .by_name
            .get(&(unit.package.as_str(), ty.name.as_str()))
            .is_some_and(|found| found.len() > 1);
        if several {
            format!("{}::{}::{}", unit.package, stem(&unit.path), ty.name)
        } else {
            format!("{}::{}", unit.package, ty.name)
        }
    }

    /// Fields of a struct and of the structs of its package that they lead to, each struct once.
    fn reach(&self, start: (usize, usize)) -> usize {
        let (mut seen, mut open, mut fields) = (BTreeSet::from([start]), vec![start], 0);
        while let Some((unit_at, type_at)) = open.pop() {
            let unit = &self.units[unit_at];
            for (_, names) in &unit.types[type_at].fields {
                fields += 1;
                let leads_to = names.iter().filter_map(|name| self.resolve(unit, name));
                for at in leads_to.filter(|at| self.units[at.0].types[at.1].is_struct) {
                    if seen.insert(at) {
                        open.push(at);
                    }
                }
            }
        }
        fields
    }
}

/// The name of the module that a file is.
fn stem(path: &str) -> &str {
    let path = path
        .trim_end_matches(".rs")
        .trim_end_matches("/mod")
        .trim_end_matches("/lib");
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::read;

    fn figures(files: &[(&str, &str)]) -> Figures {
        measure(&read::tests::samples(files), &[])
    }

    #[test]
    fn a_type_is_counted_over_its_files() {
        let block = "impl A { fn f() {} }";
        let files = [
            ("a.rs", "struct A { b: B, c: u8 } struct B { d: u8 }"),
            ("b.rs", block),
            ("c.rs", block),
            ("d.rs", block),
            ("e.rs", block),
        ];
        let of = figures(&files).types["a::A"];
        assert_eq!((of.files, of.methods, of.fields, of.reach), (4, 4, 2, 3));
    }

    #[test]
    fn types_of_one_name_are_told_apart_by_import_and_by_file() {
        let files = [
            ("x.rs", "struct A; impl A {}"),
            ("y.rs", "struct A; impl A {}"),
            ("z.rs", "use crate::y::A; impl A {}"),
        ];
        let found = types(&read::tests::samples(&files));
        assert_eq!((found["a::x::A"].files, found["a::y::A"].files), (1, 2));
    }

    #[test]
    fn lines_of_tests_are_apart() {
        let found = figures(&[("a.rs", "fn f() {}\n#[cfg(test)]\nmod tests {}\n")]);
        assert_eq!(
            (found.packages["a"].production, found.packages["a"].test),
            (1, 2)
        );
    }
}
