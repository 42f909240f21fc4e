//! PING: whether the server answers.

use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static PING: SessionCommand = SessionCommand {
    spec: Spec {
        name: "ping",
        summary: "Returns the server's liveliness response.",
        since: "1.0.0",
        group: Group::Connection,
        complexity: "O(1)",
        arity: -1,
        flags: Flags::FAST.or(Flags::LOCAL),
        keys: Keys::None,
        syntax: "[message]",
    },
    run,
};

fn run(_: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match args.len() {
        1 => reply.simple("PONG"),
        2 => reply.bulk(args.get(1)),
        _ => return Err(Failure::wrong_arity("ping")),
    }
    Ok(())
}
