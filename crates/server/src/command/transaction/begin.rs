//! BEGIN: what follows is answered at once, and seen by others after COMMIT.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::{Failure, Flags, Spec};

pub static BEGIN: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "[SERIALIZABLE | ITEM-CUT | READ-COMMITTED | READ-UNCOMMITTED]",
        ..spec(
            "begin",
            "7.2.4",
            -1,
            Flags::FAST.or(Flags::AT_ONCE),
            "O(1), at level read-uncommitted O(N) where N is the number of workers",
            "Begins a transaction whose commands are answered one by one.",
        )
    },
    run: |session, args, reply| match args.len() {
        1 | 2 => session.begin(&args, reply),
        _ => Err(Failure::wrong_arity("begin")),
    },
};
