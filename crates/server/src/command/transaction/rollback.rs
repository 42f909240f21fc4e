//! ROLLBACK: forgets what was written since BEGIN, or since a savepoint.

use super::{named_point, spec};
use crate::command::SessionCommand;
use rufous_command::{Failure, Flags, Spec};

pub static ROLLBACK: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "[TO [SAVEPOINT] name]",
        ..spec(
            "rollback",
            "7.2.4",
            -1,
            Flags::FAST.or(Flags::AT_ONCE),
            "O(N) where N is the number of keys that the transaction has copies of, or has changed since the savepoint",
            "Discards the transaction that BEGIN started, or what it has done since a savepoint.",
        )
    },
    run: |session, args, reply| {
        if args.len() == 1 {
            session.rollback()?;
        } else if args.get(1).eq_ignore_ascii_case(b"to") {
            let (name, now) = (named_point(&args, 2, "rollback")?, session.now);
            let transaction = &mut session.connection()?.transaction;
            transaction.roll_back_to(name, now)?;
        } else {
            return Err(Failure::SYNTAX);
        }
        reply.ok();
        Ok(())
    },
};
