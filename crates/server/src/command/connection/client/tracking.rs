//! CLIENT GETREDIR, CLIENT TRACKINGINFO: whether the server tells this connection which keys
//! changed. It never does, as `CLIENT TRACKING` is not there to ask for it.

use super::super::spec;
use crate::command::SessionCommand;
use rufous_command::Flags;

/// What both say of a connection that is told of no changes.
const NOBODY: i64 = -1;

pub static GETREDIR: SessionCommand = SessionCommand {
    spec: spec(
        "client|getredir",
        "6.0.0",
        2,
        Flags::NOSCRIPT.or(Flags::UNPAUSED),
        "",
        "Returns the connection that invalidations are redirected to: -1, none.",
    ),
    run: |_, _, reply| {
        reply.integer(NOBODY);
        Ok(())
    },
};

pub static TRACKINGINFO: SessionCommand = SessionCommand {
    spec: spec(
        "client|trackinginfo",
        "6.2.0",
        2,
        Flags::NOSCRIPT.or(Flags::UNPAUSED),
        "",
        "Returns the state of client-side caching, which is not supported.",
    ),
    run: |_, _, reply| {
        reply.map(3);
        reply.bulk(b"flags");
        reply.set(1);
        reply.bulk(b"off");
        reply.bulk(b"redirect");
        reply.integer(NOBODY);
        reply.bulk(b"prefixes");
        reply.array(0);
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn nothing_is_tracked() {
        let mut rig = Rig::new(1);
        rig.check("CLIENT GETREDIR", ":-1\r\n");
        rig.check(
            "CLIENT TRACKINGINFO",
            "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n",
        );
        rig.check(
            "CLIENT TRACKING ON",
            "-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.\r\n",
        );
    }
}
