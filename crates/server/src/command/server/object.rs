//! OBJECT, the container, and its help; the subcommands that look at a key
//! are in the command library.

use crate::command::SessionCommand;
use rufous_command::{Failure, Flags, Group, Keys, Spec};

const fn spec(
    name: &'static str,
    summary: &'static str,
    since: &'static str,
    arity: i32,
    flags: Flags,
) -> Spec {
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
    spec: spec(
        "object",
        "A container for commands that inspect the representation of a key.",
        "2.2.3",
        -2,
        Flags::CONTAINER,
    ),
    run: |_, _, _| Err(Failure::wrong_arity("object")),
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "object|help",
        "Lists the subcommands of OBJECT.",
        "6.2.0",
        2,
        Flags::LOADING.or(Flags::STALE).or(Flags::LOCAL),
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
    "    Return the encoding that Redis would use for the value.",
    "FREQ <key>",
    "    Return the logarithmic access counter (LFU policies only).",
    "IDLETIME <key>",
    "    Return the seconds since the last access (not with LFU policies).",
    "REFCOUNT <key>",
    "    Return the number of references to the value.",
    "HELP",
    "    Show this text.",
];

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn every_subcommand_has_a_line() {
        let help = Rig::new(1).run("OBJECT HELP");
        for name in ["ENCODING", "FREQ", "IDLETIME", "REFCOUNT", "HELP"] {
            assert!(help.contains(&format!("\r\n+{name}")), "{name}");
        }
    }

    #[test]
    fn subcommands_reach_the_keys_of_every_worker() {
        let mut rig = Rig::new(4);
        for key in ["a", "b", "c", "d"] {
            rig.check(&format!("SET {key} 12"), "+OK\r\n");
            rig.check(&format!("object Encoding {key}"), "$3\r\nint\r\n");
            rig.check(&format!("OBJECT REFCOUNT {key}"), ":1\r\n");
        }
    }
}
