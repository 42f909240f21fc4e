//! DISCARD: forgets what was kept since MULTI.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::{Flags, Keys, Spec};

pub static DISCARD: SessionCommand = SessionCommand {
    spec: Spec {
        keys: Keys::None,
        syntax: "",
        ..spec(
            "discard",
            "2.0.0",
            1,
            Flags::FAST.or(Flags::ALLOW_BUSY).or(Flags::AT_ONCE),
            "O(N) where N is the number of queued commands",
            "Drops the transaction and ends all watches.",
        )
    },
    run: |session, _, reply| {
        session.discard_transaction()?;
        reply.ok();
        Ok(())
    },
};
