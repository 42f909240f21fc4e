//! CLIENT UNBLOCK: ends the wait of a client in a blocking command. A pause is not ended for one
//! client.

use super::super::spec;
use super::ADMIN;
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::{Args, WorkerId};
use rufous_command::options::{self, is};
use rufous_command::{Failure, Reply};

pub static UNBLOCK: SessionCommand = SessionCommand {
    spec: spec(
        "client|unblock",
        "5.0.0",
        -3,
        ADMIN,
        "client-id [TIMEOUT | ERROR]",
        "Ends the wait of a client in a blocking command, and returns whether it waited.",
    ),
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let with_error = match args.len() {
        3 => false,
        4 if is(args.get(3), "TIMEOUT") => false,
        4 if is(args.get(3), "ERROR") => true,
        4 => {
            return Err(Failure::from(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
        _ => return Err(Failure::wrong_arity("client|unblock")),
    };
    let id = options::integer(args.get(2))?;
    let Some(before) = u64::try_from(id).ok().and_then(|id| id.checked_sub(1)) else {
        reply.integer(0);
        return Ok(());
    };
    let workers = session.local.workers() as u64;
    session.ask_one(
        reply,
        WorkerId((before % workers) as u16),
        move |local, now| local.end_wait_of(now, before + 1, with_error),
        |_, waited, reply| reply.integer(waited.into()),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn nobody_waits_in_a_command() {
        let mut rig = Rig::new(2);
        let other = rig.connect(1);
        rig.check("CLIENT UNBLOCK 1", ":0\r\n");
        rig.check("CLIENT PAUSE 1000 ALL", "+OK\r\n");
        rig.send(other, b"CLIENT ID\r\nGET k\r\n");
        for id in 1..9 {
            rig.check(&format!("CLIENT UNBLOCK {id} timeout"), ":0\r\n");
        }
        assert!(!rig.take(other).contains("$-1"), "it waits on");
        rig.check("CLIENT UNPAUSE", "+OK\r\n");
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new(1);
        rig.check(
            "CLIENT UNBLOCK x",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check(
            "CLIENT UNBLOCK 1 now",
            "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n",
        );
        rig.check(
            "CLIENT UNBLOCK 1 ERROR x",
            "-ERR wrong number of arguments for 'client|unblock' command\r\n",
        );
    }
}
