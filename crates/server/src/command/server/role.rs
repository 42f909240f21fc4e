//! ROLE: this server's part in replication.

use crate::command::SessionCommand;
use rufous_command::{Flags, Group, Keys, Spec};

pub static ROLE: SessionCommand = SessionCommand {
    spec: Spec {
        name: "role",
        summary: "Returns the server's role in replication.",
        since: "2.8.12",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::ADMIN
            .or(Flags::NOSCRIPT)
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::FAST)
            .or(Flags::LOCAL),
        keys: Keys::None,
        syntax: "",
    },
    run: |_, _, reply| {
        reply.array(3);
        reply.bulk(b"master");
        reply.integer(0);
        reply.array(0);
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn a_master_without_replicas() {
        Rig::new(1).check("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    }
}
