//! QUIET: runs an update whose reply nobody needs.
//!
//! The word is taken off a request while it is parsed. What follows is routed,
//! queued, logged and counted as if it stood alone; a mark that travels with
//! it has the command library answer `OK` where it succeeds, and tells whoever
//! asks the type's algebra that the reply is not wanted. So there is one rule
//! for all commands that write, and none of them knows of it.

use crate::command::{CommandTable, Dispatch, SessionCommand};
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec};

pub static QUIET: SessionCommand = SessionCommand {
    spec: Spec {
        name: "quiet",
        summary: "Runs a write command and replies OK instead of its result.",
        since: "7.2.0",
        group: Group::Connection,
        complexity: "That of the command",
        arity: -2,
        flags: Flags::MOVABLE_KEYS,
        keys: Keys::None,
        syntax: "command [arg [arg ...]]",
    },
    run,
};

pub const NAME: &[u8] = b"quiet";

/// Whether the first of so many words of a request is this one, before others.
#[inline]
pub fn precedes(name: &[u8], args: usize) -> bool {
    name.len() == NAME.len() && name.eq_ignore_ascii_case(NAME) && args > 1
}

/// Whether a command changes data, and so has an effect besides its reply.
pub fn allows(table: &CommandTable, id: u16) -> bool {
    table.spec(id).flags.has(Flags::WRITE) && !matches!(table.dispatch(id), Dispatch::Session(_))
}

/// The reply to a command that does not.
pub fn refusal(name: &str) -> Failure {
    format!(
        "ERR QUIET runs commands that write, '{}' does not",
        name.replace('|', " ")
    )
    .into()
}

/// Reached by no request: what follows the word is what runs, and the word
/// alone has too few arguments.
fn run(_: &mut Session<'_>, _: Args<'_>, _: &mut Reply<'_>) -> Result<(), Failure> {
    Err(Failure::SYNTAX)
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn updates_answer_ok_and_happen() {
        let mut rig = Rig::new(2);
        rig.check("QUIET SET k 5", "+OK\r\n");
        rig.check("quiet incrby k 2", "+OK\r\n");
        rig.check("GET k", "$1\r\n7\r\n");
        rig.check("QUIET GETDEL k", "+OK\r\n");
        rig.check("EXISTS k", ":0\r\n");
        rig.check("QUIET DEL k", "+OK\r\n");
        rig.check("QUIET SET k v NX GET", "+OK\r\n");
        rig.check("GET k", "$1\r\nv\r\n");
    }

    #[test]
    fn on_keys_of_several_workers() {
        let mut rig = Rig::new(2);
        rig.check("QUIET MSET a 1 b 2 c 3", "+OK\r\n");
        rig.check("QUIET DEL a b", "+OK\r\n");
        rig.check("EXISTS a b c", ":1\r\n");
        rig.check("QUIET RENAME c d", "+OK\r\n");
        rig.check("MGET c d", "*2\r\n$-1\r\n$1\r\n3\r\n");
        rig.check("QUIET FLUSHALL", "+OK\r\n");
        rig.check("EXISTS d", ":0\r\n");
    }

    #[test]
    fn errors_are_told() {
        let mut rig = Rig::new(2);
        rig.check("SET k v", "+OK\r\n");
        rig.check(
            "QUIET INCR k",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check(
            "QUIET INCR",
            "-ERR wrong number of arguments for 'incr' command\r\n",
        );
        rig.check(
            "QUIET",
            "-ERR wrong number of arguments for 'quiet' command\r\n",
        );
        assert!(
            rig.run("QUIET NOSUCH x")
                .starts_with("-ERR unknown command 'NOSUCH'")
        );
    }

    #[test]
    fn commands_that_change_no_data_are_refused() {
        let mut rig = Rig::new(1);
        for (request, name) in [
            ("QUIET GET k", "get"),
            ("QUIET PING", "ping"),
            ("QUIET MULTI", "multi"),
            ("QUIET QUIET SET k v", "quiet"),
            ("QUIET CONFIG SET maxclients 1", "config set"),
            ("QUIET SELECT 1", "select"),
        ] {
            let reply = format!("-ERR QUIET runs commands that write, '{name}' does not\r\n");
            rig.check(request, &reply);
        }
        rig.check("EXISTS k", ":0\r\n");
    }

    #[test]
    fn each_within_a_transaction() {
        let mut rig = Rig::new(2);
        rig.check("MULTI", "+OK\r\n");
        rig.check("QUIET INCR a", "+QUEUED\r\n");
        rig.check("INCR a", "+QUEUED\r\n");
        rig.check("QUIET INCR b", "+QUEUED\r\n");
        rig.check("EXEC", "*3\r\n+OK\r\n:2\r\n+OK\r\n");
        rig.check("MULTI", "+OK\r\n");
        rig.check(
            "QUIET GET a",
            "-ERR QUIET runs commands that write, 'get' does not\r\n",
        );
        rig.check(
            "EXEC",
            "-EXECABORT Transaction discarded because of previous errors.\r\n",
        );
    }

    #[test]
    fn counts_and_documents_the_command_itself() {
        let mut rig = Rig::new(1);
        rig.check("QUIET INCR k", "+OK\r\n");
        let stats = rig.run("INFO commandstats");
        assert!(stats.contains("cmdstat_incr:calls=1,"), "{stats}");
        assert!(!stats.contains("cmdstat_quiet"), "{stats}");
        rig.check("COMMAND GETKEYS QUIET SET k v", "*1\r\n$1\r\nk\r\n");
        assert!(
            rig.run("COMMAND DOCS quiet")
                .starts_with("*2\r\n$5\r\nquiet")
        );
    }
}
