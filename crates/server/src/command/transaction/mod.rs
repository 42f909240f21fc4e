//! Commands of transactions; what they do is in [`crate::front::transaction`].

use crate::command::SessionCommand;
use rufous_command::{Flags, Group, Keys, Spec};

pub mod begin;
pub mod commit;
pub mod discard;
pub mod exec;
pub mod multi;
pub mod rollback;
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
