//! READONLY and READWRITE: whether a client takes reads of copies, where it is
//! told which node has its keys.

use super::known;
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub(super) static READONLY: SessionCommand = SessionCommand {
    spec: spec(
        "readonly",
        "Has a node of a cluster answer reads also where it is not the first of the nodes that have the key.",
    ),
    run: |session, _, reply| set(session, true, reply),
};

pub(super) static READWRITE: SessionCommand = SessionCommand {
    spec: spec("readwrite", "Takes READONLY back."),
    run: |session, _, reply| set(session, false, reply),
};

const fn spec(name: &'static str, summary: &'static str) -> Spec {
    Spec {
        name,
        summary,
        since: "3.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::FAST.or(Flags::LOADING).or(Flags::STALE),
        keys: Keys::None,
        syntax: "",
    }
}

fn set(session: &mut Session<'_>, reads: bool, reply: &mut Reply<'_>) -> Result<(), Failure> {
    known(session)?;
    session.connection()?.reads_copies = reads;
    reply.simple("OK");
    Ok(())
}
