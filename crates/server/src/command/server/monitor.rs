//! MONITOR: shows the client every request of everybody.

use crate::command::SessionCommand;
use rufous_command::{Flags, Group, Keys, Spec};

pub static MONITOR: SessionCommand = SessionCommand {
    spec: Spec {
        name: "monitor",
        summary: "Sends the client every request that the server receives.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::ADMIN
            .or(Flags::NOSCRIPT)
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::QUEUED_REFUSED),
        keys: Keys::None,
        syntax: "",
    },
    run: |session, _, reply| {
        let connection = session.connection()?;
        if !std::mem::replace(&mut connection.monitor, true) {
            session.local.shared().monitors_changed(1);
        }
        reply.ok();
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn requests_at_every_worker_are_shown() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let (monitor, other) = (rig.connect(0), rig.connect(workers - 1));
            rig.check_on(monitor, "MONITOR", "+OK\r\n");
            rig.run_on(other, "SELECT 2");
            rig.run_on(other, "SET k a\"b\n\u{1}");
            let peer = rig.peer(other);
            let shown = format!(
                "+1700000000.000000 [0 {peer}] \"SELECT\" \"2\"\r\n+1700000000.000000 [2 {peer}] \"SET\" \"k\" \"a\\\"b\\n\\x01\"\r\n"
            );
            assert_eq!(rig.take(monitor), shown);
        }
    }

    #[test]
    fn secrets_and_administration_are_not_shown() {
        let mut rig = Rig::new(1);
        let monitor = rig.connect(0);
        rig.run_on(monitor, "MONITOR");
        rig.run("CONFIG SET requirepass secret");
        rig.run("AUTH secret");
        rig.run("HELLO 2 AUTH default secret");
        let shown = rig.take(monitor);
        assert!(
            !shown.contains("secret") && !shown.contains("CONFIG"),
            "{shown}"
        );
        assert!(shown.contains("\"AUTH\" \"(redacted)\"\r\n"), "{shown}");
        assert!(
            shown.contains("\"HELLO\" \"2\" \"AUTH\" \"(redacted)\" \"(redacted)\"\r\n"),
            "{shown}"
        );
    }

    #[test]
    fn it_ends_with_the_connection() {
        let mut rig = Rig::new(2);
        let monitor = rig.connect(1);
        rig.run_on(monitor, "MONITOR");
        rig.run_on(monitor, "MONITOR");
        assert!(rig.fronts[0].shared.has_monitors());
        rig.run_on(monitor, "QUIT");
        assert!(!rig.fronts[0].shared.has_monitors());
    }
}
