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
        let limit = session.local.config().client_query_buffer_limit;
        let transaction = &mut session.connection()?.transaction;
        transaction.save_point(args.get(1), limit)?;
        reply.ok();
        Ok(())
    },
};
