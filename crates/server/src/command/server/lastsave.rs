//! LASTSAVE: when the last snapshot was taken.

use crate::command::SessionCommand;
use crate::front::persistence::COORDINATOR;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static LASTSAVE: SessionCommand = SessionCommand {
    spec: Spec {
        name: "lastsave",
        summary: "Returns the time of the last snapshot, or of the start.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
        keys: Keys::None,
        syntax: "",
    },
    run,
};

fn run(session: &mut Session<'_>, _: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    session.ask_one(
        reply,
        COORDINATOR,
        |local, _| local.last_save_time_s(),
        |_, seconds, reply| reply.integer(seconds as i64),
    );
    Ok(())
}
