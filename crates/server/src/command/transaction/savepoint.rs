//! SAVEPOINT: a point of a transaction to which ROLLBACK TO goes back.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::{Flags, Spec};

pub static SAVEPOINT: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "name",
        ..spec(
            "savepoint",
            "7.2.4",
            2,
            Flags::FAST.or(Flags::AT_ONCE),
            "O(1)",
            "Sets a point to which the transaction that BEGIN started can be rolled back.",
        )
    },
    run: |session, args, reply| {
        session.save_point(&args)?;
        reply.ok();
        Ok(())
    },
};
