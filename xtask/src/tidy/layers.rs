//! Dependencies point one way: the workspace's edges are those that `layers.toml` allows.
//!
//! `layers.toml` names each workspace package once, with the packages it may use; a package may
//! have `tests`, further ones that only its dev-dependencies name. Pure crates in addition keep
//! out packages that bring an async runtime, sockets or operating-system randomness.

use super::{PURE, Violation, crate_of};
use crate::project::File;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const RULE: &str = "layers";
const FILE: &str = "layers.toml";

/// Packages that no pure crate may depend on, not even indirectly named.
const IMPURE_PACKAGES: [&str; 9] = [
    "tokio",
    "mio",
    "async-std",
    "smol",
    "socket2",
    "rand",
    "getrandom",
    "libc",
    "core_affinity",
];

/// A workspace package as `cargo metadata` describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// Absent for a normal dependency, else `dev` or `build`.
    kind: Option<String>,
}

impl Package {
    /// The folder of the package, without `crates/`.
    pub(crate) fn folder(&self) -> &str {
        let folder = self.manifest_path.trim_end_matches("/Cargo.toml");
        folder.strip_prefix("crates/").unwrap_or(folder)
    }

    /// Names of the packages among `workspace` that this one depends on, but for tests.
    pub(crate) fn edges<'a>(&'a self, workspace: &'a [Self]) -> impl Iterator<Item = &'a str> {
        let normal = self
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind.is_none());
        normal
            .map(|dependency| dependency.name.as_str())
            .filter(|name| workspace.iter().any(|other| other.name == *name))
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Allowed {
    uses: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
}

/// The workspace's packages, from `cargo metadata`.
pub(crate) fn workspace(root: &Path) -> Result<Vec<Package>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let mut packages = metadata.packages;
    for package in &mut packages {
        if let Ok(relative) = Path::new(&package.manifest_path).strip_prefix(root) {
            package.manifest_path = relative.to_string_lossy().into_owned();
        }
    }
    Ok(packages)
}

/// Compares the packages' edges with `layers.toml`.
pub(crate) fn check(files: &[File], packages: &[Package]) -> Vec<Violation> {
    let Some(file) = files.iter().find(|file| file.path == FILE) else {
        return vec![Violation::new(RULE, FILE, "is missing")];
    };
    let allowed: BTreeMap<String, Allowed> = match toml::from_str(&file.text) {
        Ok(allowed) => allowed,
        Err(error) => return vec![Violation::new(RULE, FILE, error.to_string())],
    };
    let mut found = Vec::new();
    for package in packages {
        match allowed.get(&package.name) {
            Some(allowed) => found.extend(edges(package, allowed, packages)),
            None => found.push(Violation::new(
                RULE,
                FILE,
                format!("does not list the package {}", package.name),
            )),
        }
        found.extend(impure(package));
    }
    for name in allowed
        .keys()
        .filter(|name| !packages.iter().any(|package| package.name == **name))
    {
        found.push(Violation::new(
            RULE,
            FILE,
            format!("lists {name}, which is no package of the workspace"),
        ));
    }
    found
}

fn edges(package: &Package, allowed: &Allowed, packages: &[Package]) -> Vec<Violation> {
    let ours =
        |dependency: &&Dependency| packages.iter().any(|other| other.name == dependency.name);
    let permitted = |dependency: &&Dependency| {
        let name = &dependency.name;
        *name == package.name
            || allowed.uses.contains(name)
            || (dependency.kind.as_deref() == Some("dev") && allowed.tests.contains(name))
    };
    let forbidden = package
        .dependencies
        .iter()
        .filter(ours)
        .filter(|dependency| !permitted(dependency));
    forbidden
        .map(|dependency| {
            let what = format!("{} may not depend on {}", package.name, dependency.name);
            Violation::new(RULE, &package.manifest_path, what)
        })
        .collect()
}

fn impure(package: &Package) -> Vec<Violation> {
    if !crate_of(&package.manifest_path).is_some_and(|name| PURE.contains(&name)) {
        return Vec::new();
    }
    let shipped = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.is_none());
    shipped
        .filter(|dependency| IMPURE_PACKAGES.contains(&dependency.name.as_str()))
        .map(|dependency| {
            let what = format!(
                "{} is pure and may not use {}",
                package.name, dependency.name
            );
            Violation::new(RULE, &package.manifest_path, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::repository;

    fn package(name: &str, directory: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: kind.map(str::to_owned),
            })
            .collect();
        Package {
            name: name.to_owned(),
            manifest_path: format!("{directory}/Cargo.toml"),
            dependencies,
        }
    }

    fn complaints(layers: &str, packages: &[Package]) -> Vec<String> {
        let found = check(&repository(&[("layers.toml", layers)]), packages);
        found.into_iter().map(|violation| violation.what).collect()
    }

    const BASE: &str = "[a]\nuses = []\n[b]\nuses = [\"a\"]\n";

    #[test]
    fn allowed_edges_and_foreign_packages_pass() {
        let packages = [
            package("a", "crates/a", &[("tokio", None)]),
            package("b", "crates/b", &[("a", None)]),
        ];
        assert!(complaints(BASE, &packages).is_empty());
    }

    #[test]
    fn an_edge_against_the_layers_fails() {
        let packages = [
            package("a", "crates/a", &[("b", None)]),
            package("b", "crates/b", &[]),
        ];
        assert_eq!(complaints(BASE, &packages), ["a may not depend on b"]);
    }

    #[test]
    fn edges_of_tests_are_allowed_for_tests_only() {
        let layers = "[a]\nuses = []\ntests = [\"b\"]\n[b]\nuses = []\n";
        let dev = [
            package("a", "crates/a", &[("b", Some("dev"))]),
            package("b", "crates/b", &[]),
        ];
        assert!(complaints(layers, &dev).is_empty());
        let normal = [
            package("a", "crates/a", &[("b", None)]),
            package("b", "crates/b", &[]),
        ];
        assert_eq!(complaints(layers, &normal), ["a may not depend on b"]);
    }

    #[test]
    fn unlisted_and_vanished_packages_fail() {
        let packages = [package("a", "crates/a", &[]), package("c", "crates/c", &[])];
        let found = complaints(BASE, &packages);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("does not list the package c"));
        assert!(found[1].contains("lists b"));
    }

    #[test]
    fn pure_crates_keep_runtimes_out() {
        let layers = "[rufous-kernel]\nuses = []\n";
        let packages = [package(
            "rufous-kernel",
            "crates/kernel",
            &[("tokio", None), ("rand", Some("dev"))],
        )];
        assert_eq!(
            complaints(layers, &packages),
            ["rufous-kernel is pure and may not use tokio"]
        );
    }
}
