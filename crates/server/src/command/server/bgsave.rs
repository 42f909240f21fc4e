//! BGSAVE: begins a snapshot.

use super::save::{BUSY, FLAGS, refuse};
use crate::command::SessionCommand;
use crate::front::orders::{SaveAnswer, SaveOrder};
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::options::is;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static BGSAVE: SessionCommand = SessionCommand {
    spec: Spec {
        name: "bgsave",
        summary: "Starts a snapshot.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: -1,
        flags: FLAGS.or(Flags::QUEUED_SCHEDULES),
        keys: Keys::None,
        syntax: "[SCHEDULE]",
    },
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, _: &mut Reply<'_>) -> Result<(), Failure> {
    let schedule = match args.len() {
        1 => false,
        2 if is(args.get(1), "SCHEDULE") => true,
        _ => return Err(Failure::SYNTAX),
    };
    let order = SaveOrder::Background { schedule };
    session.order_save(order, |_, answer, reply| match answer {
        SaveAnswer::Started => reply.simple("Background saving started"),
        SaveAnswer::Scheduled => reply.simple("Background saving scheduled"),
        other => refuse(&other, BUSY, reply),
    });
    Ok(())
}
