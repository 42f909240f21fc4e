//! OBJECT, the container, and its help; the subcommands that look at a key
//! are in the command library.

use crate::command::SessionCommand;
use rufous_command::{Failure, Flags, Group, Keys, Spec};

const fn spec(name: &'static str, summary: &'static str, since: &'static str, arity: i32, flags: Flags) -> Spec {
    Spec {
        name,
        summary,
        since,
        group: Group::Generic,
        complexity: "O(1)",
        arity,
        flags,
        keys: Keys::None,
        syntax: "",
    }
}

pub static OBJECT: SessionCommand = SessionCommand {
    spec: spec("object", "A container for commands that look at how a key is kept.", "2.2.3", -2, Flags::CONTAINER),
    run: |_, _, _| Err(Failure::wrong_arity("object")),
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "object|help",
        "Lists the subcommands of OBJECT.",
        "6.2.0",
        2,
        Flags::LOADING.or(Flags::STALE),
    ),
    run: |_, _, reply| {
        reply.array(HELP_LINES.len());
        HELP_LINES.iter().for_each(|line| reply.simple(line));
        Ok(())
    },
};

const HELP_LINES: [&str; 11] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Tell how Redis would keep the value: int, embstr or raw.",
    "FREQ <key>",
    "    Tell the logarithmic counter of accesses (LFU policies only).",
    "IDLETIME <key>",
    "    Tell the seconds since the last access (not with LFU policies).",
    "REFCOUNT <key>",
    "    Tell how many references the value has.",
    "HELP",
    "    Show this text.",
];
