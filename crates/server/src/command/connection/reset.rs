//! RESET: the connection as it was when it was opened.

use super::spec;
use crate::command::SessionCommand;
use crate::front::replies::ReplyMode;
use rufous_command::Flags;
use rufous_resp::Proto;

pub static RESET: SessionCommand = SessionCommand {
    spec: spec(
        "reset",
        "6.2.0",
        1,
        Flags::FAST
            .or(Flags::NOSCRIPT)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY)
            .or(Flags::AT_ONCE)
            .or(Flags::DOOR),
        "",
        "Takes back everything that was set on the connection.",
    ),
    run: |session, _, reply| {
        let open = session.local.config().requirepass.is_empty();
        session.local.end_transaction(session.conn);
        let connection = session.connection()?;
        let id = connection.id;
        let monitored = std::mem::take(&mut connection.monitor);
        connection.db = 0;
        connection.resp3 = false;
        connection.name.clear();
        connection.authenticated = open || connection.info.is_internal();
        connection.replies.mode = ReplyMode::On;
        connection.no_evict = false;
        connection.no_touch = false;
        connection.crosses_slots = false;
        connection.undoes = false;
        if monitored {
            // Waiting lines would come after the reply, when the client expects none.
            session.local.end_monitor(id);
        }
        reply.proto = Proto::Resp2;
        reply.simple("RESET");
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn everything_is_as_at_the_start() {
        let mut rig = Rig::new(1);
        rig.run("HELLO 3 SETNAME me");
        rig.check("SELECT 3", "+OK\r\n");
        rig.check("CLIENT NO-TOUCH on", "+OK\r\n");
        rig.check("RESET", "+RESET\r\n");
        rig.check("CLIENT GETNAME", "$-1\r\n");
        let line = rig.run("CLIENT INFO");
        assert!(
            line.contains(" name= ") && line.contains(" db=0 ") && line.contains(" flags=N "),
            "{line}"
        );
        assert!(line.contains(" resp=2 "), "{line}");
    }

    #[test]
    fn it_ends_monitoring_and_authentication() {
        let mut rig = Rig::new(1);
        let monitor = rig.connect(0);
        rig.check_on(monitor, "MONITOR", "+OK\r\n");
        rig.check_on(monitor, "RESET", "+RESET\r\n");
        rig.check("PING", "+PONG\r\n");
        assert_eq!(rig.take(monitor), "");
        rig.check("CONFIG SET requirepass secret", "+OK\r\n");
        rig.check("PING", "+PONG\r\n");
        rig.check("RESET", "+RESET\r\n");
        rig.check("PING", "-NOAUTH Authentication required.\r\n");
    }

    #[test]
    fn replies_are_on_again() {
        let mut rig = Rig::new(1);
        rig.check("CLIENT REPLY OFF", "");
        rig.check("PING", "");
        rig.check("RESET", "+RESET\r\n");
        rig.check("PING", "+PONG\r\n");
    }
}
