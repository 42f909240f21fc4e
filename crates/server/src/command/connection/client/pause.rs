//! CLIENT PAUSE, CLIENT UNPAUSE: makes all clients wait for a while.
//!
//! Administrators are never held back: a pause can always be looked at and
//! ended (in Redis, `CLIENT PAUSE … ALL` stops these commands too).

use super::super::spec;
use super::ADMIN;
use crate::command::SessionCommand;
use crate::front::session::Session;
use rufous_base::Args;
use rufous_command::options::{self, is};
use rufous_command::{Failure, Reply};

pub static PAUSE: SessionCommand = SessionCommand {
    spec: spec(
        "client|pause",
        "3.0.0",
        -3,
        ADMIN,
        "timeout [WRITE | ALL]",
        "Makes commands of all clients wait, or only those that write.",
    ),
    run,
};

pub static UNPAUSE: SessionCommand = SessionCommand {
    spec: spec(
        "client|unpause",
        "6.2.0",
        2,
        ADMIN,
        "",
        "Lets clients that wait go on.",
    ),
    run: |session, _, reply| {
        session.ask_all(
            reply,
            |local, _| local.end_pause(),
            |_, _, reply| reply.ok(),
        );
        Ok(())
    },
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let writes_only = match args.len() {
        3 => false,
        4 if is(args.get(3), "WRITE") => true,
        4 if is(args.get(3), "ALL") => false,
        4 => return Err(Failure::from("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Failure::wrong_arity("client|pause")),
    };
    let out_of_range = || Failure::from("ERR timeout is not an integer or out of range");
    let given = options::integer(args.get(2)).map_err(|_| out_of_range())?;
    let timeout_ms = u64::try_from(given).map_err(|_| Failure::from("ERR timeout is negative"))?;
    let timeout_us = timeout_ms.checked_mul(1000).ok_or_else(out_of_range)?;
    session.ask_all(
        reply,
        move |local, now| local.start_pause(now, timeout_us, writes_only),
        |_, _, reply| reply.ok(),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::front::testing::Rig;

    #[test]
    fn clients_of_every_worker_wait_until_it_is_over() {
        for workers in [1, 3] {
            let mut rig = Rig::new(workers);
            let other = rig.connect(workers - 1);
            rig.check("CLIENT PAUSE 50", "+OK\r\n");
            rig.send(other, b"SET k 1\r\nGET k\r\nPING\r\n");
            rig.advance_ms(49);
            assert_eq!(rig.take(other), "");
            rig.advance_ms(2);
            assert_eq!(rig.take(other), "+OK\r\n$1\r\n1\r\n+PONG\r\n");
        }
    }

    #[test]
    fn writes_wait_and_reads_go_on() {
        let mut rig = Rig::new(3);
        let other = rig.connect(1);
        rig.check("CLIENT PAUSE 100000 write", "+OK\r\n");
        rig.check_on(other, "GET k", "$-1\r\n");
        rig.send(other, b"SET k 1\r\n");
        rig.send(other, b"GET k\r\n");
        assert_eq!(
            rig.take(other),
            "",
            "what follows a write that waits, waits too"
        );
        rig.check("CLIENT UNPAUSE", "+OK\r\n");
        assert_eq!(rig.take(other), "+OK\r\n$1\r\n1\r\n");
    }

    #[test]
    fn those_that_wait_are_counted_as_blocked() {
        let mut rig = Rig::new(3);
        let (one, other) = (rig.connect(1), rig.connect(2));
        rig.check("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
        for (client, count) in [(one, 1), (other, 2)] {
            rig.send(client, b"SET k 1\r\n");
            let info = rig.run("INFO clients");
            assert!(
                info.contains(&format!("\r\nblocked_clients:{count}\r\n")),
                "{info}"
            );
        }
        rig.check("CLIENT UNPAUSE", "+OK\r\n");
        assert!(
            rig.run("INFO clients")
                .contains("\r\nblocked_clients:0\r\n")
        );
    }

    #[test]
    fn who_waits_for_data_gets_none_before_it_is_over() {
        for workers in [1, 3] {
            for ends_itself in [false, true] {
                let mut rig = Rig::new(workers);
                let (first, second) = (rig.connect(workers - 1), rig.connect(0));
                rig.send(first, b"BLPOP k 0\r\n");
                rig.send(second, b"BLPOP other k 0.02\r\n");
                // What pushes and pauses at once: those who push later wait.
                rig.check("MULTI", "+OK\r\n");
                rig.check("CLIENT PAUSE 100 WRITE", "+QUEUED\r\n");
                rig.check("RPUSH k a b", "+QUEUED\r\n");
                rig.check("EXEC", "*2\r\n+OK\r\n:2\r\n");
                rig.check("LLEN k", ":2\r\n");
                rig.advance_ms(50);
                assert_eq!(rig.take(first), "");
                assert_eq!(rig.take(second), "*-1\r\n", "time goes on");
                match ends_itself {
                    true => rig.advance_ms(60),
                    false => rig.check("CLIENT UNPAUSE", "+OK\r\n"),
                }
                assert_eq!(rig.take(first), "*2\r\n$1\r\nk\r\n$1\r\na\r\n");
                rig.check("LRANGE k 0 -1", "*1\r\n$1\r\nb\r\n");
            }
        }
    }

    #[test]
    fn a_later_pause_never_shortens_or_weakens_the_one_under_way() {
        let mut rig = Rig::new(1);
        let other = rig.connect(0);
        rig.check("CLIENT PAUSE 200 ALL", "+OK\r\n");
        rig.check("CLIENT PAUSE 20 WRITE", "+OK\r\n");
        rig.send(other, b"GET k\r\n");
        rig.advance_ms(150);
        assert_eq!(rig.take(other), "");
        rig.advance_ms(60);
        assert_eq!(rig.take(other), "$-1\r\n");
        rig.check("CLIENT PAUSE 100 WRITE", "+OK\r\n");
        rig.check_on(other, "GET k", "$-1\r\n");
    }

    #[test]
    fn replies_left_out_stay_left_out_after_the_wait() {
        let mut rig = Rig::new(1);
        let other = rig.connect(0);
        rig.check("CLIENT PAUSE 100 ALL", "+OK\r\n");
        rig.send(other, b"CLIENT REPLY SKIP\r\nPING\r\nECHO x\r\n");
        assert_eq!(rig.take(other), "");
        rig.check("CLIENT UNPAUSE", "+OK\r\n");
        assert_eq!(rig.take(other), "$1\r\nx\r\n");
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new(1);
        rig.check(
            "CLIENT PAUSE x",
            "-ERR timeout is not an integer or out of range\r\n",
        );
        rig.check(
            "CLIENT PAUSE 9223372036854775807",
            "-ERR timeout is not an integer or out of range\r\n",
        );
        rig.check("CLIENT PAUSE -1", "-ERR timeout is negative\r\n");
        rig.check(
            "CLIENT PAUSE 1 foo",
            "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n",
        );
        rig.check("CLIENT UNPAUSE", "+OK\r\n");
    }
}
