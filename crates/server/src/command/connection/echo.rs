//! ECHO: returns what it was given.

use super::spec;
use crate::command::SessionCommand;
use rufous_command::Flags;

pub static ECHO: SessionCommand = SessionCommand {
    spec: spec(
        "echo",
        "1.0.0",
        2,
        Flags::FAST.or(Flags::LOCAL),
        "message",
        "Returns the message.",
    ),
    run: |_, args, reply| {
        reply.bulk(args.get(1));
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn the_message_comes_back() {
        let mut rig = Rig::new(1);
        rig.check("ECHO hello", "$5\r\nhello\r\n");
        rig.check(
            "ECHO",
            "-ERR wrong number of arguments for 'echo' command\r\n",
        );
    }
}
