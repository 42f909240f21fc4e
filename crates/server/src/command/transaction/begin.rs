//! BEGIN: what follows is answered at once, and seen by others after COMMIT.

use super::spec;
use crate::command::SessionCommand;
use rufous_base::Args;
use rufous_command::options::is;
use rufous_command::{Failure, Flags, Spec};

pub static BEGIN: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "[OPTIMISTIC] [[ISOLATION [LEVEL]] <SERIALIZABLE | ITEM-CUT | READ-COMMITTED | READ-UNCOMMITTED>]",
        ..spec(
            "begin",
            "7.2.4",
            -1,
            Flags::FAST.or(Flags::AT_ONCE),
            "O(1), at level read-uncommitted, and without a level where a keyspace has that level, O(N) where N is the number of workers",
            "Begins a transaction whose commands are answered one by one. Without a level the keyspaces of its keys give it.",
        )
    },
    run: |session, args, reply| session.begin(level_named(&args)?, reply),
};

/// The name of a level, if there is one; else keyspaces give it. Every transaction is optimistic: nothing is held for it between commands.
fn level_named<'a>(args: &'a Args<'_>) -> Result<Option<&'a [u8]>, Failure> {
    let mut words = args.iter_from(1).peekable();
    words.next_if(|word| is(word, "OPTIMISTIC"));
    let is_announced = words.next_if(|word| is(word, "ISOLATION")).is_some();
    if is_announced {
        words.next_if(|word| is(word, "LEVEL"));
    }
    match (words.next(), words.next()) {
        (Some(level), None) => Ok(Some(level)),
        (None, None) if !is_announced => Ok(None),
        _ => Err(Failure::SYNTAX),
    }
}
