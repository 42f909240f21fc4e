//! WATCH: EXEC does nothing if a key is touched before.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::{Flags, Keys, Spec};

pub static WATCH: SessionCommand = SessionCommand {
    spec: Spec {
        keys: Keys::ALL,
        syntax: "key [key ...]",
        ..spec(
            "watch",
            "2.2.0",
            -2,
            Flags::FAST.or(Flags::ALLOW_BUSY).or(Flags::AT_ONCE),
            "O(1) for every key",
            "Has the next transaction run only if these keys are not touched before.",
        )
    },
    run: |session, args, reply| session.watch(&args, 1, reply),
};
