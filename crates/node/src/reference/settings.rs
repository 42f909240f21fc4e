//! The settings reference.

use super::{cell, code, keep};
use crate::settings::options::{self, OPTIONS, default_text, setter, variable};
use rufous_server::config::Config;
use rufous_server::config::params::{self, PARAMS};
use std::fmt::Write;

const SETTINGS: &str = "\
# Settings

Written by `cargo xtask docs --write` from the table of settings. Each setting can be given in a
configuration file (TOML, `name = value` at top level), in the environment or on the command line
(`--name value`); the command line overrides the environment, and the environment overrides the file.
`rufous check-config` prints the settings in force and the source of each.

*At run time* says whether `CONFIG SET` can change the setting; such a change lasts until the node stops.
Sizes take a unit: `k`, `m` and `g` are powers of 1000, `kb`, `mb` and `gb` powers of 1024.
";

const FACTS: &str = "
## Fixed values

Settings of Redis that have one value in Rufous. They can be read by `CONFIG GET`, and set to the value that
they have, so that tools which write back a configuration work.

| setting | value | meaning |
|---|---|---|
";

/// Which values a setting takes, as it says itself when it refuses one.
fn range(name: &str) -> String {
    let Some(set) = setter(name) else {
        return String::new();
    };
    let refused = ["\u{1}", "-9223372036854775808", "18446744073709551615"].map(|value| {
        let refused = set(&mut Config::default(), value);
        refused.err().unwrap_or_default()
    });
    let said = |start: &str, end: &str| {
        let found = refused
            .iter()
            .find_map(|why| why.strip_prefix(start)?.strip_suffix(end));
        found.map(str::to_owned)
    };
    said("argument must be between ", " inclusive")
        .map(|range| range.replace(" and ", " to "))
        .or_else(|| said("argument(s) must be one of the following: ", ""))
        .unwrap_or_default()
}

#[test]
fn settings_reference() {
    let mut out = String::from(SETTINGS);
    let mut group = None;
    for option in OPTIONS {
        if group.replace(option.group) != Some(option.group) {
            let title = option.group.title();
            let _ = write!(
                out,
                "\n## {title}\n\n| setting | environment | value | range | default | at run time | meaning |\n\
                 |---|---|---|---|---|---|---|\n"
            );
        }
        let param = params::find(option.name.as_bytes()).expect("a setting");
        let _ = writeln!(
            out,
            "| `{}` | `{}` | {} | {} | {} | {} | {} |",
            option.name,
            variable(option.name),
            code(option.value),
            cell(&range(option.name)),
            code(&default_text(option.name)),
            if param.set.is_some() { "yes" } else { "no" },
            cell(param.help),
        );
    }
    out.push_str(FACTS);
    for param in PARAMS {
        if options::find(param.name).is_none() {
            let value = (param.get)(&Config::default());
            let _ = writeln!(
                out,
                "| `{}` | {} | {} |",
                param.name,
                code(&value),
                cell(param.help)
            );
        }
    }
    keep("settings.md", &out);
}
