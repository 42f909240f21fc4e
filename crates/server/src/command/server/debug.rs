//! DEBUG: what test suites and benchmarks need to look inside.

use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

const fn spec(name: &'static str, summary: &'static str, arity: i32, syntax: &'static str, flags: Flags) -> Spec {
    Spec {
        name,
        summary,
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity,
        flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE).or(flags),
        keys: Keys::None,
        syntax,
    }
}

pub static DEBUG: SessionCommand = SessionCommand {
    spec: spec("debug", "A container for debugging commands.", -2, "", Flags::CONTAINER),
    run: |_, _, _| Err(Failure::wrong_arity("debug")),
};

pub static WORKER: SessionCommand = SessionCommand {
    spec: spec("debug|worker", "Returns the worker that serves this connection.", 2, "", Flags::NONE),
    run: |session, _, reply| {
        reply.integer(i64::from(session.front.id().0));
        Ok(())
    },
};

pub static OWNER: SessionCommand = SessionCommand {
    spec: spec("debug|owner", "Returns the worker that owns a key.", 3, "key", Flags::NONE),
    run: owner,
};

fn owner(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    reply.integer(i64::from(session.front.kernel.placement().owner(args.get(2)).0));
    Ok(())
}
