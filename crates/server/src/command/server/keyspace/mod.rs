//! KEYSPACE: what holds for all keys that begin with a prefix.
//!
//! - [`change`]: CREATE, ALTER and DROP
//! - [`show`]: LIST and DESCRIBE
//!
//! A change of the table is made for all workers at one instant, and is in
//! their logs when it is answered. The kernel refuses one that would have keys
//! which are there replicated otherwise than they are.

use crate::command::{SessionCommand, help};
use rufous_command::{Failure, Flags, Group, Keys, Spec};

pub mod change;
#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod data_tests;
#[cfg(test)]
mod listing_tests;
pub mod show;
#[cfg(test)]
mod stale_tests;
#[cfg(test)]
mod storing_tests;
#[cfg(test)]
mod tests;

pub static COMMANDS: &[&SessionCommand] = &[
    &KEYSPACE,
    &change::CREATE,
    &change::ALTER,
    &change::DROP,
    &show::LIST,
    &show::DESCRIBE,
    &HELP,
];

const fn spec(
    name: &'static str,
    arity: i32,
    flags: Flags,
    syntax: &'static str,
    summary: &'static str,
) -> Spec {
    Spec {
        name,
        summary,
        since: "7.2.4",
        group: Group::Server,
        complexity: "O(N) where N is the number of keyspaces",
        arity,
        flags,
        keys: Keys::None,
        syntax,
    }
}

pub static KEYSPACE: SessionCommand = SessionCommand {
    spec: spec(
        "keyspace",
        -2,
        Flags::CONTAINER,
        "",
        "A container for keyspaces: what holds for keys of a prefix.",
    ),
    run: |_, _, _| Err(Failure::wrong_arity("keyspace")),
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "keyspace|help",
        2,
        Flags::NONE,
        "",
        "Lists the subcommands.",
    ),
    run: |session, _, reply| help::list_subcommands(session, "keyspace", reply),
};
