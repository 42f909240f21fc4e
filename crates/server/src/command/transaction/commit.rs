//! COMMIT: does what was written since BEGIN, as one.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::Flags;

pub static COMMIT: SessionCommand = SessionCommand {
    spec: spec(
        "commit",
        "7.2.4",
        1,
        Flags::SKIP_SLOWLOG.or(Flags::AT_ONCE).or(Flags::COMMIT),
        "Depends on the commands of the transaction that wrote",
        "Runs all commands of the transaction that wrote, for everybody to see.",
    ),
    run: |session, _, reply| session.commit(reply),
};
