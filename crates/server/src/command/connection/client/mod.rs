//! CLIENT: what is known of connections, and how they are treated.
//!
//! Map:
//! - [`identity`]: who a client says it is
//! - [`list`], [`line`]: connections as lines of text
//! - [`filter`], [`kill`]: choosing connections and closing them
//! - [`reply`], [`modes`]: how this connection is treated
//! - [`pause`]: making all clients wait
//! - [`waiting`]: ending a client's wait
//! - [`tracking`]: what is known of client-side caches: none is supported

use super::spec;
use crate::command::{SessionCommand, help};
use rufous_command::{Failure, Flags};

pub mod filter;
pub mod identity;
pub mod kill;
pub mod line;
pub mod list;
pub mod modes;
pub mod pause;
pub mod reply;
pub mod tracking;
pub mod waiting;

/// For commands that look at or change other connections.
const ADMIN: Flags = Flags::ADMIN.or(Flags::NOSCRIPT);

pub static CLIENT: SessionCommand = SessionCommand {
    spec: spec(
        "client",
        "2.4.0",
        -2,
        Flags::CONTAINER,
        "",
        "A container for commands on connections.",
    ),
    run: |_, _, _| Err(Failure::wrong_arity("client")),
};

pub static HELP: SessionCommand = SessionCommand {
    spec: spec(
        "client|help",
        "5.0.0",
        2,
        Flags::UNPAUSED,
        "",
        "Lists the subcommands.",
    ),
    run: |session, _, reply| help::list_subcommands(session, "client", reply),
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;
    use rufous_command::Flags;

    #[test]
    fn none_of_them_waits_for_the_end_of_a_pause() {
        let specs = crate::command::table().specs();
        let clients = specs.filter(|(_, spec)| spec.name.starts_with("client|"));
        let held = clients
            .filter(|(_, spec)| !spec.flags.has(Flags::ADMIN) && !spec.flags.has(Flags::UNPAUSED));
        assert_eq!(held.count(), 0);
    }

    #[test]
    fn unknown_subcommands_are_answered_and_nothing_is_closed() {
        let mut rig = Rig::new(1);
        let client = rig.connect(0);
        let reply = "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n";
        rig.check_on(client, "CLIENT MAINT_NOTIFICATIONS ON", reply);
        rig.check_on(
            client,
            "CLIENT",
            "-ERR wrong number of arguments for 'client' command\r\n",
        );
        rig.check_on(client, "PING", "+PONG\r\n");
        let help = rig.run_on(client, "CLIENT HELP");
        assert!(
            help.contains("+CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n")
        );
        assert!(help.contains("+PAUSE timeout [WRITE | ALL]\r\n"), "{help}");
    }
}
