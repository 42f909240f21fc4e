//! ROLLBACK: forgets what was written since BEGIN.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::Flags;

pub static ROLLBACK: SessionCommand = SessionCommand {
    spec: spec(
        "rollback",
        "7.2.4",
        1,
        Flags::FAST.or(Flags::AT_ONCE),
        "O(N) where N is the number of keys that the transaction has copies of",
        "Discards the transaction that BEGIN started.",
    ),
    run: |session, _, reply| {
        session.rollback()?;
        reply.ok();
        Ok(())
    },
};
