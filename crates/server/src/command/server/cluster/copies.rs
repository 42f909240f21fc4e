//! READONLY and READWRITE, by which clients say whether they take what replicas have.
//! It changes nothing: copies answer reads with what is acknowledged, and with nothing
//! else.

use super::known;
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub(super) static READONLY: SessionCommand = SessionCommand {
    spec: spec(
        "readonly",
        "Allows reads from replicas. No effect: every node with a copy answers reads.",
    ),
    run: accept,
};

pub(super) static READWRITE: SessionCommand = SessionCommand {
    spec: spec("readwrite", "Takes READONLY back."),
    run: accept,
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

fn accept(session: &mut Session<'_>, _: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    known(session)?;
    reply.simple("OK");
    Ok(())
}
