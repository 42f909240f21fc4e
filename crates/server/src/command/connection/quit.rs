//! QUIT: ends the connection once everything before it is answered.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::Flags;

pub static QUIT: SessionCommand = SessionCommand {
    spec: spec(
        "quit",
        "1.0.0",
        -1,
        Flags::FAST
            .or(Flags::NOSCRIPT)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY)
            .or(Flags::AT_ONCE),
        "",
        "Closes the connection.",
    ),
    run: |session, _, reply| {
        reply.ok();
        session.close_after_reply();
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn earlier_requests_are_answered_and_later_ones_ignored() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let client = rig.connect(0);
            rig.send(
                client,
                b"SET a 1\r\nSET b 2\r\nSET c 3\r\nGET a\r\nGET b\r\nGET c\r\nQUIT\r\nSET a 9\r\n",
            );
            let replies = "+OK\r\n+OK\r\n+OK\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n+OK\r\n";
            assert_eq!(rig.take(client), replies);
            assert!(rig.is_closed(client));
            rig.check("GET a", "$1\r\n1\r\n");
        }
    }
}
