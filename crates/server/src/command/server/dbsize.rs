//! DBSIZE: how many keys the selected database has.

use crate::command::SessionCommand;
use crate::front::listing::{self, Scope};
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static DBSIZE: SessionCommand = SessionCommand {
    spec: Spec {
        name: "dbsize",
        summary: "Returns the number of keys in the database.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::READONLY
            .or(Flags::FAST)
            .or(Flags::ALL_KEYS)
            .or(Flags::AFTER_OTHERS)
            .or(Flags::SUM)
            .or(Flags::QUEUED_COUNTS),
        keys: Keys::None,
        syntax: "",
    },
    run,
};

fn run(session: &mut Session<'_>, _: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let db = usize::from(session.db()?);
    let of = Scope::of(session).listing();
    listing::ask_all(
        session,
        reply,
        move |local, _| local.len(db, of),
        |_, counts, reply| reply.count(counts.into_iter().sum()),
    );
    Ok(())
}
