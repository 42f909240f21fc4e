//! BZPOPMAX: takes the member with the highest score of the first of several sorted sets that there is, or
//! waits for one.

use super::blocking;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static BZPOPMAX: Command = Command {
    spec: Spec {
        name: "bzpopmax",
        summary: "Takes the member with the highest score of the first sorted set that has one; waits where none has.",
        since: "5.0.0",
        group: Group::SortedSet,
        complexity: "O(log(N)) with N members in the set",
        arity: -3,
        flags: Flags::WRITE
            .or(Flags::NOSCRIPT)
            .or(Flags::FAST)
            .or(Flags::BLOCKING),
        keys: Keys::Range {
            first: 1,
            last: -2,
            step: 1,
        },
        syntax: "key [key ...] timeout",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    blocking::run(ctx, &args, reply, true)
}
