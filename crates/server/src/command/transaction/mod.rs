//! Commands of transactions; what they do is in [`crate::front::transaction`].

use crate::command::SessionCommand;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Spec};

pub mod begin;
pub mod commit;
pub mod discard;
pub mod exec;
pub mod multi;
pub mod release;
pub mod rollback;
pub mod savepoint;
pub mod txn;
pub mod unwatch;
pub mod watch;

pub static COMMANDS: &[&SessionCommand] = &[
    &multi::MULTI,
    &exec::EXEC,
    &discard::DISCARD,
    &watch::WATCH,
    &unwatch::UNWATCH,
    &begin::BEGIN,
    &commit::COMMIT,
    &rollback::ROLLBACK,
    &savepoint::SAVEPOINT,
    &release::RELEASE,
    &txn::TXN,
    &txn::LIST,
    &txn::INFO,
    &txn::KILL,
    &txn::HELP,
];

const fn spec(
    name: &'static str,
    since: &'static str,
    arity: i32,
    flags: Flags,
    complexity: &'static str,
    summary: &'static str,
) -> Spec {
    Spec {
        name,
        summary,
        since,
        group: Group::Transactions,
        complexity,
        arity,
        flags: Flags::NOSCRIPT
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(flags),
        keys: Keys::None,
        syntax: "",
    }
}

/// The name of a savepoint at argument `from` of a command, perhaps behind the word.
fn named_point<'a>(args: &'a Args<'_>, from: usize, name: &str) -> Result<&'a [u8], Failure> {
    match args.len().checked_sub(from) {
        Some(1) => Ok(args.get(from)),
        Some(2) if args.get(from).eq_ignore_ascii_case(b"savepoint") => Ok(args.get(from + 1)),
        Some(2) => Err(Failure::SYNTAX),
        _ => Err(Failure::wrong_arity(name)),
    }
}
