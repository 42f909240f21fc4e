//! BRPOPLPUSH: BLMOVE from the right end to the left one.

use super::End;
use super::blocking::shift;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static BRPOPLPUSH: Command = Command {
    spec: Spec {
        name: "brpoplpush",
        summary: "Moves the last element of a list to the front of another and returns it; waits where there is none.",
        since: "2.2.0",
        group: Group::List,
        complexity: "O(1)",
        arity: 4,
        flags: Flags::WRITE
            .or(Flags::DENYOOM)
            .or(Flags::NOSCRIPT)
            .or(Flags::BLOCKING),
        keys: Keys::Range {
            first: 1,
            last: 2,
            step: 1,
        },
        syntax: "source destination timeout",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    shift(ctx, &args, (End::Right, End::Left), args.get(3), reply)
}
