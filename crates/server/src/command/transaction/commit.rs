//! COMMIT: does what was written since BEGIN, as one.

use super::spec;
use crate::command::SessionCommand;
use crate::front::transaction::token::Token;
use rufous_base::Args;
use rufous_command::options::is;
use rufous_command::{Failure, Flags, Spec};

pub static COMMIT: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "[TOKEN token [EX seconds]]",
        ..spec(
            "commit",
            "7.2.4",
            -1,
            Flags::SKIP_SLOWLOG.or(Flags::AT_ONCE).or(Flags::COMMIT),
            "Depends on the commands of the transaction that wrote",
            "Runs all commands of the transaction that wrote, for everybody to see.",
        )
    },
    run: |session, args, reply| {
        if let Some(token) = token_named(&args)? {
            session.keep_token(&token)?;
        }
        session.commit(reply)
    },
};

fn token_named<'a>(args: &'a Args<'_>) -> Result<Option<Token<'a>>, Failure> {
    let mut words = args.iter_from(1);
    let Some(first) = words.next() else {
        return Ok(None);
    };
    let (token, unit) = (words.next(), words.next());
    let (seconds, end) = (words.next(), words.next());
    let is_timed = unit.is_some_and(|unit| is(unit, "EX")) && seconds.is_some();
    match token.filter(|_| is(first, "TOKEN") && end.is_none()) {
        Some(token) if unit.is_none() || is_timed => Ok(Some(Token { token, seconds })),
        _ => Err(Failure::SYNTAX),
    }
}
