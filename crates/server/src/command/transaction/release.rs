//! RELEASE: forgets a savepoint, and keeps what was done since.

use super::{named_point, spec};
use crate::command::SessionCommand;
use rufous_command::{Flags, Spec};

pub static RELEASE: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "[SAVEPOINT] name",
        ..spec(
            "release",
            "7.2.4",
            -2,
            Flags::FAST.or(Flags::AT_ONCE),
            "O(N) where N is the number of keys that were changed since the savepoint",
            "Removes a savepoint and those set after it; what was done since stays.",
        )
    },
    run: |session, args, reply| {
        let name = named_point(&args, 1, "release")?;
        session.connection()?.transaction.release_point(name)?;
        reply.ok();
        Ok(())
    },
};
