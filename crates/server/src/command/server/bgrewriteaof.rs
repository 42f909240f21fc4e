//! BGREWRITEAOF: begins a snapshot that replaces the log so far.

use super::save::{FLAGS, refuse};
use crate::command::SessionCommand;
use crate::front::orders::{SaveAnswer, SaveOrder};
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static BGREWRITEAOF: SessionCommand = SessionCommand {
    spec: Spec {
        name: "bgrewriteaof",
        summary: "Starts a snapshot that replaces the log.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: FLAGS.or(Flags::QUEUED_SCHEDULES),
        keys: Keys::None,
        syntax: "",
    },
    run,
};

fn run(session: &mut Session<'_>, _: Args<'_>, _: &mut Reply<'_>) -> Result<(), Failure> {
    session.order_save(SaveOrder::Rewrite, |_, answer, reply| match answer {
        SaveAnswer::Started => reply.simple("Background append only file rewriting started"),
        SaveAnswer::Scheduled => reply.simple("Background append only file rewriting scheduled"),
        other => refuse(
            &other,
            "ERR Background append only file rewriting already in progress",
            reply,
        ),
    });
    Ok(())
}
