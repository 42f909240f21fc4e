//! COMMAND: what commands there are, made from their declarations alone.
//!
//! Map:
//! - [`info`]: names, arity, flags, keys
//! - [`docs`], [`syntax`]: documentation
//! - [`keys`]: the keys of a request, and in `access` how they are treated
//! - [`list`]: names alone

use crate::command::{SessionCommand, help};
use rufous_command::{Flags, Group, Keys, Spec, Table};

mod access;
pub mod docs;
pub mod info;
pub mod keys;
pub mod list;
pub mod syntax;

pub static COMMANDS: &[&SessionCommand] = &[
    &COMMAND,
    &COUNT,
    &info::INFO,
    &docs::DOCS,
    &keys::GETKEYS,
    &keys::GETKEYSANDFLAGS,
    &list::LIST,
    &HELP,
];

const fn spec(
    name: &'static str,
    since: &'static str,
    arity: i32,
    complexity: &'static str,
    syntax: &'static str,
    summary: &'static str,
) -> Spec {
    Spec {
        name,
        summary,
        since,
        group: Group::Server,
        complexity,
        arity,
        flags: Flags::LOADING.or(Flags::STALE),
        keys: Keys::None,
        syntax,
    }
}

const ALL: &str = "O(N) where N is the number of commands";

pub static COMMAND: SessionCommand = SessionCommand {
    spec: Spec {
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::CONTAINER),
        ..spec("command", "2.8.13", -1, ALL, "", "Describes all commands.")
    },
    run: |session, _, reply| {
        info::describe_all(session.local.table(), reply);
        Ok(())
    },
};

pub static COUNT: SessionCommand = SessionCommand {
    spec: spec(
        "command|count",
        "2.8.13",
        2,
        "O(1)",
        "",
        "Returns the number of commands.",
    ),
    run: |session, _, reply| {
        reply.count(top_level(session.local.table()).count());
        Ok(())
    },
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "command|help",
        "5.0.0",
        2,
        "O(1)",
        "",
        "Lists the subcommands.",
    ),
    run: |session, _, reply| help::list_subcommands(session, "command", reply),
};

/// All commands but the subcommands.
fn top_level(table: &Table) -> impl Iterator<Item = &'static Spec> + '_ {
    table
        .specs()
        .map(|(_, spec)| spec)
        .filter(|spec| !spec.name.contains('|'))
}

/// The subcommands of a container; none of another command.
fn subcommands<'a>(
    table: &'a Table,
    container: &'static Spec,
) -> impl Iterator<Item = &'static Spec> + 'a {
    table.specs().map(|(_, spec)| spec).filter(|spec| {
        spec.name
            .split_once('|')
            .is_some_and(|(of, _)| of == container.name)
    })
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn all_commands_are_counted_and_described() {
        let mut rig = Rig::new(1);
        let count = rig
            .run("COMMAND COUNT")
            .trim_matches([':', '\r', '\n'])
            .to_owned();
        let all = rig.run("COMMAND");
        assert!(all.starts_with(&format!("*{count}\r\n*10\r\n")), "{count}");
        assert_eq!(rig.run("COMMAND INFO"), all);
        rig.check(
            "COMMAND nosuch",
            "-ERR unknown subcommand 'nosuch'. Try COMMAND HELP.\r\n",
        );
        assert!(
            rig.run("COMMAND HELP")
                .contains("+GETKEYS command [arg [arg ...]]\r\n")
        );
    }
}
