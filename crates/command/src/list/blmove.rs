//! BLMOVE: moves an element from one list to another, or waits for one.

use super::End;
use super::blocking::shift;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static BLMOVE: Command = Command {
    spec: Spec {
        name: "blmove",
        summary: "Moves an element from one end of a list to one of another and returns it; waits where there is none.",
        since: "6.2.0",
        group: Group::List,
        complexity: "O(1)",
        arity: 6,
        flags: Flags::WRITE
            .or(Flags::DENYOOM)
            .or(Flags::NOSCRIPT)
            .or(Flags::BLOCKING),
        keys: Keys::Range {
            first: 1,
            last: 2,
            step: 1,
        },
        syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let ends = (End::parse(args.get(3))?, End::parse(args.get(4))?);
    shift(ctx, &args, ends, args.get(5), reply)
}
