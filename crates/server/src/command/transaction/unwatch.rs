//! UNWATCH: ends all watches of the connection.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::{Flags, Keys, Spec};

pub static UNWATCH: SessionCommand = SessionCommand {
    spec: Spec {
        keys: Keys::None,
        syntax: "",
        ..spec(
            "unwatch",
            "2.2.0",
            1,
            Flags::FAST.or(Flags::ALLOW_BUSY),
            "O(N) where N is the number of watched keys",
            "Ends all watches of the connection.",
        )
    },
    run: |session, _, reply| {
        session.unwatch()?;
        reply.ok();
        Ok(())
    },
};
