//! The server's own commands, and the table of all commands.
//!
//! Commands on data come from the command library; here are those on
//! connections and on the server itself, one file each, and how each command
//! reaches the data that it needs.

use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Keys, Reply, Spec, Table, data_commands};
use rufous_kernel::multi::NodeAction;
use std::ops::Deref;
use std::sync::LazyLock;

pub mod connection;
mod help;
pub mod server;
pub mod transaction;

/// A command on the connection or the server.
pub struct SessionCommand {
    pub spec: Spec,
    pub run: SessionRun,
}

/// Runs such a command. On `Err`, what it wrote is taken back and the error is
/// the reply.
pub type SessionRun = fn(&mut Session<'_>, Args<'_>, &mut Reply<'_>) -> Result<(), Failure>;

/// How a command reaches its data.
#[derive(Clone, Copy)]
pub enum Dispatch {
    /// At the owner of its only key.
    Key,
    /// On several keys, or on none.
    Keys,
    /// On whole databases of every worker.
    Node(fn(&Args<'_>, u8) -> Result<NodeAction, Failure>),
    /// At the worker of the connection.
    Session(SessionRun),
}

/// All commands: their names, declarations and ways.
pub struct CommandTable {
    table: Table,
    dispatch: Vec<Dispatch>,
    is_subcommand: Vec<bool>,
}

impl CommandTable {
    /// The id of the command that a request names with its first word. A
    /// subcommand is reached through its container only, never as
    /// `container|name`: the arity of either counts both words.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<u16> {
        let id = self.table.find(name)?;
        (!self.is_subcommand[usize::from(id)]).then_some(id)
    }

    #[inline]
    pub fn dispatch(&self, id: u16) -> Dispatch {
        self.dispatch[usize::from(id)]
    }
}

impl Deref for CommandTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

static SESSION_GROUPS: [&[&SessionCommand]; 12] = [
    connection::COMMANDS,
    server::COMMANDS,
    transaction::COMMANDS,
    server::command::COMMANDS,
    server::config::COMMANDS,
    server::slowlog::COMMANDS,
    server::latency::COMMANDS,
    server::memory::COMMANDS,
    server::debug::COMMANDS,
    server::function::COMMANDS,
    server::keyspace::COMMANDS,
    server::cluster::COMMANDS,
];

/// The table of this process.
pub fn table() -> &'static CommandTable {
    static TABLE: LazyLock<CommandTable> = LazyLock::new(build);
    &TABLE
}

fn build() -> CommandTable {
    let mut specs = Vec::new();
    let mut dispatch = Vec::new();
    for command in data_commands() {
        specs.push(&command.spec);
        dispatch.push(match command.spec.name {
            "flushall" => Dispatch::Node(server::flush::flush_all),
            "flushdb" => Dispatch::Node(server::flush::flush_db),
            "swapdb" => Dispatch::Node(server::flush::swap_db),
            _ if command.spec.keys.single().is_some() => Dispatch::Key,
            _ => {
                debug_assert!(
                    !matches!(command.spec.keys, Keys::None),
                    "{}",
                    command.spec.name
                );
                Dispatch::Keys
            }
        });
    }
    for command in SESSION_GROUPS.into_iter().flatten() {
        specs.push(&command.spec);
        dispatch.push(Dispatch::Session(command.run));
    }
    CommandTable {
        is_subcommand: specs.iter().map(|spec| spec.name.contains('|')).collect(),
        table: Table::new(specs),
        dispatch,
    }
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn subcommands_are_reached_through_their_container_only() {
        let mut rig = Rig::new(1);
        for request in [
            "CONFIG|GET maxclients",
            "config|get x y",
            "OBJECT|HELP",
            "GET|",
        ] {
            let reply = rig.run(request);
            assert!(reply.starts_with("-ERR unknown command '"), "{reply}");
        }
        assert!(
            rig.run("COMMAND INFO config|get")
                .starts_with("*1\r\n*10\r\n$10\r\nconfig|get")
        );
        assert!(
            rig.run("COMMAND DOCS config|get")
                .starts_with("*2\r\n$10\r\nconfig|get")
        );
    }
}
