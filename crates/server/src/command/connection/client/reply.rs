//! CLIENT REPLY: whether the client wants answers at all.

use super::super::spec;
use crate::command::SessionCommand;
use crate::front::replies::ReplyMode;
use rufous_command::options::is;
use rufous_command::{Failure, Flags};

pub static REPLY: SessionCommand = SessionCommand {
    spec: spec(
        "client|reply",
        "3.2.0",
        3,
        Flags::NOSCRIPT.or(Flags::UNPAUSED),
        "<ON | OFF | SKIP>",
        "Turns replies on or off, or leaves out the next one.",
    ),
    run: |session, args, reply| {
        let mode = args.get(2);
        let connection = session.connection()?;
        if is(mode, "ON") {
            connection.replies.mode = ReplyMode::On;
            reply.ok();
        } else if is(mode, "OFF") {
            connection.replies.mode = ReplyMode::Off;
        } else if is(mode, "SKIP") {
            if connection.replies.mode != ReplyMode::Off {
                connection.replies.mode = ReplyMode::SkipNext;
            }
        } else {
            return Err(Failure::SYNTAX);
        }
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn off_and_on() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let client = rig.connect(0);
            rig.send(
                client,
                b"CLIENT REPLY OFF\r\nSET a 1\r\nSET b 2\r\nSET c 3\r\nNOSUCH\r\nDBSIZE\r\n",
            );
            assert_eq!(rig.take(client), "");
            rig.check_on(client, "CLIENT REPLY ON", "+OK\r\n");
            rig.check_on(client, "GET b", "$1\r\n2\r\n");
        }
    }

    #[test]
    fn skip_leaves_out_one_reply_wherever_the_key_lives() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let client = rig.connect(0);
            for key in ["a", "b", "c", "d"] {
                rig.send(
                    client,
                    format!("CLIENT REPLY SKIP\r\nSET {key} 1\r\nGET {key}\r\n").as_bytes(),
                );
                assert_eq!(rig.take(client), "$1\r\n1\r\n");
            }
            rig.send(client, b"CLIENT REPLY SKIP\r\nNOSUCH\r\nPING\r\nCLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nPING\r\nPING\r\n");
            assert_eq!(rig.take(client), "+PONG\r\n+PONG\r\n");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        Rig::new(1).check("CLIENT REPLY maybe", "-ERR syntax error\r\n");
    }
}
