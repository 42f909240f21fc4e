//! BLPOP: takes the first element of the first of several lists that there is, or waits for one.

use super::End;
use super::blocking::pop;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static BLPOP: Command = Command {
    spec: Spec {
        name: "blpop",
        summary: "Takes the first element of the first list that has one; waits where none has.",
        since: "2.0.0",
        group: Group::List,
        complexity: "O(N) where N is the number of keys",
        arity: -3,
        flags: Flags::WRITE.or(Flags::NOSCRIPT).or(Flags::BLOCKING),
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
    pop(ctx, &args, End::Left, reply)
}
