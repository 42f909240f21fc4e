//! EXEC: runs what was kept since MULTI, as one.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::{Flags, Keys, Spec};

pub static EXEC: SessionCommand = SessionCommand {
    spec: Spec {
        keys: Keys::None,
        syntax: "",
        ..spec(
            "exec",
            "1.2.0",
            1,
            Flags::SKIP_SLOWLOG.or(Flags::AT_ONCE).or(Flags::EXEC),
            "Depends on the commands of the transaction",
            "Runs all commands of the transaction.",
        )
    },
    run: |session, _, reply| session.exec(reply),
};
