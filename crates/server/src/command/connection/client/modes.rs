//! CLIENT NO-EVICT, NO-TOUCH, CROSSSLOT, ROLLBACK-ON-ERROR: how the connection is treated.

use super::super::spec;
use super::ADMIN;
use crate::command::SessionCommand;
use rufous_command::options::is;
use rufous_command::{Failure, Flags, Spec};

pub static NO_EVICT: SessionCommand = SessionCommand {
    spec: spec(
        "client|no-evict",
        "7.0.0",
        3,
        ADMIN,
        "<ON | OFF>",
        "Spares the connection when clients are closed for want of memory.",
    ),
    run: |session, args, reply| {
        session.connection()?.no_evict = on_or_off(args.get(2))?;
        reply.ok();
        Ok(())
    },
};

pub static NO_TOUCH: SessionCommand = SessionCommand {
    spec: spec(
        "client|no-touch",
        "7.2.0",
        3,
        Flags::NOSCRIPT.or(Flags::UNPAUSED),
        "<ON | OFF>",
        "Lets commands of the connection leave no trace in how recently and often keys are used.",
    ),
    run: |session, args, reply| {
        session.connection()?.no_touch = on_or_off(args.get(2))?;
        reply.ok();
        Ok(())
    },
};

pub static CROSSSLOT: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "<ON | OFF>",
        ..spec(
            "client|crossslot",
            "7.2.4",
            3,
            Flags::NOSCRIPT.or(Flags::UNPAUSED).or(Flags::DOOR),
            "",
            "On a connection to the redirecting port: whether requests for other nodes, and for keys of several slots, are served as at the plain port.",
        )
    },
    run: |session, args, reply| {
        let connection = session.connection()?;
        let crosses = on_or_off(args.get(2))?;
        if connection.transaction.is_open() || connection.transaction.is_begun() {
            return Err("ERR CLIENT CROSSSLOT inside a transaction is not allowed".into());
        }
        if connection.transaction.watches() {
            return Err(
                "ERR CLIENT CROSSSLOT is not allowed while keys are watched: send UNWATCH first"
                    .into(),
            );
        }
        connection.crosses_slots = crosses;
        reply.ok();
        Ok(())
    },
};

pub static ROLLBACK_ON_ERROR: SessionCommand = SessionCommand {
    spec: Spec {
        syntax: "<ON | OFF>",
        ..spec(
            "client|rollback-on-error",
            "7.2.4",
            3,
            Flags::NOSCRIPT.or(Flags::UNPAUSED),
            "",
            "Has EXEC and COMMIT of the connection change no key if one of their commands replies an error.",
        )
    },
    run: |session, args, reply| {
        session.connection()?.undoes = on_or_off(args.get(2))?;
        reply.ok();
        Ok(())
    },
};

fn on_or_off(word: &[u8]) -> Result<bool, Failure> {
    match word {
        w if is(w, "ON") => Ok(true),
        w if is(w, "OFF") => Ok(false),
        _ => Err(Failure::SYNTAX),
    }
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn both_show_in_the_list() {
        let mut rig = Rig::new(1);
        rig.check("CLIENT NO-EVICT on", "+OK\r\n");
        rig.check("CLIENT NO-TOUCH on", "+OK\r\n");
        assert!(rig.run("CLIENT INFO").contains(" flags=eT "));
        rig.check("CLIENT NO-EVICT off", "+OK\r\n");
        rig.check("CLIENT NO-TOUCH off", "+OK\r\n");
        assert!(rig.run("CLIENT INFO").contains(" flags=N "));
        rig.check("CLIENT NO-EVICT x", "-ERR syntax error\r\n");
    }
}
