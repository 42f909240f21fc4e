//! TIME: the server's clock.

use crate::command::SessionCommand;
use rufous_command::{Flags, Group, Keys, Spec};

pub static TIME: SessionCommand = SessionCommand {
    spec: Spec {
        name: "time",
        summary: "Returns the server's time: Unix seconds, and microseconds of the second.",
        since: "2.6.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::LOADING
            .or(Flags::STALE)
            .or(Flags::FAST)
            .or(Flags::LOCAL),
        keys: Keys::None,
        syntax: "",
    },
    run: |session, _, reply| {
        reply.array(2);
        reply.bulk(session.now.unix_s().to_string().as_bytes());
        reply.bulk((session.now.unix_us % 1_000_000).to_string().as_bytes());
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn seconds_and_microseconds() {
        let mut rig = Rig::new(1);
        rig.advance_ms(1_250);
        rig.check("TIME", "*2\r\n$10\r\n1700000001\r\n$6\r\n250000\r\n");
    }
}
