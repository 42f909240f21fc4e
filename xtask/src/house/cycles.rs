//! Cycles of calls between the files of a crate, found by name.
//!
//! This is an approximation, since types of values are not known: `self.name()` is the method of the
//! type; `self.field.name()` that of the field's type; `Type::name()` and `module::name()` are found by
//! the last two segments; on any other value a method counts only where its name is defined in exactly
//! one file of the crate and is no common name of the standard library. Calls through traits of other
//! crates and through function pointers are not seen.

use super::read::{Call, Function, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Names of methods that collections of the standard library have as well.
const COMMON: [&str; 44] = [
    "new", "default", "get", "get_mut", "push", "pop", "insert", "remove", "len", "is_empty",
    "clear", "take", "replace", "next", "iter", "iter_mut", "extend", "contains", "entry", "find",
    "map", "filter", "min", "max", "write", "read", "flush", "send", "clone", "from", "into",
    "drain", "retain", "first", "last", "split", "join", "swap", "set", "append", "set_len",
    "parse", "start", "end",
];

/// Files of one crate of which each reaches each other one by calls, sorted.
pub(crate) type Cycle = Vec<String>;

/// The cycles among `units`, which are the files of one crate; the longest first.
pub(crate) fn cycles(units: &[&Unit]) -> Vec<Cycle> {
    let index = Index::new(units);
    let edges: Vec<BTreeSet<usize>> = units
        .iter()
        .enumerate()
        .map(|(at, unit)| {
            let calls = unit.functions.iter().flat_map(|function| {
                function
                    .calls
                    .iter()
                    .filter_map(|call| index.file_of(at, function, call))
            });
            calls.filter(|to| *to != at).collect()
        })
        .collect();
    let mut found: Vec<Cycle> = components(&edges)
        .into_iter()
        .filter(|files| files.len() > 1)
        .map(|files| {
            let mut names: Vec<String> = files.iter().map(|at| units[*at].path.clone()).collect();
            names.sort();
            names
        })
        .collect();
    found.sort_by_key(|cycle| (std::cmp::Reverse(cycle.len()), cycle.first().cloned()));
    found
}

/// Where the functions of a crate are.
struct Index<'a> {
    units: &'a [&'a Unit],
    /// By the type whose method it is, and the name.
    methods: BTreeMap<(&'a str, &'a str), BTreeSet<usize>>,
    /// Functions outside of `impl`, by name.
    free: BTreeMap<&'a str, BTreeSet<usize>>,
    /// Any function, by name.
    any: BTreeMap<&'a str, BTreeSet<usize>>,
    /// Identifiers in the types of fields, by type and field.
    fields: BTreeMap<(&'a str, &'a str), &'a [String]>,
}

impl<'a> Index<'a> {
    fn new(units: &'a [&'a Unit]) -> Self {
        let mut index = Self {
            units,
            methods: BTreeMap::new(),
            free: BTreeMap::new(),
            any: BTreeMap::new(),
            fields: BTreeMap::new(),
        };
        for (at, unit) in units.iter().enumerate() {
            for function in &unit.functions {
                let name = function.name.as_str();
                index.any.entry(name).or_default().insert(at);
                if let Some(owner) = &function.owner {
                    index.methods.entry((owner, name)).or_default().insert(at);
                } else {
                    index.free.entry(name).or_default().insert(at);
                }
            }
            for found in &unit.types {
                for (field, names) in &found.fields {
                    index.fields.insert((&found.name, field), names);
                }
            }
        }
        index
    }

    /// The file that `call` in `function` of file `at` goes to, where that can be told.
    fn file_of(&self, at: usize, function: &Function, call: &Call) -> Option<usize> {
        let owner = function.owner.as_deref().unwrap_or_default();
        match call {
            Call::OnSelf(name) => self.method(at, owner, name),
            Call::OnField(field, name) => self
                .fields
                .get(&(owner, field.as_str()))?
                .iter()
                .find_map(|ty| self.method(at, ty, name)),
            Call::OnValue(name) if COMMON.contains(&name.as_str()) => None,
            Call::OnValue(name) => one(self.any.get(name.as_str())?),
            Call::Path(Some(before), name) if before == "Self" => self.method(at, owner, name),
            Call::Path(Some(before), name) => {
                let files = self.free.get(name.as_str());
                self.method(at, before, name).or_else(|| {
                    files?
                        .iter()
                        .copied()
                        .find(|file| self.is_module(*file, before))
                })
            }
            Call::Path(None, name) => one(self.free.get(name.as_str())?),
        }
    }

    /// The one file that defines the method; the caller's own where several types have the name.
    fn method(&self, at: usize, owner: &str, name: &str) -> Option<usize> {
        let files = self.methods.get(&(owner, name))?;
        if files.contains(&at) {
            return Some(at);
        }
        one(files)
    }

    fn is_module(&self, file: usize, name: &str) -> bool {
        let path = self.units[file]
            .path
            .trim_end_matches(".rs")
            .trim_end_matches("/mod");
        path.rsplit('/').next() == Some(name)
    }
}

fn one(files: &BTreeSet<usize>) -> Option<usize> {
    (files.len() == 1).then(|| files.first().copied()).flatten()
}

/// Strongly connected components (Kosaraju: two walks, the second one against the edges).
fn components(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut back = vec![BTreeSet::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        for to in targets {
            back[*to].insert(from);
        }
    }
    let (mut seen, mut order) = (vec![false; edges.len()], Vec::new());
    for start in 0..edges.len() {
        walk(start, edges, &mut seen, &mut order);
    }
    seen.fill(false);
    let mut found = Vec::new();
    for start in order.into_iter().rev() {
        let mut component = Vec::new();
        walk(start, &back, &mut seen, &mut component);
        if !component.is_empty() {
            found.push(component);
        }
    }
    found
}

/// Appends what can be reached from `at` and was not seen, each after what it leads to.
fn walk(at: usize, edges: &[BTreeSet<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[at], true) {
        return;
    }
    for to in &edges[at] {
        walk(*to, edges, seen, order);
    }
    order.push(at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::read;

    fn found(files: &[(&str, &str)]) -> Vec<Cycle> {
        let units = read::tests::samples(files);
        cycles(&units.iter().collect::<Vec<_>>())
    }

    #[test]
    fn methods_of_one_type_in_two_files_that_call_each_other_are_a_cycle() {
        let cycles = found(&[
            ("a.rs", "struct A; impl A { fn one(&self) { self.two() } }"),
            ("b.rs", "impl A { fn two(&self) { self.one() } }"),
            ("c.rs", "fn three(a: &A) { a.one() }"),
        ]);
        assert_eq!(cycles, [["crates/a/src/a.rs", "crates/a/src/b.rs"]]);
    }

    #[test]
    fn calls_in_one_direction_are_none() {
        let files = [
            (
                "a.rs",
                "struct A { b: B } impl A { fn one(&self) { self.b.two() } }",
            ),
            ("b.rs", "struct B; impl B { fn two(&self) {} }"),
        ];
        assert!(found(&files).is_empty());
    }

    #[test]
    fn calls_by_path_and_through_fields_are_followed() {
        let cycles = found(&[
            (
                "a.rs",
                "struct A { b: Box<B> } impl A { fn one(&self) { self.b.two() } }",
            ),
            ("b.rs", "struct B; impl B { fn two(&self) { c::three() } }"),
            ("c.rs", "fn three() { A::one(&a) }"),
        ]);
        assert_eq!(cycles[0].len(), 3);
    }
}
