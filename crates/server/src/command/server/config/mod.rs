//! CONFIG: settings of the running server.

use crate::command::{SessionCommand, help};
use rufous_command::{Failure, Flags, Group, Keys, Spec};

pub mod get;
pub mod resetstat;
pub mod rewrite;
pub mod set;

pub static COMMANDS: &[&SessionCommand] = &[
    &CONFIG,
    &get::GET,
    &set::SET,
    &resetstat::RESETSTAT,
    &rewrite::REWRITE,
    &HELP,
];

const fn spec(
    name: &'static str,
    arity: i32,
    flags: Flags,
    complexity: &'static str,
    syntax: &'static str,
    summary: &'static str,
) -> Spec {
    Spec {
        name,
        summary,
        since: "2.0.0",
        group: Group::Server,
        complexity,
        arity,
        flags: Flags::LOADING.or(Flags::STALE).or(flags),
        keys: Keys::None,
        syntax,
    }
}

const ADMIN: Flags = Flags::ADMIN.or(Flags::NOSCRIPT);

pub static CONFIG: SessionCommand = SessionCommand {
    spec: spec(
        "config",
        -2,
        Flags::CONTAINER,
        "Depends on subcommand.",
        "",
        "A container for settings.",
    ),
    run: |_, _, _| Err(Failure::wrong_arity("config")),
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "config|help",
        2,
        Flags::NONE,
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
    run: |session, _, reply| help::list_subcommands(session, "config", reply),
};
