//! MULTI: what follows is kept until EXEC.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::{Flags, Keys, Spec};

pub static MULTI: SessionCommand = SessionCommand {
    spec: Spec {
        keys: Keys::None,
        syntax: "",
        ..spec(
            "multi",
            "1.2.0",
            1,
            Flags::FAST.or(Flags::ALLOW_BUSY).or(Flags::AT_ONCE),
            "O(1)",
            "Begins a transaction.",
        )
    },
    run: |session, _, reply| {
        session.begin_transaction()?;
        reply.ok();
        Ok(())
    },
};
