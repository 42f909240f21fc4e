//! The command reference, and the list of commands of Redis that Rufous does not have.

use super::{cell, code, keep, root};
use rufous_server::command::table;
use std::collections::BTreeSet;
use std::fmt::Write;

const COMMANDS: &str = "\
# Commands

Written by `cargo xtask docs --write` from the declarations of the commands, which `COMMAND INFO` and
`COMMAND DOCS` show too. Upper-case words are literal, `[...]` is optional, `|` separates alternatives.
*Flags* are those of Redis: `write` changes data, `denyoom` is refused when the memory limit is
reached, `blocking` may wait for data.

Commands of Redis that are missing are listed in [unsupported.md](unsupported.md); error codes are in
[errors.md](errors.md). What commands mean on lattice keyspaces is a table in
[keyspaces.md](../keyspaces.md).
";

const UNSUPPORTED: &str = "\
# Commands of Redis 7.2 that are not supported

Written by `cargo xtask docs --write`: the commands in
[redis-7.2-commands.txt](../compatibility/redis-7.2-commands.txt) that are not in the
[command table](commands.md). The reply to such a command is
`ERR unknown command` or, for a subcommand, `ERR unknown subcommand`.
";

/// What is missing as a whole. The first prefix that a command begins with decides.
const AREAS: [(&str, &[&str], &str); 8] = [
    ("Streams", &["x"], "There is no stream type."),
    (
        "Publish and subscribe",
        &[
            "publish", "pubsub", "psub", "punsub", "sub", "unsub", "spub", "ssub", "sunsub",
        ],
        "Channels and keyspace notifications are not supported.",
    ),
    (
        "Scripts and functions",
        &["eval", "script", "fcall", "function"],
        "No Lua scripts are executed. `MULTI` and `BEGIN` run several commands atomically.",
    ),
    (
        "Access control lists",
        &["acl"],
        "One password (`requirepass`) holds for all clients.",
    ),
    (
        "Replication from Redis",
        &[
            "replicaof",
            "slaveof",
            "psync",
            "sync",
            "replconf",
            "failover",
            "wait",
            "restore-asking",
        ],
        "Nodes replicate within a Rufous cluster only; a node is never the replica of a Redis server, \
         nor its master.",
    ),
    (
        "Administration of clusters",
        &["cluster", "asking", "readonly", "readwrite", "migrate"],
        "The nodes place slots themselves. Use `rufous cluster` and the settings of a \
         [cluster](../clusters.md).",
    ),
    ("Modules", &["module"], "Modules cannot be loaded."),
    (
        "Client-side caching",
        &["client|tracking", "client|caching", "client|getredir"],
        "The server does not notify clients of changed keys.",
    ),
];

fn heading(group: &str) -> String {
    let mut letters = group.replace('-', " ");
    letters[..1].make_ascii_uppercase();
    letters
}

#[test]
fn command_reference() {
    let specs: Vec<_> = table().specs().map(|(_, spec)| spec).collect();
    let mut groups = Vec::new();
    for spec in &specs {
        if !groups.contains(&spec.group) {
            groups.push(spec.group);
        }
    }
    groups.sort_by_key(|group| group.name());
    let mut out = String::from(COMMANDS);
    for group in groups {
        let _ = write!(
            out,
            "\n## {}\n\n| command | meaning | complexity | flags |\n|---|---|---|---|\n",
            heading(group.name())
        );
        let mut of_group: Vec<_> = specs.iter().filter(|spec| spec.group == group).collect();
        of_group.sort_by_key(|spec| spec.name);
        for spec in of_group {
            let name = spec.name.to_uppercase().replace('|', " ");
            let usage = format!("{name} {}", spec.syntax);
            let flags: Vec<_> = spec.flags.names().collect();
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                code(usage.trim()),
                cell(spec.summary),
                cell(spec.complexity),
                flags.join(", ")
            );
        }
    }
    keep("commands.md", &out);
}

#[test]
fn unsupported_commands() {
    let path = root().join("docs/compatibility/redis-7.2-commands.txt");
    let text = std::fs::read_to_string(path).expect("a list");
    let known: BTreeSet<_> = table().specs().map(|(_, spec)| spec.name).collect();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words = lines.flat_map(str::split_whitespace);
    let mut missing: BTreeSet<_> = words
        .filter(|word| !word.ends_with(':') && !known.contains(word))
        .collect();
    let mut out = String::from(UNSUPPORTED);
    let mut section = |title: &str, note: &str, names: &[&str]| {
        let names: Vec<_> = names
            .iter()
            .map(|name| format!("`{}`", name.to_uppercase().replace('|', " ")))
            .collect();
        let _ = write!(out, "\n## {title}\n\n{note}\n\n{}.\n", names.join(", "));
    };
    for (title, prefixes, note) in AREAS {
        let begins = |name: &&str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let names: Vec<_> = missing.iter().copied().filter(begins).collect();
        missing.retain(|name| !names.contains(name));
        assert!(!names.is_empty(), "nothing of {title} is missing any more");
        section(title, note, &names);
    }
    let rest: Vec<_> = missing.into_iter().collect();
    if !rest.is_empty() {
        section(
            "Others",
            "Commands that belong to none of these areas.",
            &rest,
        );
    }
    keep("unsupported.md", &out);
}
